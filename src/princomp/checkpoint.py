"""Checkpoints: the small state of an unfinished run in a file, written so that it is there whole or not at all."""

from __future__ import annotations

import time
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._atomic import atomic_file

Array = NDArray[Any]


class Checkpoint:
    """A file that holds the state of one run.

    Parameters
    ----------
    path : path or None
        The file; None makes every method do nothing.
    fingerprint : str
        Identifies solver, parameters and data: a file with another one is refused, not silently overwritten.
    every : float, default 10
        Seconds between writes.
    """

    def __init__(self, path: str | PathLike[str] | None, fingerprint: str = "", *, every: float = 10.0) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.every = every
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, Array], float, float, int] | None:
        """Return (value, objective, residual, iteration) of an earlier run, or None if there is none."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                content = {name: arrays[name] for name in arrays.files}
            fingerprint = str(content.pop("_fingerprint"))
            objective, residual = float(content.pop("_objective")), float(content.pop("_residual"))
            iteration = int(content.pop("_iteration"))
        except Exception as error:
            raise ValueError(
                f"The checkpoint {self.path} cannot be read ({error}). Delete it to start afresh."
            ) from error
        if fingerprint != self.fingerprint:
            raise ValueError(
                f"The checkpoint {self.path} belongs to another fit (other data, parameters or version). "
                "Delete it to start afresh, or give another path."
            )
        return content, objective, residual, iteration

    def save_now_and_then(self, state: Any) -> None:
        """Write, if the last write is long enough ago."""
        if self.path is not None and time.monotonic() - self._last >= self.every:
            self.save(state)

    def save(self, state: Any) -> None:
        """Write the state, whole or not at all."""
        if self.path is None:
            return
        content: dict[str, Any] = {**state.value, "_fingerprint": np.array(self.fingerprint)}
        for number in ("objective", "residual", "iteration"):
            content[f"_{number}"] = np.array(getattr(state, number))
        with atomic_file(self.path) as file:
            np.savez(file, **content)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
