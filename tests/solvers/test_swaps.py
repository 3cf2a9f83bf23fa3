"""Swaps in a plane: they ascend, what they return is what it says, and in the end no pair helps."""

import numpy as np
import pytest

from princomp.solvers import swaps
from princomp.solvers.deflation import deflated
from princomp.solvers.exchange import Units
from princomp.solvers.scatter import Data, Matrix
from princomp.solvers.swaps import swapped

KINDS = ("schur", "hotelling")


def begun(seed, way="matrix", kind="schur", n=30, p=50, count=15):
    """What a component left of noise, units of which two are forced in, and a set of features with loadings."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    x = np.where(np.arange(p) < 5, 1.0, 0.0)
    A = deflated(Matrix(X.T @ X) if way == "matrix" else Data(X), kind).without(x / np.linalg.norm(x))
    units = Units(None, np.isin(np.arange(p), [7, 8]))
    chosen = np.isin(np.arange(p), np.append(rng.permutation(p)[:count], [7, 8]))
    v = np.where(chosen, rng.standard_normal(p), 0.0)
    return A, units, chosen, v / np.linalg.norm(v)


@pytest.mark.parametrize("way", ["matrix", "data"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_they_ascend_and_say_what_they_reach(seed, kind, way):
    A, units, chosen, v = begun(seed, way, kind)
    whole = A.rows(np.arange(50))
    after, w, value, work = swapped(A, units, chosen, v)
    assert after.sum() == chosen.sum()
    assert after[[7, 8]].all()
    assert (w[~after] == 0).all()
    assert np.linalg.norm(w) == pytest.approx(1, rel=1e-12)
    assert value == pytest.approx(w @ whole @ w, rel=1e-10)
    assert value > v @ whole @ v
    assert work > 0


@pytest.mark.parametrize("seed", range(4))
def test_in_the_end_no_pair_in_a_plane_helps(seed, monkeypatch):
    monkeypatch.setattr(swaps, "PAIRS", 50)  # all of them
    A, units, chosen, v = begun(seed)
    after, w, value, _ = swapped(A, units, chosen, v)
    for out in np.flatnonzero(after & ~units.forced):
        rest = np.where(np.arange(50) == out, 0.0, w)
        rest /= np.linalg.norm(rest)
        for into in np.flatnonzero(~after):
            plane = np.column_stack([rest, np.eye(50)[into]])
            assert np.linalg.eigvalsh(plane.T @ A.matrix @ plane)[-1] <= value * (1 + 1e-9)


def test_forced_features_that_do_not_vary_stay_in():
    X = np.random.default_rng(0).standard_normal((30, 50))
    X[:, [7, 8]] = 0.0
    A = deflated(Matrix(X.T @ X), "schur")
    _, units, chosen, v = begun(0)
    v = np.where(np.isin(np.arange(50), [7, 8]), 0.0, v)
    after, w, value, _ = swapped(A, units, chosen, v / np.linalg.norm(v))
    assert after[[7, 8]].all()
    assert after.sum() == chosen.sum()
    assert value == pytest.approx(w @ A.matrix @ w)


def test_their_work_is_bounded(monkeypatch):
    A, units, chosen, v = begun(0)
    unbounded = swapped(A, units, chosen, v)
    monkeypatch.setattr(swaps, "SWAP_WORK", 1.0)
    bounded = swapped(A, units, chosen, v)
    assert bounded[3] < unbounded[3]
    assert v @ A.matrix @ v < bounded[2] <= unbounded[2]


def test_nothing_to_swap_is_left_alone():
    A, _, chosen, v = begun(0)
    for units, inside in ((Units(None, chosen), chosen), (Units(None, np.zeros(50, dtype=bool)), np.ones(50, bool))):
        after, w, value, _ = swapped(A, units, inside, v)
        assert (after == inside).all()
        assert (w == v).all()
        assert value == pytest.approx(v @ A.matrix @ v)
