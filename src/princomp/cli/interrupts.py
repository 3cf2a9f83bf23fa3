"""Ctrl-C and SIGTERM: exceptions, so that what is temporary goes before the process does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Terminated(BaseException):
    """Somebody asked the process to end."""


def listen() -> None:
    """Let SIGTERM raise `Terminated`, as Ctrl-C raises KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(signum: int, frame: Any) -> NoReturn:
    raise Terminated


@contextmanager
def held_back() -> Iterator[None]:
    """Hold both back until the block ends: an exception inside an import may be lost, in code that ignores it."""
    came: list[tuple[int, Any]] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, lambda *signal: came.append(signal)) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
    if came:
        handler = before[signal.Signals(came[0][0])]
        if callable(handler):
            handler(*came[0])
