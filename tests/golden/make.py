"""Writes the model files of this folder, and the numbers that they must give.

    PYTHONPATH=tests python tests/golden/make.py

There is one for each method, and for each way to fit it that leaves other attributes or other objects. They are kept as
they were written, each by the version of its day (``written_by`` in its manifest): a file that is there is not written
again, and what a later version adds to attributes or objects gets a file of its own, under a new name. ``pca-1`` is
older than this script. The number at the end of a name is the version of the format.
"""

import json
import re
from pathlib import Path

import numpy as np

from methods import METHODS
from princomp import (
    PCA,
    DictionaryLearning,
    KernelPCA,
    ProbabilisticPCA,
    ProbabilisticPCAMixture,
    SparseCCA,
    SparsePCA,
    save,
)
from princomp.data.memory import MemoryRows
from princomp.kernels import Cosine, Gaussian, Laplacian, Linear, NearestNeighbors, Normalized, Polynomial, Sigmoid
from princomp.losses import Absolute, Huber, HyperbolicTangent, Power, Squared
from princomp.penalties import (
    L0,
    L1,
    Box,
    ElasticNet,
    ElasticNetBall,
    Groups,
    L1Ball,
    L2Ball,
    Lp,
    NonNegative,
    OverlappingGroups,
    Sphere,
    Tree,
)

FOLDER = Path(__file__).parent
NAMES = ("length", "Höhe", "幅 😀", "<b>&\u202e", "\x1b[31mred")  # the last two must never reach a page, or a terminal


