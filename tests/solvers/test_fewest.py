"""Which counts are searched for: few of them, the right one in the end, and no more work than is allowed."""

import numpy as np
import pytest

from princomp.solvers import fewest

P = 400


def searched(height, target, *, high=300, power=0.5, work=lambda whole: 1.0, begun=0.0):
    """Run a search in which so many units reach ``height(count, whole)``; return its end and the counts tried."""
    value, tried = fewest.start(P) | fewest.of_share(target, 1, high, power, height(high, False)), []
    value["begun"] = np.array(begun)
    while not value["done"]:
        count, whole = int(value["count"]), bool(value["whole"])
        tried.append((count, whole))
        v = np.full(P, float(count))
        value |= fewest.judged(value, v, height(count, whole), work(whole), P)
        assert len(tried) < 100
    return value, tried


def test_a_count_that_is_given_is_searched_for_once():
    value = fewest.start(P) | fewest.of_count(7)
    value |= fewest.judged(value, np.ones(P), 2.0, 1e12, P)
    assert value["done"]
    assert (int(value["high"]), float(value["height"])) == (7, 2.0)
    assert not fewest.was_cut(value)


@pytest.mark.parametrize("power", [0.2, 0.5, 1.0])  # what is guessed of it
@pytest.mark.parametrize("target", [5.0, 10.0, 15.0])
def test_the_fewest_are_found_whatever_the_power(target, power):
    value, tried = searched(lambda count, whole: np.sqrt(count), target, power=power)
    assert int(value["high"]) == target**2
    assert (value["best"] == target**2).all()
    assert not fewest.was_cut(value)
    assert tried[-1][1]


def test_what_only_searches_from_all_starts_find_counts():
    value, _ = searched(lambda count, whole: np.sqrt(count) * (1.02 if whole else 1.0), 10.0)
    assert int(value["high"]) == 97
    assert float(value["height"]) == pytest.approx(1.02 * np.sqrt(97))


def test_a_search_from_all_starts_that_fails_is_followed_by_more_units():
    value, _ = searched(lambda count, whole: np.sqrt(count) * (0.99 if whole else 1.0), 10.0)
    assert int(value["high"]) == 103
    assert float(value["height"]) >= 10.0


@pytest.mark.parametrize("begun", [0.0, 1e9])
def test_the_work_is_bounded_and_the_end_says_so(begun):
    def height(count, whole):
        return np.sqrt(count) * (1.1 if whole else 1.0)

    value, tried = searched(height, 10.0, work=lambda whole: 1e9, begun=begun)
    assert [whole for _, whole in tried].count(True) == 1
    assert int(value["high"]) == 100
    assert fewest.was_cut(value)
    assert float(value["spent"]) == 1e9


def test_all_units_are_enough_whatever_rounding_says():
    value, _ = searched(lambda count, whole: count / P * (1 - 1e-15), 1.0, high=P, power=1.0)
    assert int(value["high"]) == P
