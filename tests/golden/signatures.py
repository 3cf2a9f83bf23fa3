"""Names, parameters and defaults that users write, and the range of each attribute in a model file.

    PYTHONPATH=src:tests python tests/golden/signatures.py

writes them down in ``signatures.txt``, anew: a line that changes there is a promise that changes.
"""

import inspect
import re
from pathlib import Path

import princomp
from princomp._kinds import declared
from princomp.persistence import schema

WRITTEN = Path(__file__).with_name("signatures.txt")
ROOMS = ("certificates", "data", "datasets", "images", "kernels", "losses", "manifolds", "penalties", "plots", "report")


def signature(thing):
    """Parameters with their defaults, without types, which are written in another way by each version of Python."""
    found = inspect.signature(thing)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    return re.sub(r" at 0x\w+", "", str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty)))


def public(room):
    """(name, what it is) of everything public in a module."""
    names = getattr(room, "__all__", None) or [name for name in vars(room) if not name.startswith("_")]
    for name in sorted(names):
        thing = getattr(room, name)
        if callable(thing) and getattr(thing, "__module__", "").startswith("princomp"):
            yield name, thing


def lines():
    """One line for each function, class and method, and for each attribute that a model file holds."""
    for room in (princomp, *(getattr(princomp, name) for name in ROOMS)):
        for name, thing in public(room):
            place = f"{room.__name__}.{name}"
            try:
                yield f"{place}{signature(thing)}"
            except ValueError:  # an exception, say, whose parameters nobody wrote
                continue
            if not inspect.isclass(thing):
                continue
            for each, method in sorted(inspect.getmembers(thing, inspect.isfunction)):
                if not each.startswith("_") and method.__module__.startswith("princomp"):
                    yield f"{place}.{each}{signature(method)}"
    for name, model in sorted(schema.MODELS.items()):
        for attribute, kind in declared(model.estimator, "_fitted").items():
            yield f"{name}.{attribute}: {kind}"


if __name__ == "__main__":
    WRITTEN.write_text("\n".join(lines()) + "\n", encoding="utf-8")
