"""Values as JSON and back: what JSON has stands for itself, anything else is an object with one key, its kind.

=============================  =====================================================================
value                          written as
=============================  =====================================================================
None, bool, int, str, list     itself
float                          itself; ``{"float": "nan"}``, ``"inf"`` or ``"-inf"``
NumPy number                   ``{"numpy": ["<f4", 0.5]}``
array of numbers               ``{"array": name}``, the numbers apart
array of strings               ``{"strings": [...]}``
long list of floats or ints    ``{"list": name}``, the numbers apart
list of arrays of one shape    ``{"stack": name}``, the arrays stacked
tuple                          ``{"tuple": [...]}``
mapping with string keys       ``{"dict": {...}}``
known dataclass                ``{"object": [class, {field: value}]}``
=============================  =====================================================================
"""

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import numpy as np

from princomp._kinds import declared, faults, matches
from princomp._text import printable
from princomp._typing import Array
from princomp._version import __version__
from princomp.persistence.archive import ModelFileError
from princomp.persistence.schema import OBJECTS

DTYPES = {"b": ("|b1",), "i": ("<i4", "<i8"), "u": ("<i4", "<i8"), "f": ("<f4", "<f8")}  # by the kind of a dtype
LONG_LIST = 16  # numbers; a longer list is kept as an array
NAME_LENGTH = 100


class Encoder:
    """Turns values into JSON and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}  # of arrays met before, by identity
        self._kept: list[Array] = []  # so that an identity is not used twice
        self._taken: set[str] = set()  # names, in lower case: some file systems know no other

    def encode(self, value: Any, *path: str) -> Any:
        """Return a value as JSON; ``path`` says where it stands, for names of arrays and errors."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.generic) and value.dtype.kind in DTYPES:
            number = _plain(np.asarray(value), path)
            return {"numpy": [number.dtype.str, self.encode(number.item(), *path)]}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, str):  # np.str_
            return str(value)
        if isinstance(value, list):
            return self._list(value, path)
        if isinstance(value, tuple):
            return {"tuple": [self.encode(item, *path, str(i)) for i, item in enumerate(value)]}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"dict": {str(key): self.encode(item, *path, key) for key, item in value.items()}}
        if OBJECTS.get(type(value).__name__) is type(value):
            held = {each.name: getattr(value, each.name) for each in fields(value)}
            _check_fields(type(value), held)
            written = {key: self.encode(item, *path, key) for key, item in held.items()}
            return {"object": [type(value).__name__, written]}
        raise ModelFileError(
            f"{'.'.join(path)} is of the class {type(value).__name__}, which a model file cannot hold: no "
            "code of others is to run when it is read. Keep this estimator with pickle, on computers that have the "
            "class; another value in its place would change what the model computes"
        )

    def _array(self, array: Array, path: tuple[str, ...]) -> Any:
        if array.dtype == object and array.ndim == 1 and all(isinstance(item, str) for item in array):
            return {"strings": [str(item) for item in array]}
        return {"array": self._add(array, path)}

    def _list(self, items: list[Any], path: tuple[str, ...]) -> Any:
        types = {type(item) for item in items}
        whole = types == {int} and -(2**63) <= min(items) <= max(items) < 2**63
        if len(items) > LONG_LIST and (types == {float} or whole):
            return {"list": self._add(np.array(items), path)}
        if types == {np.ndarray} and items[0].size and len({(item.shape, item.dtype) for item in items}) == 1:
            return {"stack": self._add(np.stack(items), path)}
        return [self.encode(item, *path, str(i)) for i, item in enumerate(items)]

    def _add(self, array: Array, path: tuple[str, ...]) -> str:
        """Keep an array under a name made of its path; an array met before keeps its name."""
        if id(array) not in self._names:
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", ".".join(path))[:NAME_LENGTH]
            name = base
            while name.lower() in self._taken:
                name = f"{base}-{len(self._taken)}"
            self._taken.add(name.lower())
            self.arrays[name] = _plain(array, path)
            self._names[id(array)] = name
            self._kept.append(array)
        return self._names[id(array)]


def _plain(array: Array, path: tuple[str, ...]) -> Array:
    """Return the same numbers as little-endian booleans, int32, int64, float32 or float64."""
    choices = DTYPES.get(array.dtype.kind, ())
    for dtype in choices:
        if np.can_cast(array.dtype, dtype):
            return array.astype(dtype, copy=False)
    if choices:  # uint64 or long double: if the numbers allow it
        with np.errstate(all="ignore"):
            plain = array.astype(choices[-1])
        if np.array_equal(plain, array, equal_nan=array.dtype.kind == "f"):
            return plain
    raise ModelFileError(f"{'.'.join(path)} holds {array.dtype} numbers, which a model file cannot hold exactly")


