"""Checkpoints: the small state of an unfinished run in a file, written so that it is there whole or not at all."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from princomp._atomic import atomic_file
from princomp._typing import Array
from princomp.data.signature import Signature


class Checkpoint:
    """A file that holds the state of one run.

    Parameters
    ----------
    path : path or None
        The file; None makes every method do nothing. Its folder must be there and take files, which is tried at once.
    fingerprint : str
        Identifies solver and parameters: a file with another one is refused, not silently overwritten.
    signature : callable, optional
        Returns the `Signature` of the data, which is called for once: a file with another one is refused too.
    every : float, default 10
        Seconds between writes.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None,
        fingerprint: str = "",
        *,
        signature: Callable[[], Signature] | None = None,
        every: float = 10.0,
    ) -> None:
        self.path = None if path is None else _writable(path)
        self.fingerprint = fingerprint
        self.every = every
        self._sign = signature
        self._signature: Signature | None = None
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, Array], float, float, int] | None:
        """Return (value, objective, residual, iteration) of an earlier run, or None if there is none."""
        if self.path is None:
            return None
        if self._signature is None and self._sign is not None:
            self._signature = self._sign()  # now, and not when the run is interrupted and has to be saved
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                content = {name: arrays[name] for name in arrays.files}
            fingerprint = str(content["_fingerprint"])
        except Exception as error:
            raise self._unreadable(str(error)) from error
        if fingerprint != self.fingerprint:
            raise self._of_another_fit("other data, parameters or version")
        if str(content.pop("_checksum", "")) != _checksum(content):
            raise self._unreadable("its arrays are not those that were saved")
        if self._signature is not None and not self._signature.agrees(content["_signature"]):
            raise self._of_another_fit("other data")
        value = {name: array for name, array in content.items() if not name.startswith("_")}
        return value, float(content["_objective"]), float(content["_residual"]), int(content["_iteration"])

    def save_now_and_then(self, state: Any) -> None:
        """Write, if the last write is long enough ago."""
        if self.path is not None and time.monotonic() - self._last >= self.every:
            self.save(state)

    def save(self, state: Any) -> None:
        """Write the state, whole or not at all."""
        if self.path is None:
            return
        content = {name: np.asarray(array) for name, array in state.value.items()}
        content["_fingerprint"] = np.array(self.fingerprint)
        if self._signature is not None:
            content["_signature"] = self._signature.sums
        for number in ("objective", "residual", "iteration"):
            content[f"_{number}"] = np.array(getattr(state, number))
        arrays: dict[str, Any] = content | {"_checksum": np.array(_checksum(content))}
        with atomic_file(self.path) as file:
            np.savez(file, **arrays)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _unreadable(self, why: str) -> ValueError:
        return ValueError(f"The checkpoint {self.path} cannot be read ({why}). Delete it to start afresh.")

    def _of_another_fit(self, what: str) -> ValueError:
        return ValueError(
            f"The checkpoint {self.path} belongs to another fit ({what}). Delete it to start afresh, or give another "
            "path."
        )


def _writable(path: str | PathLike[str]) -> Path:
    """Return the path; complain if no file can be written there, before there is work to lose."""
    try:
        place = Path(fspath(path))
    except TypeError:
        raise TypeError(f"checkpoint must be the path of a file, or None, got {path!r}.") from None
    if place.is_dir():
        raise ValueError(f"The checkpoint {place} is a folder: give the path of a file in it.")
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise ValueError(
            f"The checkpoint {place} cannot be written: its folder does not take a file ({error.strerror}). Make that "
            "folder first, or give another path."
        ) from error
    return place


def _checksum(content: Mapping[str, Array]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(content.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        flat = np.ascontiguousarray(array.reshape(-1, order="A"))
        digest.update(flat.view(np.uint8).data)
    return digest.hexdigest()
