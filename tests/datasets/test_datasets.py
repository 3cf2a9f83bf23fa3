"""The data sets: shapes, determinism, and a truth that linear algebra finds again."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from princomp import datasets

MAKERS = {
    "make_spiked": {"n_samples": 40, "n_features": 12, "rank": 3},
    "make_decay": {"n_samples": 30, "n_features": 8},
    "make_sparse_components": {"n_samples": 20, "n_features": 15, "n_components": 2, "nonzeros": 4},
    "make_low_rank_plus_sparse": {"n_samples": 30, "n_features": 20},
    "make_height_weight": {"n_samples": 30},
    "make_circles": {"n_samples": 30},
    "make_swiss_roll": {"n_samples": 30},
    "make_brain": {"n_samples": 30, "shape": (12, 14, 10)},
    "make_video": {"n_frames": 20, "shape": (24, 32)},
}
makers = pytest.mark.parametrize("name", MAKERS)


def make(name, **more):
    return getattr(datasets, name)(**MAKERS[name], **more)


def arrays(result):
    values = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def leading(X, k):
    """Top k right singular vectors of the centred X, as rows."""
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:k]


def sine(V, W):
    """Sine of the largest angle between the row spaces of V and W."""
    V, W = np.linalg.qr(V.T)[0], np.linalg.qr(W.T)[0]
    return np.linalg.norm(W - V @ (V.T @ W), 2)


def test_every_maker_is_listed():
    assert {name for name in datasets.__all__ if name.startswith("make_")} == set(MAKERS)


@makers
def test_shape_dtype_and_finiteness(name):
    X = make(name).X
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert X.shape[0] == MAKERS[name].get("n_samples", MAKERS[name].get("n_frames"))
    assert np.isfinite(X).all()
    assert X.shape[1] == MAKERS[name].get("n_features", X.shape[1])


@makers
def test_same_seed_same_data(name):
    first, second, other = make(name), make(name, random_state=0), make(name, random_state=1)
    for field, value in arrays(first).items():
        np.testing.assert_array_equal(value, getattr(second, field), err_msg=field)
    assert not np.array_equal(first.X, other.X)


@makers
def test_generator_is_used_and_advances(name):
    rng = np.random.default_rng(0)
    first, second = make(name, random_state=rng), make(name, random_state=rng)
    np.testing.assert_array_equal(first.X, make(name, random_state=0).X)
    assert not np.array_equal(first.X, second.X)


@makers
def test_none_draws_anew(name):
    assert not np.array_equal(make(name, random_state=None).X, make(name, random_state=None).X)


@makers
def test_global_random_state_is_left_alone(name):
    before = np.random.get_state()  # noqa: NPY002
    first = make(name).X
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(first, make(name).X)
    np.random.set_state(before)  # noqa: NPY002
    make(name)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert before[2:] == after[2:]
    np.testing.assert_array_equal(before[1], after[1])


@makers
def test_result_is_frozen_and_repr_is_short(name):
    result = make(name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.X = None
    assert len(repr(result)) < 400
    assert repr(result).startswith(f"{type(result).__name__}(X=<{result.X.shape[0]} x ")


def test_import_needs_numpy_only():
    code = (
        "import sys, princomp.datasets;"
        "print([m for m in ('scipy', 'sklearn', 'numba', 'matplotlib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_pitprops():
    pitprops = datasets.load_pitprops()
    R = pitprops.correlation
    assert R.shape == (13, 13)
    assert len(pitprops.names) == 13
    assert len(set(pitprops.names)) == 13
    assert pitprops.n_samples == 180
    np.testing.assert_array_equal(R, R.T)
    np.testing.assert_array_equal(np.diag(R), 1)
    eigenvalues = np.linalg.eigvalsh(R)[::-1]
    assert eigenvalues[-1] > 0
    published = [4.219, 2.378, 1.878, 1.109, 0.910, 0.815, 0.576, 0.440, 0.353, 0.191]
    np.testing.assert_allclose(eigenvalues[:10], published, atol=6e-4)
    # Zou, Hastie and Tibshirani (2006), table 1: percentage of variance, six components
    np.testing.assert_allclose(100 * eigenvalues[:6] / 13, [32.4, 18.3, 14.4, 8.5, 7.0, 6.3], atol=0.06)


def test_pitprops_is_a_fresh_copy():
    datasets.load_pitprops().correlation[:] = 0
    assert datasets.load_pitprops().correlation[0, 1] == 0.954


def test_spiked_is_the_documented_formula():
    n, p = 50, 80
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 60)) @ (
        rng.standard_normal((60, p)) * np.linspace(5, 0.5, 60)[:, None]
    ) + rng.standard_normal((n, p))
    np.testing.assert_array_equal(datasets.make_spiked(n, p, random_state=5).X, X)


def test_spiked_without_noise_spans_the_components():
    spiked = datasets.make_spiked(50, 20, rank=4, noise=0, offset=100)
    assert np.linalg.matrix_rank(spiked.X - 100, tol=1e-8) == 4
    assert sine(leading(spiked.X, 4), spiked.components) < 1e-9
    assert spiked.noise_variance == 0
    np.testing.assert_array_equal(spiked.mean, 100)


def test_spiked_truth_is_that_of_many_rows():
    spiked = datasets.make_spiked(200_000, 6, rank=2, strengths=(3, 2))
    covariance = np.cov(spiked.X.T)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance)[:3:-1], spiked.variances, rtol=0.02)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance)[:4], 1, rtol=0.02)
    assert sine(leading(spiked.X, 2), spiked.components) < 0.01


def test_spiked_strengths():
    one_each = datasets.make_spiked(5, 9, rank=3, strengths=(3, 2, 1))
    spaced = datasets.make_spiked(5, 9, rank=3, strengths=(3, 1))
    np.testing.assert_array_equal(one_each.X, spaced.X)
    assert datasets.make_spiked(5, 9).components.shape == (9, 9)  # rank cut to the columns
    with pytest.raises(ValueError, match="one per spike"):
        datasets.make_spiked(5, 9, rank=3, strengths=(1, 2, 3, 4))


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (9, 9)])
@pytest.mark.parametrize("power", [0, 0.5, 2])
def test_decay_is_exact(shape, power):
    decay = datasets.make_decay(*shape, power=power)
    r = min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(decay.X.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(decay.singular_values, np.arange(1, r + 1.0) ** -power)
    np.testing.assert_allclose(np.linalg.svd(decay.X, compute_uv=False)[:r], decay.singular_values, rtol=1e-12)
    projected = np.linalg.norm(decay.X @ decay.components.T, axis=0)
    np.testing.assert_allclose(projected, decay.singular_values, rtol=1e-12)


def test_sparse_components_without_noise():
    planted = datasets.make_sparse_components(4000, 60, n_components=3, nonzeros=5, strengths=(9, 3), noise=0)
    V = planted.components
    np.testing.assert_allclose(V @ V.T, np.eye(3), atol=1e-15)
    assert planted.supports == tuple(tuple(range(5 * j, 5 * j + 5)) for j in range(3))
    for row, support in zip(V, planted.supports, strict=True):
        assert tuple(np.flatnonzero(row)) == support
    assert set(np.unique(np.sign(V))) == {-1, 0, 1}
    assert sine(leading(planted.X, 3), V) < 1e-9
    np.testing.assert_allclose(np.var(planted.X @ V.T, axis=0), planted.variances, rtol=0.1)


@pytest.mark.parametrize("shape", [(60, 60), (60, 30), (30, 60)])
def test_low_rank_plus_sparse_adds_up(shape):
    mixed = datasets.make_low_rank_plus_sparse(*shape, share=0.1)
    np.testing.assert_array_equal(mixed.X, mixed.low_rank + mixed.sparse)
    assert np.linalg.matrix_rank(mixed.low_rank) == mixed.rank == max(1, round(0.05 * min(shape)))
    assert np.count_nonzero(mixed.sparse) == round(0.1 * shape[0] * shape[1])
    assert set(np.unique(mixed.sparse)) == {-1, 0, 1}
    noisy = datasets.make_low_rank_plus_sparse(*shape, share=0.1, noise=0.5)
    np.testing.assert_array_equal(noisy.sparse, mixed.sparse)
    assert 0.4 < np.std(noisy.X - mixed.X) < 0.6


def test_height_weight_misleads_the_pooled_component():
    people = datasets.make_height_weight()
    within = [leading(people.X[people.groups == g], 1)[0] for g in (0, 1)]
    for v in within:
        assert abs(v @ people.direction) > 0.99
    pooled = leading(people.X, 1)[0]
    assert pooled[0] * pooled[1] < 0  # "taller is lighter"
    assert abs(pooled @ people.direction) < 0.5


def test_height_weight_without_noise_lies_on_two_lines():
    people = datasets.make_height_weight(60, noise=0, slope=0.5)
    np.testing.assert_allclose(people.direction, np.array([2, 1]) / np.sqrt(5))
    for group in (0, 1):
        X = people.X[people.groups == group]
        assert len(X) == 30
        assert sine(leading(X, 1), people.direction[None]) < 1e-12
        assert np.linalg.matrix_rank(X - people.means[group], tol=1e-9) == 1


def test_circles_without_noise():
    circles = datasets.make_circles(101, noise=0, factor=0.4)
    radius = np.hypot(*circles.X.T)
    np.testing.assert_allclose(radius, np.where(circles.groups == 0, 1, 0.4))
    assert np.bincount(circles.groups).tolist() == [51, 50]
    at = np.arctan2(circles.X[:, 1], circles.X[:, 0]) % (2 * np.pi)
    np.testing.assert_allclose(at, circles.angle, atol=1e-12)


def test_swiss_roll_without_noise():
    roll = datasets.make_swiss_roll(2000)
    x, height, z = roll.X.T
    np.testing.assert_allclose(np.hypot(x, z), roll.angle)
    np.testing.assert_array_equal(height, roll.sheet[:, 1])
    order = np.argsort(roll.angle)  # the length of the chords approaches that of the curve
    chords = np.hypot(np.diff(x[order]), np.diff(z[order])).sum()
    np.testing.assert_allclose(chords, np.ptp(roll.sheet[:, 0]), rtol=1e-4)


def test_brain_without_noise_is_courses_times_maps():
    brain = datasets.make_brain(60, noise=0)
    assert brain.mask.shape == (24, 28, 20)
    assert 0.45 < brain.mask.mean() < 0.55
    assert brain.maps.shape == (len(brain.names), brain.mask.sum())
    np.testing.assert_array_equal(brain.X, brain.courses @ brain.maps)
    np.testing.assert_allclose((brain.courses**2).mean(axis=0), 1)
    assert np.linalg.matrix_rank(brain.X) == len(brain.names)
    noisy = datasets.make_brain(60, noise=2.0)
    np.testing.assert_array_equal(noisy.maps, brain.maps)
    assert 1.95 < np.std(noisy.X - brain.X) < 2.05


def test_networks_of_a_brain_have_few_voxels_some_in_common_and_one_both_signs():
    brain = datasets.make_brain(20, strength=2.0)
    there = brain.maps != 0
    assert (there.mean(axis=1) > 0.03).all()
    assert (there.mean(axis=1) < 0.08).all()
    assert (np.abs(brain.maps).max(axis=1) > 1.6).all()  # the middle of a ball need not be that of a voxel
    in_common = there.astype(float) @ there.T
    np.fill_diagonal(in_common, 0)
    assert in_common.any()
    assert (in_common.max(axis=1) < 0.6 * there.sum(axis=1)).all()
    both = [name for name, row in zip(brain.names, brain.maps, strict=True) if row.min() < -1 and row.max() > 1]
    assert both == ["attention"]


def test_courses_of_a_brain_are_smooth_and_each_subject_has_its_own():
    brain = datasets.make_brain(4000, shape=(8, 8, 8), n_subjects=4, correlation=0.5)
    assert np.bincount(brain.subjects).tolist() == [1000] * 4
    assert (np.diff(brain.subjects) >= 0).all()
    steps = (np.diff(brain.courses, axis=0) ** 2).mean(axis=1)
    ends = np.flatnonzero(np.diff(brain.subjects))
    assert steps[ends].mean() > 4 * np.delete(steps, ends).mean()
    alike = np.corrcoef(brain.courses.T)[np.triu_indices(len(brain.names), 1)]
    assert 0.4 < alike.mean() < 0.6


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("make_spiked", {"n_samples": 0}),
        ("make_spiked", {"noise": -1}),
        ("make_decay", {"n_samples": 1}),
        ("make_decay", {"power": float("nan")}),
        ("make_sparse_components", {"n_features": 7, "n_components": 2, "nonzeros": 4}),
        ("make_low_rank_plus_sparse", {"rank": 0}),
        ("make_low_rank_plus_sparse", {"rank": 201}),
        ("make_low_rank_plus_sparse", {"share": 1.1}),
        ("make_height_weight", {"n_samples": 1}),
        ("make_circles", {"factor": float("inf")}),
        ("make_swiss_roll", {"noise": -0.1}),
        ("make_brain", {"shape": (24, 28)}),
        ("make_brain", {"shape": (24, 28, 7)}),
        ("make_brain", {"correlation": 1.0}),
        ("make_brain", {"n_samples": 5, "n_subjects": 3}),
    ],
)
def test_wrong_arguments_are_named(name, wrong):
    with pytest.raises(ValueError, match="|".join(wrong)):
        getattr(datasets, name)(**wrong)