def decode(node: Any, arrays: dict[str, Array]) -> Any:
    """Return the value that JSON made by `Encoder` stands for, with these arrays."""
    if isinstance(node, list):
        return [decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        raise ModelFileError("its manifest holds an object with other than one key where a value is expected")
    ((kind, content),) = node.items()
    if kind not in DECODERS:
        raise ModelFileError(f"its manifest holds a value of the unknown kind {kind!r:.50}")
    expected, decoder = DECODERS[kind]
    if not matches(content, expected):
        raise ModelFileError(f'its manifest holds something else than expected as "{kind}"')
    return decoder(content, arrays)


def _named(name: str, arrays: dict[str, Array]) -> Array:
    if name not in arrays:
        raise ModelFileError(f"its manifest refers to the array {name!r:.50}, which is missing or was used up")
    return arrays[name]


def _numbers(name: str, arrays: dict[str, Array]) -> list[Any]:
    """Return a list of numbers. Its array is used up: the file decides how long the lists are, but not how many."""
    _named(name, arrays)
    return arrays.pop(name).tolist()


def _stacked(name: str, arrays: dict[str, Array]) -> list[Array]:
    """Return a list of arrays; their stack is used up, too, and not empty: 10^12 times nothing takes no space."""
    if _named(name, arrays).size == 0:
        raise ModelFileError(f"its array {name!r:.50} is empty, though arrays are stacked in it")
    stack = arrays.pop(name)
    return [stack[i, ...] for i in range(len(stack))]


def _number(content: list[Any], arrays: dict[str, Array]) -> Any:
    if len(content) != 2 or content[0] not in {dtype for choices in DTYPES.values() for dtype in choices}:
        raise ModelFileError('its manifest holds a "numpy" number of an unknown type')
    value = decode(content[1], arrays)
    if not matches(value, float):
        raise ModelFileError('its manifest holds a "numpy" number that is no number')
    return np.dtype(content[0]).type(value)


def _float(content: str, arrays: dict[str, Array]) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise ModelFileError(f'its manifest holds the "float" {content!r:.50}')
    return float(content)


def _object(content: list[Any], arrays: dict[str, Array]) -> Any:
    """Return a known dataclass, its fields named and typed as it declares; one that the file lacks has its default.

    Text in it is for people, who may print it: without control characters.
    """
    if not (len(content) == 2 and isinstance(content[0], str) and isinstance(content[1], dict)):
        raise ModelFileError('its manifest holds an "object" that is no pair of a class and its fields')
    name, given = content
    if name not in OBJECTS:
        raise ModelFileError(f"it holds an object of the class {name!r:.50}, which model files do not have")
    kind = OBJECTS[name]
    known = {each.name: each for each in fields(kind)}
    for key in sorted(given.keys() - known.keys()):
        raise ModelFileError(
            f"its {name} has the field {key!r:.50}, which princomp {__version__} does not know. Use the princomp that "
            "wrote it, or a newer one"
        )
    for key in sorted(known.keys() - given.keys()):
        if known[key].default is MISSING and known[key].default_factory is MISSING:
            raise ModelFileError(f"its {name} lacks the field {key}")
    values = {key: decode(item, arrays) for key, item in given.items()}
    _check_fields(kind, values)
    return kind(**{key: _escaped(value) for key, value in values.items()})


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return type(value)(_escaped(item) for item in value)
    if isinstance(value, dict):
        return {printable(key): _escaped(item) for key, item in value.items()}
    return value


def _check_fields(kind: type, values: Mapping[str, Any]) -> None:
    """Refuse fields of other types than declared, or out of their range, or whose lengths do not go together."""
    hints = get_type_hints(kind)
    for key, value in values.items():
        if not matches(value, hints[key]):
            raise ModelFileError(f"its {kind.__name__} has a {key} of the wrong type, {type(value).__name__}")
    for key, wrong in faults(values, declared(kind, "_kinds")):
        raise ModelFileError(f"the {key} of its {kind.__name__} {wrong}")


DECODERS: dict[str, tuple[Any, Any]] = {  # kind: (type of the content, function of it and the arrays)
    "float": (str, _float),
    "numpy": (list[Any], _number),
    "array": (str, _named),
    "strings": (list[str], lambda content, arrays: np.array(content, dtype=object)),
    "list": (str, _numbers),
    "stack": (str, _stacked),
    "tuple": (list[Any], lambda content, arrays: tuple(decode(content, arrays))),
    "dict": (dict[str, Any], lambda content, arrays: {key: decode(item, arrays) for key, item in content.items()}),
    "object": (list[Any], _object),
}
