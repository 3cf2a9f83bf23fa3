"""Fits of every kind, and everything that they leave and say: attributes, certificates, sentences, tables, scores.

    PYTHONPATH=src:tests python tests/golden/fits.py

writes it down in ``fits.json``, anew. Whoever changes what a fit finds or says does so, and reads the difference: it
should hold what was meant to change, and nothing else.
"""

import dataclasses
import json
import re
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from helpers import data_with_spectrum
from princomp import PCA, KernelPCA, ProbabilisticPCA, ProbabilisticPCAMixture, RankOneDictionary, SparseCCA, SparsePCA
from princomp.datasets import load_pitprops, load_wine
from princomp.estimators.description import describe, describe_scores
from princomp.kernels import Gaussian, Linear, NearestNeighbors, Normalized, Polynomial
from princomp.losses import Huber
from princomp.penalties import L1, Groups, NonNegative, OverlappingGroups, Tree

WRITTEN = Path(__file__).with_name("fits.json")
RNG = np.random.default_rng(11)
TABLE = data_with_spectrum(60, 12, np.geomspace(9, 0.5, 12), seed=3, offset=3.0)
WIDE = data_with_spectrum(25, 90, np.geomspace(20, 0.1, 24), seed=4, offset=1.0)
SLOW = data_with_spectrum(
    300, 150, np.geomspace(5, 1, 150), seed=5, offset=2.0
)  # for the krylov solver, some way to go
STEEP = data_with_spectrum(200, 120, np.geomspace(1e6, 1e-3, 120), seed=6, offset=0.0)
FAR = data_with_spectrum(60, 700, np.r_[1e4, np.linspace(3, 1, 58)], seed=1, offset=0.0)  # the first hides the others
GAPS = np.where(RNG.random(TABLE.shape) < 0.15, np.nan, TABLE)
MANY_GAPS = np.where(RNG.random(TABLE.shape) < 0.45, np.nan, TABLE)
COUNTS = sp.csr_array(np.where(RNG.random((80, 30)) < 0.2, RNG.integers(1, 9, (80, 30)), 0).astype(float))
GROUPED = np.vstack([TABLE[:30], TABLE[30:] * 0.5 + np.r_[np.full(6, 9.0), np.full(6, -4.0)]])
OTHER = TABLE[:, [1, 4, 5]] @ np.diag([1.0, -2.0, 0.5]) + RNG.normal(size=(60, 3))
WEIGHTS = RNG.integers(0, 4, 60).astype(float)
WINE = load_wine().X
PITPROPS = load_pitprops().correlation
THREE = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
NESTED = ((0, 1, 2, 3, 4, 5), (0, 1, 2), (6, 7, 8, 9), (8, 9))
CROSSED = ((0, 1, 2, 3), (2, 3, 4, 5), (5, 6, 7, 8, 9, 10, 11))


def pca(**how):
    return PCA(random_state=0, **how)


def sparse(**how):
    return SparsePCA(**{"n_components": 3, "random_state": 0, **how})


def descent(**how):
    return pca(n_components=2, solver="optimize", tol=1e-9, max_iter=5000, **how)


def kernel(**how):
    return KernelPCA(**{"n_components": 3, "random_state": 0, **how})