def data():
    """Twenty rows of five features, in two groups, with two decimals."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 5)) * 2 + rng.normal(size=(20, 5)) + [3, 0, -2, 5, 1]
    rows[12:] += [6, -4, 0, 3, 0]
    return rows.round(2)


X = data()
Y = (X[:, :2] @ [[1.0, 0.5, -1.0], [0.25, 2.0, 0.5]] + np.random.default_rng(6).normal(size=(20, 3))).round(2)
WITH_GAPS = np.where(np.random.default_rng(7).random(X.shape) < 0.15, np.nan, X)
PLACES = ((0, 1), (2, 3, 4))  # of features, in two groups

# name: (estimator, data), data being X, or X and Y, or none for an estimator without a fit
MODELS = {
    re.sub(", | ", "-", name): (method.make(), (X, Y) if method.two_tables else (X,))
    for name, method in METHODS.items()
}
MODELS |= {
    "pca-eigh": (PCA(2, solver="eigh", scale=True, whiten=True), (X,)),
    "pca-svd-float32": (PCA(3, solver="svd"), (X.astype(np.float32),)),
    "pca-krylov": (PCA(2, solver="krylov", random_state=0), (X,)),
    "pca-optimize": (
        PCA(
            2, solver="optimize", loss=Huber(3.0), penalty=NonNegative(L1(0.25)), random_state=0, max_iter=40, tol=1e-3
        ),
        (X,),
    ),
    "pca-covariance": (PCA(2), (np.cov(X.T),)),
    "probabilistic-closed-form": (ProbabilisticPCA(2, rotation=np.array([[0.0, 1.0], [1.0, 0.0]])), (X,)),
    "probabilistic-em": (ProbabilisticPCA(2, scale=True, random_state=0), (WITH_GAPS,)),
    "probabilistic-covariance": (ProbabilisticPCA(2), (np.cov(X.T),)),
    "mixture": (ProbabilisticPCAMixture(1, n_clusters=2, random_state=0), (X,)),
    "sparse-proved": (SparsePCA(2, nonzeros=2, certify=True, scale=True), (X,)),
    "sparse-proved-groups": (
        SparsePCA(2, nonzeros=1, certify=True, groups=[list(group) for group in PLACES], nonnegative=True),
        (X,),
    ),
    "sparse-forced": (SparsePCA(2, nonzeros=3, certify=True, include=[0], exclude=[4], deflation="projection"), (X,)),
    "sparse-bounds": (SparsePCA(2, retain=0.8), (X,)),
    "sparse-dictionary": (SparsePCA(2, alpha=4.0, random_state=0), (X,)),
    "sparse-regression": (SparsePCA(2, formulation="regression", alpha=8.0, random_state=0), (X,)),
    "sparse-constrained": (SparsePCA(2, bound=1.5, random_state=0), (X,)),
    "sparse-covariance": (SparsePCA(2, nonzeros=2), (np.cov(X.T),)),
    "kernel-fourier-ridge": (KernelPCA(2, approximation="fourier", rank=6, preimage="ridge", random_state=0), (X,)),
    "kernel-fourier-moments": (KernelPCA(2, approximation="fourier", rank=6, random_state=0), (X,)),
    "kernel-held-out": (KernelPCA("held-out", gamma="held-out", noise=0.5, random_state=0), (X,)),
    "cca": (SparseCCA(1, alpha_x=0.1, alpha_y=0.1), (X, Y)),
    "unfitted-squared": (PCA(2, solver="optimize", loss=Squared(), penalty=NonNegative()), ()),
    "unfitted-groups": (PCA(2, solver="optimize", penalty=Groups(0.5, PLACES)), ()),
    "unfitted-tree": (PCA(2, solver="optimize", penalty=Tree(0.5, (*PLACES, (2, 3)))), ()),
    "unfitted-overlapping": (PCA(2, solver="optimize", penalty=OverlappingGroups(0.5, ((0, 1), (1, 2)))), ()),
    "dictionary-huber": (DictionaryLearning(3, alpha=0.5, loss="huber", random_state=0, max_iter=3), (X,)),
    "dictionary-gaps": (DictionaryLearning(3, alpha=0.5, random_state=0, max_iter=3), (WITH_GAPS,)),
    "unfitted-elastic-net": (
        DictionaryLearning(2, penalty=ElasticNet(0.5, 0.25), constraint=ElasticNetBall(0.5), loss=Power(1.5)),
        (),
    ),
    "unfitted-hyperbolic": (PCA(2, solver="optimize", loss=HyperbolicTangent(1.5, 4.0)), ()),
    "unfitted-l0": (DictionaryLearning(2, penalty=L0(0.5), constraint=L1Ball(2.0), loss=Absolute()), ()),
    "unfitted-lp": (DictionaryLearning(2, penalty=Lp(0.5, 0.5), constraint=L2Ball(2.0)), ()),
    "unfitted-sphere": (DictionaryLearning(2, constraint=Sphere(2.0), transform_penalty=L1(0.5)), ()),
    "unfitted-box": (DictionaryLearning(2, constraint=Box(-0.5, 0.25)), ()),
    "unfitted-kernels": (
        KernelPCA(2, kernel=Linear() + Laplacian(0.5) * Polynomial(0.5) + Cosine() * Sigmoid(0.5) + Gaussian(0.25)),
        (),
    ),
    "unfitted-graph": (KernelPCA(2, kernel=Normalized(NearestNeighbors(0.5, 5))), ()),
}


def named(values, prefix=""):
    """Rows whose columns have names, of characters of all kinds."""
    return MemoryRows(np.asarray(values), names=tuple(prefix + name for name in NAMES[: np.shape(values)[1]]))


def exact(value):
    """A number, text or array as JSON, to the last bit."""
    if isinstance(value, np.ndarray | np.generic):
        value = np.ravel(value).tolist()
    if isinstance(value, list):
        return [exact(item) for item in value]
    return value.hex() if isinstance(value, float) else value


def facts(model, given):
    """What a model must give: parameters and attributes to the last bit, and what it makes of data."""
    parameters = model.get_params()
    found = {
        "class": type(model).__name__,
        "parameters": {name: value for name, value in parameters.items() if is_plain(value)},
    }
    if not hasattr(model, "result_"):
        return found
    attributes = {name: value for name, value in vars(model).items() if name not in parameters}
    certificate, result = model.certificate_, model.result_
    found["attributes"] = {name: exact(value) for name, value in sorted(attributes.items()) if is_number(value)}
    found["ending"] = [result.status.code, result.n_iter, len(result.history), exact(float(certificate.residual))]
    scores = model.transform(*given)
    found["scores"] = [np.asarray(each).tolist() for each in (scores if isinstance(scores, tuple) else (scores,))]
    if hasattr(model, "score") and getattr(model, "penalty", None) is None:  # penalised, there is no density
        found["score"] = float(model.score(*given))
    return found


def is_plain(value):
    return value is None or isinstance(value, bool | int | float | str)


def is_number(value):
    return is_plain(value) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiO")


def as_given(name, given):
    """Data as a model of this name is fitted to them: with names, unless it is fitted to a covariance."""
    if "covariance" in name:
        return list(given)
    return [named(values, prefix) for values, prefix in zip(given, ("", "y "), strict=False)]


def make(name):
    """Fit, save, and write down what the model gives."""
    model, given = MODELS[name]
    if "covariance" in name:
        model.fit_covariance(*given)
        given = (X,)
    elif given:
        model.fit(*as_given(name, given))
    save(model, FOLDER / f"{name}-1.princomp", parts=True)
    data = [np.where(np.isnan(each), None, each.astype(object)).tolist() for each in given]
    expected = {"data": data, **facts(model, as_given(name, given))}
    text = json.dumps(expected, ensure_ascii=False, allow_nan=False)
    (FOLDER / f"{name}-1.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in MODELS:
        if not (FOLDER / f"{name}-1.princomp").exists():
            make(name)
