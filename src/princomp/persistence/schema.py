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

from princomp import estimators, kernels, losses, penalties
from princomp._kinds import Kind, Of, declared


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


# Small objects that no file holds: a kernel that calls a function of the user's, and penalties that solvers give
# themselves: no parameter takes one.
NOT_IN_FILES = (kernels.Function, penalties.ColumnL1, penalties.RowNorms)


def objects() -> dict[str, Any]:
    """Return the small objects, by name: losses, penalties and kernels, which see to themselves, and what fits leave.

    Their fields are of the types that they declare. Proofs are for `certificates.verify`, which trusts nothing.
    """
    given = [kind for package in (losses, penalties, kernels) for kind in vars(package).values()]
    left = [each.hint for model in MODELS.values() for each in model.fitted.values() if isinstance(each, Of)]
    found = [kind for kind in given if isinstance(kind, type) and is_dataclass(kind) and kind not in NOT_IN_FILES]
    return {kind.__name__: kind for kind in [*found, *(kind for hint in left for kind in objects_in(hint))]}


OBJECTS = objects()  # the only small objects a file may hold