# name: (estimator, data, how): data being X, or X and Y
FITS = {
    "pca, a share": (pca(n_components=0.9), TABLE),
    "pca, all": (pca(), TABLE),
    "pca, mle": (pca(n_components="mle"), TABLE),
    "pca, scaled and whitened": (pca(n_components=3, scale=True, whiten=True), WINE),
    "pca, about the origin": (pca(n_components=3, center=False), TABLE),
    "pca, wide": (pca(n_components=4, solver="eigh"), WIDE),
    "pca, wide, a share": (pca(n_components=0.8, solver="svd"), WIDE),
    "pca, eigh, single precision": (pca(n_components=3, solver="eigh"), TABLE.astype(np.float32)),
    "pca, krylov": (pca(n_components=6, solver="krylov", tol=1e-10), SLOW),
    "pca, krylov, scaled": (pca(n_components=3, solver="krylov", scale=True, tol=1e-10), SLOW),
    "pca, krylov, single precision": (pca(n_components=3, solver="krylov"), SLOW.astype(np.float32)),
    "pca, krylov, steep": (pca(n_components=20, solver="krylov"), STEEP),
    "pca, krylov, one far above": (pca(n_components=3, solver="krylov", tol=1e-8), FAR),
    "pca, krylov, one far above, tall": (pca(n_components=3, solver="krylov", tol=1e-8), FAR[:, :80]),
    "pca, krylov, counts": (pca(n_components=4, solver="krylov", tol=1e-10), COUNTS),
    "pca, eigh, counts": (pca(n_components=4, solver="eigh"), COUNTS),
    "pca, svd, counts, about the origin": (pca(n_components=4, solver="svd", center=False), COUNTS),
    "pca, descent": (descent(), TABLE),
    "pca, descent, Huber": (descent(loss=Huber(2.0)), TABLE),
    "pca, descent, L1": (descent(penalty=L1(0.5)), TABLE),
    "pca, descent, nonnegative": (descent(penalty=NonNegative()), TABLE),
    "pca, descent, groups": (descent(penalty=Groups(0.5, tuple(map(tuple, THREE)))), TABLE),
    "pca, descent, tree": (descent(penalty=Tree(0.5, NESTED)), TABLE),
    "pca, descent, overlapping": (descent(penalty=OverlappingGroups(0.5, CROSSED)), TABLE),
    "probabilistic": (ProbabilisticPCA(3), TABLE),
    "probabilistic, scaled": (ProbabilisticPCA(3, scale=True), WINE),
    "probabilistic, evidence": (ProbabilisticPCA("evidence"), TABLE),
    "probabilistic, bic": (ProbabilisticPCA("bic"), TABLE),
    "probabilistic, ard": (ProbabilisticPCA("ard", random_state=0), TABLE),
    "probabilistic, held-out": (ProbabilisticPCA("held-out", random_state=0), GAPS),
    "probabilistic, gaps": (ProbabilisticPCA(2, random_state=0, tol=1e-10), GAPS),
    "probabilistic, gaps, bic": (ProbabilisticPCA("bic", random_state=0), GAPS),
    "probabilistic, many gaps": (ProbabilisticPCA(2, random_state=0, tol=1e-9, max_iter=5000), MANY_GAPS),
    "probabilistic, em": (ProbabilisticPCA(2, method="em", random_state=0, tol=1e-10), TABLE),
    "mixture of one": (ProbabilisticPCAMixture(2, n_clusters=1, random_state=0, tol=1e-10), TABLE),
    "mixture of two": (ProbabilisticPCAMixture(2, n_clusters=2, random_state=0, tol=1e-10), GROUPED),
    "mixture, gaps": (
        ProbabilisticPCAMixture(1, n_clusters=2, random_state=0, tol=1e-10),
        np.where(np.isnan(GAPS), np.nan, GROUPED),
    ),
    "sparse": (sparse(), WINE),
    "sparse, nonzeros": (sparse(nonzeros=[5, 4, 2], scale=True), WINE),
    "sparse, projection": (sparse(nonzeros=4, scale=True, deflation="projection"), WINE),
    "sparse, hotelling": (sparse(nonzeros=4, scale=True, deflation="hotelling"), WINE),
    "sparse, retain": (sparse(retain=0.7), TABLE),
    "sparse, groups": (sparse(nonzeros=1, groups=THREE), TABLE),
    "sparse, forced": (sparse(nonzeros=4, include=[3], exclude=[0, 7]), TABLE),
    "sparse, nonnegative": (sparse(nonzeros=4, nonnegative=True), TABLE),
    "sparse, proved": (sparse(nonzeros=4, certify=True, scale=True, n_components=2), WINE),
    "sparse, proved, groups": (sparse(nonzeros=2, certify=True, groups=THREE, n_components=1), TABLE),
    "sparse, proved, nonnegative": (sparse(nonzeros=4, certify=True, nonnegative=True, n_components=2), TABLE),
    "sparse, proof broken off": (sparse(nonzeros=5, certify=True, node_limit=3, n_components=1), WIDE),
    "sparse, dictionary": (sparse(formulation="dictionary", alpha=3.0), TABLE),
    "sparse, dictionary, share": (sparse(formulation="dictionary", alpha_share=0.3, n_init=3), TABLE),
    "sparse, dictionary, codes": (sparse(formulation="dictionary", alpha=2.0, code_alpha=0.5), TABLE),
    "sparse, dictionary, groups": (sparse(formulation="dictionary", alpha=2.0, groups=THREE), TABLE),
    "sparse, dictionary, nested": (sparse(formulation="dictionary", alpha=1.0, groups=NESTED), TABLE),
    "sparse, dictionary, crossed": (sparse(formulation="dictionary", alpha=1.0, groups=CROSSED), TABLE),
    "sparse, dictionary, nonnegative": (sparse(formulation="dictionary", alpha=2.0, nonnegative=True), TABLE),
    "sparse, dictionary, nonzeros": (sparse(formulation="dictionary", nonzeros=4, scale=True), WINE),
    "sparse, dictionary, wide": (sparse(formulation="dictionary", alpha_share=0.2), WIDE),
    "pairs": (RankOneDictionary(3, nonzeros=4, random_state=0), TABLE),
    "pairs, wide, swept": (RankOneDictionary(2, refine=50, n_init=3, random_state=0), WIDE),
    "pairs, share, counts": (RankOneDictionary(0.5, nonzeros=5, nonnegative=True, random_state=0), COUNTS),
    "sparse, regression": (sparse(formulation="regression", alpha=20.0), TABLE),
    "sparse, regression, each": (sparse(formulation="regression", alpha=[30.0, 20.0, 10.0], n_init=2), TABLE),
    "sparse, regression, ridge": (sparse(formulation="regression", alpha=20.0, ridge=1.0), TABLE),
    "sparse, regression, infinite ridge": (sparse(formulation="regression", alpha_share=0.3, ridge=np.inf), WIDE),
    "sparse, regression, amanpg": (sparse(formulation="regression", alpha=20.0, solver="amanpg"), TABLE),
    "sparse, regression, one-shot": (sparse(formulation="regression", alpha=20.0, solver="one-shot"), TABLE),
    "sparse, regression, nonzeros": (sparse(formulation="regression", nonzeros=[5, 4, 3], scale=True), WINE),
    "sparse, constrained": (sparse(formulation="constrained", bound=1.6), TABLE),
    "sparse, constrained, nonzeros": (sparse(formulation="constrained", nonzeros=4, scale=True), WINE),
    "kernel": (kernel(), TABLE / 9),
    "kernel, polynomial": (kernel(kernel="polynomial", degree=2, gamma=0.1, coef0=0.5), TABLE / 9),
    "kernel, laplacian": (kernel(kernel="laplacian", gamma="median"), TABLE),
    "kernel, cosine": (kernel(kernel="cosine"), TABLE),
    "kernel, sigmoid": (kernel(kernel="sigmoid", gamma=0.01, coef0=0.1), TABLE),
    "kernel, linear": (kernel(kernel="linear"), TABLE),
    "kernel, neighbours": (kernel(kernel=NearestNeighbors(0.5, 6)), TABLE),
    "kernel, normalised": (kernel(kernel=Normalized(Gaussian(0.02))), TABLE),
    "kernel, sum and product": (kernel(kernel=Gaussian(0.02) * Polynomial(0.1, 2, 1.0) + Linear()), TABLE),
    "kernel, nystroem": (kernel(approximation="nystroem", rank=15, gamma="scale"), TABLE),
    "kernel, rpcholesky": (kernel(approximation="rpcholesky", rank=25, gamma=0.02), TABLE),
    "kernel, fourier": (kernel(approximation="fourier", rank=40, gamma=0.02), TABLE),
    "kernel, landmarks": (kernel(approximation="nystroem", landmarks=[3, 8, 14, 30, 41, 55], gamma=0.02), TABLE),
    "kernel, ridge": (kernel(preimage="ridge", gamma=0.02), TABLE),
    "kernel, rpcholesky, ridge": (kernel(approximation="rpcholesky", rank=20, preimage="ridge", gamma=0.02), TABLE),
    "kernel, held-out": (kernel(n_components="held-out", gamma="held-out"), TABLE),
    "kernel, held-out, noise": (kernel(n_components="held-out", gamma=0.02, noise=0.5), TABLE),
    "cca": (SparseCCA(2, alpha_x=0.05, alpha_y=0.02, tol=1e-9, max_iter=5000), TABLE, OTHER),
    "cca, not scaled": (SparseCCA(1, scale=False, tol=1e-9, max_iter=5000), TABLE, OTHER),
}
COVARIANCES = {
    "pca, covariance": (pca(n_components=0.8), np.cov(TABLE.T), 60),
    "pca, covariance, scaled": (pca(n_components=2, scale=True), np.cov(WINE.T), None),
    "probabilistic, covariance": (ProbabilisticPCA("bic"), np.cov(TABLE.T), 60),
    "sparse, covariance": (sparse(nonzeros=5, certify=True, n_components=2), PITPROPS, None),
    "sparse, dictionary, covariance": (sparse(formulation="dictionary", alpha_share=0.2), PITPROPS, 180),
    "sparse, regression, covariance": (sparse(formulation="regression", alpha_share=0.2), PITPROPS, None),
}


