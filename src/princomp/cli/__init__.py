"""The command line: ``princomp fit data.csv -o out``.

Each command has a file of its own; a method is one more file in ``methods/``. Nothing heavy is imported before a
command runs, so that ``--help`` answers at once.
"""

from princomp.cli.app import main

__all__ = ["main"]
