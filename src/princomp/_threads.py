"""Threads and BLAS: the one place that decides how many threads run, and that keeps long calls interruptible."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def _blas() -> Any:
    """Return the BLAS libraries of this process (looked up once: it costs a millisecond)."""
    import scipy.linalg  # noqa: F401  so that SciPy's own BLAS is loaded, and so found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def thread_count() -> int:
    """Return how many threads we may use: as many as BLAS may use now.

    So ``OPENBLAS_NUM_THREADS``, ``threadpoolctl.threadpool_limits`` and joblib's limits in its workers all govern
    princomp too, without a setting of its own.
    """
    return max((library.num_threads for library in _blas().lib_controllers), default=1)


class _SharedLimit:
    """One BLAS thread while anyone is inside; the last one out restores what the first one found.

    BLAS limits are global to the process: two overlapping "save, set, restore" pairs in two Python threads would
    leave the limit behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _blas().limit(limits=1)
                self._limit.__enter__()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(None, None, None)
                self._limit = None


_single = _SharedLimit()


def single_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread inside the block (safe to nest, also across Python threads)."""
    return _single


def ordered_map(fn: Callable[[Any], T], items: Sequence[Any]) -> Generator[T, None, None]:
    """Yield ``fn(item)`` in the order of the items, computed by as many threads as BLAS would use.

    At most one result more than threads is under way, so memory stays bounded; the order, and so every sum over the
    results, does not depend on the number of threads.
    """
    threads = min(thread_count(), len(items)) if len(items) > 1 else 1
    if threads == 1:
        yield from map(fn, items)
        return
    pending: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="princomp")
    try:
        with single_blas_thread():
            for item in items:
                pending.append(pool.submit(fn, item))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
    finally:
        # On an error or Ctrl-C what has not started is dropped; blocks are small, so nothing runs on for long.
        pool.shutdown(wait=False, cancel_futures=True)


# A LAPACK call cannot be interrupted. Below this many flops (about a third of a second) nobody notices.
INTERRUPTIBLE_FLOPS = 1e10


def interruptible(fn: Callable[[], T], *, flops: float) -> T:
    """Return ``fn()``, one LAPACK call of about ``flops``, in a way that Ctrl-C can leave at once.

    A long call runs in a thread of its own while the caller waits; on Ctrl-C the caller goes on and the thread's
    result is thrown away when it ends.
    """
    if flops < INTERRUPTIBLE_FLOPS or threading.current_thread() is not threading.main_thread():
        return fn()
    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(fn())
        except BaseException as error:  # handed to the caller, who raises it
            outcome.set_exception(error)

    threading.Thread(target=work, name="princomp-lapack", daemon=True).start()
    return outcome.result()
