"""One component after the other: with whole eigenvectors for components, deflation gives principal components."""

from functools import partial

import numpy as np
import pytest

from princomp.datasets import load_pitprops
from princomp.solvers import one_by_one
from princomp.solvers.scatter import Matrix

S = load_pitprops().correlation
K = 4


def eigenvector(A, value):
    """A search of two steps: a look at the diagonal, and the answer."""
    if not value["begun"]:
        return {"begun": np.array(True)}, float(A.diagonal.max()), np.inf
    values, V = np.linalg.eigh(A.matrix)
    search = {"begun": np.array(False)}
    return one_by_one.finished(A, value, V[:, -1], float(values[-1]), 0.0, search), 0.0, 0.0


def start():
    return one_by_one.start(len(S), {"begun": np.array(False)})


@pytest.mark.parametrize("kind", ["schur", "projection", "generalised", "hotelling"])
def test_eigenvectors_leave_principal_components(kind):
    states = list(one_by_one.one_by_one(Matrix(S), start(), eigenvector, k=K, deflation=kind))
    values, V = np.linalg.eigh(S)
    last = states[-1]
    np.testing.assert_allclose(last.value["captured"], values[::-1][:K], rtol=1e-12)
    np.testing.assert_allclose(np.abs(V[:, ::-1][:, :K].T @ last.value["found"]), np.eye(K), atol=1e-10)
    assert last.objective == pytest.approx(values[:-K].sum(), rel=1e-12)
    assert [state.iteration for state in states] == list(range(1, 2 * K + 1))


def test_the_residual_is_the_largest_once_the_last_component_can_tell_its_own():
    residuals = iter([1e-4, 1e-2, 1e-3])

    def found(A, value):
        v = np.linalg.eigh(A.matrix)[1][:, -1]
        return one_by_one.finished(A, value, v, 1.0, next(residuals), {}), 0.0, 0.0

    states = one_by_one.one_by_one(Matrix(S), one_by_one.start(len(S), {}), found, k=3, deflation="schur")
    assert [state.residual for state in states] == [np.inf, np.inf, 1e-2]


def test_what_is_not_begun_is_zero_and_what_is_under_way_is_shown():
    first, *_, last = one_by_one.one_by_one(Matrix(S), start(), eigenvector, k=K, deflation="schur")
    under_way = np.eye(len(S))[2]
    V = one_by_one.components(first.value, 3, under_way)
    assert (np.column_stack([under_way, np.zeros((len(S), 2))]) == V).all()
    assert not one_by_one.components(first.value, 3, None).any()
    assert (one_by_one.components(last.value, K, under_way) == last.value["found"]).all()  # there is no room for it


def test_any_state_can_be_continued_to_the_same_answer():
    solver = partial(one_by_one.one_by_one, Matrix(S), step=eigenvector, k=K, deflation="schur")
    states = list(solver(start()))
    for state in states[:-1]:
        *_, last = solver(state.value)
        for name, array in states[-1].value.items():
            assert np.array_equal(last.value[name], array), name
