"""The basis of the Krylov solver: orthonormal to the last digit, where nothing is left to multiply, too."""

import numpy as np
import pytest

from princomp.solvers import krylov

EPS = np.finfo(np.float64).eps


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
