"""Compiled loops equal their slow twins, and everything works without them."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import princomp
from princomp._compiled import NAMES, loops
from princomp._compiled.sparse_gram import sparse_gram


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 24])
def test_sparse_gram_equals_its_twin(dtype, index, columns):
    rng = np.random.default_rng(columns)
    X = sp.random_array((300, 70), density=0.1, format="csr", rng=rng, dtype=dtype)
    X = sp.csr_array((X.data, X.indices.astype(index), X.indptr.astype(index)), shape=X.shape)
    X.data.flags.writeable = False
    V = rng.standard_normal((70, columns)).astype(dtype)
    along = rng.standard_normal(columns).astype(dtype)
    scores = np.empty((300, columns), dtype)
    product, sums = sparse_gram(X, V, along, scores)
    Z = X.astype(np.float64) @ V.astype(np.float64) - along
    close = 20 * np.finfo(dtype).eps
    assert np.abs(scores - Z).max() <= close * np.abs(Z).max()
    assert np.abs(product - X.T @ Z).max() <= close * np.abs(X.T @ Z).max()
    assert np.abs(sums - Z.sum(axis=0)).max() <= close * np.abs(Z).sum(axis=0).max()


def test_empty_rows_and_no_rows():
    V, along = np.ones((5, 3)), np.array([1.0, 2.0, 3.0])
    for n in (4, 0):
        product, sums = sparse_gram(sp.csr_array((n, 5)), V, along)
        assert not product.any()
        assert (sums == -n * along).all()


def test_every_module_of_loops_is_listed_and_loads():
    folder = Path(princomp._compiled.__file__).parent
    users = {path.stem for path in folder.glob("*.py") if "@compiled" in path.read_text(encoding="utf-8")}
    assert users == set(NAMES)
    assert all(loops(name) is not None for name in NAMES)


FIT = """
    import sys
    {before}
    import numpy as np, scipy.sparse as sp
    from princomp import PCA
    from princomp._compiled import loops
    X = sp.random_array((20000, 1200), density=0.05, format="csr", rng=np.random.default_rng(0))
    assert X.nnz > 1_000_000
    pca = PCA(3, solver="krylov", random_state=0).fit(X)
    print(loops("sparse_gram") is not None, *pca.explained_variance_)
"""


def fit_elsewhere(before="", **environment):
    """Return (compiled, variances) of a fit in another process."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FIT.format(before=before))],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    compiled, *variances = done.stdout.split()
    return compiled == "True", np.array(variances, float)


def test_without_numba_without_a_cache_folder_and_without_a_home(tmp_path, observe):
    """P8."""
    usual, expected = fit_elsewhere()
    assert usual
    absent, variances = fit_elsewhere("sys.modules['numba'] = None")
    assert not absent
    assert np.abs(variances / expected - 1).max() <= 1e-9
    observe("P8", "numba absent", f"SciPy's products instead, differs by {np.abs(variances / expected - 1).max():.0e}")

    # A copy of the package in which no folder can take the cache, for a user who has no home.
    shutil.copytree(Path(princomp.__file__).parent, tmp_path / "princomp", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "princomp" / "_compiled" / "__pycache__").touch()
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), "/dev/null/none")
    compiled, variances = fit_elsewhere(f"sys.path.insert(0, {str(tmp_path)!r})", **nowhere)
    assert compiled
    assert (variances == expected).all()
    observe("P8", "no folder for the cache, no home", "compiled anew, the same numbers")


VERSION = """
    from typing import NamedTuple
    from princomp._compiled import compiled

    class {name}(NamedTuple):
        number: float

    @compiled
    def doubled(pair):
        return 2 * pair.number
"""


def test_what_another_version_left_on_disk_is_left_alone(tmp_path):
    """numba would unpickle its index by classes that are gone, and fail, before it saw that it is out of date."""
    for name in ("Work", "Room"):
        (tmp_path / "versions.py").write_text(textwrap.dedent(VERSION.format(name=name)))
        code = f"import versions; print(versions.doubled(versions.{name}(21.0)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.stdout.strip() == "42.0", done.stderr
    assert len(list((tmp_path / "__pycache__").glob("*.nbi"))) == 2
