"""A folder of results that appear together, when all are complete."""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from princomp._text import listed, printable
from princomp.cli.exits import OUTPUT, Failure, writing


class Results:
    """Where a command puts its files: `path` gives the place of a new one, `publish` moves all to the folder."""

    def __init__(self, folder: Path, staging: Path, all_names: list[str], *, force: bool) -> None:
        self.folder, self._staging, self._all_names, self._force = folder, staging, all_names, force

    def path(self, name: str) -> Path:
        """Return where to write a file for now."""
        return self._staging / name

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file written so far, by name, those in folders too."""
        files = sorted(path for path in self._staging.rglob("*") if path.is_file())
        return {path.relative_to(self._staging).as_posix(): _digest(path) for path in files}

    def publish(self) -> list[Path]:
        """Move all files to the folder, under a lock: of two runs at once, one comes first, whole."""
        names = sorted(path.name for path in self._staging.iterdir())
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            refuse_to_overwrite(self.folder, self._all_names, force=self._force)
            self._exchange(names)
        return [self.folder / name for name in names]

    def _exchange(self, names: list[str]) -> None:
        """Put new files in the place of all old ones; if one cannot be moved, put all old ones back."""
        old = self._staging / "old"
        old.mkdir()
        done: list[tuple[Path, Path]] = []

        def move(source: Path, target: Path) -> None:
            os.replace(source, target)
            done.append((source, target))

        try:
            for name in self._all_names:
                if os.path.lexists(self.folder / name):
                    move(self.folder / name, old / name)
            for name in names:
                move(self._staging / name, self.folder / name)
        except BaseException:
            for source, target in reversed(done):
                os.replace(target, source)
            raise


def _digest(path: Path) -> str:
    with path.open("rb") as file:  # not read as a whole: it may be large
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def results(folder: Path, names: list[str], *, force: bool) -> Iterator[Results]:
    """Yield a place for files that will be in ``folder`` after `Results.publish`; what is not published vanishes.

    ``names`` are all files that may ever be there: that the folder can be written to, and holds none of them yet, is
    found out now, before the work; with ``force``, none of the old ones stays beside the new.
    """
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            raise Failure(f"{printable(folder)} is a file, not a folder. Give another one with -o.", OUTPUT)
        refuse_to_overwrite(folder, names, force=force)
        there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        staging = there / f".princomp-{secrets.token_hex(8)}"  # on the same file system, so that moving is one step
        staging.mkdir()
    try:
        with writing(folder):
            yield Results(folder, staging, names, force=force)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_to_overwrite(folder: Path, names: list[str], *, force: bool) -> None:
    """Raise `Failure` if the folder holds one of these files, or, forced or not, folders with files of others."""
    there = [name for name in names if os.path.lexists(folder / name)]
    for name in there:
        if (folder / name).is_dir() and (others := _not_ours(folder, name)):
            raise Failure(
                f"{printable(folder / name)} holds what princomp did not write ({listed(others)}). Move it, or give "
                "another folder with -o.",
                OUTPUT,
            )
    if there and not force:
        raise Failure(
            f"{printable(folder)} holds results already ({listed(there)}). Replace them with --force, "
            "or give another folder with -o.",
            OUTPUT,
        )


def _not_ours(folder: Path, name: str) -> list[str]:
    """Return what there is in a folder of results that the summary beside it does not list."""
    try:
        ours = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, LookupError, TypeError):  # none, or not one of ours
        ours = {}
    return sorted(path.name for path in (folder / name).iterdir() if f"{name}/{path.name}" not in ours)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system lets go of whatever happens (not on Windows, where there is none)."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
