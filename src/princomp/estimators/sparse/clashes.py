"""Parameters that mean nothing together, and the formulation that they mean."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

# Parameters that mean something to some formulations only: (default, formulations).
OWNERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "code_alpha": (None, ("dictionary",)),
    "radius": (1.0, ("dictionary",)),
    "groups": (None, ("dictionary", "cardinality")),
    "nonnegative": (False, ("dictionary", "cardinality")),
    "ridge": (None, ("regression",)),
    "solver": (None, ("regression",)),
    "bound": (None, ("constrained",)),
    "deflation": ("schur", ("constrained", "cardinality")),
    "certify": (False, ("cardinality",)),
    "node_limit": (None, ("cardinality",)),
    "retain": (0.9, ("cardinality",)),
    "include": (None, ("cardinality",)),
    "exclude": (None, ("cardinality",)),
    "alpha": (None, ("dictionary", "regression")),
    "alpha_share": (None, ("dictionary", "regression")),
}
# Of each pair only one may be given: they say the same thing in two ways.
EITHER = (
    ("alpha", "nonzeros", ": nonzeros looks for the alpha"),
    ("alpha_share", "nonzeros", ": nonzeros looks for the alpha"),
    ("bound", "nonzeros", ": nonzeros looks for the bound"),
    ("alpha", "alpha_share", ""),
    ("nonzeros", "retain", ""),
)


def formulation_of(parameters: Mapping[str, Any]) -> str:
    """Return the formulation asked for, or the one that the parameters given belong to."""
    if parameters["formulation"] != "auto":
        return str(parameters["formulation"])
    if parameters["bound"] is not None:
        return "constrained"
    if parameters["ridge"] is not None or parameters["solver"] is not None:
        return "regression"
    penalised = any(parameters[name] is not None for name in ("alpha", "alpha_share", "code_alpha"))
    return "dictionary" if penalised or parameters["radius"] != 1 else "cardinality"


def clash(parameters: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the parameters of a `SparsePCA` given together, in a sentence; None if nothing is.

    Examples
    --------
    >>> from princomp import SparsePCA
    >>> from princomp.estimators.sparse.clashes import clash
    >>> clash(SparsePCA(alpha=1.0, nonzeros=3).get_params())
    'Give alpha or nonzeros, not both: nonzeros looks for the alpha.'
    """
    meant = formulation_of(parameters)
    given = {name for name, (default, _) in OWNERS.items() if not _is_default(parameters[name], default)}
    for name, (_, owners) in OWNERS.items():
        if name in given and meant not in owners:
            owner = " or ".join(f'"{owner}"' for owner in owners)
            return f'{name} is for formulation={owner}, but this fit is "{meant}".'
    if parameters["nonzeros"] is not None:
        given.add("nonzeros")
    for first, second, why in EITHER:
        if first in given and second in given:
            return f"Give {first} or {second}, not both{why}."
    if not parameters["certify"] and "node_limit" in given:
        return "node_limit is for certify=True (on the command line: --certify)."
    return None


def _is_default(value: Any, default: Any) -> bool:
    """Tell whether a parameter has its default; an array, or a list, has not."""
    return value is default or (isinstance(value, str | Real | np.bool_) and bool(value == default))
