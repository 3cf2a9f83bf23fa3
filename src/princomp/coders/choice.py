"""Which coder the parameters mean."""

from typing import Any

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.lasso import Lasso


def as_coder(
    penalty: Any = "l1",
    alpha: float = 1.0,
    *,
    l2: float = 0.0,
    nonzeros: int | None = None,
    error: float | None = None,
    selection: str = "ols",
    weights: Array | None = None,
    positive: bool = False,
    tol: float = 1e-6,
) -> Coder:
    """Return the coder for these parameters."""
    if nonzeros is None and error is None and penalty in ("l1", "elastic-net"):
        return Lasso(alpha, l2, weights, positive, tol)
    raise ValueError(f'penalty must be "l1" or "elastic-net", got {penalty!r}.')
