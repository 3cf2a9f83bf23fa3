"""Who is told how a fit goes: the user's callback, scikit-learn's callback protocol, a progress line on a terminal.

scikit-learn's protocol (1.9, experimental) may change without notice: everything that touches it is here, and does
nothing where the installed version does not have it.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from princomp._compiled import told
from princomp.result import Deadline, asks_to_stop

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks

    HAS_CALLBACKS = True
except ImportError:  # scikit-learn < 1.9
    HAS_CALLBACKS = False

    class CallbackSupport:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method: Any) -> Any:
        """Stand in for scikit-learn's decorator."""
        return method


__all__ = ["HAS_CALLBACKS", "CallbackSupport", "Tell", "share_line", "watch", "with_callbacks"]

COMPILING = "compiling its loops, once on this computer (ahead of time: princomp warmup)"


class Tell:
    """Tells everyone who listens to a fit of its states; has the clock by which that fit is to end, too."""

    def __init__(self, listeners: list[Callable[[Any], bool]], deadline: Deadline | None = None) -> None:
        self.listeners, self.deadline = listeners, deadline or Deadline()

    def __call__(self, state: Any) -> bool:
        """Tell everyone, also after the first who asks to stop; return whether someone does."""
        answers = [listener(state) for listener in self.listeners]
        return any(answers)


@contextmanager
def watch(estimator: Any, X: Any) -> Iterator[Tell]:
    """Yield ``tell(state)``, which tells everyone who listens and returns True if someone asks to stop."""
    tell = Tell([], Deadline(estimator.time_limit))
    listeners = tell.listeners
    context = None
    if HAS_CALLBACKS and (hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X)
        listeners.append(_protocol(estimator, context, X))
    if estimator.callback is not None:
        listeners.append(lambda state: asks_to_stop(estimator.callback(state)))
    with _progress_line(estimator) as line:
        if line is not None:
            listeners.append(line)
        yield tell
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator, X=X)


def _protocol(estimator: Any, context: Any, X: Any) -> Callable[[Any], bool]:
    def tell(state: Any) -> bool:
        task = context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=estimator, X=X)
        metadata = {"objective": state.objective, "residual": state.residual}
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X, metadata=metadata))

    return tell


@contextmanager
def _progress_line(estimator: Any) -> Iterator[Callable[[Any], bool] | None]:
    """Yield a listener that draws one line on the terminal, or None: not verbose, or no terminal to draw on."""
    if not estimator.verbose or _quiet():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=estimator.verbose < 2) as progress:
        line = progress.add_task(f"{type(estimator).__name__}: starting")

        def tell(state: Any) -> bool:
            text = f"iteration {state.iteration}  objective {state.objective:.6g}  residual {state.residual:.1e}"
            progress.update(line, description=f"{type(estimator).__name__}: {text} (tol {estimator.tol:.0e})")
            return False

        def compiling() -> None:
            progress.update(line, description=f"{type(estimator).__name__}: {COMPILING}", refresh=True)

        told.append(compiling)
        try:
            yield tell
        finally:
            told.remove(compiling)


@contextmanager
def share_line(what: str, verbose: int) -> Iterator[Callable[[int, int], None]]:
    """Yield ``tell(done, of)``, which draws how much is done as a bar on the terminal, if there is one."""
    if not verbose or _quiet():
        yield lambda done, of: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=verbose < 2) as progress:
        line = progress.add_task(what, total=None)

        def tell(done: int, of: int) -> None:
            progress.update(line, completed=done, total=of)

        yield tell


def _quiet() -> bool:
    return not sys.stderr.isatty() or "CI" in os.environ
