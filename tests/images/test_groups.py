"""Groups of similar patches: compiled loops equal their twins, and estimates of groups are what their formulae say."""

import numpy as np
import pytest

from princomp.images import groups, patch_positions
from princomp.images.local_pca import ABOVE, first_estimate, local_pca, second_estimate, turned


@pytest.fixture
def twins(monkeypatch):
    """A function that calls another one compiled and not."""

    def both(function, *arguments):
        fast = function(*arguments)
        with monkeypatch.context() as patch:
            patch.setattr(groups, "loops", lambda name: None)
            return fast, function(*arguments)

    return both


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "size", "reach"), [((20, 31), (4, 4), 5), ((9, 7), (3, 2), 18), ((30, 30), (5, 5), 6)]
)
@pytest.mark.parametrize("count", [1, 2, 13, 1000])
def test_the_nearest_patches(twins, dtype, shape, size, reach, count):
    """Of whole numbers, so that sums are exact in any order, and few of them, so that many patches are as near."""
    image = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    tops, lefts = np.ascontiguousarray(patch_positions(shape, size, stride=2).T)
    fast, slow = twins(groups.nearest, image, tops, lefts, size, reach, count)
    np.testing.assert_array_equal(fast, slow)
    assert fast.shape[1] == min(count, groups.candidates(shape, size, reach))
    assert (fast == (tops * shape[1] + lefts)[:, None]).any(axis=1).all(), "its own patch is in each"
    assert (np.diff(fast, axis=1) > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back(twins, dtype):
    rng = np.random.default_rng(1)
    image, size = rng.normal(size=(12, 15)).astype(dtype), (3, 4)
    places = rng.integers(0, 9, (6, 5)) * 15 + rng.integers(0, 11, (6, 5))
    fast, slow = twins(groups.gather, image, places, size)
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_array_equal(fast[2, 3].reshape(size), image[places[2, 3] // 15 :, places[2, 3] % 15 :][:3, :4])
    weights = rng.random(6).astype(dtype)

    def put_back():
        sums, totals = np.zeros_like(image), np.zeros_like(image)
        groups.scatter(fast, places, size, weights, sums, totals)
        return np.stack([sums, totals])

    one, other = twins(put_back)
    np.testing.assert_allclose(one, other, rtol=0, atol=20 * np.finfo(dtype).eps)
    inside = one[1] > 0
    np.testing.assert_allclose((one[0] / np.where(inside, one[1], 1))[inside], image[inside], atol=1e-5)


def test_the_first_estimate_is_the_projection_on_what_stands_out():
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(2, 40, 9)) + 5 * rng.normal(size=(2, 40, 1)) * rng.normal(size=9) + 3
    X, weights = first_estimate(Y)
    for found, given, weight in zip(X, Y, weights, strict=True):
        U, s, Vt = np.linalg.svd(given - given.mean(axis=0), full_matrices=False)
        kept = s**2 / 40 > ABOVE * (1 + np.sqrt(9 / 40)) ** 2
        assert 1 <= kept.sum() <= 2
        np.testing.assert_allclose(found, (U * (s * kept)) @ Vt + given.mean(axis=0), atol=1e-10)
        assert weight == pytest.approx(1 / (1 + kept.sum()))


def test_the_second_estimate_is_the_best_linear_one():
    """Given the group without its noise, no other matrix in the place of C (C + I)^-1 is nearer on average."""
    rng = np.random.default_rng(3)
    G = rng.normal(size=(1, 50, 6)) * np.array([5, 3, 1, 0.5, 0.1, 0])
    X, weights = second_estimate(G, G)
    Z = G[0] - G[0].mean(axis=0)
    C = Z.T @ Z / 50
    S = np.linalg.inv(C + np.eye(6)) @ C
    np.testing.assert_allclose(X[0], Z @ S + G[0].mean(axis=0), atol=1e-12)
    assert weights[0] == pytest.approx(1 / (1 + np.trace(S)))

    def risk(S):
        return np.square(Z @ S - Z).sum() + 50 * np.square(S).sum()

    assert all(risk(S) < risk(S + 0.01 * rng.normal(size=(6, 6))) for _ in range(20))


def test_the_second_estimate_takes_its_mean_from_the_guide_and_what_that_lost_from_the_patches():
    rng = np.random.default_rng(4)
    guide = rng.normal(size=(1, 40, 5)) * np.array([4, 2, 1, 0.3, 0])
    shift = np.array([0.3, -0.2, 0.1, 0.2, 0.5])
    X, _ = second_estimate(guide + shift, guide)
    C = np.cov(guide[0].T, bias=True)
    lost = shift @ np.linalg.inv(C + np.eye(5) / 40) @ C
    np.testing.assert_allclose(X - second_estimate(guide, guide)[0], np.broadcast_to(lost, X.shape), atol=1e-12)
    assert abs(lost[0] - 0.3) < 0.01  # where patches of the group differ much, what was lost comes back,
    assert abs(lost[4]) < 1e-12  # and where they do not differ at all, it is noise


def test_colours_are_turned():
    for channels in (1, 2, 3, 4):
        turn = turned(channels)
        np.testing.assert_allclose(turn @ turn.T, np.eye(channels), atol=1e-14)
        np.testing.assert_allclose(turn[0], 1 / np.sqrt(channels))


def test_without_compiled_loops(monkeypatch):
    y = np.random.default_rng(0).normal(size=(24, 24, 1))
    fast = local_pca(y, 1.0)
    monkeypatch.setattr(groups, "loops", lambda name: None)
    np.testing.assert_allclose(local_pca(y, 1.0), fast, atol=1e-4)


def test_it_tells_how_far_it_is():
    heard = []
    local_pca(np.random.default_rng(0).normal(size=(64, 64, 1)), 1.0, lambda done, of: heard.append((done, of)))
    done, of = np.transpose(heard)
    assert (np.diff(done) > 0).all()
    assert (of == of[0]).all()
    assert done[-1] == of[-1]
