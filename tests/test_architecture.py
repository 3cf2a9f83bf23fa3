"""The house stands: imports point one way, `import princomp` stays light, the docs map and the version are true."""

import ast
import graphlib
import importlib.metadata
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from princomp import __version__

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

# From the ground up. A module may import its own floor and the floors below, whether at the top or inside a function.
FLOORS = (
    ("_version", "_threads", "_atomic", "_text", "_typing", "_warn", "_kinds", "_compiled"),
    ("losses", "penalties", "manifolds", "kernels", "data"),
    ("result", "checkpoint", "progress"),
    ("certificates",),
    ("coders",),
    ("solvers",),
    ("estimators",),
    # the face
    (
        "images",
        "plots",
        "report",
        "diagnose",
        "compare",
        "persistence",
        "manual",
        "single_cell",
        "explore",
        "cli",
        "__main__",
        "",
    ),
)
FLOOR = {name: height for height, names in enumerate(FLOORS) for name in names}
FACE = len(FLOORS) - 1
DATA = FLOOR["data"]
# `datasets` stands apart: it may use what `data` may use, and only the face may use it.

HEAVY = {"scipy", "sklearn", "numba", "matplotlib", "plotly"}


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((SOURCE / "princomp").rglob("*.py"))}


def part(module):
    """princomp.data.rows -> data; princomp -> the empty name."""
    return [*module.split("."), ""][1]


def imported(path, *, top_only=False):
    """Absolute names of the modules that a file imports, with the line: [(name, line), ...].

    With top_only, those imported when the file itself is: not inside functions, not `if TYPE_CHECKING`.
    """
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = []

    def visit(node):
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *filter(None, [node.module])])
            # `from princomp import data` imports princomp.data, `from princomp.data import Rows` only princomp.data
            for alias in node.names:
                inside = f"{base}.{alias.name}"
                found.append((inside if inside in MODULES else base, node.lineno))
        elif top_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        elif top_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child)
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def wrong_import(importer, target):
    """Why the import is wrong, or None."""
    a, b = part(importer), part(target)
    if a == b:
        return None
    if b == "datasets":
        return None if FLOOR[a] == FACE else "only the face may use the data sets"
    allowed = DATA if a == "datasets" else FLOOR[a]
    return None if FLOOR[b] <= allowed else f"{b or 'princomp'} is above {a}"


def ours(names):
    return [(name, line) for name, line in names if name.split(".")[0] == "princomp"]


def test_every_module_has_a_floor():
    homeless = {part(name) for name in MODULES} - set(FLOOR) - {"datasets"}
    assert not homeless, f"give these modules a floor in {Path(__file__).name}: {sorted(homeless)}"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module):
    path = MODULES[module]
    faults = [
        f"{path.relative_to(ROOT)}:{line} imports {target}: {why}"
        for target, line in ours(imported(path))
        if (why := wrong_import(module, target))
    ]
    assert not faults, "\n".join(faults)


def test_imports_have_no_circle():
    graph = {
        name: {target for target, _ in ours(imported(path, top_only=True))} - {name} for name, path in MODULES.items()
    }
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail("modules import each other: " + " <- ".join(error.args[1]))


def test_import_princomp_reaches_no_heavy_module():
    """Those that `import princomp` does reach import scipy and the like inside functions only."""
    reached, todo = set(), ["princomp"]
    while todo:
        name = todo.pop()
        if name in reached or name not in MODULES:
            continue
        reached.add(name)
        todo += [target for target, _ in ours(imported(MODULES[name], top_only=True))]
        todo += [name.rpartition(".")[0]]
    faults = [
        f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        for name in sorted(reached)
        for target, line in imported(MODULES[name], top_only=True)
        if target.split(".")[0] in HEAVY
    ]
    assert not faults, "`import princomp` reaches:\n" + "\n".join(faults)


def test_warnings_are_given_in_one_place():
    """It finds the user's line by itself: levels of the stack counted by hand are wrong after the next change."""
    faults = [
        f"{path.relative_to(ROOT)} says {words}"
        for name, path in MODULES.items()
        for words in ("stacklevel", "warnings.warn", "from warnings")
        if name != "princomp._warn" and words in path.read_text(encoding="utf-8")
    ]
    assert not faults, "call princomp._warn.warn instead:\n" + "\n".join(faults)


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_loads_no_heavy_module():
    loaded = run("import sys, princomp; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert HEAVY.isdisjoint(loaded)


def test_import_is_quick():
    """Under 0.15 s of processor time beyond the bare interpreter (medians, so that one slow run does not count)."""
    clock = "import time; print(time.process_time())"
    run("import princomp")  # compiles the bytecode
    bare, full = [], []
    for _ in range(7):  # by turns, so that a busy computer slows both
        bare.append(float(run(clock)))
        full.append(float(run("import princomp; " + clock)))
    cost = statistics.median(full) - statistics.median(bare)
    print(f"import princomp: {cost:.3f} s of processor time beyond {statistics.median(bare):.3f} s")
    assert cost < 0.15


def change_table():
    """Rows of the table `to change X | open Y` in docs/architecture.md."""
    lines = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"\|\s*to change\b", line, re.IGNORECASE)), None)
    assert start is not None, "docs/architecture.md has no table whose header begins with `| to change`"
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def test_map_of_changes_is_true():
    rows = change_table()
    assert len(rows) >= 10
    for row in rows:
        paths = re.findall(r"`([^`]+)`", row[1])
        assert paths, f"no path in the row {row}"
        for path in paths:
            assert (ROOT / path).exists(), f"to change {row[0]}, open {path}: there is no such file"


def test_the_version_is_said_once():
    """In `_version.py`, from which packages take it; the file for citations, which cannot, says the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/princomp/_version.py"
    assert importlib.metadata.version("princomp") == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("importer", "target", "fine"),
    [
        ("princomp.estimators.pca", "princomp.solvers.eigh", True),
        ("princomp.solvers.eigh", "princomp.data", True),
        ("princomp.solvers.eigh", "princomp.estimators.base", False),
        ("princomp.data.rows", "princomp.result", False),
        ("princomp.data.rows", "princomp", False),
        ("princomp.datasets.shapes", "princomp.data", True),
        ("princomp.datasets.shapes", "princomp.result", False),
        ("princomp.estimators.pca", "princomp.datasets", False),
        ("princomp.cli", "princomp.datasets", True),
    ],
)
def test_the_rule_itself(importer, target, fine):
    assert (wrong_import(importer, target) is None) == fine
