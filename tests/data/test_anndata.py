"""AnnData: files and objects as data, what is done to counts on the way, and results where scanpy looks for them."""

import contextlib
import json
import re
import subprocess
import sys
import textwrap

import anndata
import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse as sp

import princomp
from princomp import PCA, annotate
from princomp.cli.transform import prepared_otherwise
from princomp.data import DataError, as_rows, read, statistics
from running import princomp as run

# What anndata says of itself under pandas 3.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),
    pytest.mark.filterwarnings("ignore:The 'mode.chained_assignment' option is deprecated"),
    pytest.mark.needs("pyarrow"),
]

LAZY = {"memory_limit": 2**14, "block_rows": 16}  # too little to keep anything
CELLS, GENES, EMPTY = 90, 60, 7  # one cell has no counts


def counts(seed=0):
    """Counts of three kinds of cells, sparse."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.3, 1.0, (3, GENES)) * 2
    found = rng.poisson(rates[np.arange(CELLS) % 3] * rng.lognormal(0, 0.5, (CELLS, 1))).astype(float)
    found[EMPTY] = 0
    return sp.csr_matrix(found)


def make_cells(X=None, **more):
    """An AnnData object of counts."""
    X = counts() if X is None else X
    obs = pandas.DataFrame(
        {
            "kind": pandas.Categorical(["a", "b", "c"] * (CELLS // 3)),
            "batch": ["one"] * 40 + ["two"] * (CELLS - 40),
            "depth": np.arange(CELLS),
            "known": pandas.Categorical(["yes", None] * (CELLS // 2)),
        },
        index=[f"cell {i}" for i in range(CELLS)],
    )
    genes = [f"gene {j}" for j in range(GENES)]
    var = pandas.DataFrame({"highly_variable": np.arange(GENES) % 4 != 0, "length": np.arange(GENES)}, index=genes)
    return anndata.AnnData(X, obs, var, **more)


@pytest.fixture
def path(tmp_path):
    make_cells().write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def dense(rows):
    """All rows as one array; sparse blocks must be CSR."""
    blocks = [rows.block(i) for i in range(len(rows.offsets) - 1)]
    assert all((block.format == "csr") if rows.sparse else isinstance(block, np.ndarray) for block in blocks)
    return np.concatenate([block.toarray() if rows.sparse else block for block in blocks])


def same_up_to_sign(scores, others, tol=1e-5):
    """Whether columns agree to ``tol`` of the largest score, each with either sign."""
    signs = np.sign((scores * others).sum(axis=0))
    return np.abs(scores - signs * others).max() <= tol * np.abs(others).max()


# --- files ----------------------------------------------------------------------------------------

STORED = {
    "csr": counts,
    "csc": lambda: counts().tocsc(),
    "dense": lambda: counts().toarray(),
    "single": lambda: counts().astype(np.float32),
    "integers": lambda: counts().astype(np.int64),
    "dense bytes": lambda: counts().toarray().astype(np.uint8),
}


@pytest.mark.parametrize("how", [{}, LAZY], ids=["kept", "in blocks"])
@pytest.mark.parametrize("packed", [None, "gzip", "lzf"])
@pytest.mark.parametrize("kind", STORED)
def test_X_is_read_however_it_is_stored(tmp_path, kind, packed, how):
    if kind == "csc" and how:
        how = {**how, "memory_limit": 2**17}  # it is turned in memory
    make_cells(STORED[kind]()).write_h5ad(tmp_path / "x.h5ad", compression=packed)
    rows = read(tmp_path / "x.h5ad", **how)
    assert rows.shape == (CELLS, GENES)
    assert rows.sparse == ("dense" not in kind)
    assert rows.dtype == (np.float32 if kind == "single" else np.float64)
    assert len(rows.offsets) > 2 if how else True
    np.testing.assert_array_equal(dense(rows), counts().toarray())


def test_genes_and_cells_have_their_names_and_texts_are_labels(path):
    rows = read(path)
    assert rows.names[:2] == ("gene 0", "gene 1")
    assert rows.sample_names[-1] == f"cell {CELLS - 1}"
    assert set(rows.labels) == {"kind", "batch", "known"}
    assert rows.labels["kind"][:4].tolist() == ["a", "b", "c", "a"]
    assert rows.labels["batch"][[0, -1]].tolist() == ["one", "two"]
    assert rows.labels["known"][:2].tolist() == ["yes", ""]  # what is missing is empty
    assert read(path, label="depth").labels["depth"][:3].tolist() == ["0", "1", "2"]  # numbers, if asked for
    with pytest.raises(DataError, match=r"cells\.h5ad has no column 'kinds': did you mean kind\?"):
        read(path, label="kinds")


def test_layers_and_raw_are_read_by_name(tmp_path):
    cells = make_cells(layers={"half": counts() / 2, "rounded": np.rint(counts().toarray())})
    cells.raw = cells
    cells = cells[:, :20].copy()
    cells.write_h5ad(tmp_path / "x.h5ad")
    X = counts().toarray()
    np.testing.assert_array_equal(dense(read(tmp_path / "x.h5ad", layer="half")), X[:, :20] / 2)
    np.testing.assert_array_equal(dense(read(tmp_path / "x.h5ad", layer="rounded")), X[:, :20])
    raw = read(tmp_path / "x.h5ad", layer="raw", mask_var="highly_variable")
    np.testing.assert_array_equal(dense(raw), X[:, np.arange(GENES) % 4 != 0])  # by the var of raw
    assert raw.names[-1] == f"gene {GENES - 1}"
    with pytest.raises(DataError, match=r"no layer counts; its layers are half, rounded"):
        read(tmp_path / "x.h5ad", layer="counts")
    cells.layers["raw"] = cells.X * 3
    cells.write_h5ad(tmp_path / "y.h5ad")
    np.testing.assert_array_equal(dense(read(tmp_path / "y.h5ad", layer="raw")), X[:, :20] * 3)  # a layer comes first


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_genes_of_the_same_name_are_told_apart(tmp_path):
    cells = make_cells()
    cells.var_names = ["same", "same", *cells.var_names[2:]]
    cells.write_h5ad(tmp_path / "x.h5ad")
    rows = read(tmp_path / "x.h5ad")
    assert rows.names[:3] == ("same", "same.1", "gene 2")
    assert rows.notes[0] == "Renamed 1 column whose name came before: same.1."
    assert as_rows(cells).names == rows.names


@pytest.mark.parametrize("how", [{}, LAZY], ids=["kept", "in blocks"])
def test_several_files_are_one(tmp_path, how):
    cells = make_cells()
    cells[:50].copy().write_h5ad(tmp_path / "part-1.h5ad")
    cells[50:].copy().write_h5ad(tmp_path / "part-2.h5ad")
    rows = read(tmp_path / "part-*.h5ad", normalize=100.0, **how)
    np.testing.assert_array_equal(dense(rows), dense(as_rows(normalised(100.0))))
    assert rows.sample_names == tuple(cells.obs_names)
    assert rows.labels["kind"].tolist() == cells.obs["kind"].tolist()
    cells[50:, ::-1].copy().write_h5ad(tmp_path / "part-2.h5ad")
    with pytest.raises(DataError, match="other columns"):
        read(tmp_path / "part-*.h5ad")


def normalised(target):
    X = counts().toarray()
    totals = X.sum(axis=1, keepdims=True)
    return sp.csr_array(X / np.where(totals == 0, 1, totals / target))


# --- what is done to counts ------------------------------------------------------------------------


def by_scanpy(*, target, log1p, mask, scale):
    """Scores, components and variances of scanpy, in memory."""
    import scanpy

    cells = make_cells(counts().toarray())
    if target is not None:
        scanpy.pp.normalize_total(cells, target_sum=None if target is True else target)
    if log1p:
        scanpy.pp.log1p(cells)
    if scale:
        scanpy.pp.scale(cells)
    scanpy.pp.pca(cells, n_comps=5, mask_var=mask, svd_solver="full", dtype="float64")
    return cells


@pytest.mark.filterwarnings("ignore:Some cells have zero counts:UserWarning")  # as scanpy says, of one of ours
@pytest.mark.parametrize("how", [{}, LAZY], ids=["kept", "in blocks"])
@pytest.mark.parametrize(
    ("target", "log1p", "mask", "scale"),
    [
        (1e4, True, "highly_variable", True),
        (True, True, "highly_variable", False),
        (True, True, None, True),
        (1e4, False, None, False),
        (None, True, "highly_variable", False),
    ],
)
def test_lazy_preparation_and_PCA_agree_with_scanpy(path, target, log1p, mask, scale, how):
    expected = by_scanpy(target=target, log1p=log1p, mask=mask, scale=scale)
    rows = read(path, normalize=target, log1p=log1p, mask_var=mask, **how)
    pca = PCA(5, scale=scale).fit(rows)
    assert same_up_to_sign(pca.transform(rows), expected.obsm["X_pca"])
    np.testing.assert_allclose(pca.explained_variance_ratio_, expected.uns["pca"]["variance_ratio"], rtol=1e-8)
    cells = make_cells()
    annotate(cells, pca, rows)
    assert same_up_to_sign(cells.varm["PCs"], expected.varm["PCs"])  # 0 where genes were left out


def test_files_that_mark_other_genes_are_not_put_together(path, tmp_path):
    other = make_cells()
    other.var["highly_variable"] = ~other.var["highly_variable"]
    other.write_h5ad(tmp_path / "y.h5ad")
    path.rename(tmp_path / "z.h5ad")
    with pytest.raises(DataError, match=r"z\.h5ad marks other genes in highly_variable than .*y\.h5ad does"):
        read(tmp_path / "[yz].h5ad", mask_var="highly_variable")
    assert read(tmp_path / "[yz].h5ad").shape[0] == 2 * other.n_obs


def test_sparse_rows_are_never_made_dense(path, monkeypatch):
    monkeypatch.setattr(statistics, "SHIFT_ROWS", 5)  # a few rows are looked at for a point near the mean
    made_dense = sp.csr_array.toarray

    def refuse(self, *args, **kwargs):
        assert self.shape[0] <= 5
        return made_dense(self, *args, **kwargs)

    rows = read(path, normalize=1e4, log1p=True, mask_var="highly_variable", **LAZY)
    assert rows.sparse
    assert rows.changeable  # from the file, each time
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, refuse)
    pca = PCA(3, solver="krylov", scale=True, random_state=0).fit(rows)
    assert pca.certificate_.holds
    assert pca.transform(rows).shape == (CELLS, 3)


def test_totals_are_those_of_all_genes_and_a_cell_without_counts_stays_so(path):
    rows = read(path, normalize=1e4, mask_var="highly_variable")
    kept = np.arange(GENES) % 4 != 0
    np.testing.assert_allclose(dense(rows), normalised(1e4).toarray()[:, kept])
    assert not dense(rows)[EMPTY].any()


def test_the_median_is_told_so_that_other_cells_can_be_prepared_alike(path):
    rows = read(path, normalize=True)
    totals = counts().toarray().sum(axis=1)
    median = float(np.median(totals[totals > 0]))
    told = next(note for note in rows.notes if "median" in note)
    assert told.endswith(f"need normalize={median!r}.")
    np.testing.assert_array_equal(dense(read(path, normalize=median)), dense(rows))


def test_marked_genes_are_not_taken_unasked_but_told_of(path):
    assert read(path).notes == (
        "highly_variable marks 45 of 60 genes: mask_var='highly_variable' would take these alone.",
    )
    assert read(path, mask_var="highly_variable").notes == ()


def test_logarithms_of_logarithms_are_told_of(tmp_path):
    cells = make_cells()
    cells.uns["log1p"] = {"base": 2.0}
    cells.write_h5ad(tmp_path / "x.h5ad")
    assert "once more" in read(tmp_path / "x.h5ad", log1p=True).notes[-1]
    assert "once more" not in "".join(read(tmp_path / "x.h5ad").notes)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"mask_var": "highly-variable"}, "has no column 'highly-variable'; it has highly_variable"),
        ({"mask_var": "length"}, "length does not hold true and false"),
        ({"mask_var": "none"}, "none is true for nothing"),
        ({"layer": "negative", "log1p": True}, "numbers of -1 or less"),
        ({"layer": "nothing", "normalize": True}, "no row whose total is above 0"),
        ({"index": "kind"}, "is no table"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said(tmp_path, how, said):
    cells = make_cells(layers={"negative": counts() * -1.0, "nothing": counts() * 0.0})
    cells.var["none"] = False
    cells.write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(DataError, match=re.escape(said)):
        PCA(2).fit(read(tmp_path / "x.h5ad", **how))


def test_where_X_is_missing_layers_are_named(tmp_path):
    cells = make_cells(layers={"counts": counts()})
    cells.X = None
    cells.var = cells.var[[]]
    cells.write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(DataError, match=r"x\.h5ad has no X; its layers are counts: name one of them as layer\.$"):
        read(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(dense(read(tmp_path / "x.h5ad", layer="counts")), counts().toarray())
    with pytest.raises(DataError, match=r"var has no column 'marked'; it has none\.$"):
        read(tmp_path / "x.h5ad", layer="counts", mask_var="marked")


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        ({"layer": 3}, TypeError, "layer must be a name, a str, got 3."),
        (
            {"mask_var": np.ones(GENES, bool)[:2]},
            TypeError,
            "mask_var must be a name, a str, got array([ True,  True]).",
        ),
        ({"sheet": 0}, TypeError, "sheet must be a name, a str, got 0."),
        ({"log1p": "no"}, ValueError, "log1p must be True or False, got 'no'."),
    ],
    ids=str,
)
def test_options_of_another_type_are_refused_by_name(path, how, error, said):
    with pytest.raises(error, match=re.escape(said)):
        read(path, **how)


@pytest.mark.parametrize("total", [0, -1.0, float("nan"), float("inf"), "median"])
def test_a_total_is_a_number_above_0(path, total):
    with pytest.raises(ValueError, match="normalize must be True or a number above 0"):
        read(path, normalize=total)


def test_other_files_take_no_options_of_AnnData(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(DataError, match=r"holds no AnnData: layer, mask_var, normalize and log1p are for \.h5ad"):
        read(tmp_path / "x.npy", log1p=True)
    assert read(tmp_path / "x.npy", log1p=False, normalize=False).shape == (3, 3)


# --- objects --------------------------------------------------------------------------------------

OBJECTS = {
    "sparse": lambda path: make_cells(),
    "dense": lambda path: make_cells(counts().toarray()),
    "by columns": lambda path: make_cells(counts().tocsc()),
    "backed": lambda path: anndata.read_h5ad(path, backed="r"),
    "a view": lambda path: make_cells(sp.vstack([counts(), counts()]).tocsr()[:CELLS])[:],
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_are_data(path, kind):
    cells = OBJECTS[kind](path)
    expected = PCA(3).fit(counts())
    pca = PCA(3).fit(cells)
    assert pca.feature_names_in_.tolist() == list(cells.var_names)
    scores = pca.transform(cells)
    assert isinstance(scores, np.ndarray)
    np.testing.assert_allclose(scores, expected.transform(counts()), atol=1e-9)
    rows = as_rows(cells)
    assert rows.sample_names == tuple(cells.obs_names)
    assert rows.labels["known"][:2].tolist() == ["yes", ""]
    assert rows.labels["batch"][0] == "one"
    assert rows.sparse == (kind != "dense")


def test_backed_matrices_are_read_in_blocks(tmp_path):
    for kind in ("csr", "dense", "csc"):
        make_cells(STORED[kind]()).write_h5ad(tmp_path / f"{kind}.h5ad")
    for kind in ("csr", "dense"):
        rows = as_rows(anndata.read_h5ad(tmp_path / f"{kind}.h5ad", backed="r"), block_rows=20)
        assert len(rows.offsets) == 6
        assert rows.changeable
        np.testing.assert_array_equal(dense(rows), counts().toarray())
    with pytest.raises(ValueError, match=r"on disk as csc.*adata\.to_memory\(\)"):
        as_rows(anndata.read_h5ad(tmp_path / "csc.h5ad", backed="r"))


def test_an_object_without_X_is_refused():
    with pytest.raises(ValueError, match="has no X: pass one of its layers"):
        PCA(2).fit(anndata.AnnData(obs=pandas.DataFrame(index=["a", "b"]), var=pandas.DataFrame(index=["c", "d"])))


# --- results --------------------------------------------------------------------------------------


def test_results_are_where_scanpy_puts_them():
    expected = by_scanpy(target=None, log1p=True, mask="highly_variable", scale=False)
    cells = make_cells(np.log1p(counts()))
    annotate(cells, PCA(5).fit(cells[:, cells.var["highly_variable"]]))
    assert same_up_to_sign(cells.obsm["X_pca"], expected.obsm["X_pca"])
    assert same_up_to_sign(cells.varm["PCs"], expected.varm["PCs"])
    np.testing.assert_allclose(cells.uns["pca"]["variance"], expected.uns["pca"]["variance"])
    np.testing.assert_allclose(cells.uns["pca"]["variance_ratio"], expected.uns["pca"]["variance_ratio"])
    assert cells.uns["pca"]["params"] == expected.uns["pca"]["params"]


def test_every_gene_is_no_mask():
    cells = make_cells(np.log1p(counts()))
    annotate(cells, PCA(2, center=False).fit(cells))
    assert cells.uns["pca"]["params"] == {"zero_center": False, "use_highly_variable": False}


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (princomp.SparsePCA(2, nonzeros=5), "sparse_pca"),
        (princomp.ProbabilisticPCA(2), "probabilistic_pca"),
        (princomp.KernelPCA(2), "kernel_pca"),
        (princomp.DictionaryLearning(2, random_state=0, max_iter=5, sparse_output=True), "dictionary_learning"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_methods_use_their_own_names(tmp_path, estimator, name):
    cells = make_cells(np.log1p(counts()))
    estimator.fit(cells)
    annotate(cells, estimator)
    scores = cells.obsm[f"X_{name}"]
    assert scores.shape == (CELLS, 2)
    assert (f"{name}_components" in cells.varm) == hasattr(estimator, "components_")
    assert cells.uns[name]["certificate"]
    make_cells().write_h5ad(tmp_path / "in.h5ad")
    princomp.single_cell.write_h5ad(tmp_path / "in.h5ad", tmp_path / "out.h5ad", estimator, scores)
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert sp.issparse(again.obsm[f"X_{name}"]) == sp.issparse(scores)
    same(*(each.toarray() if sp.issparse(each) else each for each in (again.obsm[f"X_{name}"], scores)))


def test_scores_of_other_cells_are_refused():
    cells = make_cells()
    with pytest.raises(ValueError, match="X has 40 rows, but adata has 90 cells"):
        annotate(cells, PCA(2).fit(cells), cells[:40])


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_go_to_the_cells_of_their_names(path, sparse):
    rows = read(path, log1p=True)
    model = princomp.DictionaryLearning(2, random_state=0, sparse_output=True) if sparse else PCA(2)
    key = "X_dictionary_learning" if sparse else "X_pca"
    cells = make_cells()
    shuffled = cells[np.random.default_rng(1).permutation(CELLS)].copy()
    model.fit(rows)
    for each in (cells, shuffled):
        annotate(each, model, rows)
    in_order, moved = (each[cells.obs_names].obsm[key] for each in (cells, shuffled))
    same(*(each.toarray() if sparse else np.asarray(each) for each in (in_order, moved)))
    assert not np.array_equal(*(each.obsm[key].sum(axis=1) for each in (cells, shuffled)))


def test_without_names_of_rows_scores_are_written_in_order():
    cells = make_cells()
    model = PCA(2).fit(counts())
    annotate(cells, model, counts()[::-1])
    np.testing.assert_allclose(cells.obsm["X_pca"], model.transform(counts())[::-1])


def test_cells_of_other_names_are_refused(path):
    rows = read(path)
    model = PCA(2).fit(rows)
    cells = make_cells()
    cells.obs_names = [f"other {i}" for i in range(CELLS)]
    with pytest.raises(ValueError, match=r"X has other cells than adata, by their names\. It lacks other 0, "):
        annotate(cells, model, rows)
    rows.sample_names = ("one", "one", *(f"cell {i}" for i in range(2, CELLS)))
    cells.obs_names = rows.sample_names[::-1]
    with pytest.raises(ValueError, match="some names are there twice"):
        annotate(cells, model, rows)
    assert "X_pca" not in cells.obsm


@pytest.mark.parametrize("given", [np.ones((5, 3)), None, "cells.h5ad"], ids=["array", "None", "path"])
def test_results_are_written_into_anndata_only(given):
    model = PCA(2).fit(np.random.default_rng(0).normal(size=(5, 3)))
    with pytest.raises(TypeError, match="adata must be an AnnData object, to write the results into, got "):
        annotate(given, model)


def same(one, other):
    """Whether two things of an AnnData object are equal, to the last bit."""
    assert type(one) is type(other)
    if sp.issparse(one):
        one, other = one.toarray(), other.toarray()
    if isinstance(one, pandas.DataFrame):
        pandas.testing.assert_frame_equal(one, other)
    elif hasattr(one, "dtype"):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with cells.h5ad and, in out/, the results of a fit."""
    folder = tmp_path_factory.mktemp("cells")
    cells = make_cells(
        layers={"half": counts() / 2}, obsm={"X_old": np.ones((CELLS, 2))}, uns={"study": {"year": 2026}}
    )
    cells.obsm["X_pca"] = np.zeros((CELLS, 9))  # from before
    cells.write_h5ad(folder / "cells.h5ad", compression="gzip")
    how = ("--normalize", "median", "--log1p", "--mask-var", "highly_variable", "--scale")
    done = run("fit", "cells.h5ad", "-k", 5, *how, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_fit_writes_the_file_anew_with_the_results_in_it(fitted):
    folder, done = fitted
    before, after = (anndata.read_h5ad(folder / name) for name in ("cells.h5ad", "out/results.h5ad"))
    rows = read(folder / "cells.h5ad", normalize=True, log1p=True, mask_var="highly_variable")
    pca = PCA(5, scale=True, random_state=0).fit(rows)
    same(after.obsm["X_pca"], pca.transform(rows))
    kept = before.var["highly_variable"].to_numpy()
    same(after.varm["PCs"][kept], np.ascontiguousarray(pca.components_.T))
    assert not after.varm["PCs"][~kept].any()
    same(after.uns["pca"]["variance"], pca.explained_variance_)
    same(after.uns["pca"]["variance_ratio"], pca.explained_variance_ratio_)
    params = {"zero_center": True, "use_highly_variable": True, "mask_var": "highly_variable"}
    assert after.uns["pca"]["params"] == params
    same(after.X, before.X)
    same(after.obs, before.obs)
    same(after.var, before.var)
    same(after.layers["half"], before.layers["half"])
    same(after.obsm["X_old"], before.obsm["X_old"])
    assert after.uns["study"] == before.uns["study"]
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert "results.h5ad" in summary["files"]
    assert "out/results.h5ad" in done.stdout


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPerformanceWarning")
def test_scanpy_goes_on_from_there(fitted):
    import scanpy

    cells = scanpy.read_h5ad(fitted[0] / "out" / "results.h5ad")
    scanpy.pp.neighbors(cells, n_neighbors=5)
    assert cells.obsp["connectivities"].shape == (CELLS, CELLS)
    assert cells.uns["neighbors"]["params"].get("use_rep", "X_pca") == "X_pca"


def test_transform_says_nothing_of_marked_genes_where_the_model_finds_its_own_by_name(fitted):
    folder, _ = fitted
    mask = "--mask-var highly_variable would take these alone"
    assert mask in run("fit", "cells.h5ad", "--no-report", "-o", "all", cwd=folder).stderr
    assert mask not in run("transform", "out/model.princomp", "cells.h5ad", cwd=folder).stderr
    princomp.save(PCA(2).fit(np.random.default_rng(0).normal(size=(70, GENES))), folder / "unnamed.princomp")
    assert (
        mask in run("transform", "unnamed.princomp", "cells.h5ad", cwd=folder).stderr
    )  # it takes columns as they come


def test_transform_prepares_cells_as_it_is_told(fitted):
    folder, _ = fitted
    notes = json.loads((folder / "out" / "summary.json").read_text())["notes"]
    median = re.search(r"--normalize ([\d.]+)\.$", notes[0])[1]
    done = run("transform", "out/model.princomp", "cells.h5ad", "--normalize", median, "--log1p", cwd=folder)
    assert done.stdout.splitlines()[1:] == (folder / "out" / "scores.csv").read_text().splitlines()[1:]
    assert "The fit read its data" not in done.stderr  # the number for the median; and genes are found by name
    done = run("transform", "out/model.princomp", "cells.h5ad", "--log1p", cwd=folder)
    assert done.returncode == 0
    assert "The fit read its data with --normalize median; this command does not." in done.stderr
    done = run("transform", "out/model.princomp", "cells.h5ad", "--normalize", "median", cwd=folder)
    assert done.returncode == 2
    assert "not of those that were fitted" in done.stderr
    done = run("fit", "cells.h5ad", "--normalize", "mean", cwd=folder)
    assert done.returncode == 2
    assert "neither a number above 0 nor the word median" in done.stderr


@pytest.mark.parametrize(
    ("config", "options", "told"),
    [
        ("normalize = 1e4\nlog1p = true", {}, "--normalize 10000 --log1p"),
        ("normalize = 1e4\nlog1p = true", {"normalize": 1e4}, "--log1p"),
        ("normalize = 1e4", {"normalize": 2e4}, "--normalize 10000"),
        ("normalize = 1e4\nlog1p = true", {"normalize": 1e4, "log1p": True}, None),
        ("layer = 'raw counts'\nmask_var = 'highly_variable'", {}, "--layer 'raw counts'"),
        ("k = 3", {}, None),
        ("this is not TOML", {}, None),
        (None, {}, None),
    ],
)
def test_transform_tells_what_the_fit_did_to_its_data(tmp_path, config, options, told):
    if config is not None:
        (tmp_path / "config.toml").write_text(config)
    model = str(tmp_path / "model.princomp")
    given = {"layer": None, "normalize": None, "log1p": None, **options}
    expected = [] if told is None else [f"The fit read its data with {told}; this command does not."]
    assert prepared_otherwise(model, "cells.h5ad", given) == expected
    assert prepared_otherwise(model, "cells.csv", given) == []


def test_fit_leaves_the_copy_out_where_it_is_not_wanted_or_not_possible(tmp_path):
    cells = make_cells()
    cells.raw = cells
    for name in ("a.h5ad", "b.h5ad"):
        cells[:, :20].copy().write_h5ad(tmp_path / name)
    bare = ("-k", 2, "--no-report")
    run("fit", "a.h5ad", *bare, "--no-h5ad", "-o", "1", cwd=tmp_path)
    assert not (tmp_path / "1" / "results.h5ad").exists()
    assert (tmp_path / "1" / "scores.csv").exists()
    done = run("fit", "?.h5ad", *bare, "-o", "2", cwd=tmp_path)
    assert "results.h5ad is not there: it is made of one file" in done.stderr
    assert not (tmp_path / "2" / "results.h5ad").exists()
    done = run("fit", "a.h5ad", *bare, "--layer", "raw", "-o", "3", cwd=tmp_path)
    assert "results.h5ad has no components" in done.stderr
    found = anndata.read_h5ad(tmp_path / "3" / "results.h5ad")
    assert "X_pca" in found.obsm
    assert "PCs" not in found.varm


# --- hostile and damaged files ----------------------------------------------------------------------


def put(name, change):
    """A change of a dataset or group."""

    def damage(h5):
        value = change(h5[name][()])
        attrs = dict(h5[name].attrs)
        del h5[name]
        h5[name] = value
        h5[name].attrs.update(attrs)

    return damage


def at(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def claims_a_shape(*shape):
    return lambda h5: h5["X"].attrs.create("shape", shape)


def claims_much(h5):
    del h5["X"]
    h5.create_dataset("X", (2**40, GENES), "f8", chunks=(1024, GENES))


def has_huge_chunks(h5):
    del h5["X/data"]
    size = h5["X/indices"].shape[0]
    h5["X"].create_dataset("data", (size,), "f8", maxshape=(None,), chunks=(2**28,), compression="gzip")


def leads_out(h5):
    del h5["X"]
    h5["X"] = h5py.ExternalLink("other.h5ad", "/X")


def leads_nowhere(h5):
    del h5["X"]
    h5["X"] = h5py.SoftLink("/X")


def is_text(h5):
    del h5["X"]
    h5["X"] = np.full((CELLS, GENES), b"text")


def is_old(h5):
    h5["X"].attrs["h5sparse_format"] = "csr"


def has_old_tables(h5):
    del h5["obs"]
    h5["obs"] = np.zeros(CELLS, dtype=[("index", "S9"), ("depth", "f8")])


def removes(name):
    def damage(h5):
        del h5[name]

    return damage


DAMAGED = {
    "an index too large": (put("X/indices", at(5, GENES)), "an entry lies outside of its 60 columns"),
    "an index below 0": (put("X/indices", at(5, -1)), "an entry lies outside of its 60 columns"),
    "indices that are no integers": (put("X/indices", lambda old: old * 1.0), "where the entries of a line begin"),
    "too few indices": (put("X/indices", lambda old: old[:-1]), "where the entries of a line begin"),
    "places that go back": (put("X/indptr", at(5, 10**6)), "where the entries of a line begin"),
    "places below 0": (put("X/indptr", at(0, -3)), "where the entries of a line begin"),
    "places beyond the end": (put("X/indptr", at(-1, 10**6)), "where the entries of a line begin"),
    "too few places": (put("X/indptr", lambda old: old[:-1]), "where the entries of a line begin"),
    "another shape": (claims_a_shape(CELLS, GENES + 1), "has shape (90, 61), but obs and var have 90 and 60"),
    "a huge shape": (claims_a_shape(2**62, 2**62), "but obs and var have 90 and 60"),
    "three dimensions": (claims_a_shape(CELLS, GENES, 1), "but obs and var have 90 and 60"),
    "no shape": (lambda h5: h5["X"].attrs.pop("shape"), "cannot be read"),
    "a huge dense X": (claims_much, "but obs and var have 90 and 60"),
    "huge chunks": (has_huge_chunks, "GiB"),
    "a link to another file": (leads_out, "is a link to another file"),
    "a link to itself": (leads_nowhere, "lead in a circle"),
    "text": (is_text, "does not hold real numbers"),
    "no X": (removes("X"), "X, is not there"),
    "no obs": (removes("obs"), "obs, is not there"),
    "no data": (removes("X/data"), "X/data, is not there"),
    "a kind of its own": (lambda h5: h5["X"].attrs.modify("encoding-type", "zebra"), "is stored as zebra"),
    "sparse as long ago": (is_old, "anndata.read_h5ad('old.h5ad').write_h5ad('new.h5ad')"),
    "tables as long ago": (has_old_tables, "anndata.read_h5ad('old.h5ad').write_h5ad('new.h5ad')"),
    "a category that is not there": (put("obs/kind/codes", at(0, 9)), "names a category that is not there"),
    "too few labels": (put("obs/kind/codes", lambda old: old[:-1]), "has shape (89,), but obs has 90 rows"),
    "a table without its column": (removes("obs/kind"), "obs/kind, is not there"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_S7_damaged_and_hostile_files_are_refused(path, kind, observe):
    damage, said = DAMAGED[kind]
    with h5py.File(path, "r+") as h5:
        damage(h5)
    for limit in (2**26, 2**14):
        with pytest.raises((DataError, MemoryError), match=re.escape(said)) as caught:
            PCA(2, solver="krylov").fit(read(path, memory_limit=limit, block_rows=16))
        assert "cells.h5ad" in str(caught.value)
    observe("S7", f"AnnData with {kind}", type(caught.value).__name__)


def test_entries_in_any_order_and_in_parts_are_put_together(path):
    """That is no damage: SciPy allows it."""
    with h5py.File(path, "r+") as h5:
        X = sp.csr_array((h5["X/data"][()], h5["X/indices"][()], h5["X/indptr"][()]), shape=(CELLS, GENES))
        twice = sp.csr_array(
            (
                np.repeat(X.data / 2, 2)[::-1],
                np.repeat(X.indices, 2)[::-1],
                np.append(0, np.cumsum(2 * np.diff(X.indptr)[::-1])),
            ),
            shape=X.shape,
        )
        for name in ("data", "indices", "indptr"):
            del h5[f"X/{name}"]
            h5[f"X/{name}"] = getattr(twice, name)
    np.testing.assert_array_equal(dense(read(path, **LAZY)), counts().toarray()[::-1])


def test_a_large_matrix_by_columns_is_refused_with_the_line_that_turns_it(tmp_path):
    make_cells(layers={"counts": counts().tocsc()}).write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(MemoryError, match=re.escape("a.layers['counts'] = a.layers['counts'].tocsr()")):
        read(tmp_path / "x.h5ad", layer="counts", memory_limit=2**13)


def test_results_are_not_written_into_other_files(path, tmp_path):
    (tmp_path / "other.h5ad").write_bytes(path.read_bytes())
    with h5py.File(path, "r+") as h5:
        del h5["obsm"]
        h5["obsm"] = h5py.ExternalLink("other.h5ad", "/obsm")
    before = (tmp_path / "other.h5ad").read_bytes()
    done = run("fit", "cells.h5ad", "-k", 2, "--no-report", cwd=tmp_path)
    assert done.returncode == 3
    assert "is a link to another file" in done.stderr
    assert (tmp_path / "other.h5ad").read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_P9_without_h5py_it_is_said_what_is_missing(path, observe):
    script = f"""
        import sys
        sys.modules["h5py"] = None
        from princomp import read
        read({str(path)!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert 'pip install "princomp[hdf5]"' in done.stderr
    observe("P9", "h5py missing", done.stderr.splitlines()[-1])


def test_anndata_is_not_imported_to_read_its_files(path):
    script = f"""
        import sys
        from princomp import PCA, read
        PCA(2).fit(read({str(path)!r}, log1p=True))
        assert not {{"anndata", "scanpy"}} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(script)], check=True)


@pytest.mark.parametrize("packed", [None, "gzip", "lzf"])
def test_S7_bytes_changed_at_random_never_crash(tmp_path, packed, observe):
    make_cells(counts()[:, :GENES]).write_h5ad(tmp_path / "x.h5ad", compression=packed)
    good, rng, refused = (tmp_path / "x.h5ad").read_bytes(), np.random.default_rng(0), 0
    for _ in range(100):
        bad = bytearray(good)
        for place in rng.integers(0, len(bad), 3):
            bad[place] = rng.integers(256)
        (tmp_path / "bad.h5ad").write_bytes(bad)
        with contextlib.suppress(DataError, MemoryError):
            rows = read(tmp_path / "bad.h5ad", memory_limit=2**20)
            dense(rows)
            dict(rows.labels)
            refused -= 1
        refused += 1
    observe("S7", f"AnnData ({packed}) damaged in 100 ways", f"refused {refused} times; never a crash")


# --- a hundred thousand cells -----------------------------------------------------------------------

LARGE = """
import sys, threading, time
from princomp import PCA, read

def own():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

top, done = [own()], threading.Event()

def watch():
    while not done.wait(0.01):
        top.append(own())

watcher = threading.Thread(target=watch)
watcher.start()
begin = time.perf_counter()
rows = read(sys.argv[1], memory_limit=eval(sys.argv[2]))
pca = PCA(50, random_state=0).fit(rows)
scores = pca.transform(rows)
seconds = time.perf_counter() - begin
done.set()
watcher.join()
assert pca.certificate_.holds, pca.certificate_
assert scores.shape == (100_000, 50), scores.shape
print(max(top), round(seconds, 1), rows)
"""


def write_large(path, n=100_000, p=20_000, kinds=51, step=2_000):
    """Counts of 51 kinds of cells, each with 300 genes of its own: 5 % of them are not 0."""
    rng = np.random.default_rng(0)
    shares = np.linspace(2, 1, kinds) / np.linspace(2, 1, kinds).sum()
    own = np.stack([rng.choice(p, 300, replace=False) for _ in range(kinds)])
    lengths = [np.zeros(1, np.int64)]
    with h5py.File(path, "w") as h5:
        X = h5.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (n, p)})
        data = X.create_dataset("data", (0,), "f4", maxshape=(None,), chunks=(2**17,))
        indices = X.create_dataset("indices", (0,), "i4", maxshape=(None,), chunks=(2**17,))
        for _ in range(0, n, step):
            genes = rng.integers(0, p, (step, 1040), dtype=np.int32)
            of_kind = own[rng.choice(kinds, step, p=shares)]
            genes[:, :100] = np.take_along_axis(of_kind, rng.integers(0, 300, (step, 100)), axis=1)
            genes.sort(axis=1)
            new = np.diff(genes, axis=1, prepend=-1) > 0
            end = len(data) + int(new.sum())
            for dataset, values in ((data, 1 + rng.poisson(1.0, int(new.sum()))), (indices, genes[new])):
                begin = len(dataset)
                dataset.resize((end,))
                dataset[begin:] = values
            lengths.append(new.sum(axis=1))
        X["indptr"] = np.cumsum(np.concatenate(lengths))
        for name, length in (("obs", n), ("var", p)):
            table = h5.create_group(name)
            table.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            table.attrs["column-order"] = np.array([], dtype=h5py.string_dtype())
            table["_index"] = np.array([f"{name} {i}" for i in range(length)], dtype=object)
        return end / (n * p)


@pytest.mark.soak
@pytest.mark.skipif("not __import__('pathlib').Path('/proc/self/status').exists()", reason="memory is read from /proc")
@pytest.mark.parametrize("limit", ["None", "2 * 2**30"], ids=["kept", "in blocks"])
def test_a_hundred_thousand_cells_are_decomposed_within_two_gigabytes(tmp_path, limit):
    assert 0.049 < write_large(tmp_path / "large.h5ad") < 0.052
    command = [sys.executable, "-c", LARGE, str(tmp_path / "large.h5ad"), limit]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, seconds, *rows = done.stdout.split()
    print(f"{' '.join(rows)}: {int(peak) / 1e9:.2f} GB of unshared memory, {seconds} s")
    assert int(peak) < 2e9
