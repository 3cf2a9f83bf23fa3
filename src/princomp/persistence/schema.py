"""What a model file may hold: estimators with their fitted attributes, and small objects inside these.

Each class declares of which kind its attributes are, and in which range their numbers (see `princomp._kinds`). That is
compared when a file is written and when it is loaded, so that no file gives what no fit gives.

Files live longer than these declarations. What is added later must go on loading files that do not have it: a parameter
and a field of a small object take their default then (a field without one cannot be added); an attribute must be
``optional``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from princomp import estimators
from princomp._kinds import Kind, Of, declared
from princomp.kernels import (
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    NearestNeighbors,
    Normalized,
    Polynomial,
    Product,
    Sigmoid,
    Sum,
)
from princomp.losses import Huber, Squared
from princomp.penalties import L1, Groups, NonNegative, OverlappingGroups, Tree, Zero


@dataclass(frozen=True)
class Model:
    """An estimator that files may hold, and what a fit leaves in it."""

    estimator: type
    fitted: Mapping[str, Kind]  # by the name of the attribute


def models() -> dict[str, Model]:
    """Return all estimators, by name, with what they declare."""
    found = {name: getattr(estimators, name) for name in estimators.__all__}
    return {name: Model(estimator, declared(estimator, "_fitted")) for name, estimator in found.items()}


MODELS = models()  # the only estimators a file may hold


def objects_in(hint: Any) -> Iterator[type]:
    """Yield the dataclasses that an annotation names, and those in their fields."""
    inside = list(get_args(hint))
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
        inside = [get_type_hints(hint)[each.name] for each in fields(hint)]
    for each in inside:
        yield from objects_in(each)


# The only small objects a file may hold: losses, penalties and kernels, which see to themselves, and what fits leave.
# Their fields are of the types that they declare. Proofs are for `certificates.verify`, which trusts nothing.
OBJECTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Squared, Huber),
        *(Zero, L1, NonNegative, Groups, Tree, OverlappingGroups),
        *(Linear, Gaussian, Laplacian, Polynomial, Cosine, Sigmoid, NearestNeighbors, Normalized, Sum, Product),
    )
} | {
    kind.__name__: kind
    for model in MODELS.values()
    for left in model.fitted.values()
    if isinstance(left, Of)
    for kind in objects_in(left.hint)
}
