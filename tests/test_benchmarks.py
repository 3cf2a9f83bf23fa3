"""The benchmarks run at small sizes, and their objective cannot be fooled."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.glob("[!_]*.py"))
HEADERS = {
    "pca.py": "captured / optimum",
    "images.py": "local-pca is above",
    "cellwise.py": "clean data, degrees",
    "kernel.py": "captured / optimum",
    "coding.py": "times ours",
    "dictionary.py": "held-out value",
    "sweep.py": "theirs / ours",
    "offsets.py": "scikit-learn default",
    "memmap.py": "peak unshared memory",
    "probabilistic.py": "times ours",
    "rank_one.py": "two bare products",
    "robust.py": "error of L",
    "sparse_cardinality.py": "times ours",
    "sparse_counts.py": "times dense",
    "sparse_dictionary.py": "times ours",
    "sparse_manual.py": "own start",
    "sparse_regression.py": "times ours",
    "sparse_certificates.py": "rechecked",
    "sparse_supports.py": "F1 of supports",
}


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], cwd=BENCHMARKS, capture_output=True, text=True)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_quick_run(script, tmp_path):
    if script.name == "memmap.py" and not Path("/proc/self/statm").exists():
        pytest.skip("reads /proc, which is there on Linux only")
    page = tmp_path / "page.md"
    done = run(script, "--quick", "--output", page)
    assert done.returncode == 0, done.stderr
    assert HEADERS[script.name] in page.read_text()
    assert "| **princomp** | nan" not in done.stdout


def test_quick_run_leaves_the_pages_alone(tmp_path):
    pages = {path: path.read_bytes() for path in (BENCHMARKS.parent / "docs" / "benchmarks").glob("*.md")}
    assert pages
    assert run(BENCHMARKS / "pca.py", "--quick", "--only", "flat").returncode == 0
    assert pages == {path: path.read_bytes() for path in pages}


def test_unknown_problem_is_named():
    done = run(BENCHMARKS / "pca.py", "--only", "nothing like that")
    assert done.returncode == 2
    assert "nothing like that" in done.stderr


# In a process of its own, because _objective sets the number of threads of the whole process.
OBJECTIVE = """
from _objective import Objective
import numpy as np, scipy.sparse

rng = np.random.default_rng(0)
for shape in [(60, 8), (8, 60)]:
    X = rng.standard_normal(shape) * np.linspace(3, 1, shape[1]) + 10
    V = np.linalg.svd(X - X.mean(axis=0))[2]
    score = Objective(X, 3)
    assert abs(score(V[:3]) - 1) < 1e-12
    assert score(V[1:4]) < 0.95
    assert abs(score(1e6 * V[:3] + 3 * V[[2, 0, 1]]) - 1) < 1e-12, "only the subspace counts"
    assert score(V[[0, 0, 0]] + 1e-3 * rng.standard_normal((3, shape[1]))) < 1
    sparse = Objective(scipy.sparse.csr_array(X), 3)
    assert abs(sparse(V[:3]) - 1) < 1e-9
    try:
        score(V[:4])
    except ValueError:
        pass
    else:
        raise AssertionError("one component too many was accepted")
"""


def test_objective_cannot_be_fooled():
    done = run("-c", OBJECTIVE)
    assert done.returncode == 0, done.stderr
