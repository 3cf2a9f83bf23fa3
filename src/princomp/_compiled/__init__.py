"""Loops compiled by numba: arrays and numbers in, arrays out; serial, without the GIL, each with a slow twin.

`loops` is the one way in. It answers None where numba is missing or broken, and the caller uses the twin. Loops that
are their own twins (`compiled_or_itself`) are there in any case.
"""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

# All modules of loops, for whoever wants them compiled ahead of time.
NAMES = (
    "sparse_gram",
    "dictionary_sweeps",
    "missing_em",
    "cardinality_nodes",
    "group_prox",
    "cardinality_search",
    "regression_descent",
    "coding_cells",
    "coding_entries",
    "coding_nested",
    "learning_sums",
    "coding_pursuit",
    "ksvd_pairs",
    "coding_lasso",
    "image_groups",
    "pursuit_cells",
)

told: list[Callable[[], Any]] = []  # who is called whenever a loop is compiled, which takes seconds


@cache
def loops(name: str) -> ModuleType | None:
    """Return the module of loops of this name, or None where numba does not work."""
    try:
        return import_module(f"princomp._compiled.{name}")
    except Exception as error:  # an ImportError, or whatever a numba that does not suit NumPy or LLVM raises
        logging.getLogger("princomp").info("Slower without compiled loops: numba cannot be used (%s).", error)
        return None


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function, kept on disk for later processes where some folder can be written to."""
    from numba import njit

    _tell_when_compiling()
    # What numba finds on disk by this name it unpickles before it looks whether it is out of date: what another version
    # of the module left behind may ask for a class that is no longer there.
    function.__qualname__ = f"{function.__qualname__}-{_content(function.__code__.co_filename)}"
    how = {"nogil": True, "error_model": "numpy", **options}
    try:
        return njit(cache=True, **how)(function)
    except RuntimeError:  # no folder for the cache
        return njit(**how)(function)


@cache
def _tell_when_compiling() -> None:
    """Let numba tell when it compiles: what it finds on disk it does not."""
    from numba.core import event

    class Compiling(event.Listener):
        def on_start(self, event: Any) -> None:
            for each in tuple(told):
                each()

        def on_end(self, event: Any) -> None:
            """Whoever was told hears of the fit itself next."""

    event.register("numba:compile", Compiling())


@cache
def _content(path: str) -> str:
    """Return some digits of what is in a source file."""
    try:
        return f"{crc32(Path(path).read_bytes()):08x}"
    except OSError:  # there is none: nor does numba then keep anything
        return ""


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function as a part of those that call it: for what stays in registers, which a call would empty."""
    return compiled(function, forceinline=True)


def compiled_or_itself(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that is its own twin: where numba does not work it is used as it is."""
    try:
        return compiled(function)
    except Exception:  # as in `loops`
        return function
