"""Probabilistic PCA below the estimator: posteriors, EM steps, restarts, loops, choices, against literal formulae."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from princomp._compiled import loops
from princomp.certificates import likelihood
from princomp.checkpoint import Checkpoint
from princomp.data import as_rows, statistics
from princomp.datasets import load_tobamovirus
from princomp.result import State, settled
from princomp.solvers import (
    eigh,
    extrapolation,
    probabilistic,
    probabilistic_choice,
    probabilistic_curvature,
    probabilistic_em,
    probabilistic_moments,
    probabilistic_starts,
)
from princomp.solvers.probabilistic_curvature import Curvature
from princomp.solvers.probabilistic_em import Data, Hidden, Model

# --- data -------------------------------------------------------------------------------------------------


def low_rank(n, p, k, *, noise=1.0, missing=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k)) @ rng.normal(size=(k, p)) + noise * rng.normal(size=(n, p)) + 3.0
    X[rng.random((n, p)) < missing] = np.nan
    return X


def data_of(X, **more):
    rows = as_rows(X, block_rows=more.pop("block_rows", None))
    return Data(rows, statistics.observed_moments(rows, more.get("weight")), **more)


def random_model(p, k, seed=0, noise=0.7):
    rng = np.random.default_rng(seed)
    return Model(rng.normal(size=(p, k)), 0.1 * rng.normal(size=p), noise)


def states(data, model, count, **how):
    return list(itertools.islice(probabilistic_em.em(data, probabilistic_em.start(model), **how), count))


# --- the slow twin: literal formulae, one row after the other -----------------------------------------------


def twin_log_density(x, mean, covariance):
    """log N(x; mean, covariance) by a dense determinant and inverse."""
    r = x - mean
    return -0.5 * (len(x) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + r @ np.linalg.inv(covariance) @ r)


def twin_posterior(x, W, mean, noise):
    """(mean, covariance, log-likelihood) of z given the observed cells of one row."""
    o = ~np.isnan(x)
    Wo, r = W[o], (x - mean)[o]
    M = Wo.T @ Wo + noise * np.eye(W.shape[1])
    likelihood = twin_log_density(r, np.zeros(o.sum()), Wo @ Wo.T + noise * np.eye(o.sum())) if o.any() else 0.0
    return np.linalg.solve(M, Wo.T @ r), noise * np.linalg.inv(M), likelihood


def twin_em_step(X, W, mean, noise):
    """One plain EM step; also the log-likelihood before it."""
    p, k = W.shape
    found = [twin_posterior(x, W, mean, noise) for x in X]
    new_W, new_mean, left, cells = np.zeros((p, k)), np.zeros(p), 0.0, 0
    for j in range(p):
        A, b = np.zeros((k + 1, k + 1)), np.zeros(k + 1)
        for x, (z, C, _) in zip(X, found):
            if not np.isnan(x[j]):
                A += np.block([[C + np.outer(z, z), z[:, None]], [z[None], np.ones((1, 1))]])
                b += x[j] * np.append(z, 1)
        new_W[j], new_mean[j] = np.split(np.linalg.solve(A, b), [k])[0], np.linalg.solve(A, b)[k]
    for x, (z, C, _) in zip(X, found):
        for j in np.flatnonzero(~np.isnan(x)):
            r = x[j] - new_mean[j]
            left += r**2 - 2 * r * new_W[j] @ z + new_W[j] @ (C + np.outer(z, z)) @ new_W[j]
            cells += 1
    return new_W, new_mean, left / cells, sum(likelihood for *_, likelihood in found)


# --- posterior ----------------------------------------------------------------------------------------------

PATTERNS = {
    "complete": lambda X: X,
    "one pattern": lambda X: np.where(np.arange(X.shape[1]) == 2, np.nan, X),
    "two patterns": lambda X: np.where((np.arange(len(X)) % 2 == 0)[:, None] & (np.arange(X.shape[1]) < 3), np.nan, X),
    "all differ": lambda X: np.where(np.random.default_rng(1).random(X.shape) < 0.4, np.nan, X),
    "empty rows": lambda X: np.where((np.arange(len(X)) % 3 == 0)[:, None], np.nan, X),
}


@pytest.mark.parametrize("how", PATTERNS)
@pytest.mark.parametrize("compiled", [True, False])
def test_posterior_is_that_of_the_formulae(how, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(probabilistic, "loops", lambda name: None)
    X = PATTERNS[how](low_rank(40, 7, 3, missing=0.0))
    W, _, noise = random_model(7, 3)
    found = probabilistic.posterior(X, W, noise)
    scores, likelihoods = found.in_order(found.scores), found.in_order(found.log_likelihood)
    covariances = found.in_order(probabilistic.unpacked(found.covariance, 3)[found.patterns.which])
    for i, x in enumerate(X):
        z, C, likelihood = twin_posterior(x, W, np.zeros(7), noise)
        np.testing.assert_allclose(scores[i], z, atol=1e-12)
        np.testing.assert_allclose(covariances[i], C, atol=1e-12)
        assert likelihoods[i] == pytest.approx(likelihood, rel=1e-11, abs=1e-11)


def test_rows_of_one_pattern_are_grouped():
    X = PATTERNS["two patterns"](low_rank(40, 7, 3, missing=0.0))
    assert len(probabilistic.posterior(X, *random_model(7, 3)[::2]).patterns.observed) == 2


@pytest.mark.parametrize("k", [1, 2, 9, 33])
def test_compiled_loop_equals_its_twin(k):
    rng = np.random.default_rng(k)
    W = rng.normal(size=(60, k))
    i, j = probabilistic.triangle(k)
    observed = (rng.random((25, 60)) < 0.7).astype(float)
    observed[3] = 0.0  # a row without cells
    G, B = observed @ (W[:, i] * W[:, j]), rng.normal(size=(40, k))
    which = np.sort(np.append(np.arange(25), rng.integers(25, size=15)))
    twin = probabilistic.posteriors(G, 0.3, which, B)
    for fast, slow in zip(loops("missing_em").posteriors(G, 0.3, which, B), twin, strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-11)


def test_compiled_loop_stays_finite_where_noise_is_rounding():
    W = np.array([[1.0, 1.0], [1.0, 1.0]])
    i, j = probabilistic.triangle(2)
    G = (W[:, i] * W[:, j]).sum(axis=0)[None]
    for noise in (1e-15, 1e-17, 1e-300):
        for part in loops("missing_em").posteriors(G, noise, np.zeros(1, np.intp), np.ones((1, 2))):
            assert np.isfinite(part).all()


def test_sums_are_additive_and_weights_are_repetition():
    X = low_rank(50, 6, 2, missing=0.3)
    W, _, noise = random_model(6, 2)
    weight = np.random.default_rng(0).integers(0, 4, 50).astype(float)

    def sums(rows, weight=None):
        return probabilistic.sums(probabilistic.posterior(rows, W, noise), weight)

    whole, parts = sums(X, weight), zip(sums(X[:20], weight[:20]), sums(X[20:], weight[20:]))
    repeated = sums(np.repeat(X, weight.astype(int), axis=0))
    for all_rows, (a, b), again in zip(whole, parts, repeated, strict=True):
        np.testing.assert_allclose(a + b, all_rows, atol=1e-10)
        np.testing.assert_allclose(again, all_rows, atol=1e-10)


# --- EM -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_plain_step_is_that_of_the_formulae(missing, monkeypatch):
    """The M-step before the scores are given back their mean and covariance."""
    monkeypatch.setattr(probabilistic_em, "_expanded", lambda sums, model, prior: model)
    X = low_rank(40, 6, 2, missing=missing)
    data, model = data_of(X), random_model(6, 2)
    W, mean, noise, likelihood = twin_em_step(X, model.W, data.moments.mean + model.shift, model.noise)
    sums = data.sums(model)
    plain = probabilistic_em.maximise(sums, model, prior=0.0, floor=data.floor).plain
    assert float(sums.log_likelihood) == pytest.approx(likelihood, rel=1e-12)
    np.testing.assert_allclose(plain.W, W, atol=1e-11)
    np.testing.assert_allclose(data.moments.mean + plain.shift, mean, atol=1e-11)
    assert plain.noise == pytest.approx(noise, rel=1e-11)


@pytest.mark.parametrize("prior", [0.0, 6.0])
def test_gradient_is_that_of_the_objective(prior):
    data, model = data_of(low_rank(40, 6, 2, missing=0.3)), random_model(6, 2)

    def objective(flat):
        at = Model.of(flat, 6, 0.0)
        return float(data.sums(at).log_likelihood) - prior / 2 * np.linalg.slogdet(at.W.T @ at.W)[1]

    gradient = probabilistic_em.maximise(data.sums(model), model, prior=prior, floor=0.0).gradient
    for i, slope in enumerate(gradient):
        step = 1e-5 * np.eye(len(gradient))[i]
        difference = (objective(model.flat() + step) - objective(model.flat() - step)) / 2e-5
        assert slope == pytest.approx(difference, rel=1e-5, abs=1e-5)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 40),
    p=st.integers(2, 8),
    k=st.integers(1, 4),
    missing=st.floats(0.0, 0.8),
    prior=st.sampled_from([0.0, 1.0]),
)
def test_likelihood_never_falls(seed, n, p, k, missing, prior):
    k = min(k, p)
    X = low_rank(n, p, min(3, p), missing=missing, seed=seed)
    X[np.arange(p) % n, np.arange(p)] = 1.0  # no column without a cell
    data = data_of(X)
    model = probabilistic_em.begin(data, k, np.random.default_rng(seed))
    trace = np.array([state.objective for state in states(data, model, 30, prior=prior * p)])
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * (1 + np.abs(trace[1:]))).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), missing=st.floats(0.0, 0.7), noise=st.floats(0.05, 3.0))
def test_expanded_step_does_not_lower_the_likelihood(seed, missing, noise):
    """Without any extrapolation: the plain map alone, from a random model."""
    X = low_rank(30, 6, 2, missing=missing, noise=noise, seed=seed)
    X[np.arange(6), np.arange(6)] = 1.0
    data, model = data_of(X), random_model(6, 3, seed=seed)
    before = -np.inf
    for _ in range(10):
        sums = data.sums(model)
        likelihood = float(sums.log_likelihood)
        assert likelihood >= before - 1e-9 * (1 + abs(likelihood))
        before, model = likelihood, probabilistic_em.maximise(sums, model, prior=0.0, floor=data.floor).plain


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_em_from_a_random_start_finds_the_closed_form(k):
    X = load_tobamovirus().X
    data = data_of(X)
    model = random_model(18, k, seed=k, noise=1.0)
    found = settled(probabilistic_em.em(data, probabilistic_em.start(model)), tol=1e-11, max_iter=2000)
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    noise = values[k:].mean()
    best = -38 / 2 * (18 * np.log(2 * np.pi) + np.log(values[:k]).sum() + (18 - k) * np.log(noise) + 18)
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert float(found.value["noise"]) == pytest.approx(noise, rel=1e-6)


def test_extrapolation_saves_most_of_the_steps(monkeypatch):
    def steps(memory):
        monkeypatch.setattr(extrapolation, "MEMORY", memory)
        data = data_of(low_rank(200, 50, 3, missing=0.5, seed=3))
        model = probabilistic_em.begin(data, 6, np.random.default_rng(0))
        trace = [state.objective for state in states(data, model, 300)]
        cells = data.moments.cells
        return next(i for i, value in enumerate(trace) if (max(best, *trace) - value) / cells < 1e-6), max(trace)

    best = -np.inf
    _, best = steps(6)
    fast, slow = steps(6)[0], steps(1)[0]  # a memory of one step extrapolates nothing
    assert fast * 3 < slow


def test_tol_bounds_the_gain_that_is_left():
    """Over many problems: where a fit stops, a far longer one finds no more than tol for each cell."""
    rng = np.random.default_rng(0)
    gaps = []
    for seed in range(25):
        n, p, rank, k = (int(rng.integers(*r)) for r in ((30, 200), (5, 40), (1, 6), (1, 5)))
        X = low_rank(n, p, rank, noise=10 ** rng.uniform(-1.5, 0.5), missing=rng.uniform(0.02, 0.5), seed=seed)
        X[np.arange(p) % n, np.arange(p)] = 3.0
        data = data_of(X)
        run = states(data, probabilistic_em.begin(data, min(k, p - 1), np.random.default_rng(0)), 200)
        stop = next((state for state in run if state.residual <= 1e-6), run[-1])
        gaps.append((run[-1].objective - stop.objective) / data.moments.cells)
    assert np.mean(np.array(gaps) <= 1e-6) >= 0.95
    assert max(gaps) <= 1e-5


def test_at_a_saddle_nothing_is_promised():
    """Eigenvectors that are not the leading ones: stationary, and not to be called the answer."""
    X = np.random.default_rng(0).normal(size=(200, 8)) * [5, 4, 3, 0.1, 0.1, 0.1, 0.1, 0.1]
    data = data_of(X)
    values, V = np.linalg.eigh(np.cov(X.T, bias=True))
    kept, left = [7, 5], [0, 1, 2, 3, 4, 6]  # the second is left out
    noise = values[left].mean()
    W = V[:, kept] * np.sqrt(values[kept] - noise)
    kick = 1e-4 * np.random.default_rng(0).normal(size=W.shape)
    run = states(data, Model(W + kick, np.zeros(8), noise), 60)
    best = states(data, probabilistic_em.begin(data, 2, np.random.default_rng(0)), 10)[-1].objective
    stopped = next(state for state in run if state.residual <= 1e-6)
    assert stopped.objective == pytest.approx(best, rel=1e-6)


# --- storages, blocks, weights ------------------------------------------------------------------------------


def test_block_size_does_not_matter():
    X = low_rank(100, 8, 2, missing=0.3)
    model = random_model(8, 2)
    one, many = (data_of(X, block_rows=size).sums(model) for size in (None, 7))
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("weight", "count"), [(2.0, 40.0), (1.0, 20.0), (0.1, 20.0)])
def test_rows_without_a_weight_do_not_count(weight, count):
    """Nor are there fewer rows than those with a weight, however little they weigh: weights may be relative."""
    X, weights = low_rank(50, 8, 2), np.repeat([0.0, weight], [30, 20])
    data = data_of(X, weight=weights)
    assert data.rows_with_weight == 20
    assert data.rows_by_cells().tolist() == np.bincount((~np.isnan(X[30:])).sum(axis=1), minlength=9).tolist()
    assert data.count == pytest.approx(count)
    assert data_of(X).rows_with_weight == data_of(X).count == 50


def test_moments_at_an_offset():
    X = low_rank(300, 5, 2, missing=0.3)
    near, far = (statistics.observed_moments(as_rows(X + offset)) for offset in (0.0, 2.0**30))
    np.testing.assert_allclose(far.mean - 2.0**30, near.mean, atol=1e-6)
    np.testing.assert_allclose(far.squares, near.squares, rtol=1e-6)
    np.testing.assert_allclose(near.mean, np.nanmean(X, axis=0))
    np.testing.assert_allclose(near.squares / near.counts, np.nanvar(X, axis=0))


@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_weighted_eigenpairs_are_those_of_repeated_rows(shape):
    X = low_rank(*shape, 3, missing=0.0)
    weight = np.array([0.0, 1.0, 2.0, 3.0, 1.0, 2.0] * (shape[0] // 6))
    repeated = np.repeat(X, weight.astype(int), axis=0)
    mean = repeated.mean(axis=0)
    centred = statistics.Centered(as_rows(X), mean)
    values, V = eigh.weighted_eigenpairs(centred, weight, 3)
    expected = np.linalg.eigvalsh((repeated - mean).T @ (repeated - mean))[::-1][:3]
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_allclose(eigh.weighted_gram_apply(centred, weight, V), V * values, atol=1e-8)


def test_hidden_cells_depend_on_their_place_alone():
    hidden = Hidden(5, 0.1)
    whole = hidden.cells(slice(0, 400), 30)
    np.testing.assert_array_equal(hidden.cells(slice(100, 150), 30), whole[100:150])
    assert abs(whole.mean() - 0.1) < 0.01
    assert not np.array_equal(whole, Hidden(6, 0.1).cells(slice(0, 400), 30))
    assert np.abs(whole.mean(axis=0) - 0.1).max() < 0.07  # no column and no row is singled out
    assert np.abs(whole.mean(axis=1) - 0.1).max() < 0.4


# --- restart ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0.0, 8.0])
@pytest.mark.parametrize("way", ["memory", "file"])
def test_restart_from_every_state(prior, way, tmp_path):
    X = low_rank(60, 8, 3, missing=0.3)
    model = random_model(8, 3)
    run = [
        (state, {name: np.array(array, order="K") for name, array in state.value.items()})
        for state in states(data_of(X), model, 15, prior=prior)
    ]
    for i, (state, value) in enumerate(run):
        assert all(np.array_equal(state.value[name], value[name]) for name in value)  # later steps left it alone
        if way == "file":
            store = Checkpoint(tmp_path / "state", "fingerprint")
            store.save(State(value, 0.0, 1.0, 1))
            value = store.load()[0]
        again = itertools.islice(probabilistic_em.em(data_of(X), value, prior=prior), len(run) - 1 - i)
        for (expected, kept), found in zip(run[i + 1 :], again, strict=True):
            assert (found.objective, found.residual, found.iteration) == (
                expected.objective,
                expected.residual,
                expected.iteration,
            )
            assert all(np.asarray(found.value[name]).tobytes() == kept[name].tobytes() for name in kept)


# --- how many -----------------------------------------------------------------------------------------------


def planted(seed, n=300, p=40):
    rng = np.random.default_rng(seed)
    strength = np.array([4, 3, 2.5, 2, 1.5])[:, None]
    return rng.standard_normal((n, 5)) @ (rng.standard_normal((5, p)) * strength) + rng.standard_normal((n, p))


def test_relevance_bound_is_where_the_root_appears():
    """N t (l - t - s) = p (t + s)^2 has a positive root exactly from the bound on."""
    n, p, s = 300, 40, 1.3
    c = p / n
    bound = s * (np.sqrt(c) + np.sqrt(1 + c)) ** 2
    for value, roots in ((bound * 0.999, False), (bound * 1.001, True)):
        t = np.roots([n + p, 2 * p * s - n * (value - s), p * s**2])
        assert (np.isreal(t).all() and (t.real > 0).all()) == roots
        if roots:
            assert t.real.max() >= s * np.sqrt(c / (1 + c))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_relevance_by_em_and_by_eigenvalues_agree(missing):
    for seed in range(3):
        X = planted(seed)
        values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
        X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
        data = data_of(X)
        found = probabilistic_choice.relevant(data, 15, np.random.default_rng(0), tol=1e-5, max_iter=500)
        assert found.W.shape[1] == probabilistic_choice.relevant_count(values[:15], values.sum(), 300, 40) == 5


def test_path_stops_after_its_patience():
    asked = []

    def criterion(k):
        asked.append(k)
        return -abs(k - 4)

    assert probabilistic_choice.climb(criterion, 50)[0] == 4
    assert asked[-1] == 4 + probabilistic_choice.PATIENCE


def test_held_out_density_is_that_of_the_cells():
    X = low_rank(60, 6, 2, missing=0.1)
    data = data_of(X, hidden=Hidden(3, 0.1))
    limits = {"tol": 1e-6, "max_iter": 200}
    score = probabilistic_choice.held_out(data, 2, np.random.default_rng(0), **limits)
    begin = probabilistic_em.start(probabilistic_em.begin(data, 2, np.random.default_rng(0)))
    model = probabilistic_em.model_of(settled(probabilistic_em.em(data, begin), tol=1e-6, max_iter=200).value)
    away = data.hidden.cells(slice(0, 60), 6)
    mean, density = data.moments.mean + model.shift, []
    for x, hide in zip(X, away):
        z, C, _ = twin_posterior(np.where(hide, np.nan, x), model.W, mean, model.noise)
        for j in np.flatnonzero(hide & ~np.isnan(x)):
            w = model.W[j]
            density.append(twin_log_density(x[j : j + 1], mean[j] + w @ z, np.array([[model.noise + w @ C @ w]])))
    assert score == pytest.approx(np.mean(density), rel=1e-10)


def test_rank_of_rows_filled_with_means():
    X = low_rank(40, 9, 3, noise=0.0, missing=0.0)
    assert probabilistic_em.filled_rank(data_of(X), np.random.default_rng(0)) == 3
    X[4, 2] = np.nan
    assert probabilistic_em.filled_rank(data_of(X), np.random.default_rng(0)) == 4
    assert probabilistic_em.filled_rank(data_of(low_rank(8, 30, 2, missing=0.1)), np.random.default_rng(0)) == 7


def test_at_the_least_noise_nothing_is_claimed_that_does_not_hold():
    """More components than the data have, a cell missing: where EM stops short of the maximum, no residual says 0."""
    X = low_rank(60, 6, 2, noise=0.0, missing=0.0)
    X[0, 0] = np.nan
    data = data_of(X)
    rngs = [np.random.default_rng(seed) for seed in range(6)]
    best = max(states(data, probabilistic_em.begin(data, 2, rng), 100)[-1].objective for rng in rngs)
    ends = [states(data, probabilistic_em.begin(data, k, rng), 300)[-1] for k in (3, 5, 6) for rng in rngs]
    short = [end for end in ends if best - end.objective > 1e-6 * data.moments.cells]
    assert short
    assert all(end.residual > 1e-6 for end in short)


def test_a_model_without_noise_is_no_candidate_but_for_data_without():
    assert probabilistic_choice.noiseless(4, 5, 30) == -np.inf  # any 5 rows lie in 4 dimensions
    assert probabilistic_choice.noiseless(6, 60, 6) == -np.inf
    assert probabilistic_choice.noiseless(2, 60, 6) == np.inf
    assert probabilistic_choice.climb(lambda k: np.inf if k >= 3 else -k, 50)[0] == 3


# --- slope and curvature --------------------------------------------------------------------------------------


def differences(data, model, h=1e-5):
    """The Hessian of the log-likelihood by differences of its gradient."""

    def gradient(flat):
        at = Model.of(flat, len(model.W), 0.0)
        return probabilistic_em.maximise(data.sums(at), at, prior=0.0, floor=0.0).gradient

    flat = model.flat()
    return np.array([(gradient(flat + e) - gradient(flat - e)) / (2 * h) for e in h * np.eye(len(flat))])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", PATTERNS)
def test_curvature_is_that_of_differences(how, weighted):
    X = PATTERNS[how](low_rank(40, 7, 3, missing=0.0))
    X[0] = 1.0  # no column without a cell
    weight = np.random.default_rng(0).random(40) if weighted else None
    data = data_of(X, weight=weight, block_rows=17)
    at = Curvature(data, random_model(7, 2))
    root = np.diag(1 / at.root)
    expected = at._balanced(root @ differences(data, at.model) @ root @ at._balanced(np.eye(len(root))))
    for _ in range(2):  # the first reading of the rows, and a further one
        np.testing.assert_allclose(at.apply(np.eye(len(root))), expected, atol=1e-6)
    slope = probabilistic_em.maximise(data.sums(at.model), at.model, prior=0.0, floor=0.0).gradient
    np.testing.assert_allclose(at.gradient, at._balanced((root @ slope)[:, None])[:, 0], atol=1e-10)


@pytest.mark.parametrize("how", ["all differ", "two patterns", "complete"])
def test_curvature_in_single_precision(how, monkeypatch):
    X = PATTERNS[how](low_rank(60, 7, 3, missing=0.0, noise=0.1)) + 1e4  # an offset must not cost digits
    model = random_model(7, 3, noise=0.05)
    double, single = Curvature(data_of(X), model), Curvature(data_of(X, weight=np.ones(60)), model)
    steps = np.random.default_rng(0).normal(size=(len(double.root), 4))
    expected = double.apply(steps)
    monkeypatch.setattr(probabilistic_curvature, "SINGLE_CELLS", 0)
    for _ in range(2):
        found = single.apply(steps)
        assert 0 < np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(single.gradient, double.gradient, rtol=1e-9)  # in double, as ever
    small = model._replace(noise=1e-6)
    assert not Curvature(data_of(X), small)._single()


def test_turns_of_components_are_no_directions():
    data = data_of(low_rank(40, 7, 3, missing=0.3))
    at = Curvature(data, random_model(7, 3))
    assert at.dimension == 7 * 3 - 3 + 7 + 1
    for a, b in ((0, 1), (0, 2), (1, 2)):
        turn = np.zeros((3, 3))
        turn[a, b], turn[b, a] = 1.0, -1.0
        along = at.root * np.concatenate([(at.model.W @ turn).ravel(), np.zeros(8)])
        np.testing.assert_allclose(at._balanced(along[:, None]), 0.0, atol=1e-12)
        assert abs(along @ at.random(np.random.default_rng(0))) < 1e-10
        assert np.abs(along @ at.apply(np.eye(len(along)))).max() < 1e-10


def test_where_cells_are_plenty_curvature_is_far_from_none():
    """Else many products would be needed to tell a maximum from a saddle."""
    data = data_of(low_rank(600, 20, 3, noise=0.5, missing=0.2))
    begin = probabilistic_em.start(probabilistic_em.begin(data, 3, np.random.default_rng(0)))
    found = settled(probabilistic_em.em(data, begin), tol=1e-9, max_iter=100)
    at = Curvature(data, probabilistic_em.model_of(found.value))
    values = np.linalg.eigvalsh(at.apply(np.eye(len(at.root))))
    assert (np.abs(values) < 1e-12).sum() == 3  # turns
    assert np.sort(values)[-4] < -0.5
    assert values[0] > -1.5


@pytest.mark.parametrize("top", [-0.3, 0.05, 0.5])
def test_a_missed_eigenvalue_is_as_rare_as_it_is_said_to_be(top):
    """Over many random starts: how often Lanczos' process, ended when it may be, saw nothing of the largest one."""
    d, rng = 400, np.random.default_rng(0)
    values = np.append(rng.uniform(-1.0, -0.6, d - 1), top)
    missed, bounds = 0, []
    for _ in range(200):
        curved = likelihood.curvature(lambda V: values[:, None] * V, rng.standard_normal(d), d, 0.02)
        missed += top > 0.02 and not curved.upward.size
        bounds.append(curved.bound)
        assert curved.largest <= values.max() + 1e-12
    assert missed <= 2
    assert np.mean(np.array(bounds) < top) <= 0.01


