"""The group of commands, and how each run ends."""

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from princomp._version import __version__
from princomp.cli.demo import demo
from princomp.cli.exits import BROKEN_PIPE, BUG, INTERRUPTED, MEMORY, OUTPUT, TERMINATED, Failure
from princomp.cli.fit import fit
from princomp.cli.inspect import inspect
from princomp.cli.interrupts import Terminated, listen
from princomp.cli.pictures import denoise, inpaint
from princomp.cli.show import tell
from princomp.cli.transform import transform
from princomp.cli.warmup import warmup


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # Click would end as if all were well
            raise Failure("", BROKEN_PIPE) from error


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 a bug, 2 usage, 3 bad input, 4 not converged (with --strict), 5 output, 6 memory.",
)
@click.version_option(__version__, prog_name="princomp")
def cli() -> None:
    """The right PCA for your data: fit it, certify it, look at it.

    Begin with "princomp demo", then "princomp fit YOUR.csv".
    """


for command in (demo, fit, transform, denoise, inpaint, inspect, warmup):
    cli.add_command(command)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    listen()
    try:
        code = cli.main(standalone_mode=False) or 0
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except Failure as error:
        if error.code != BROKEN_PIPE:
            _say(f"Error: {error}")
        code = error.code
    except (KeyboardInterrupt, click.Abort):
        _say("Interrupted: nothing was written.")
        code = INTERRUPTED
    except Terminated:
        code = TERMINATED
    except BrokenPipeError:
        code = BROKEN_PIPE
    except OSError as error:  # files have been dealt with: this is standard output
        _say(f"Error: cannot write to standard output: {error.strerror or error}.")
        code = OUTPUT
    except MemoryError as error:
        _say(f"Error: not enough memory. {error}".rstrip())
        code = MEMORY
    except Exception as error:
        if "PRINCOMP_DEBUG" in os.environ:
            raise
        _say(f"Error: {error!r}. This is a bug: please report it. PRINCOMP_DEBUG=1 shows where it happened.")
        code = BUG
    if code in (BROKEN_PIPE, OUTPUT):
        # What is left in the buffer must not raise again when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # no one to tell
        tell(sentence, err=True)
