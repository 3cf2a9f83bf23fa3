"""A penalty of one's own that is none: the error names its class and says what a penalty must provide."""

import numpy as np
import pytest

from princomp import DictionaryLearning, sparse_encode
from princomp.penalties import L1, Groups, L2Ball, Lp, NonNegative, Sphere
from princomp.penalties.trial import try_penalty

X = np.random.default_rng(0).normal(size=(30, 6))
D = np.eye(6)[:4]


def soft(w, threshold):
    return np.sign(w) * np.maximum(np.abs(w) - threshold, 0)


class Right:
    """The l1 norm, as a user may write it."""

    convex = True

    def value(self, w):
        return np.abs(w).sum()

    def prox(self, w, step):
        return soft(w, step)


def changed(**methods):
    return type("Wrong", (Right,), methods)()


WRONG = {
    "no value": (changed(value=None), "no method value"),
    "no prox": (changed(prox=None), "no method prox"),
    "neither": (object(), "no method value and no method prox"),
    "a class": (Right, r"the class Right itself: give an object of it, Right\(...\)"),
    "a value for each entry": (changed(value=lambda self, w: np.abs(w)), r"value\(.*\) must return one number"),
    "a text": (changed(value=lambda self, w: "large"), r"value\(.*\) must return one number"),
    "NaN": (changed(value=lambda self, w: np.nan), r"value\(.*\) must be a number, or infinity, got nan"),
    "a short prox": (changed(prox=lambda self, w, step: w[:2]), r"in the shape of w, \(4,\), got \(2,\)"),
    "a number": (changed(prox=lambda self, w, step: 0.0), r"in the shape of w, \(4,\), got \(\)"),
    "None": (changed(prox=lambda self, w, step: None), "must return numbers in the shape of w"),
    "a prox of NaN": (changed(prox=lambda self, w, step: np.nan * w), "must return finite numbers"),
    "an error": (changed(prox=lambda self, w, step: w @ np.ones(99)), r"prox\(w, step\) failed: ValueError"),
    "no step": (changed(prox=lambda self, w: w), r"prox\(w, step\) failed: TypeError"),
    "growing": (changed(prox=lambda self, w, step: w + step * np.sign(w)), "is not where"),
    "not shrinking": (changed(prox=lambda self, w, step: w), "is not where"),
    "shrinking too much": (changed(prox=lambda self, w, step: soft(w, 2 * step)), "is not where"),
    "too little": (changed(prox=lambda self, w, step: soft(w, step / 2)), "is not where"),
    "vectors only": (changed(prox=lambda self, w, step: soft(w, step * np.ones(4))), r"prox\(w, step\) failed"),
    "the first step for all": (changed(prox=lambda self, w, step: soft(w, np.ravel(step)[0])), "a step for each"),
    "other values": (changed(values=lambda self, w: np.zeros(w.shape[1])), r"values\(w\) is not value\(w\)"),
    "a set without rounding": (
        changed(value=lambda self, w: 0.0 if (w == 0).all() else np.inf, prox=lambda self, w, step: w * 1e-20),
        "within rounding",
    ),
}


@pytest.mark.parametrize(("penalty", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_before_anything_is_done(penalty, sentence):
    for ask in (
        lambda: sparse_encode(X, D, penalty=penalty),
        lambda: DictionaryLearning(4, penalty=penalty).fit(X),
        lambda: DictionaryLearning(4, alpha=0.1, transform_penalty=penalty).fit(X),
    ):
        with pytest.raises(TypeError, match=sentence) as caught:
            ask()
        assert penalty is Right or type(penalty).__name__ in str(caught.value)
        assert penalty is Right or "the minimiser of 1/2 |z - w|^2 + step h(z)" in str(caught.value)


@pytest.mark.parametrize("name", ["a short prox", "a prox of NaN", "an error", "not shrinking"])
def test_a_constraint_is_tried_too(name):
    penalty, _ = WRONG[name]
    with pytest.raises(TypeError, match=r"constraint: Wrong\.prox"):
        DictionaryLearning(3, constraint=penalty, alpha=0.1).fit(X)


def test_a_right_one_is_taken():
    np.testing.assert_allclose(
        sparse_encode(X, D, penalty=Right()).toarray(), sparse_encode(X, D, alpha=1.0).toarray(), atol=1e-5
    )
    with pytest.raises(TypeError, match="no method prox"):
        sparse_encode(X, D, penalty=changed(prox=None))
    DictionaryLearning(4, penalty=changed(prox=None), nonzeros=1, max_iter=1).fit(X)  # greedy: it is not used


@pytest.mark.parametrize(
    "penalty", [L1(0.3), Lp(0.3, 0.4), Groups(0.2, [[0, 1], [2], [3]]), NonNegative(L1(0.1)), L2Ball(1.0), Sphere(1.0)]
)
def test_what_this_package_has_would_pass(penalty):
    """The trial is as strict as a prox can be: those that are tested against grids are let through."""
    own = type("Own", (), {name: staticmethod(getattr(penalty, name)) for name in ("value", "prox", "values")})()
    try_penalty(own, 4)