# --- what is left and said ------------------------------------------------------------------------

# Rounding, how long it took, and what random vectors tell.
UNSAID = re.compile(
    r"\b\d\.\d+e-\d+\b|\b0\.0e\+00\b|\b\d+(?= steps| iterations)|\b[\d.]+(?= % larger)"
)  # rounding, and how long it took
# Another computer makes other steps, and has other starts of what is random.
UNSURE = ("seconds", "n_iter", "iteration", "iterations", "history", "trace", "proofs", "may be", "of a miss")
TWICE = (".result_.certificate", "description.certificate", "description.parameters", "description.sides")
TABLES = re.compile(r"^(\.description\.(?:sections|lines|loadings|counts)|\.scores)\b.*")  # each as a whole
LONG = 12


def parts(value, at=""):
    """(place, number, text or array) of everything inside an object."""
    if at.rstrip("_").endswith(UNSURE) or at.endswith(TWICE):
        return
    if dataclasses.is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from parts(item, f"{at}.{name}")
    elif isinstance(value, list | tuple):
        if value and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            yield at, np.array(value, dtype=float)
        elif value and all(isinstance(item, str) for item in value):
            yield at, UNSAID.sub("#", "; ".join(value))
        else:
            for i, item in enumerate(value):
                yield from parts(item, f"{at}[{i}]")
    elif isinstance(value, bool | str | None):
        yield at, value if not isinstance(value, str) else UNSAID.sub("#", value)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "O":
        yield from parts(value.tolist(), at)
    elif isinstance(value, int | float | np.ndarray | np.generic):
        yield at, np.asarray(value, dtype=float)


