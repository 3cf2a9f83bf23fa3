"""Files that are there whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a binary file that takes the place of ``path`` when the block ends without an error, in one step.

    It is written beside the target and synchronised first: an error, a full disk or a kill leaves the old file, or
    none, and no half of a new one.
    """
    target = Path(path)
    part = target.with_name(f".princomp-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:  # within: a signal may come when the file is there, but not yet named here
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