def test_probability_of_a_miss_is_a_bound():
    """Few steps, so that misses are frequent: no more frequent than the sum of what was promised."""
    d, rng, promised, missed = 200, np.random.default_rng(1), 0.0, 0
    values = np.append(rng.uniform(-1.0, -0.5, d - 1), 0.2)
    for _ in range(300):
        *_, (_, T) = itertools.islice(likelihood._lanczos(lambda V: values[:, None] * V, rng.standard_normal(d)), 3)
        promised += likelihood.miss_probability(T, 0.2, d)
        # What the start has of the eigenvector must be within what the promise takes for missed.
        missed += np.linalg.eigvalsh(likelihood._square(T))[-1] < 0.0
    assert missed <= promised


def test_gain_of_a_slope():
    rng = np.random.default_rng(0)
    values, g = -np.geomspace(1e-3, 1.0, 50), rng.standard_normal(50)
    exact = 0.5 * float((g**2 / -values).sum())
    curved = likelihood.curvature(lambda V: values[:, None] * V, rng.standard_normal(50), 50, 1e-3)
    found = likelihood.slope_gain(lambda V: values[:, None] * V, g, curved, 1e-9)
    assert exact * 0.999 <= found <= exact * 1.2
    assert likelihood.slope_gain(lambda V: values[:, None] * V, 0 * g, curved, 1e-9) == 0.0