def short(value):
    """An array as JSON holds it: itself, or its shape, length, and two products with fixed vectors."""
    if isinstance(value, str) and len(value) > 200:
        return f"{value[:100]}... {zlib.crc32(value.encode())}"
    if not isinstance(value, np.ndarray):
        return value
    if value.size > LONG:
        there = np.nan_to_num(value.ravel(), nan=-7.0, posinf=1e9, neginf=-1e9)
        places = np.arange(1.0, value.size + 1)
        products = [float(there @ np.cos(places * factor) / np.sqrt(value.size)) for factor in (1.0, 2.3)]
        return {"shape": list(value.shape), "length": float(np.linalg.norm(there)), "products": products}
    return [None if np.isnan(number) else float(f"{number:.9g}") for number in value.ravel()]


def left_by(model, *data):
    """Everything that a fitted model holds and says, by place."""
    parameters = model.get_params()
    found = {
        "attributes": {name: value for name, value in vars(model).items() if name not in parameters and name[0] != "_"}
    }
    found["description"] = describe(model)
    if data:
        rows = [each[:5] for each in data]
        found["scores"] = describe_scores(model, *rows)
        for name in ("inverse_transform", "denoise", "score_samples", "novelty"):
            if hasattr(model, name) and len(data) == 1:
                given = model.transform(rows[0]) if name == "inverse_transform" else rows[0]
                try:
                    found[name] = getattr(model, name)(given)
                except (ValueError, AttributeError, TypeError) as error:
                    found[name] = str(error)
    return by_place(found)


