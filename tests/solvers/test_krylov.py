"""The basis of the Krylov solver: orthonormal to the last digit, where nothing is left to multiply, too."""

import numpy as np
import pytest

from princomp import PCA
from princomp.solvers import krylov

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_what_single_precision_cannot_square_is_not_begun_in_it(size, monkeypatch):
    monkeypatch.setattr(krylov, "ROUGH_CELLS", 0)
    X = np.random.default_rng(0).standard_normal((90, 60))
    found, usual = (PCA(3, solver="krylov", random_state=0).fit(times * X) for times in (size, 1.0))
    np.testing.assert_allclose(found.explained_variance_ / size**2, usual.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.components_), np.abs(usual.components_), atol=1e-4)


@pytest.mark.parametrize("rank", [1, 3, 20])
@pytest.mark.parametrize("k", [3, 6])
def test_an_exhausted_space_is_filled_up_with_directions_that_are_orthogonal(rank, k):
    """Random directions lie in the basis nearly whole, the more so the larger it is: once taken out, rounding stays."""
    rng = np.random.default_rng(0)
    G = rng.standard_normal((200, rank))
    for state in krylov.krylov(lambda V: G @ (G.T @ V), krylov.start(200, k, rng), k=k, total=float(np.vdot(G, G))):
        basis = state.value["basis"]
    assert basis.shape == (200, 200)  # it has looked everywhere
    assert np.abs(basis.T @ basis - np.eye(200)).max() <= 50 * EPS
    expected = np.append(np.linalg.svd(G, compute_uv=False) ** 2, np.zeros(k))[:k]
    np.testing.assert_allclose(state.value["values"], expected, atol=1e-12 * expected[0])