@pytest.mark.parametrize("eigenvalue", [0.3, 0.9])
def test_a_component_left_out_is_found_and_taken(eigenvalue):
    """Complete data, stationary but for a component of (1 + eigenvalue) noise: its gain is known."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(500, 8)) - rng.normal(size=(500, 8)).mean(axis=0))
    Q -= Q.mean(axis=0)
    Q, _ = np.linalg.qr(Q)
    deviations = np.sqrt(np.array([9.0, 1 + eigenvalue, *[1.0] * 6]))
    data = data_of(Q * np.sqrt(500) * deviations)
    noise = float(np.mean(deviations[1:] ** 2))
    W = np.zeros((8, 2))
    W[0, 0] = np.sqrt(9.0 - noise)
    at = Curvature(data, Model(W, np.zeros(8), noise))
    certificate, step = likelihood.local_maximum(at, cells=4000, rows=500, tol=1e-6)
    assert not certificate.holds
    assert certificate.details["largest curvature"] == pytest.approx((1 + eigenvalue) / noise - 1, rel=0.05)
    assert at.gain(step) == pytest.approx(certificate.details["gain along curvature"])
    found = states(data, at.moved(step), 40)[-1]
    best = -250 * (8 * np.log(2 * np.pi) + np.log(9.0) + np.log(1 + eigenvalue) + 8)
    assert found.objective == pytest.approx(best, rel=1e-9)


# --- several starts -------------------------------------------------------------------------------------------


def test_restart_from_every_state_of_several_starts():
    X = low_rank(30, 7, 3, missing=0.5, seed=4)
    X[0] = 1.0

    def run(value=None):
        data = data_of(X)
        begins = probabilistic_starts.models(data, 2, 4, np.random.default_rng(0))
        value = probabilistic_starts.start(begins) if value is None else value
        return list(probabilistic_starts.em(data, value, begins=begins, tol=1e-6, max_iter=1000))

    whole = run()
    values = [{name: np.array(array) for name, array in state.value.items()} for state in whole]
    assert {int(value["attempt"]) for value in values} == {0, 1, 2, 3}
    for i, value in enumerate(values[:-1]):
        rest = run(value)
        assert [state.iteration for state in rest] == [state.iteration for state in whole[i + 1 :]]
        assert [state.objective for state in rest] == [state.objective for state in whole[i + 1 :]]
        for found, expected in zip(rest, values[i + 1 :], strict=True):
            assert all(np.array_equal(found.value[name], expected[name], equal_nan=True) for name in expected)


def test_the_best_start_is_the_answer():
    X = low_rank(30, 7, 3, missing=0.5, seed=4)
    X[0] = 1.0
    data = data_of(X)
    begins = probabilistic_starts.models(data, 2, 6, np.random.default_rng(0))
    how = {"tol": 1e-6, "max_iter": 1000}
    *_, last = probabilistic_starts.em(data, probabilistic_starts.start(begins), begins=begins, **how)
    alone = [settled(probabilistic_em.em(data, probabilistic_em.start(b)), tol=1e-6, max_iter=1000) for b in begins]
    best = max(state.objective for state in alone)
    assert best - 1e-6 * data.moments.cells <= last.objective <= best
    assert float(data.sums(probabilistic_em.model_of(last.value)).log_likelihood) == pytest.approx(last.objective)
    assert (last.value["likelihoods"] <= best + 1e-9).all()


@pytest.mark.parametrize("bounded", [True, False])
def test_of_a_likelihood_without_a_bound_a_start_in_which_noise_is_left_is_kept(bounded):
    """However large the likelihood of one that has collapsed is."""
    data = data_of(low_rank(30, 7, 3))
    noisy = probabilistic_starts.models(data, 2, 1, np.random.default_rng(0))[0]
    collapsed = noisy._replace(noise=1e-12 * data.moments.variance)
    for first, second in ((noisy, collapsed), (collapsed, noisy)):
        objectives = [1e4 if each is collapsed else 5.0 for each in (first, second)]
        value = {
            **probabilistic_starts.start([first, second]),
            **probabilistic_em.start(second),
            "objective": np.array(objectives[1]),
            "attempt": np.array(1),
            "kept": first.flat(),
            "kept_numbers": np.array([objectives[0], 0.0, 0.0, 1.0, 0.0]),
        }
        found = probabilistic_starts._kept(value, data, 1e-6, bounded)
        assert bool(found) == ((second is collapsed) == bounded)


# --- steps that hide missing cells alone ------------------------------------------------------------------


def tile_and_model(missing):
    X = low_rank(60, 7, 2, missing=missing, seed=3)
    X[5] = np.nan  # a row without any cell
    return X - np.nanmean(X, axis=0), random_model(7, 2, seed=4)


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.5])
def test_filled_rows_are_the_posterior_s(missing):
    block, model = tile_and_model(missing)
    tile = probabilistic_moments.Tile.of(block)
    found = probabilistic_moments.fill(tile, model.shift, *probabilistic_moments.root_of_precision(model))
    expected = probabilistic.posterior(block - model.shift, model.W, model.noise)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-10, atol=1e-10)
    mean, variance = probabilistic.predict(block - model.shift, model.W, model.noise)
    filled = expected.in_order(found.rows)
    np.testing.assert_allclose(filled, np.where(np.isnan(block), mean, block - model.shift), atol=1e-10)
    sums = probabilistic_moments.moments(tile, found, np.ones(len(block)))
    own = np.where(np.isnan(block), variance, 0.0).sum(axis=0)
    np.testing.assert_allclose(np.diag(sums.second), (filled**2).sum(axis=0) + own, rtol=1e-10)


def test_of_complete_rows_one_step_is_the_closed_form():
    X = low_rank(80, 9, 3, missing=0.0)
    data = data_of(X)
    first, second = itertools.islice(probabilistic_moments.em(data, random_model(9, 3)), 2)
    values, _ = np.linalg.eigh(np.cov(X.T, bias=True))
    noise = values[:-3].mean()
    assert float(second.value["noise"]) == pytest.approx(noise, rel=1e-9)
    assert second.objective > first.objective


def test_steps_that_hide_cells_alone_never_lower_the_likelihood_and_end_where_others_do():
    data = data_of(low_rank(150, 12, 3, missing=0.2, seed=1))
    begin = probabilistic_em.begin(data, 3, np.random.default_rng(0))
    mine = list(itertools.islice(probabilistic_moments.em(data, begin), 200))
    assert np.diff([state.objective for state in mine]).min() > -1e-8
    other = settled(probabilistic_em.em(data, probabilistic_em.start(begin)), tol=1e-10, max_iter=500)
    assert mine[-1].objective == pytest.approx(other.objective, abs=1e-5)


@pytest.mark.parametrize(("k", "missing"), [(2, 0.1), (5, 0.2), (9, 0.1)])
def test_the_path_of_bic_ends_no_lower_than_numbers_tried_apart(k, missing):
    """Each number of components from a start of its own, to the tolerance: what the path spares."""
    data, limits = data_of(low_rank(250, 14, k, missing=missing, seed=k)), {"tol": 1e-6, "max_iter": 2000}

    def alone(k):
        begin = probabilistic_em.start(probabilistic_em.begin(data, k, np.random.default_rng(0)))
        return probabilistic_choice.information(data, settled(probabilistic_em.em(data, begin), **limits))

    expected, values = probabilistic_choice.climb(alone, 13)
    chosen, model = probabilistic_choice.most_informative(data, 13, np.random.default_rng(0), **limits)
    assert chosen == expected == k
    assert model.W.shape == (14, chosen)
    assert data.sums(model).log_likelihood > probabilistic_em_likelihood(values[k - 1], data, model) - 0.1


def probabilistic_em_likelihood(criterion, data, model):
    """The log-likelihood that a criterion was made of."""
    charged = probabilistic_choice.bic(0.0, model.W.shape[1], len(model.W), data.count)
    return criterion - charged + probabilistic_choice.sharpness(model)
