"""How much memory there is, so that a fit that cannot end is refused before it begins."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def limited(size: int | None) -> Iterator[None]:
    """Let no more than ``size`` bytes be planned for within the block; None sets no limit."""
    token = _limit.set(size)
    try:
        yield
    finally:
        _limit.reset(token)


SMALL = 2**20  # is there without looking, unless a limit says otherwise


def available_bytes() -> int:
    """Return the memory that may still be taken: what the system has, or the limit that was set."""
    limit = _limit.get()
    return _system_bytes() if limit is None else min(limit, _system_bytes())


def _system_bytes() -> int:
    """Return the memory that the system can still give, in bytes (2 GiB where it does not say)."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return min(int(line.split()[1]) * 1024, _container_bytes())
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2 * 2**30


def _container_bytes() -> int:
    """Return what a container's limit leaves (a large number without one)."""
    try:
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current"))
        return max(int(limit) - int(used), 0)
    except (OSError, ValueError):  # no container, or "max": no limit
        return 2**62


def require(size: float, what: str, instead: str) -> None:
    """Raise MemoryError if ``size`` bytes for ``what`` are more than can be had; ``instead`` says what to do."""
    if size < SMALL:
        return
    there = available_bytes()
    if size > there:
        raise MemoryError(
            f"{what} needs {size / 2**30:.1f} GiB, but only {there / 2**30:.1f} GiB can be had. {instead}"
        )
