"""Weights for a number of nonzeros: monotone and other counts, warm starts, a bound on the number of fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from princomp.solvers.nonzeros import bisect_alpha


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
    assert found.fits <= 30


def test_counts_that_are_not_monotone():
    """Between .3 and .4 the count rises again: a bracket may hold no answer, the best seen is returned."""

    def fit(alpha, start):
        plain = np.round(20 * (1 - alpha)).astype(int)
        return np.where((alpha > 0.3) & (alpha < 0.4), 19, plain), None

    for target in range(1, 20):
        found = bisect_alpha(fit, [target, 5], 1.0)
        assert found.fits <= 30
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
    assert found.fits < 30


def test_warm_starts_come_from_fits_without_empty_components():
    toy = Toy(np.array([[1.0, 0.01], [2.0, 0.02]]))
    bisect_alpha(toy, [1, 1], 3.0, start="first")
    assert toy.starts[0] == "first"
    for i, given_start in enumerate(toy.starts[1:]):
        source = 0 if given_start == "first" else given_start
        assert source <= i + 1
        if source:
            assert ((toy.sizes > toy.alphas[source - 1]).sum(axis=0) > 0).all()
    assert toy.starts[-1] != toy.starts[0]


def test_no_fit_at_all_is_refused():
    with pytest.raises(ValueError, match="max_fits"):
        bisect_alpha(Toy(np.ones((2, 1))), [1], 1.0, max_fits=0)
