"""ProbabilisticPCA with missing cells: saddles are left, several starts, columns that no row has both of."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import princomp
from princomp import ProbabilisticPCA, ProbabilisticPCAMixture
from running import princomp as command

APART = "No row has both of the columns"


# --- the judge: the likelihood written down literally, and an optimiser that knows nothing of ours -----------------


def negative_log_likelihood(X, k):
    """Value and gradient of -log L at (W, mean, log noise), by dense inverses, one pattern of cells after the other."""
    p = X.shape[1]
    patterns, which = np.unique(~np.isnan(X), axis=0, return_inverse=True)
    groups = [(o, X[which.ravel() == u][:, o]) for u, o in enumerate(patterns) if o.any()]

    def objective(flat):
        W, mean, noise = flat[: p * k].reshape(p, k), flat[p * k : -1], np.exp(np.clip(flat[-1], -60, 60))
        S, value = W @ W.T + noise * np.eye(p), 0.0
        by_covariance, by_mean = np.zeros((p, p)), np.zeros(p)
        for o, rows in groups:
            inverse, r = np.linalg.inv(S[np.ix_(o, o)]), rows - mean[o]
            logdet = np.linalg.slogdet(S[np.ix_(o, o)])[1]
            value += 0.5 * (len(r) * (o.sum() * np.log(2 * np.pi) + logdet) + np.sum(r @ inverse * r))
            by_covariance[np.ix_(o, o)] += 0.5 * (len(r) * inverse - inverse @ r.T @ r @ inverse)
            by_mean[o] -= (r @ inverse).sum(axis=0)
        by_noise = noise * np.trace(by_covariance)
        return value, np.concatenate([(2 * by_covariance @ W).ravel(), by_mean, [by_noise]])

    return objective


def parameters(model):
    value = model.result_.value
    return np.concatenate([value["W"].ravel(), value["mean"], [np.log(float(value["noise"]))]])


def gain_of_a_nudge(X, model, size=1e-4, nudges=3):
    """What L-BFGS gains from the model, moved a little in random directions."""
    objective, at = negative_log_likelihood(X, model.n_components_), parameters(model)
    here, gains = objective(at)[0], []
    assert here == pytest.approx(-model.log_likelihood_, rel=1e-9)
    for seed in range(nudges):
        begin = at + size * np.random.default_rng(seed).standard_normal(len(at))
        found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "gtol": 1e-7})
        gains.append(here - found.fun)
    return max(gains)


# --- tables ---------------------------------------------------------------------------------------------------------


def table(n, p, k, seed):
    rng = np.random.default_rng(seed)
    N = rng.standard_normal
    return N((n, k)) @ N((k, p)) * 2 + N((n, p))


def two_halves():
    X = table(100, 8, 2, 0)
    X[:50, :4], X[50:, 4:] = np.nan, np.nan
    return X


def own_batch():
    """The last column is seen in rows that have nothing else."""
    X = table(100, 8, 2, 1)
    X[:60, 7], X[60:, :7] = np.nan, np.nan
    return X


def one_cell_per_row():
    X = table(100, 8, 2, 2)
    X[np.arange(100)[:, None] % 8 != np.arange(8)] = np.nan
    return X


def three_blocks():
    X = table(90, 9, 2, 3)
    X[np.arange(90)[:, None] // 30 != np.arange(9) // 3] = np.nan
    return X


APART_TABLES = {"two halves": two_halves, "own batch": own_batch, "one cell": one_cell_per_row, "blocks": three_blocks}


def small_table(seed):
    """Of several kinds, 27 to 64 % of the cells missing."""
    rng = np.random.default_rng(seed)
    N = rng.standard_normal
    n, p, k = int(rng.integers(20, 61)), int(rng.integers(5, 11)), int(rng.integers(1, 4))
    missing = rng.uniform(0.27, 0.64)
    X = [
        lambda: N((n, k)) @ N((k, p)) * 2 + N((n, p)),
        lambda: rng.standard_t(3, size=(n, k)) @ N((k, p)) + 0.5 * N((n, p)),
        lambda: np.cumsum(N((n, p)), axis=1),
        lambda: N((n, p)) * np.exp(N(p)),
        lambda: np.where(rng.random(n) < 0.5, 1, -1)[:, None] * N(p) * 2 + N((n, k)) @ N((k, p)) + 0.7 * N((n, p)),
    ][seed % 5]()
    X[rng.random(X.shape) < missing] = np.nan
    return X, k


def fit_quietly(X, k, **how):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", APART, UserWarning)
        return ProbabilisticPCA(k, **how).fit(X)


# --- saddles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_init", [1, None])
@pytest.mark.parametrize("kind", APART_TABLES)
def test_a_saddle_is_not_called_the_answer(kind, n_init, observe):
    X = APART_TABLES[kind]()
    with pytest.warns(UserWarning, match=APART):
        model = ProbabilisticPCA(2, n_init=n_init, random_state=0).fit(X)
    gain = gain_of_a_nudge(X, model)
    observe("M13", f"patterns apart: {kind}, n_init {n_init}", f"a nudge gains {gain:.0e} nats")
    assert model.certificate_.holds
    assert "a local maximum" in str(model.certificate_)
    assert gain < 1e-3
    trace = model.result_.history.objective
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    assert trace[-1] == pytest.approx(model.log_likelihood_)
    assert len(trace) == model.n_iter_


def test_without_iterations_to_leave_it_a_saddle_is_not_certified():
    X = two_halves()
    with pytest.warns(UserWarning, match=APART):
        free = ProbabilisticPCA(2, n_init=1, random_state=0).fit(X)
    states = []
    short = ProbabilisticPCA(2, n_init=1, random_state=0, callback=states.append)
    with pytest.warns(UserWarning, match=APART):
        short.fit(X)
    at_saddle = next(i for i, state in enumerate(states) if state.residual <= 1e-6)
    assert free.log_likelihood_ - states[at_saddle].objective > 50  # EM was content 50 nats below
    with pytest.warns(ConvergenceWarning, match="Not converged"), pytest.warns(UserWarning, match=APART):
        spent = ProbabilisticPCA(2, n_init=1, random_state=0, max_iter=states[at_saddle].iteration + 1).fit(X)
    assert not spent.certificate_.holds


def test_what_is_certified_is_a_maximum():
    """Random patterns, most of them without any structure: where the certificate holds, no nudge finds more."""
    held = 0
    for seed in range(12):
        X, k = small_table(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # one has too few cells for its components
            model = fit_quietly(X, k, n_init=1, random_state=0)
        if model.certificate_.holds:
            held += 1
            assert gain_of_a_nudge(X, model, nudges=1) < 1e-3
    assert held >= 11


def test_certificate_of_plenty_of_cells():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 30)) + 0.5 * rng.normal(size=(400, 30))
    X[rng.random(X.shape) < 0.2] = np.nan
    details = ProbabilisticPCA(3, random_state=0).fit(X).certificate_.details
    assert details["largest curvature"] < -0.5
    assert details["probability of a miss"] <= 1e-3
    assert details["gain along curvature"] == 0.0
    assert len(details["likelihoods"]) == 1


def test_without_noise_nothing_is_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    with pytest.warns(UserWarning, match="nothing of X"):
        model = ProbabilisticPCA(2, method="em").fit(X)
    assert not model.certificate_.holds
    assert "no bound" in str(model.certificate_)


def test_a_mixture_says_that_curvature_was_not_looked_at():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 6])
    assert "was not looked at" in str(ProbabilisticPCAMixture(1, random_state=0).fit(X).certificate_)


# --- several starts -------------------------------------------------------------------------------------------------

SEVERAL_MAXIMA = (114, 135, 147, 153)  # small tables on which the first start does not lead to the best maximum


@pytest.mark.parametrize("seed", SEVERAL_MAXIMA)
def test_more_starts_lead_higher(seed):
    X, k = small_table(seed)
    one, many = (fit_quietly(X, k, n_init=n, random_state=0) for n in (1, 20))
    assert many.log_likelihood_ > one.log_likelihood_ + 1.0
    likelihoods = many.certificate_.details["likelihoods"]
    assert len(likelihoods) == 20
    assert likelihoods[0] == pytest.approx(one.log_likelihood_, abs=1e-3)
    assert likelihoods.max() == pytest.approx(many.log_likelihood_, abs=1e-3)
    assert many.certificate_.holds
    trace = many.result_.history.objective  # that of the best start alone
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    assert trace[-1] == pytest.approx(many.log_likelihood_)
    assert len(trace) == many.n_iter_


def test_the_default_finds_the_best_of_small_tables(observe):
    """Ten of them, in two of which one start ends more than a nat below the best of twenty."""
    short = []
    for seed in (*range(100, 108), 114, 147):
        X, k = small_table(seed)
        best = fit_quietly(X, k, n_init=20, random_state=1).log_likelihood_
        found = [fit_quietly(X, k, n_init=n, random_state=0).log_likelihood_ for n in (1, None)]
        short.append(max(best, *found) - np.array(found))
    alone, default = (np.array(short) < 0.1).sum(axis=0)
    observe("M14", "ten small tables, 27-64 % missing", f"{alone} within .1 nat by one start, {default} by default")
    assert alone == 8
    assert default == 10


def test_seeds_matter():
    X, k = small_table(135)
    ends = {tuple(fit_quietly(X, k, n_init=3, random_state=s).certificate_.details["likelihoods"]) for s in range(3)}
    assert len(ends) == 3
    one, other = (fit_quietly(X, k, n_init=3, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_how_many_starts_by_default():
    few, k = small_table(114)
    assert len(fit_quietly(few, k).certificate_.details["likelihoods"]) == 5
    many = table(400, 8, 2, 0)
    many[np.random.default_rng(0).random(many.shape) < 0.3] = np.nan
    assert len(ProbabilisticPCA(2).fit(many).certificate_.details["likelihoods"]) == 1
    complete = table(30, 8, 2, 0)
    assert len(ProbabilisticPCA(2, method="em").fit(complete).certificate_.details["likelihoods"]) == 1


def test_likelihoods_are_those_of_the_data():
    """Not of the scaled columns, nor of those in other units."""
    X, k = small_table(114)
    for how, factor in (({"scale": True}, 1.0), ({}, 1e120)):
        model = fit_quietly(X * factor, k, n_init=3, random_state=0, **how)
        assert model.certificate_.details["likelihoods"].max() == pytest.approx(model.log_likelihood_, abs=1e-3)


@pytest.mark.parametrize("n_init", [0, 1.5, True, "many"])
def test_numbers_of_starts_that_mean_nothing(n_init):
    with pytest.raises(ValueError, match="n_init must be an integer of at least 1"):
        ProbabilisticPCA(1, n_init=n_init).fit(table(20, 4, 1, 0))


def test_interrupted_starts_go_on_from_the_checkpoint(tmp_path):
    X, k = small_table(114)
    how = {"n_init": 4, "random_state": 0, "n_components": k}
    steps = []
    whole = ProbabilisticPCA(**how, callback=lambda state: steps.append(state.iteration)).fit(X)
    path, last = tmp_path / "state", steps[-1]

    for stop in (2, last // 3, last // 2, last - 1):

        def interrupt(state, stop=stop):
            if state.iteration == stop:
                raise KeyboardInterrupt

        model = ProbabilisticPCA(**how, checkpoint=path, callback=interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        seen = []
        resumed = clone(model).set_params(callback=seen.append).fit(X)
        assert seen[0].iteration == stop + 1
        np.testing.assert_array_equal(resumed.weights_, whole.weights_)
        np.testing.assert_array_equal(
            resumed.certificate_.details["likelihoods"], whole.certificate_.details["likelihoods"]
        )
        assert resumed.n_iter_ == whole.n_iter_
        assert not path.exists()


def test_stopped_after_the_first_start_the_best_so_far_is_returned():
    X, k = small_table(147)
    one = fit_quietly(X, k, n_init=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        stopped = fit_quietly(X, k, n_init=4, random_state=0, callback=lambda state: state.iteration > one.n_iter_ + 1)
    assert stopped.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-3)


@pytest.mark.parametrize("more", [0, 1, 5])
def test_iterations_are_those_of_all_starts_together(more):
    X, k = small_table(147)
    one = fit_quietly(X, k, n_init=1, random_state=0)
    bounded = fit_quietly(X, k, n_init=20, random_state=0, max_iter=one.n_iter_ + more)
    assert bounded.result_.status
    assert bounded.log_likelihood_ >= one.log_likelihood_ - 1e-3
    assert np.isnan(bounded.certificate_.details["likelihoods"]).any()


def test_model_file_with_starts(tmp_path):
    X, k = small_table(114)
    model = fit_quietly(X, k, n_init=3, random_state=0)
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    assert again.n_init == 3
    assert str(again.certificate_) == str(model.certificate_)
    np.testing.assert_array_equal(again.certificate_.details["likelihoods"], model.certificate_.details["likelihoods"])


def test_command_line_takes_a_number_of_starts(tmp_path):
    X = table(40, 6, 2, 0)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    np.savetxt(tmp_path / "gaps.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
    out = tmp_path / "out"
    done = command(
        "fit", str(tmp_path / "gaps.csv"), "--method", "probabilistic", "-k", "2", "--n-init", "3", "-o", str(out)
    )
    assert done.returncode == 0, done.stderr
    assert princomp.load(out / "model.princomp").n_init == 3


# --- columns that no row has both of ----------------------------------------------------------------------------------


def test_columns_never_seen_together_are_named():
    pandas = pytest.importorskip("pandas")
    X = own_batch()
    with pytest.warns(UserWarning, match="columns 0 and 7, 1 and 7, 2 and 7 \\(and 4 more pairs\\)"):
        ProbabilisticPCA(2).fit(X)
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    with pytest.warns(UserWarning, match="columns 'a' and 'h'"):
        ProbabilisticPCA(2).fit(frame)
    with pytest.warns(UserWarning, match="columns 0 and 7"):
        ProbabilisticPCAMixture(1, n_clusters=2, random_state=0).fit(X)


def test_one_common_row_is_enough():
    X = own_batch()
    X[50] = table(1, 8, 2, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ProbabilisticPCA(2).fit(X)
    with pytest.warns(UserWarning, match=APART):  # unless it has no weight
        ProbabilisticPCA(2).fit(X, sample_weight=(np.arange(100) != 50).astype(float))


def test_a_common_row_far_down_is_found():
    """The first look is at some rows only."""
    X = table(1000, 4, 1, 0)
    X[np.arange(1000) % 2 == 0, 0], X[np.arange(1000) % 2 == 1, 3] = np.nan, np.nan
    with pytest.warns(UserWarning, match="columns 0 and 3: how"):
        ProbabilisticPCA(1).fit(X)
    X[701, 3] = 1.0
    ProbabilisticPCA(1).fit(X)


def test_of_many_columns_some_are_looked_at(monkeypatch):
    from princomp.estimators import probabilistic_together

    monkeypatch.setattr(probabilistic_together, "MOST", 4)
    with pytest.warns(UserWarning, match="of 4 columns that were looked at"):
        ProbabilisticPCA(2).fit(two_halves())
