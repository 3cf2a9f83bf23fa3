"""Rows with missing or weighted cells, and losses that wild cells do not rule."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp import sparse_encode
from princomp._compiled import loops
from princomp.coders import cells
from princomp.coders.cells import code_cells
from princomp.coders.lasso import Lasso
from princomp.coders.proximal import Proximal
from princomp.coders.pursuit import Pursuit
from princomp.coders.robust import code_robust, objectives
from princomp.losses import Absolute, Huber, Power, Squared, as_loss
from princomp.penalties import L0, L1, Box, Groups, L2Ball, Lp

K, P, M = 10, 7, 30
GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7], [8, 9]]
CODERS = {
    "l1": Lasso(0.1, tol=1e-12),
    "groups": Proximal(Groups(0.1, GROUPS), tol=1e-10),
    "lp": Proximal(Lp(0.05, 0.5), tol=1e-9),
    "pursuit": Pursuit(3),
    "pursuit, omp": Pursuit(3, 0.3, "omp"),
}
any_coder = pytest.mark.parametrize("coder", CODERS.values(), ids=CODERS)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(K, P)) * rng.uniform(0.5, 1.5, (K, 1))
    X = rng.normal(size=(M, P))
    X[rng.random((M, P)) < 0.25] = np.nan
    X[3] = np.nan  # nothing
    X[4, 1:] = np.nan  # one cell
    X[10:16] = np.where(np.arange(P) == 2, np.nan, rng.normal(size=(6, P)))  # one pattern
    X[20:22] = np.where(np.arange(P) > 3, np.nan, rng.normal(size=(2, P)))  # one of two rows
    X[5] = rng.normal(size=P)
    return D, X


def check_removed(coder, D, x, code, weights):
    """It is the code with the columns removed that the row lacks, and others multiplied by the root of their weight."""
    there = ~np.isnan(x) & (weights > 0)
    if not there.any():
        assert not code.any()
        return
    root = np.sqrt(weights[there])
    part, row = D[:, there] * root, (x[there] * root)[None]
    expected = coder.code((part @ part.T)[None], row @ part.T, (row**2).sum(axis=1)).toarray()[0]
    # With fewer cells than atoms many codes fit exactly; with as many, any last atom that lowers the error most does.
    if isinstance(coder, Pursuit) and there.sum() < coder.nonzeros + (coder.selection == "ols"):
        assert np.linalg.norm(row - code @ part) <= (coder.error or 0.0) + 1e-9
    else:
        np.testing.assert_allclose(code, expected, atol=1e-5)


@any_coder
def test_missing_cells_are_columns_removed(coder, problem):
    D, X = problem
    codes = code_cells(X, D, coder)
    assert codes.shape == (M, K)
    assert codes[[3]].nnz == 0
    for x, code in zip(X, codes.toarray()):
        check_removed(coder, D, x, code, np.ones(P))


@any_coder
def test_weights_of_cells_are_columns_multiplied(coder, problem):
    D, X = problem
    weights = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 2.5], size=X.shape)
    weights[7] = 0.0
    codes = code_cells(X, D, coder, weights).toarray()
    assert not codes[7].any()
    for x, w, code in zip(X, weights, codes):
        check_removed(coder, D, x, code, w)


def test_matrices_of_rows_are_those_of_weighted_columns(problem):
    D, X = problem
    weights = np.random.default_rng(2).choice([0.0, 0.3, 1.0, 2.5], size=X.shape)
    weights[0], weights[1], weights[2] = 1.0, 0.0, np.where(np.arange(P) == 3, 0.0, 1.0)
    full = D @ D.T
    for w, fast in zip(weights, loops("coding_cells").grams(D, weights, full), strict=True):
        np.testing.assert_allclose(fast, (D * w) @ D.T, atol=1e-13)
        np.testing.assert_allclose(cells.gram_of(full, D, w), fast, atol=1e-13)
        np.testing.assert_array_equal(fast, fast.T)


@pytest.mark.parametrize("tile", [1, 3, 1000])
def test_tiles_of_any_size_and_shared_patterns_change_nothing(tile, problem, monkeypatch):
    D, X = problem
    expected = code_cells(X, D, CODERS["pursuit"]).toarray()
    monkeypatch.setattr(cells, "GRAM_BYTES", tile * 8 * K * K)
    for shared in (1, 1000):
        monkeypatch.setattr(cells, "SHARED", shared)
        np.testing.assert_allclose(code_cells(X, D, CODERS["pursuit"]).toarray(), expected, atol=1e-12)


def test_matrices_are_never_more_than_there_is_room_for(problem, monkeypatch):
    D, X = problem
    seen = []

    class Watched:
        optimal = True

        def code(self, gram, correlations, squares, start=None):
            seen.append(gram.shape[0])
            assert len(gram) in (1, len(correlations))
            return sp.csr_array(correlations.shape, dtype=correlations.dtype)

    monkeypatch.setattr(cells, "GRAM_BYTES", 4 * 8 * K * K)
    code_cells(X, D, Watched())
    assert max(seen) == 4
    # patterns of many rows have one matrix: rows 10 to 15, and rows without gaps
    assert seen.count(1) >= 1
    assert sum(seen) < M


def test_complete_rows_are_coded_as_ever_and_types_stay(problem):
    D, _ = problem
    X = np.random.default_rng(2).normal(size=(20, P))
    whole = Pursuit(3).code((D @ D.T)[None], X @ D.T, (X**2).sum(axis=1))
    np.testing.assert_allclose(code_cells(X, D, Pursuit(3)).toarray(), whole.toarray(), atol=1e-12)
    assert code_cells(X.astype(np.float32), D, Pursuit(3)).dtype == np.float32
    assert code_cells(X[:0], D, Pursuit(3)).shape == (0, K)
    assert code_cells(np.full((3, P), np.nan), D, Pursuit(3)).nnz == 0


def test_a_row_without_cells_has_the_code_zero_whatever_the_penalty(problem):
    D, X = problem
    codes = code_cells(X, D, Proximal(Box(0.5, 1.0)))
    assert codes[[3]].nnz == 0
    assert (codes[[4]].toarray() >= 0.5).all()


def test_a_start_goes_with_its_row(problem):
    D, X = problem
    seen = []
    first = sp.csr_array(np.diag(np.arange(1.0, 1 + M))[:, :K])

    class Watched:
        optimal = True

        def code(self, gram, correlations, squares, start=None):
            seen.append((correlations, start.toarray()))
            return start

    codes = code_cells(X, D, Watched(), start=first)
    np.testing.assert_array_equal(codes.toarray(), np.where(np.isnan(X).all(axis=1)[:, None], 0, first.toarray()))
    rows = np.nan_to_num(X) @ D.T
    for correlations, start in seen:
        for c, a in zip(correlations, start):
            k = int(a.argmax())
            assert not a.any() or np.allclose(rows[k], c)


# --- losses -------------------------------------------------------------------------------------

LOSSES = {"squared": Squared(), "huber": Huber(0.5), "absolute": Absolute(1e-3), "power": Power(1.5, 1e-3, 2.0)}
any_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@any_loss
def test_a_loss_is_what_its_slopes_and_weights_say(loss):
    r = np.concatenate([np.linspace(-3, 3, 4001), [0.0, 1e-4, 5e-4, 0.5, -0.5]])
    step = 1e-7
    slopes = (loss.values(r + step) - loss.values(r - step)) / (2 * step)
    np.testing.assert_allclose(loss.gradient(r), slopes, atol=2e-4 * loss.weights(r).max())
    np.testing.assert_allclose(2 * loss.weights(r) * r, loss.gradient(r), rtol=1e-12)
    assert loss.value(r) == pytest.approx(loss.values(r).sum())
    assert loss.values(np.zeros(1)) == 0
    # a square with its weight lies above it everywhere, and touches it
    for at in (0.0, 3e-4, 0.01, 0.4, 2.0):
        weight = loss.weights(np.array([at]))
        assert (loss.values(r) <= loss.values(np.array([at])) + weight * (r**2 - at**2) + 1e-12).all()
    unit = loss.in_units(3.0)
    np.testing.assert_allclose(unit.values(3.0 * r), 9.0 * loss.values(r), rtol=1e-12)


def test_powers_are_near_what_they_smooth():
    r = np.linspace(-2, 2, 1001)
    for q in (1.0, 1.3, 1.9):
        off = np.abs(r) ** q - Power(q, 1e-2).values(r)
        assert (off >= -1e-15).all()
        assert off.max() <= (1 - q / 2) * 1e-2**q + 1e-15
    np.testing.assert_array_equal(Power(1.0, 0.1).values(r), Absolute(0.1).values(r))
    np.testing.assert_allclose(Absolute(0.1).values(r), Huber(0.1).values(r) / 0.2, rtol=1e-12)


def test_losses_by_name():
    assert [as_loss(name, 2.0) for name in ("l2", "huber", "l1")] == [Squared(), Huber(2.69), Absolute(2e-3)]
    assert as_loss(Huber(3.0)) == Huber(3.0)
    with pytest.raises(ValueError, match="'l2', 'huber', 'l1'"):
        as_loss("cauchy")
    with pytest.raises(TypeError, match=r"princomp\.losses"):
        as_loss(3)
    for wrong in (lambda: Power(2.0), lambda: Power(0.9), lambda: Power(1.5, 0.0), lambda: Absolute(scale=-1.0)):
        with pytest.raises(ValueError, match=r"q must|smoothing must|scale must"):
            wrong()


@any_loss
@pytest.mark.parametrize("coder", [Lasso(0.1), Proximal(Groups(0.1, GROUPS)), Proximal(L0(0.05)), Pursuit(3)], ids=repr)
def test_robust_codes_are_no_worse_than_those_of_squares_and_never_rise(loss, coder, problem):
    D, X = problem
    X = X[:10]
    X[5:, 1] = 30.0
    squares = code_cells(X, D, coder)
    before = objectives(X, D, squares, coder, loss)
    for rounds in (1, 2, 8):
        codes = code_robust(X, D, coder, loss, rounds=rounds)
        found = objectives(X, D, codes, coder, loss)
        assert (found <= before + 1e-12).all()
        before = found


@pytest.mark.parametrize("name", ["huber", "absolute", "power"])
def test_robust_codes_are_minimisers(name, problem):
    """Against a generic solver, of few variables."""
    from scipy.optimize import minimize

    D, X = problem
    X, D, loss = X[6:9], D[:3], LOSSES[name]
    X[1, 2] = 20.0
    coder = Proximal(L2Ball(2.0), tol=1e-12)
    codes = code_robust(X, D, coder, loss, tol=1e-13, rounds=3000).toarray()
    for x, code in zip(X, codes):

        def value(a, x=x):
            return loss.value(np.nan_to_num(x - a @ D)) / 2

        best = min(
            minimize(
                value,
                a,
                jac=lambda a, x=x: -D @ loss.gradient(np.nan_to_num(x - a @ D)) / 2,
                constraints={"type": "ineq", "fun": lambda a: 4.0 - a @ a, "jac": lambda a: -2 * a},
                method="SLSQP",
                options={"maxiter": 1000, "ftol": 1e-14},
            ).fun
            for a in (np.zeros(3), 0.9 * code)
        )
        assert value(code) <= best + 1e-4 * (1 + abs(best))


@pytest.mark.parametrize("loss", [Huber(0.5), Absolute(0.05, 2.0)], ids=repr)
@pytest.mark.parametrize("coder", [Lasso(0.1), Lasso(0.1, 0.3, np.arange(1.0, 11.0), True)], ids=["l1", "all"])
def test_wild_cells_as_atoms_find_the_minimum_that_reweighting_tends_to(loss, coder, problem):
    D, X = problem
    X = X[:8]
    X[5:, 1] = 30.0
    exact = objectives(X, D, code_robust(X, D, coder, loss), coder, loss)
    slow = Proximal(Weighted(coder), tol=1e-12, max_iter=100_000)
    tended = objectives(X, D, code_robust(X, D, slow, loss, tol=1e-9, rounds=400), coder, loss)
    np.testing.assert_allclose(exact, tended, rtol=1e-4, atol=1e-8)
    assert (exact <= tended + 1e-6 * (1 + tended)).all()


class Weighted:
    """The penalty of a lasso, as a penalty."""

    convex = True

    def __init__(self, coder):
        self.coder, self.weights = coder, np.ones(K) if coder.weights is None else coder.weights

    def value(self, w):
        return float(self.coder.penalties(sp.csr_array(np.reshape(w, (K, -1)).T)).sum())

    def prox(self, w, step):
        limits = self.coder.alpha * self.weights.reshape(-1, *(1 for _ in w.shape[1:])) * step
        z = np.maximum(w - limits, 0) + (0 if self.coder.nonnegative else np.minimum(w + limits, 0))
        return z / (1 + self.coder.l2 * step)


def test_a_wild_cell_does_not_rule():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(20, 30))
    truth = np.zeros((15, 20))
    for row in truth:
        row[rng.choice(20, 3, replace=False)] = rng.normal(size=3) + 2
    clean = truth @ D
    wild = clean + np.where(rng.random(clean.shape) < 0.05, 20.0 * rng.choice([-1, 1], clean.shape), 0.0)
    coder = Lasso(0.3)
    errors = {name: np.abs(code_robust(wild, D, coder, loss) - truth).mean() for name, loss in LOSSES.items()}
    assert max(errors["huber"], errors["absolute"]) < 0.2 * errors["squared"]
    assert errors["power"] < errors["squared"]


# --- sparse_encode ------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
def test_encoding_leaves_missing_cells_out(sparse, problem):
    D, X = problem
    given = sp.csr_array(X) if sparse else X
    codes = sparse_encode(given, D, alpha=0.1, tol=1e-12)
    np.testing.assert_allclose(codes.toarray(), code_cells(X, D, Lasso(0.1, tol=1e-12)).toarray(), atol=1e-9)
    pursued = sparse_encode(given, D, nonzeros=2)
    np.testing.assert_allclose(pursued.toarray(), code_cells(X, D, Pursuit(2)).toarray(), atol=1e-9)
    with pytest.raises(ValueError, match="infinity"):
        sparse_encode(np.where(np.isnan(X), np.inf, X), D)
    with pytest.raises(ValueError, match="squares overflow"):
        sparse_encode(X * 1e200, D)


def test_encoding_with_a_loss(problem):
    D, X = problem
    X[5, 2] = 50.0
    for loss in (Huber(0.5), Absolute()):
        codes = sparse_encode(X, D, alpha=0.1, loss=loss)
        np.testing.assert_allclose(codes.toarray(), code_robust(X, D, Lasso(0.1), loss).toarray(), atol=1e-9)
    few = D[:3]
    assert abs(sparse_encode(X, few, alpha=0.1, loss="huber") - sparse_encode(X, few, alpha=0.1)).max() > 0.1
    assert abs(sparse_encode(X, D, alpha=0.1, loss="l2") - sparse_encode(X, D, alpha=0.1)).nnz == 0
    with pytest.raises(ValueError, match="loss must be one of"):
        sparse_encode(X, D, loss="hubert")


def test_codes_with_powers_are_between_those_of_counts_and_of_sizes():
    """On one problem, each with the weight at which codes explain 90 %: l0 needs fewest nonzeros, l1 most."""
    rng = np.random.default_rng(0)
    D = rng.normal(size=(60, 25))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = (rng.normal(size=(150, 60)) * (rng.random((150, 60)) < 0.06)) @ D + 0.05 * rng.normal(size=(150, 25))

    def nonzeros(penalty):
        low, high = 1e-6, 10.0
        for _ in range(25):
            weight = np.sqrt(low * high)
            codes = sparse_encode(X, D, penalty=penalty(weight))
            left = ((X - codes @ D) ** 2).sum() / (X**2).sum()
            low, high = (weight, high) if left < 0.1 else (low, weight)
        return codes.nnz / len(X)

    l0, half, most, l1 = (nonzeros(p) for p in (L0, Lp, lambda alpha: Lp(alpha, 0.8), L1))
    assert l0 < half < most < l1
