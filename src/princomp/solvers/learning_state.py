"""What the solvers of dictionary learning keep between steps, as arrays by name, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.dictionary_learning import relative_gradient
from princomp.result import Value
from princomp.solvers.learning_atoms import Atoms, own_weights, slopes
from princomp.solvers.learning_coded import Coded, Worst

NUMBERS = ("count", "squares", "errors", "penalties", "offset")
ARRAYS = ("A", "B", "used")


def as_value(coded: Coded) -> dict[str, Array]:
    """Return sums over rows as arrays by name; codes, if they are kept, as one CSR array."""
    value = {name: np.array(getattr(coded, name)) for name in (*NUMBERS, *ARRAYS)}
    worst = coded.worst
    value |= {"worst_errors": worst.errors, "worst_numbers": worst.numbers, "worst_rows": worst.rows}
    if coded.pull is not None:
        value["pull"] = coded.pull
    if coded.codes:
        codes = together(coded.codes)
        value |= {"codes_indptr": codes.indptr, "codes_indices": codes.indices, "codes_data": codes.data}
    return value


def as_coded(value: Value) -> Coded:
    """Return the sums that `as_value` made arrays of."""
    parts: dict[str, Any] = {name: float(value[name]) for name in NUMBERS} | {name: value[name] for name in ARRAYS}
    worst = Worst(value["worst_errors"], value["worst_numbers"], value["worst_rows"])
    return Coded(**parts, worst=worst, pull=value.get("pull"), codes=_codes(value))


def _codes(value: Mapping[str, Any]) -> tuple[Any, ...]:
    if "codes_data" not in value:
        return ()
    from scipy.sparse import csr_array

    indptr = value["codes_indptr"]
    content = (value["codes_data"], value["codes_indices"], indptr)
    return (csr_array(content, shape=(len(indptr) - 1, len(value["A"]))),)


def together(codes: tuple[Any, ...]) -> Any:
    """Return the codes of all rows as one CSR array."""
    from scipy.sparse import vstack

    return codes[0] if len(codes) == 1 else vstack(codes, format="csr")


def residual(D: Array, coded: Coded, atoms: Atoms) -> float:
    """Return the relative projected gradient of atoms that rows were coded with."""
    n = coded.count
    A, B = coded.A / n, coded.B / n
    return relative_gradient(D, slopes(D, A, B), own_weights(A), coded.reference / n, atoms.prox_each)