def by_place(found):
    """Texts and numbers inside an object, by place."""
    together = {}
    for place, value in parts(found):
        texts, numbers = together.setdefault(TABLES.sub(r"\1", place), ([], []))
        (numbers if isinstance(value, np.ndarray) else texts).append(value)
    return {
        place: [short("; ".join(map(str, texts))), short(joined(numbers))]
        for place, (texts, numbers) in together.items()
    }


def joined(numbers):
    return numbers[0] if len(numbers) == 1 else np.concatenate([np.zeros(0), *(each.ravel() for each in numbers)])


def differences(found, written):
    """Places that are not as they were, but for the rounding of another BLAS; tiny numbers may be others as tiny."""
    for place in sorted(found.keys() | written.keys()):
        (text, numbers), (old_text, old) = found.get(place, ("not there", [])), written.get(place, ("not there", []))
        if text != old_text or not as_close(numbers, old, place):
            yield f"{place}: {text} {numbers} in place of {old_text} {old}"


def as_close(found, written, place):
    # What is left of an iteration, or was estimated with random vectors: even the first digit may be another.
    left = "residual" in place or place.endswith(("details.error", "deflated norm", "left out"))
    if isinstance(found, dict) != isinstance(written, dict):
        return False
    if isinstance(found, dict):
        if found["shape"] != written["shape"]:
            return False
        signs = "floor" not in place and not left
        found, written = ([each["length"], *each["products"] * signs] for each in (found, written))
    if len(found) != len(written) or [each is None for each in found] != [each is None for each in written]:
        return False
    a, b = (np.nan_to_num(np.array(numbers, dtype=float), nan=-7.0) for numbers in (found, written))
    size = np.abs(b).max(initial=0.0)
    if "floor" in place:
        return bool((a <= 3 * b).all() and (b <= 3 * a).all())
    if left and size > 1e-7:
        return bool(size / 3 <= np.abs(a).max() <= 3 * size)
    if left or size <= 1e-9:
        return bool(np.abs(a).max(initial=0.0) <= 1e-6)
    return bool((np.abs(a - b) <= 1e-5 * size).all())


def fits():
    """name: a function that fits, and returns what is left."""

    def of_data(model, *data):
        return lambda: with_warnings(lambda: model.fit(*data), *data)

    def of_covariance(model, S, n):
        return lambda: with_warnings(lambda: model.fit_covariance(S, n_samples=n))

    return {name: of_data(*given) for name, given in FITS.items()} | {
        name: of_covariance(*given) for name, given in COVARIANCES.items()
    }


def with_warnings(fit, *data):
    """What a fit leaves, and what it warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = fit()
    said = sorted(UNSAID.sub("#", str(each.message)) for each in warned)
    return left_by(model, *data) | {"warnings": ["; ".join(said), []]}


def write(path, made):
    """Write down what functions return, by name."""
    lines = [f"{json.dumps(name)}: {json.dumps(make(), ensure_ascii=False)}" for name, make in made.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write(WRITTEN, fits())
