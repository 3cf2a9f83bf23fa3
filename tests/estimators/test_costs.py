"""Which solver "auto" takes, and that what each is taken to cost is of the right order."""

import time

import numpy as np
import pytest

from princomp import PCA
from princomp.datasets import make_spiked
from princomp.estimators.costs import choose_solver


@pytest.mark.parametrize(
    ("shape", "k", "solver"),
    [
        ((100, 10), 3, "eigh"),
        ((100, 10), 10, "svd"),
        ((450, 450), 10, "eigh"),
        ((1000, 1000), 20, "krylov"),
        ((1000, 1000), 300, "eigh"),
        ((50_000, 300), 20, "eigh"),
        ((500, 20_000), 10, "eigh"),
        ((10_000, 3000), 10, "krylov"),
    ],
)
def test_solver_of_a_shape(shape, k, solver):
    assert choose_solver(*shape, k) == solver


def test_of_sparse_data_products_with_vectors_are_cheap():
    """To fill X'X takes longer than to multiply what is stored."""
    assert choose_solver(1447, 26_487, 17, density=0.0175) == "krylov"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("n", "p", "k"), [(300, 50, 5), (450, 450, 10), (1000, 1000, 20), (700, 3000, 10), (3000, 400, 40)]
)
def test_no_other_solver_takes_half_as_long(n, p, k):
    X = make_spiked(n, p, rank=min(60, p // 2), random_state=0).X

    def seconds(solver):
        taken = []
        for _ in range(5):
            begin = time.process_time()
            PCA(k, solver=solver, random_state=0).fit(X)
            taken.append(time.process_time() - begin)
        return np.median(taken)

    chosen = choose_solver(n, p, k)
    assert seconds(chosen) <= 2 * min(seconds(other) for other in ("svd", "eigh", "krylov"))
