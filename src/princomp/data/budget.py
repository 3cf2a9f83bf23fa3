"""How much memory there is, so that a fit that cannot end is refused before it begins."""

from __future__ import annotations

import os
from pathlib import Path


def available_bytes() -> int:
    """Return the memory that can still be had, in bytes (2 GiB where the system does not say)."""
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
    there = available_bytes()
    if size > there:
        raise MemoryError(
            f"{what} needs {size / 2**30:.1f} GiB, but only {there / 2**30:.1f} GiB can be had. {instead}"
        )
