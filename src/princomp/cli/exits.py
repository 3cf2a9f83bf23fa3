"""What goes wrong, in a sentence and a number: the exit codes of the command line."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

from princomp._text import printable

BUG, USAGE, BAD_DATA, NOT_CONVERGED, OUTPUT, MEMORY = 1, 2, 3, 4, 5, 6
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143


class Failure(Exception):
    """An end that is not a bug: a sentence for the user, and an exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


@contextmanager
def reading(what: str | PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong with input into a `Failure` that names it."""
    name = printable(what)
    try:
        yield
    except MemoryError as error:
        sentence = _sentence(error, "not enough memory. Set --memory-limit, or use a larger machine.")
        raise Failure(f"{name}: {sentence}", MEMORY) from error
    except ImportError as error:
        raise Failure(_sentence(error, "A library is missing."), USAGE) from error
    except (ValueError, TypeError, OSError, OverflowError) as error:
        sentence = error.strerror if isinstance(error, OSError) and error.strerror else _sentence(error, repr(error))
        raise Failure(sentence if name in sentence else f"{name}: {sentence}", BAD_DATA) from error


@contextmanager
def writing(where: str | PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong with output into a `Failure` that names it; a broken pipe is left to `main`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        cause = error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = " Free some space, or give another folder with -o." if full else ""
        sentence = f"Cannot write to {printable(where)}: {cause}.{hint} Nothing was changed there."
        raise Failure(sentence, OUTPUT) from error


def _sentence(error: BaseException, otherwise: str) -> str:
    return printable(str(error), lines=True) or otherwise
