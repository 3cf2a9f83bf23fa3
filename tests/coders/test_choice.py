"""Which coder parameters mean: names, objects, and what comes first."""

import numpy as np
import pytest

from princomp.coders.choice import as_coder
from princomp.coders.lasso import Lasso
from princomp.coders.proximal import Proximal
from princomp.coders.pursuit import Pursuit
from princomp.penalties import L0, L1, Box, ElasticNet, Groups, Lp, NonNegative, Tree, Zero

GROUPS = [[0, 1], [2]]


class Own:
    """A penalty as a user may write it."""

    def value(self, w):
        return 0.0

    def prox(self, w, step):
        return w


def fields(coder):
    return {name: getattr(coder, name) for name in ("alpha", "l2", "weights", "nonnegative", "tol")}


@pytest.mark.parametrize("name", ["l1", "elastic-net"])
def test_names_of_the_lasso(name):
    weights = np.array([1.0, 2.0])
    coder = as_coder(name, 0.3, l2=0.2, weights=weights, positive=True, tol=1e-4)
    assert isinstance(coder, Lasso)
    found = fields(coder)
    assert found.pop("weights").tolist() == [1, 2]
    assert found == {"alpha": 0.3, "l2": 0.2, "nonnegative": True, "tol": 1e-4}
    assert fields(as_coder()) == {"alpha": 1.0, "l2": 0.0, "weights": None, "nonnegative": False, "tol": 1e-6}


def test_names_of_penalties_that_are_not_convex():
    assert as_coder("l0", 0.3, tol=1e-4) == Proximal(L0(0.3), 1e-4)
    assert as_coder("lp", 0.3, positive=True) == Proximal(NonNegative(Lp(0.3, 0.5)))


@pytest.mark.parametrize("penalty", ["l1", "l0", "lp", "tree", L1(0.1), Groups(0.1, GROUPS)])
def test_nonzeros_and_error_come_first(penalty):
    assert as_coder(penalty, nonzeros=3) == Pursuit(3)
    assert as_coder(penalty, 7.0, error=0.5, selection="omp", positive=True) == Pursuit(None, 0.5, "omp", True)
    assert as_coder(penalty, nonzeros=3, error=0.5, l2=1.0) == Pursuit(3, 0.5)


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (L1(0.1), (0.1, 0.0, False)),
        (ElasticNet(0.1, 0.2), (0.1, 0.2, False)),
        (NonNegative(ElasticNet(0.1, 0.2)), (0.1, 0.2, True)),
        (NonNegative(NonNegative(L1(0.1))), (0.1, 0.0, True)),
        (NonNegative(), (0.0, 0.0, True)),
        (Zero(), (0.0, 0.0, False)),
        (L0(0.0), (0.0, 0.0, False)),
        (NonNegative(Lp(0.0)), (0.0, 0.0, True)),
    ],
    ids=repr,
)
def test_objects_that_the_lasso_solves(penalty, expected):
    coder = as_coder(penalty, 99.0)
    assert isinstance(coder, Lasso)
    assert (coder.alpha, coder.l2, coder.nonnegative) == expected
    assert as_coder(penalty, positive=True).nonnegative


def test_other_objects_speak_for_themselves():
    own = Own()
    for penalty in (Groups(0.1, GROUPS), Tree(0.1, [[0, 1], [1]]), Box(0.0, 1.0), L0(0.1), own):
        assert as_coder(penalty, 99.0) == Proximal(penalty)
        assert as_coder(penalty, positive=True) == Proximal(NonNegative(penalty))
        assert as_coder(NonNegative(penalty), positive=True) == Proximal(NonNegative(penalty))
    coder = Pursuit(3)
    assert as_coder(coder) is coder


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"penalty": "tree"}, r"needs to know the groups: give princomp.penalties.Tree"),
        ({"penalty": "l2"}, r"must be one of 'l1', 'elastic-net', 'l0', 'lp' or an object, got 'l2'"),
        ({"penalty": "l0", "l2": 0.1}, "not with 'l0'"),
        ({"penalty": "lp", "weights": [1.0]}, "weights are those of the l1 norm"),
        ({"penalty": Groups(0.1, GROUPS), "weights": [1.0]}, "weights are those of the l1 norm"),
        ({"penalty": L1(0.1), "l2": 0.1}, "speaks for itself"),
        ({"nonzeros": 3, "weights": [1.0]}, "do not go with nonzeros"),
        ({"nonzeros": 0}, "nonzeros must be"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"penalty": "l0", "alpha": np.nan}, "alpha must be"),
        ({"penalty": Pursuit(3), "positive": True}, "parameters of the coder"),
    ],
)
def test_what_means_nothing_is_refused(how, words):
    with pytest.raises(ValueError, match=words):
        as_coder(**how)


@pytest.mark.parametrize("penalty", [None, 3, object(), L1])
def test_what_is_no_penalty_is_refused(penalty):
    with pytest.raises(TypeError, match="penalty must be one of 'l1'"):
        as_coder(penalty)
