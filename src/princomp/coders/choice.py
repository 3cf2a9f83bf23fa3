"""Which coder parameters mean: one order of precedence, for `sparse_encode` and `DictionaryLearning`."""

from __future__ import annotations

from typing import Any, cast

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.lasso import Lasso
from princomp.coders.proximal import Proximal
from princomp.coders.pursuit import Pursuit
from princomp.penalties import L0, L1, ElasticNet, Lp, NonNegative, Penalty, Zero, is_penalty

NAMES = ("l1", "elastic-net", "l0", "lp")
STRUCTURED = {"group": "Groups", "groups": "Groups", "tree": "Tree"}  # names that say too little


def as_coder(
    penalty: str | Penalty | Coder = "l1",
    alpha: float = 1.0,
    *,
    l2: float = 0.0,
    nonzeros: int | None = None,
    error: float | None = None,
    selection: str = "ols",
    weights: Any = None,
    positive: bool = False,
    tol: float = 1e-6,
) -> Coder:
    """Return the coder that parameters mean, in this order.

    1. ``nonzeros`` or ``error``, where given: greedy pursuit, `Pursuit`, whatever ``penalty``, ``alpha`` and ``l2``
       say.
    2. A penalty object speaks for itself, ``alpha`` and ``l2`` are for names: `Lasso` for L1, ElasticNet and no
       penalty, `Proximal` for all others. A coder is taken as it is.
    3. A name: "l1" and "elastic-net" (one and the same: alpha |a|_1 + l2/2 |a|^2), `Lasso`; "l0" and "lp",
       `Proximal` with L0(alpha) and Lp(alpha, 1/2).

    Parameters
    ----------
    penalty : {"l1", "elastic-net", "l0", "lp"}, Penalty or Coder
        What codes cost.
    alpha : float
        Weight of a penalty given by its name.
    l2 : float
        Weight of 1/2 |a|^2, with "l1" and "elastic-net".
    nonzeros : int, optional
        The most nonzeros a code may have.
    error : float, optional
        The residual norm |x - a D| at which a code is good enough.
    selection : {"ols", "omp"}
        How pursuit chooses atoms.
    weights : (K,) array, optional
        Of each atom in the l1 norm: with "l1", "elastic-net", L1 and ElasticNet.
    positive : bool
        Whether codes must not be negative.
    tol : float
        Of `Lasso` and `Proximal`.

    Examples
    --------
    >>> from princomp.coders.choice import as_coder
    >>> from princomp.penalties import Tree
    >>> [type(as_coder(**how)).__name__ for how in ({}, {"penalty": "l0"}, {"penalty": "l0", "nonzeros": 3})]
    ['Lasso', 'Proximal', 'Pursuit']
    >>> as_coder(Tree(0.1, [[0, 1], [1]]), positive=True).penalty
    NonNegative(penalty=Tree(alpha=0.1, groups=((0, 1), (1,)), weights=(1.4142135623730951, 1.0)))
    """
    if nonzeros is not None or error is not None:
        _no_weights(weights, "nonzeros and error")
        return Pursuit(nonzeros, error, selection, positive)
    if isinstance(penalty, str):
        return _by_name(penalty, float(alpha), float(l2), weights, positive, tol)
    if hasattr(penalty, "code") and not isinstance(penalty, type):
        if positive or weights is not None or l2:
            raise ValueError(f"positive, weights and l2 are parameters of the coder itself: {penalty!r}.")
        return cast(Coder, penalty)
    if not is_penalty(penalty):
        raise TypeError(
            f"penalty must be one of {', '.join(map(repr, NAMES))}, an object such as those in princomp.penalties, or "
            f"a coder, got {penalty!r}."
        )
    if l2:
        raise ValueError(f"l2 goes with the names 'l1' and 'elastic-net'; {penalty!r} speaks for itself.")
    return _by_object(penalty, weights, positive, tol)


def _by_name(name: str, alpha: float, l2: float, weights: Any, positive: bool, tol: float) -> Coder:
    if name in STRUCTURED:
        raise ValueError(f"penalty={name!r} needs to know the groups: give princomp.penalties.{STRUCTURED[name]}.")
    if name not in NAMES:
        raise ValueError(f"penalty must be one of {', '.join(map(repr, NAMES))} or an object, got {name!r}.")
    if name in ("l1", "elastic-net"):
        return Lasso(alpha, l2, weights, positive, tol)
    if l2:
        raise ValueError(f"l2 goes with 'l1' and 'elastic-net', not with {name!r}.")
    return _by_object(L0(alpha) if name == "l0" else Lp(alpha), weights, positive, tol)


def _by_object(penalty: Any, weights: Array | None, positive: bool, tol: float) -> Coder:
    inner, nonnegative = penalty, positive
    while isinstance(inner, NonNegative):
        inner, nonnegative = inner.penalty, True
    if isinstance(inner, L1 | ElasticNet | Zero) or (isinstance(inner, L0 | Lp) and inner.alpha == 0):
        alpha = float(getattr(inner, "alpha", 0.0))
        return Lasso(alpha, float(getattr(inner, "l2", 0.0)), weights, nonnegative, tol)
    _no_weights(weights, repr(penalty))
    return Proximal(NonNegative(inner) if nonnegative else inner, tol)


def _no_weights(weights: Any, what: str) -> None:
    if weights is not None:
        raise ValueError(f"weights are those of the l1 norm and do not go with {what}.")
