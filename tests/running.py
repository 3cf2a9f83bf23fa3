"""The command ``princomp``, as a user types it."""

import io
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir
from pathlib import Path
from unittest import mock

from princomp.cli import main


def command(*args):
    """Return the words that run it in a process of its own."""
    return [sys.executable, "-m", "princomp", *(a if isinstance(a, bytes | os.PathLike) else str(a) for a in args)]


def princomp(*args, cwd=None, stdin=None, env=None, apart=False, **more):
    """Run it and return what it printed and its exit code.

    In this process, which is quick; with an environment or limits of its own, or where the test is about what the
    process itself does (``apart``), in another one.
    """
    if not apart and env is None and not more:
        return _here(args, cwd, stdin)
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


def _here(args, cwd, stdin):
    """Run `main` with arguments, folder and streams of its own; streams are files, as those of a process are."""
    words = ["__main__.py", *(os.fsdecode(a) if isinstance(a, bytes | os.PathLike) else str(a) for a in args)]
    terminated = signal.getsignal(signal.SIGTERM)
    with ExitStack() as stack:
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        source = stack.enter_context(open(os.devnull if stdin is None else stdin, "rb"))
        # Written through descriptors of their own: `main` closes those of a standard output that fails.
        written = [stack.enter_context(open(os.dup(file.fileno()), "wb")) for file in (out, err)]
        streams = {
            "argv": words,
            "stdin": io.TextIOWrapper(source),
            "stdout": io.TextIOWrapper(written[0], encoding="utf-8", errors="surrogateescape"),
            "stderr": io.TextIOWrapper(written[1], encoding="utf-8", errors="backslashreplace"),
        }
        stack.enter_context(chdir(Path.cwd() if cwd is None else cwd))
        # As by python -m princomp. Not by mock.patch.dict, which forgets what is imported meanwhile: numba bears no
        # second import.
        stack.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
        sys.modules["__main__"] = mock.Mock(__package__="princomp")
        for name, value in streams.items():
            stack.enter_context(mock.patch.object(sys, name, value))
        stack.callback(signal.signal, signal.SIGTERM, terminated)
        try:
            main()
        except SystemExit as exit:
            code = exit.code
        printed = []
        for name, file in (("stdout", out), ("stderr", err)):
            streams[name].flush()
            file.seek(0)
            printed.append(file.read().decode("utf-8", errors="surrogateescape"))
    return subprocess.CompletedProcess(words, code, *printed)
