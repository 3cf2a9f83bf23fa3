"""Least absolute deviations: the best there is, by a linear program and a dual point; clean cells; odd rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from princomp.certificates.deviations import deviations_gap
from princomp.data import Centered, as_rows
from princomp.estimators.robust.scores import cell_residuals, clean_cells, filled, robust_scores
from princomp.solvers.robust import deviations
from princomp.solvers.robust.bounded import Spreads, bounded_scores
from princomp.solvers.robust.deviations import LIMIT, Pull, clean_scores, least_deviations

P, K = 200, 10


def orthonormal(rng, p=P, k=K):
    return np.linalg.qr(rng.normal(size=(p, k)))[0]


def planted(n, noise=0.0, share=0.1, size=20.0, seed=0, missing=0.0):
    """Rows, the directions, the scores, and which cells are corrupted."""
    rng = np.random.default_rng(seed)
    V, Z = orthonormal(rng), np.sqrt(P) * rng.normal(size=(n, K))
    X = Z @ V.T + noise * rng.normal(size=(n, P))
    bad = rng.random((n, P)) < share
    X[bad] += size * rng.choice([-1.0, 1.0], bad.sum())
    X[rng.random((n, P)) < missing] = np.nan
    return X, V, Z, bad


def spreads(V, noise):
    """Of columns: of normal errors, and of what was planted."""
    return Spreads(np.full(P, noise), np.sqrt(P * (V**2).sum(axis=1) + noise**2))


def by_linear_program(x, V):
    there = ~np.isnan(x)
    A, m, k = V[there], int(there.sum()), V.shape[1]
    parts = np.hstack([A, -A, np.eye(m), -np.eye(m)])
    return linprog(np.r_[np.zeros(2 * k), np.ones(2 * m)], A_eq=parts, b_eq=x[there], bounds=(0, None)).fun


def deviation(x, V, z):
    return np.nansum(np.abs(x - V @ z))


def mean_error(Z, found):
    return np.linalg.norm(found - Z, axis=1).mean()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 25),
    k=st.integers(1, 6),
    spread=st.sampled_from([0.0, 3.0]),
    missing=st.sampled_from([0.0, 0.3]),
    whole=st.booleans(),
)
def test_no_linear_program_finds_less(seed, p, k, spread, missing, whole):
    rng = np.random.default_rng(seed)
    V = orthonormal(rng, p, min(k, p))
    X = rng.normal(size=(3, p)) * np.exp(spread * rng.normal(size=(3, p)))
    X = np.round(X) if whole else X  # ties
    X[rng.random((3, p)) < missing] = np.nan
    found = least_deviations(X, V)
    gaps = deviations_gap(X, V, found.Z, found.Y)
    for x, z, gap in zip(X, found.Z, gaps):
        size = 1e-9 * np.nansum(np.abs(x))
        if not np.isnan(x).all():
            assert deviation(x, V, z) <= by_linear_program(x, V) + size
        assert -size <= gap <= size


def test_the_dual_point_does_not_certify_what_is_not_best():
    X, V, Z, _ = planted(5, noise=1.0)
    found = least_deviations(X, V)
    off = np.array([deviation(x, V, z) for x, z in zip(X, Z)]) - [deviation(x, V, z) for x, z in zip(X, found.Z)]
    assert (off > 1e-3).all()  # the planted scores are not where deviations are least
    np.testing.assert_allclose(deviations_gap(X, V, Z, found.Y), off, rtol=1e-6)
    assert (deviations_gap(X, V, found.Z, 5 * np.sign(X)) > 1e-3).all()  # nor does any dual point do


@pytest.mark.parametrize("size", [20.0, 1e3, 1e10])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_without_noise_scores_are_exact(size, missing):
    X, V, Z, bad = planted(200, size=size, missing=missing)
    assert np.abs(least_deviations(X, V).Z - Z).max() < 1e-8
    found = clean_scores(X, V)
    assert np.abs(found.Z - Z).max() < 1e-12
    assert (found.clean == (~bad & ~np.isnan(X))).all()


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_with_noise_scores_are_those_of_the_clean_cells(noise, known, missing):
    """Near least squares by one who knows which cells are clean, where ordinary projection is six to 600 times off."""
    X, V, Z, bad = planted(500, noise, missing=missing)
    clean = ~bad & ~np.isnan(X)
    best = mean_error(Z, [np.linalg.lstsq(V[c], x[c], rcond=None)[0] for x, c in zip(X, clean)])
    found = bounded_scores(X, V, spreads(V, noise)) if known else clean_scores(X, V)
    assert mean_error(Z, found.Z) < 1.05 * best
    assert mean_error(Z, np.nan_to_num(X) @ V) > 5 * best
    assert not (found.clean & bad).any()
    flagged = (~found.clean & clean).sum() / clean.sum()
    assert 0.002 < flagged < 0.015  # about the 1 % that lie beyond the limit


def test_a_row_of_other_noise_is_judged_by_its_own_for_its_score():
    X, V, Z, bad = planted(300, noise=1.0)
    found = bounded_scores(X, V, spreads(V, 0.01))  # a hundredth of the noise there is
    best = mean_error(Z, [np.linalg.lstsq(V[~b], x[~b], rcond=None)[0] for x, b in zip(X, bad)])
    assert mean_error(Z, found.Z) < 1.05 * best
    assert found.clean.mean() < 0.1  # but all its cells stand out
    np.testing.assert_allclose(found.residuals, (X - found.Z @ V.T) / 0.01)
    assert (found.scales > 50).all()


def test_few_cells_or_none():
    """Of least norm; nothing but zeros, where nothing is known."""
    rng = np.random.default_rng(0)
    V, X = orthonormal(rng, 12, 4), rng.normal(size=(6, 12))
    X[0, :] = np.nan
    X[1, 1:] = np.nan
    X[2, 3:] = np.nan
    X[3, 4:] = np.nan
    X[4, 5:] = np.nan
    found, scores = least_deviations(X, V), clean_scores(X, V)
    assert np.isfinite(found.Z).all()
    assert np.isfinite(scores.Z).all()
    assert not found.Z[0].any()
    assert not scores.Z[0].any()
    assert not scores.clean[0].any()
    for row in (1, 2, 3):
        there = ~np.isnan(X[row])
        least = np.linalg.lstsq(V[there], X[row, there], rcond=None)[0]
        np.testing.assert_allclose(found.Z[row], least, atol=1e-7)
        np.testing.assert_allclose(scores.Z[row], least, atol=1e-7)
        assert (scores.clean[row] == there).all()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_few_cells_or_none_of_known_noise(noise):
    """They fit exactly, however small the noise: no cell is so far out that it does not count."""
    rng = np.random.default_rng(0)
    V, X = orthonormal(rng, 12, 4), rng.normal(size=(4, 12))
    for row, cells in enumerate((0, 1, 3, 4)):
        X[row, cells:] = np.nan
    found = bounded_scores(X, V, Spreads(np.full(12, noise), np.ones(12)))
    assert not found.Z[0].any()
    assert (found.clean == ~np.isnan(X)).all()
    for row in (1, 2, 3):
        there = ~np.isnan(X[row])
        np.testing.assert_allclose(found.Z[row], np.linalg.lstsq(V[there], X[row, there])[0], atol=1e-10)


@pytest.mark.parametrize(("n", "p", "k"), [(0, 5, 2), (1, 1, 1), (2, 3, 3), (3, 40, 30), (4, 5, 1)])
def test_odd_shapes(n, p, k):
    rng = np.random.default_rng(0)
    V, X = orthonormal(rng, p, k), rng.normal(size=(n, p))
    found = clean_scores(X, V)
    assert found.Z.shape == (n, k)
    assert found.residuals.shape == found.clean.shape == (n, p)
    assert np.isfinite(found.Z).all()
    if k == p:
        np.testing.assert_allclose(found.Z, X @ V, atol=1e-12)


def test_rows_in_the_plane_and_rows_of_zeros():
    X, V, Z, _ = planted(4, share=0.0)
    X[0], Z[0] = 0.0, 0.0
    found = clean_scores(X, V)
    np.testing.assert_allclose(found.Z, Z, atol=1e-12)
    assert found.clean.all()
    assert (np.abs(found.residuals) <= LIMIT).all()


def test_single_precision_has_its_own_rounding():
    """Cells are rounded by 6e-8: no clean cell may be called wild for it, nor are more digits claimed."""
    X, V, Z, bad = planted(100)
    found = clean_scores(X.astype(np.float32), V)
    assert found.Z.dtype == np.float64
    assert 1e-10 < np.abs(found.Z - Z).max() < 2e-5
    assert (found.clean == ~bad).all()


def test_any_unit():
    X, V, _, _ = planted(20, noise=0.3)
    here = clean_scores(X, V)
    for unit in (1e-140, 1e140):
        there = clean_scores(unit * X, V)
        np.testing.assert_allclose(there.Z, unit * here.Z, rtol=1e-9)
        assert (there.clean == here.clean).all()


def test_tiles_and_matrices_one_by_one_are_the_same(monkeypatch):
    X, V, _, _ = planted(50, noise=0.3, missing=0.1)
    here = clean_scores(X, V)
    monkeypatch.setattr(deviations, "TILE_BYTES", 8 * P * 7)
    monkeypatch.setattr(deviations, "PAIR_BYTES", 0)
    monkeypatch.setattr(deviations, "GRAM_BYTES", 8 * P * K * 3)
    there = clean_scores(X, V)
    np.testing.assert_allclose(there.Z, here.Z, rtol=1e-10)
    assert (there.clean == here.clean).all()


def test_blocks():
    X, V, Z, bad = planted(60, missing=0.1)
    mean = np.arange(P) / 10.0
    rows = Centered(as_rows(X + mean), mean)
    np.testing.assert_allclose(rows.map(robust_scores, V, None, width=K, dtype=np.float64), Z, atol=1e-11)
    scores, residuals, clean = rows.map(clean_cells, V, width=(K, P, P), dtype=(np.float64, np.float64, bool))
    assert clean.dtype == bool
    assert (clean == (~bad & ~np.isnan(X))).all()
    assert (np.isnan(residuals) == np.isnan(X)).all()
    np.testing.assert_array_equal(rows.map(cell_residuals, V, width=P, dtype=np.float64), residuals)
    whole = rows.map(filled, V, None, LIMIT, True, width=P, dtype=np.float64)
    np.testing.assert_allclose(whole, Z @ V.T, atol=1e-10)
    imputed = rows.map(filled, V, width=P, dtype=np.float64)
    there = ~np.isnan(X)
    np.testing.assert_allclose(imputed[there], X[there], atol=1e-12)
    np.testing.assert_allclose(imputed[~there], (scores @ V.T)[~there])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_with_a_pull_a_dual_point_proves_the_least_cost(missing):
    """Scores cost (z + c)'P(z + c) / 2 besides: no z does better if some |y| <= 1 has V'y = P(z + c), y'r = sum|r|."""
    rng = np.random.default_rng(5)
    V = np.linalg.qr(rng.normal(size=(40, 4)))[0]
    X = 3 * rng.normal(size=(25, 4)) @ V.T + rng.normal(size=(25, 40))
    X[rng.random(X.shape) < 0.1] += 50.0
    X[rng.random(X.shape) < missing] = np.nan
    X[0, 3:] = np.nan  # fewer cells than scores
    pull = Pull(np.diag([4.0, 2.0, 1.0, 0.1]), rng.normal(size=4))
    found = least_deviations(X, V, pull=pull)
    left = np.nan_to_num(X - found.Z @ V.T)
    assert np.abs(found.Y).max() <= 1 + 1e-12
    np.testing.assert_allclose((found.Y @ V - (found.Z + pull.c) @ pull.P)[1:], 0, atol=1e-6)
    np.testing.assert_allclose((found.Y * left).sum(axis=1), np.abs(left).sum(axis=1), rtol=1e-8, atol=1e-8)
    assert np.abs(found.Z - least_deviations(X, V).Z).max() > 0.1
