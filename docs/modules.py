"""Prints what each module holds, as its first line says: ``python docs/modules.py [folder, such as solvers]``."""

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "princomp"


def modules(folder=""):
    """Paths below the source, by floor, each with the first line of its docstring."""
    found = {}
    for path in sorted((SOURCE / folder).rglob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        found[path.relative_to(SOURCE).as_posix()] = said.splitlines()[0] if said else ""
    return found


if __name__ == "__main__":
    for name, said in modules(*sys.argv[1:2]).items():
        sys.stdout.write(f"{name:45} {said}\n")
