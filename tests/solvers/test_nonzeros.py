"""Weights for a number of nonzeros: monotone and other counts, warm starts, a bound on the number of fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import only_user_warnings
from princomp import SparsePCA
from princomp.datasets import load_wine
from princomp.estimators.sparse import constrained, dictionary
from princomp.estimators.sparse.penalised import weigh_and_fit
from princomp.solvers.nonzeros import bisect_alpha, loosest_alpha, loosest_bound


class Toy:
    """Counts the entries above alpha, and notes what it is asked."""

    def __init__(self, sizes, coupling=0.0):
        self.sizes, self.coupling, self.starts, self.alphas = sizes, coupling, [], []

    def __call__(self, alpha, start):
        self.starts.append(start)
        self.alphas.append(alpha.copy())
        felt = alpha + self.coupling * (alpha.sum() - alpha)  # a component also feels the weights of the others
        return (self.sizes > felt).sum(axis=0), len(self.starts)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6), p=st.integers(2, 60))
def test_every_count_of_distinct_sizes_is_found(seed, k, p):
    rng = np.random.default_rng(seed)
    sizes = rng.permuted(np.linspace(0.1, 10, p)[:, None].repeat(k, axis=1), axis=0)
    target = rng.integers(1, p, size=k)
    toy = Toy(sizes)
    found = bisect_alpha(toy, target, sizes.max(axis=0))
    assert found.nonzeros.tolist() == target.tolist()
    assert found.fits == len(toy.starts) <= 30
    assert ((sizes > found.alpha).sum(axis=0) == target).all()


def test_sizes_of_all_magnitudes():
    sizes = 10.0 ** np.linspace(-6, 0, 50)[:, None]
    for target in (1, 10, 49, 50):
        found = bisect_alpha(Toy(sizes), [target], 1.0)
        assert found.nonzeros.tolist() == [target]


def test_coupled_components():
    rng = np.random.default_rng(0)
    toy = Toy(rng.random((200, 4)) * [1, 2, 3, 4], coupling=0.1)
    found = bisect_alpha(toy, [30, 30, 30, 30], 4.0)
    assert np.abs(found.nonzeros - 30).sum() <= 2
    assert found.fits <= 30


def test_a_jump_over_the_target_gives_the_nearest_count():
    sizes = np.array([[3.0], [2.0], [2.0], [2.0], [2.0], [1.0]])
    found = bisect_alpha(Toy(sizes), [2], 4.0)
    assert found.nonzeros.tolist() == [1]
    found = bisect_alpha(Toy(sizes), [4], 4.0)
    assert found.nonzeros.tolist() == [5]
    assert found.jumps.tolist() == [True]
    assert not bisect_alpha(Toy(sizes), [5], 4.0).jumps.any()


def test_a_target_between_two_close_entries_is_no_jump():
    found = bisect_alpha(Toy(np.array([[3.0], [2.01], [2.0], [1.0]])), [2], 4.0)
    assert found.nonzeros.tolist() == [2]
    assert not found.jumps.any()


def test_counts_that_are_not_monotone():
    """Between .3 and .4 the count rises again: a bracket may hold no answer, the best seen is returned."""

    def fit(alpha, start):
        plain = np.round(20 * (1 - alpha)).astype(int)
        return np.where((alpha > 0.3) & (alpha < 0.4), 19, plain), None

    for target in range(1, 20):
        found = bisect_alpha(fit, [target, 5], 1.0)
        assert found.fits <= 75
        assert found.nonzeros[1] == 5
        reachable = min(abs(12 - target), abs(19 - target)) if 12 < target < 19 else 0  # from the jump at .4
        assert abs(found.nonzeros[0] - target) <= reachable


def test_noisy_counts_end():
    rng = np.random.default_rng(0)
    found = bisect_alpha(lambda alpha, start: (rng.integers(0, 50, size=3), None), [100, 100, 100], 1.0, max_fits=17)
    assert found.fits <= 17


def test_a_target_that_no_weight_reaches_ends_with_no_weight():
    toy = Toy(np.array([[1.0], [2.0]]))
    found = bisect_alpha(toy, [5], 3.0)
    assert found.nonzeros.tolist() == [2]
    assert found.alpha.tolist() == [0.0]
    assert found.fits < 50


def test_warm_starts_come_from_the_best_fit_without_empty_components():
    sizes = np.random.default_rng(0).random((50, 2)) * [1.0, 0.01]
    toy = Toy(sizes)
    found = bisect_alpha(toy, [7, 7], 1.0, start="first")
    assert found.nonzeros.tolist() == [7, 7]
    assert toy.starts[0] == "first"
    counts = [(sizes > alpha).sum(axis=0) for alpha in toy.alphas]
    missed = [np.abs(count - 7).sum() for count in counts]
    for i, source in enumerate(toy.starts[1:], start=1):
        if source == "first":
            assert not any(count.all() for count in counts[:i])
        else:
            assert counts[source - 1].all()
            assert missed[source - 1] == min(miss for miss, count in zip(missed[:i], counts) if count.all())
    assert toy.starts[-1] != "first"


class Hysteresis:
    """Two states that answer for themselves: from the first start a count jumps over the target, from another not."""

    def __call__(self, alpha, start):
        smooth = np.round(20 * (1 - alpha)).astype(int)
        rough = np.where(alpha > 0.1, 2, 20)
        begun_low = bool(start == "smooth" or (alpha < 0.05).all())
        return (smooth, "smooth") if begun_low else (rough, None)


def test_another_beginning_may_lead_to_the_target():
    found = bisect_alpha(Hysteresis(), [10], 1.0)
    assert found.nonzeros.tolist() == [10]
    assert found.start == "smooth"


def test_no_fit_at_all_is_refused():
    with pytest.raises(ValueError, match="max_fits"):
        bisect_alpha(Toy(np.ones((2, 1))), [1], 1.0, max_fits=0)


@pytest.mark.parametrize("target", [[3, 3], [12, 5], [1, 20]], ids=str)
def test_the_loosest_weights_lie_just_above_the_next_entry(target):
    sizes = np.sort(np.random.default_rng(1).exponential(size=(30, 2)), axis=0)[::-1]
    found = loosest_alpha(Toy(sizes), target, sizes.max(axis=0))
    assert found.nonzeros.tolist() == target
    following = sizes[target, [0, 1]]  # at this weight there would be one more
    assert (found.alpha >= following).all()
    assert (found.alpha <= 1.02 * following).all()


def test_a_search_keeps_to_its_budget():
    """That of the first search, then four and half as many as it took, to loosen the weights."""
    rng, fits = np.random.default_rng(0), []

    def never(alpha, start):
        fits.append(alpha)
        return rng.integers(1, 50, size=3), None

    found = loosest_alpha(never, [100, 100, 100], 1.0, max_fits=17)
    assert found.fits == len(fits) <= 17 + 4 + 17 // 2
    assert loosest_alpha(lambda alpha, start: (np.array([3]), None), [3], 1.0).fits == 1 + 4  # any weight will do


@pytest.mark.parametrize("target", [1, 4, 9])
def test_the_loosest_bound_lies_just_below_the_next_entry(target):
    edges, trials = np.arange(1, 10) ** 1.5, []  # from each of these bounds on there is one more

    def count(bound):
        trials.append(bound)
        return int((edges <= bound).sum()), bound

    bound, nonzeros, left = loosest_bound(count, target, 1.0, 31.0)
    assert len(trials) <= 12  # a bound that is right need not be known to more than two digits
    assert nonzeros == target
    assert left == bound
    assert 0.98 * min((target + 1) ** 1.5, 31.0) <= bound < (target + 1) ** 1.5


def test_a_number_that_jumps_is_missed_by_as_little_as_can_be():
    trials = []

    def jumps(bound):
        trials.append(bound)
        return (2 if bound < 3 else 7), None

    assert loosest_bound(jumps, 4, 1.0, 9.0)[1] == 2
    assert len(trials) <= 30
    assert min(abs(trial - 3) for trial in trials) < 1e-5
    trials.clear()
    loosest_bound(jumps, 4, 1.0, 9.0, max_fits=5)
    assert len(trials) == 5


# --- through the estimator ------------------------------------------------------------------------------


def fit_wine(target, **how):
    """The estimator, how many states its fits went through, and its warnings."""
    states = []
    estimator = SparsePCA(3, nonzeros=target, scale=True, random_state=0, callback=states.append, **how)
    with only_user_warnings() as caught:
        estimator.fit(load_wine().X)
    return estimator, len(states), [str(warning.message) for warning in caught]


@pytest.mark.parametrize("formulation", ["dictionary", "regression", "constrained"])
@pytest.mark.parametrize("target", [2, 5, [3, 2, 2]])
def test_wine(formulation, target):
    estimator, _, warned = fit_wine(target, formulation=formulation)
    missed = np.abs(estimator.nonzeros_ - target).sum()
    assert missed <= 1
    assert bool(missed) == any("No weights were found" in message for message in warned)
    assert estimator.certificate_.holds


def test_warm_starts_save_most_of_the_work(monkeypatch):
    _, warm, _ = fit_wine(10, formulation="dictionary")
    monkeypatch.setattr(
        dictionary, "weigh_and_fit", lambda *given, **how: weigh_and_fit(*given, **{**how, "warm": False})
    )
    estimator, cold, _ = fit_wine(10, formulation="dictionary")
    assert estimator.components_.any(axis=1).all()
    assert warm <= 0.5 * cold


@pytest.mark.parametrize("seed", range(4))
def test_a_search_that_leads_nowhere_ends(seed):
    """Six components of six rows: the last has no variance. The search of seed 2 took 94 s."""
    states = []
    sparse = SparsePCA(nonzeros=3, formulation="regression", callback=states.append)
    with only_user_warnings() as warned:
        sparse.fit(np.random.default_rng(seed).normal(size=(6, 12)))
    assert any("ended with its budget of 300 iterations, after" in str(one.message) for one in warned)
    assert len(states) < 500
    assert sparse.result_.status
    assert sparse.certificate_.holds


@pytest.mark.parametrize(("module", "formulation"), [(dictionary, "dictionary"), (constrained, "constrained")])
def test_every_search_has_a_budget(module, formulation, monkeypatch):
    monkeypatch.setattr(module, "BUDGET", 5)
    with only_user_warnings() as warned:
        sparse = SparsePCA(3, nonzeros=4, formulation=formulation, random_state=0).fit(load_wine().X)
    assert any("ended with its budget of 5 iterations" in str(one.message) for one in warned)
    assert sparse.certificate_.holds  # what was found is finished


def test_work_ends_a_search():
    done = [0]

    def fit(alpha, start):
        done[0] += 1
        return np.random.default_rng(done[0]).integers(0, 50, size=3), None

    for search in (bisect_alpha, loosest_alpha):
        done[0] = 0
        assert search(fit, [100, 100, 100], 1.0, work=lambda: done[0] / 7).fits == done[0] == 7
    done[0] = 0

    def count(bound):
        done[0] += 1
        return int(bound > 3) * 10, bound

    assert loosest_bound(count, 5, 1.0, 9.0, work=lambda: done[0] / 4)[1] == 10
    assert done[0] == 4


def test_a_jump_is_said():
    """Copies of a column come and go together: no weight keeps one of two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3)) * [3.0, 2.0, 1.0]
    twice = np.repeat(X, 2, axis=1)
    for formulation in ("dictionary", "regression"):
        with pytest.warns(UserWarning, match=r"leave \[1\] nonzeros.*leave \[2\].*component 0 .*jumps over the target"):
            SparsePCA(1, formulation=formulation, nonzeros=1, random_state=0).fit(twice)
