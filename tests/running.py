"""The command ``princomp`` in a process of its own."""

import os
import subprocess
import sys


def command(*args):
    """Return the words that run it."""
    return [sys.executable, "-m", "princomp", *(a if isinstance(a, bytes | os.PathLike) else str(a) for a in args)]


def princomp(*args, cwd=None, stdin=None, env=None, **more):
    """Run it and return what it printed and its exit code."""
    with open(os.devnull if stdin is None else stdin, "rb") as source:
        return subprocess.run(
            command(*args),
            cwd=cwd,
            stdin=source,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | (env or {}),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
            **more,
        )
