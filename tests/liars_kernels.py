"""Kernel PCA on the liars' bench (tests/liars.py): problems made to make its certificate, or its intervals, lie.

A kernel is told twice: to princomp, and to the judge, who has its matrix in long double from differences and products
of rows, centres it there, and leaves the eigenvalues to LAPACK.
"""

import functools
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from liars_parts import (
    FLOOR_LIMIT,
    FORM_SHARES,
    FORMS,
    LEFT_OUT_LIMIT,
    MISS_LIMIT,
    ORTHONORMAL,
    VARIANCE,
    drawn,
    matched,
    statements,
    worst,
)
from princomp import KernelPCA, kernels
from princomp.data import budget

EXACT_TIE = 1e-12
ORDINARY_DIGITS = 1e-10  # of the kernel matrix, its constant too: what the last component has at the least
INDEFINITE = ("sigmoid", "knn-rbf", "normalized knn", "given")

# --- kernels, as princomp has them ----------------------------------------------------------------
# A kernel is a tuple: its name, and its numbers. "sum" and "product" are of two such.


def as_object(spec):
    name, *numbers = spec
    pairs = {"sum": kernels.Sum, "product": kernels.Product}
    if name in pairs:
        return pairs[name](*map(as_object, numbers))
    if name.startswith("normalized"):
        inside = kernels.NearestNeighbors if name.endswith("knn") else kernels.Gaussian
        return kernels.Normalized(inside(*numbers))
    return {
        "linear": kernels.Linear,
        "cosine": kernels.Cosine,
        "rbf": kernels.Gaussian,
        "laplacian": kernels.Laplacian,
        "poly": kernels.Polynomial,
        "sigmoid": kernels.Sigmoid,
        "knn-rbf": kernels.NearestNeighbors,
    }[name](*numbers)


def psd(spec):
    if spec[0] in ("sum", "product"):
        return psd(spec[1]) and psd(spec[2])
    return spec[0] not in INDEFINITE and not (spec[0] == "poly" and spec[3] < 0)


# --- the same, as the judge has them --------------------------------------------------------------


def matrix(spec, X):
    """K (n, n) of rows X, in long double."""
    name, *numbers = spec
    X = np.asarray(X).astype(np.longdouble)
    if name == "given":
        return (X + X.T) / 2
    if name in ("sum", "product"):
        one, other = (matrix(part, X) for part in numbers)
        return one + other if name == "sum" else one * other
    if name in ("rbf", "laplacian", "knn-rbf") or name.startswith("normalized"):
        return _radial(name, X, *numbers)
    if name == "cosine":
        length = np.sqrt((X * X).sum(axis=1))
        return _products(X / np.where(length > 0, length, 1)[:, None])
    products = _products(X)
    if name == "linear":
        return products
    if name == "poly":
        gamma, degree, coef0 = numbers
        return (np.longdouble(gamma) * products + np.longdouble(coef0)) ** degree
    gamma, coef0 = numbers
    return np.tanh(np.longdouble(gamma) * products + np.longdouble(coef0))


def _products(X):
    return sum(np.multiply.outer(column, column) for column in X.T)


def _radial(name, X, gamma, neighbors=None):
    apart = (np.subtract.outer(column, column) for column in X.T)
    distances = sum(map(np.abs, apart)) if name == "laplacian" else sum(column * column for column in apart)
    A = np.exp(-np.longdouble(gamma) * distances)
    if neighbors is not None:
        radius = np.sort(distances + np.diag(np.full(len(X), -1.0)), axis=1)[:, neighbors]  # its own comes first
        A = np.where(distances > np.maximum.outer(radius, radius), 0, A)
    if name.startswith("normalized"):
        degree = np.sqrt(A.sum(axis=1))
        return A / degree[:, None] / degree
    return A


@dataclass
class KernelTable:
    """Rows and a kernel; the truth about its centred matrix, found once."""

    spec: tuple
    X: np.ndarray  # (n, p), as stored; of "given" the matrix

    @cached_property
    def whole(self):
        return matrix(self.spec, self.X)

    @cached_property
    def trivial(self):
        """What is taken out, (n,) of length 1: the constant, or of normalised kernels D^1/2 1."""
        n = len(self.X)
        if not self.spec[0].startswith("normalized"):
            return np.full(n, 1 / np.sqrt(np.longdouble(n)))
        inside = ("knn-rbf" if self.spec[0].endswith("knn") else "rbf", *self.spec[1:])
        root = np.sqrt(matrix(inside, self.X).sum(axis=1))
        return root / np.sqrt(root @ root)

    @cached_property
    def centred(self):
        u, K = self.trivial, self.whole
        if self.spec[0] == "linear":
            X = self.X.astype(np.longdouble)
            X = X - X[:1]
            K = _products(X - X.mean(axis=0))
        image = K @ u
        K = K - np.multiply.outer(image, u) - np.multiply.outer(u, image) + np.multiply.outer(u, u) * (u @ image)
        return K.astype(float)

    @cached_property
    def spectrum(self):
        """All eigenvalues of the centred matrix, decreasing; some may be negative."""
        return np.linalg.eigvalsh(self.centred)[::-1]

    @cached_property
    def size(self):
        """The largest numbers in the matrix, as a norm: rounding of its entries is in units of these."""
        image = self.whole @ self.trivial
        return max(np.abs(self.spectrum).max(), float(np.sqrt(image @ image)))

    @property
    def doubt(self):
        """What LAPACK itself does not know of an eigenvalue, nor long double of the matrix."""
        known = np.finfo(float).eps * np.abs(self.spectrum).max() + 4 * np.finfo(np.longdouble).eps * self.size
        return 4 * np.sqrt(len(self.X)) * float(known)

    @cached_property
    def total(self):
        """What ratios are shares of: the trace, or, where some eigenvalues are negative, the sum of the others."""
        if psd(self.spec):
            return float(np.trace(self.centred))
        return float(self.spectrum[self.spectrum > 0].sum())

    def is_ordinary(self, k):
        """No exact ties among the first k + 1 values, and the last kept within ten digits of the matrix."""
        values = self.spectrum[: k + 1]
        tied = np.any(values[:-1] - values[1:] <= EXACT_TIE * values[:-1])
        return bool(not tied and self.spectrum[k - 1] > ORDINARY_DIGITS * self.size)


# --- the judge ------------------------------------------------------------------------------------


@dataclass
class KernelProblem:
    """A kernel matrix, the form in which its rows are given, and the way in which it is asked."""

    family: str
    seed: int
    table: KernelTable
    k: int | None
    form: str
    how: dict = field(default_factory=dict)
    limit: int | None = None  # bytes: below the size of the matrix nothing but products with tiles of it is left

    @property
    def solver(self):
        return ("tiles" if self.limit else "exact") if self.how["approximation"] is None else self.how["approximation"]

    @property
    def name(self):
        n, p = self.table.X.shape
        words = {key: value if np.ndim(value) == 0 else np.shape(value) for key, value in self.how.items()}
        how = ", ".join(f"{key}={value!r}" for key, value in words.items())
        return f"{self.form} {n}x{p}, KernelPCA({self.k}, {self.table.spec}, {how}, limit={self.limit})"

    @cached_property
    def ordinary(self):
        return self.k is not None and self.table.is_ordinary(self.k)

    def fit(self):
        kernel = "precomputed" if self.table.spec[0] == "given" else as_object(self.table.spec)
        model = KernelPCA(self.k, kernel=kernel, random_state=self.seed, **self.how)
        given = FORMS[self.form](self.table.X, np.random.default_rng(self.seed))
        with budget.limited(self.limit) if self.limit else nullcontext():
            return model.fit(given)

    def holds(self, model):
        return bool(model.certificate_.holds)

    def claims(self, model):
        return self.holds(model) or model.eigenvalue_intervals_ is not None

    def vague(self, model):
        floor = statements(model, len(model.eigenvalues_))[0]
        return bool(np.any(floor > VARIANCE * np.asarray(model.eigenvalues_, dtype=float)))

    def faults(self, model):
        return kernel_faults(self.table, self.k, model)


def kernel_faults(table, k, model):
    """What is wrong with a fitted kernel PCA, as sentences; none if it is right."""
    stated, ratio = (np.asarray(part, float) for part in (model.eigenvalues_, model.explained_variance_ratio_))
    if k is not None and len(stated) != k:
        return [f"{len(stated)} eigenvalues, not {k}"]
    scores = np.asarray(model.transform(table.X.astype(float)), float)
    if not (np.isfinite(stated).all() and np.isfinite(ratio).all() and np.isfinite(scores).all()):
        return ["eigenvalues, ratios or scores that are not finite"]
    if model.approximation_ == "exact":
        found = _exact_faults(table, k, model, stated, ratio, scores) if model.certificate_.holds else []
    else:
        found = _feature_faults(model, stated, scores) if model.certificate_.holds else []
        if model.eigenvalue_intervals_ is not None:
            found += _interval_faults(table, model, stated, ratio)
    if ratio.sum() > 1 + 1e-6:
        found.append(f"the ratios are {ratio.sum():.9f} in all")
    return found


def _exact_faults(table, k, model, stated, ratio, scores):
    count, V = len(stated), np.asarray(model.result_.value["V"], float)
    u = np.finfo(model.eigenvalues_.dtype).eps / 2
    floor, left_out, miss = statements(model, count)

    def margin(values, floor):
        return np.maximum((VARIANCE + u) * np.abs(values), floor) + table.doubt

    true = np.maximum(matched(table.spectrum, stated, floor, left_out, margin), 0)
    along = np.einsum("ij,ij->j", V, table.centred @ V)
    error = np.abs(V.T @ V - np.eye(count)).max()
    across = table.centred - V @ (V.T @ table.centred)
    across = float(np.linalg.eigvalsh(across - (across @ V) @ V.T)[-1])
    root = np.sqrt(stated)
    unsaid = np.abs(scores - V * root).max(axis=0) - np.divide(floor, root, out=np.zeros(count), where=root > 0)
    known = (len(V) * floor[0] + table.doubt) / max(table.total, np.finfo(float).tiny)
    shares = margin(true, floor) + true * known
    trials = {
        f"V'V - I has {error:.1e}": error > ORTHONORMAL and np.all(stated > 0),
        f"eigenvalues off by {worst(stated, true)}": np.any(np.abs(stated - true) > margin(true, floor)),
        f"variances along components off by {worst(along, true)}": np.any(
            np.abs(along - true)[stated > 0] > margin(true, floor)[stated > 0]
        ),
        f"ratios off by {worst(ratio * table.total, true)}": np.any(np.abs(ratio * table.total - true) > shares),
        f"{across:.3g} was left out, the last kept is {stated[-1]:.3g}": across - stated[-1] * (1 + left_out)
        > margin(across, floor[-1]),
        f"all were asked for, {across:.3g} was left out": k is None and across > floor[-1] + table.doubt,
        f"a floor of {floor.max():.1e} is stated, the matrix has {table.size:.1e}": not np.all(
            floor <= FLOOR_LIMIT * table.size
        ),
        f"{left_out:.0%} may be left out with probability {miss:.1e}": not (
            0 <= left_out <= LEFT_OUT_LIMIT and 0 <= miss <= MISS_LIMIT
        ),
        f"scores of training rows off by {unsaid.max():.1e}": np.any(unsaid > 1e-6 * root[0]),
        f"{model.negative_share_} is negative": _wrong_share(table, model.negative_share_, floor[0]),
    }
    return [sentence for sentence, wrong in trials.items() if wrong]


def _wrong_share(table, share, floor):
    """Whether the share of the negative eigenvalues is another one; those smaller than rounding may count as 0."""
    size = np.abs(table.spectrum).sum()
    true = -table.spectrum[table.spectrum < 0].sum() / size if size > 0 else 0.0
    unsure = len(table.spectrum) * (floor + table.doubt) / max(size, np.finfo(float).tiny)
    return share is None or abs(share - true) > 1e-9 + unsure


def _feature_faults(model, stated, scores):
    """Of the approximation alone: its eigenvalues are the sums of squares of the scores, which are uncorrelated.

    A floor of 2 s d + d^2 says that scores of length s are known to an error of length d.
    """
    u = np.finfo(model.eigenvalues_.dtype).eps / 2
    root = np.sqrt(stated)
    error = np.sqrt(stated + statements(model, len(stated))[0]) - root
    length = np.maximum(root, error / model.tol)
    least = np.finfo(model.eigenvalues_.dtype).tiny
    off = np.abs(scores.T @ scores - np.diag(stated)) / np.maximum(np.outer(length, length), least / VARIANCE)
    centre = np.abs(scores.sum(axis=0)) / np.sqrt(len(scores)) / np.where(length > 0, length, 1)
    trials = {
        f"scores have other squares and products than stated, by {off.max():.1e}": off.max() > VARIANCE + u,
        f"scores are off centre by {centre.max():.1e}": centre.max() > VARIANCE,
    }
    return [sentence for sentence, wrong in trials.items() if wrong]


def _interval_faults(table, model, stated, ratio):
    u = np.finfo(model.eigenvalues_.dtype).eps / 2
    least = np.finfo(model.eigenvalues_.dtype).tiny
    true = np.maximum(table.spectrum[: len(stated)], 0)
    found = []
    for what, intervals, values, mine in (
        ("eigenvalue", model.eigenvalue_intervals_, true, stated),
        ("ratio", model.ratio_intervals_, true / table.total if table.total > 0 else 0 * true, ratio),
    ):
        doubt = table.doubt if what == "eigenvalue" else len(table.X) * table.doubt / max(table.total, 1e-300)
        lower, upper = np.asarray(intervals, float).T
        outside = np.maximum(lower - values, values - upper)
        if np.any(outside > doubt):
            j = int(np.argmax(outside))
            found.append(f"{what} {j + 1} is {values[j]:.16g}, not in [{lower[j]:.16g}, {upper[j]:.16g}]")
        if np.any(mine * (1 + 2 * u) + least < lower) or np.any(mine * (1 - 2 * u) - least > upper):
            found.append(f"a stated {what} is not in its own interval")
    return found


# --- problems -------------------------------------------------------------------------------------
# Each makes a kernel, rows and, where it matters, the way in which it is asked.


def _size(rng, most=120):
    """Rows, sometimes so many that few components are found by ARPACK."""
    return int(rng.integers(150, 500)) if rng.random() < 0.2 else int(rng.integers(12, most))


def _clouds(rng, n, p):
    return rng.standard_normal((n, p)) + rng.uniform(0, 4) * rng.integers(0, 3, (n, 1))


def _any_kernel(rng, p, *, definite=False):
    """A kernel, of a width that suits rows of size 1."""
    gamma = 10.0 ** rng.uniform(-2, 0.5) / p
    choices = [
        ("linear",),
        ("rbf", gamma),
        ("rbf", gamma),
        ("laplacian", gamma),
        ("poly", gamma, int(rng.integers(1, 5)), float(rng.choice([0.0, 0.5, 1.0]))),
        ("cosine",),
        ("sigmoid", gamma, float(rng.choice([-1.0, 0.0, 0.5]))),
    ]
    return choices[rng.integers(len(choices) - definite)]


def clouds(rng):
    n, p = _size(rng), int(rng.integers(2, 9))
    return {"spec": _any_kernel(rng, p), "X": _clouds(rng, n, p)}


def ties(rng):
    kind = rng.integers(4)
    if kind == 0:  # each row is like itself alone
        n = _size(rng)
        return {"spec": ("rbf", 10.0 ** rng.uniform(4, 12)), "X": rng.standard_normal((n, 3))}
    if kind == 1:  # a ring: cosines and sines in pairs
        angle = 2 * np.pi * np.arange(_size(rng)) / (n := _size(rng))
        return {"spec": ("rbf", 10.0 ** rng.uniform(-1, 2)), "X": np.c_[np.cos(angle), np.sin(angle)] * n / n}
    if kind == 2:  # the same cloud again and again, too far apart to see each other
        times, block = int(rng.integers(9, 15)), rng.standard_normal((int(rng.integers(4, 45)), 2))
        X = (block + 1e3 * np.arange(times)[:, None, None]).reshape(-1, 2)
        return {"spec": ("rbf", float(rng.uniform(0.1, 2))), "X": X, "k": times + int(rng.integers(-3, 4))}
    times = int(rng.integers(9, 15))  # corners of a simplex
    X = np.tile(np.eye(times), (int(rng.integers(3, 50)), 1))
    return {"spec": _any_kernel(rng, times, definite=True), "X": X, "k": min(times + int(rng.integers(-3, 2)), times)}


def constants(rng):
    """A constant far above all that varies."""
    n, p = _size(rng), int(rng.integers(2, 7))
    X, kind = _clouds(rng, n, p), rng.integers(5)
    if kind == 0:
        return {"spec": (str(rng.choice(["rbf", "laplacian"])), 10.0 ** -rng.uniform(3, 17)), "X": X}
    if kind == 1:
        spec = ("poly", 10.0 ** -rng.uniform(0, 8), int(rng.integers(1, 4)), 10.0 ** rng.uniform(1, 9))
        return {"spec": spec, "X": X}
    if kind == 2:
        return {"spec": ("cosine",), "X": X + 10.0 ** rng.uniform(1, 8)}
    if kind == 3:
        return {"spec": ("sigmoid", 10.0 ** -rng.uniform(0, 3), float(rng.uniform(2, 12))), "X": X}
    spec = ("sum", ("rbf", 0.3), ("poly", 10.0 ** -rng.uniform(5, 12), 1, 10.0 ** rng.uniform(2, 10)))
    return {"spec": spec, "X": X}


def duplicates(rng):
    n, p = _size(rng), int(rng.integers(1, 6))
    few = rng.standard_normal((int(rng.integers(2, 12)), p))
    X = few[rng.integers(0, len(few), n)]
    if rng.random() < 0.6:
        X = X + 10.0 ** -rng.uniform(4, 13) * rng.standard_normal((n, p))
    return {"spec": _any_kernel(rng, p), "X": X}


def crumbs(rng):
    """Two or three rows alike among hundreds that are like none: few of the entries of K say so."""
    n, p = int(rng.integers(200, 500)) if rng.random() < 0.5 else _size(rng), int(rng.integers(2, 5))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(0, 3)
    at = 0
    for _ in range(int(rng.integers(1, 6))):
        members = int(rng.integers(2, 5))
        X[at : at + members] = 1e4 * rng.standard_normal(p) + 10.0 ** -rng.uniform(0, 6) * X[at : at + members]
        at += members
    return {"spec": (str(rng.choice(["rbf", "laplacian"])), 10.0 ** rng.uniform(-3, 1)), "X": rng.permutation(X)}


def offsets(rng):
    n, p = _size(rng), int(rng.integers(2, 7))
    X, kind = _clouds(rng, n, p), rng.integers(5)
    if kind == 0:  # the linear kernel and one large column
        X[:, 0] *= 10.0 ** rng.uniform(2, 9)
        return {"spec": ("linear",), "X": X}
    if kind == 1:  # far from zero
        X = np.round(X * 2**10) / 2**10 + np.round(10.0 ** rng.uniform(4, 8.5))
        return {
            "spec": [("linear",), ("rbf", 0.1), ("laplacian", 0.1), ("poly", 1e-17, 2, 1.0)][rng.integers(4)],
            "X": X,
        }
    if kind == 2:  # tight clouds, far apart: |x|^2 is much more than any |x - y|^2 that counts
        X = rng.standard_normal((n, p)) + 10.0 ** rng.uniform(1, 3) * rng.integers(-2, 3, (n, p))
        return {"spec": ("rbf", float(rng.uniform(0.01, 1))), "X": X}
    scale = 10.0 ** rng.uniform(-8, 8)
    if kind == 3:
        return {"spec": ("linear",), "X": X * scale}
    return {"spec": ("rbf", 0.2 / scale**2), "X": X * scale}


def powers(rng):
    n, p = _size(rng), int(rng.integers(1, 6))
    X = _clouds(rng, n, p) / 3
    spec = ("poly", 10.0 ** rng.uniform(-2, 1), int(rng.integers(5, 31)), float(rng.choice([0.0, 1.0, 30.0, 1e4])))
    return {"spec": spec, "X": X}


def pairs(rng):
    n, p = _size(rng), int(rng.integers(1, 6))
    spec = (str(rng.choice(["sum", "product"])), _any_kernel(rng, p), _any_kernel(rng, p))
    if rng.random() < 0.3:
        spec = (str(rng.choice(["sum", "product"])), spec, ("rbf", 0.5))
    return {"spec": spec, "X": _clouds(rng, n, p) + float(rng.choice([0, 0, 100]))}


def rows_beyond_a_thousand(rng):
    """Where an iteration takes the place of LAPACK, and may begin in single precision, or with tiles made anew."""
    make = [clouds, ties, constants, duplicates, crumbs, offsets, pairs][rng.integers(7)]
    made = make(rng)
    X, n = made["X"], int(rng.integers(1001, 1080))
    if rng.random() < 0.7:
        X = X[rng.integers(0, len(X), n)] + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal((n, X.shape[1]))
    else:
        X = np.resize(X, (n, X.shape[1]))
    return made | {"X": X, "how": {"approximation": None}}


def graphs(rng):
    n, p = _size(rng), int(rng.integers(2, 5))
    X = _clouds(rng, n, p)
    if rng.random() < 0.3:  # parts that do not see each other
        X += 300.0 * rng.integers(0, 3, (n, 1))
    if rng.random() < 0.2:
        X[: n // 2] = X[n // 2 : n // 2 + n // 2]
    spec = [
        ("normalized", 10.0 ** rng.uniform(-3, 2)),
        ("knn-rbf", 10.0 ** rng.uniform(-2, 1), int(rng.integers(1, 11))),
        ("normalized knn", 10.0 ** rng.uniform(-2, 1), int(rng.integers(2, 11))),
    ][rng.integers(3)]
    return {"spec": spec, "X": X, "how": {"approximation": None}}


def given(rng):
    """A matrix that is given: indefinite, of low rank, of one rank, of squared distances, with a large constant."""
    n = int(rng.integers(5, 80))
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    X = rng.standard_normal((n, 3))
    values = rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 0, n)
    values[0] *= 10.0 ** rng.uniform(0, 6)
    w = rng.standard_normal(n)
    K = [
        lambda: (Q * values) @ Q.T,
        lambda: (Q * -np.abs(values)) @ Q.T,
        lambda: np.outer(w, w),
        lambda: -0.5 * ((X[:, None] - X) ** 2).sum(axis=2),
        lambda: (Q * np.abs(values)) @ Q.T + 10.0 ** rng.uniform(1, 8),
        lambda: (Q * values) @ Q.T + 10.0 ** rng.uniform(1, 8) * np.add.outer(w - w.mean(), w - w.mean()),
        lambda: X @ X.T * 10.0 ** rng.uniform(-300, 300),
        lambda: np.ones((n, n)),
        lambda: np.diag(values),
    ][rng.integers(9)]()
    return {"spec": ("given",), "X": (K + K.T) / 2, "form": "array", "how": {"approximation": None}}


def landmarks(rng):
    """Landmarks that are alike, or the user's, too many or one alone, of kernels that decay slowly or fast."""
    n, p = _size(rng), int(rng.integers(1, 6))
    X = _clouds(rng, n, p)
    if rng.random() < 0.3:
        X = duplicates(rng)["X"]
        n, p = X.shape
    spec = _any_kernel(rng, p, definite=True)
    if rng.random() < 0.4:  # eigenvalues that decay to rounding
        spec = ("rbf", 10.0 ** -rng.uniform(0, 5))
    own = X[rng.integers(0, n, int(rng.integers(1, 9)))]
    close = np.vstack([own, own + 10.0 ** -rng.uniform(3, 12) * rng.standard_normal(own.shape)])
    user = [
        own,
        close,
        rng.standard_normal((int(rng.integers(1, 30)), p)),
        rng.integers(0, n, int(rng.integers(1, 40))),
        np.arange(n),
    ][rng.integers(5)]
    how = [
        {"approximation": "rpcholesky", "rank": int(rng.choice([1, 2, 5, 20, n, 3 * n]))},
        {"approximation": "nystroem", "rank": int(rng.choice([1, 2, 5, 20, n, 3 * n]))},
        {"approximation": "nystroem", "landmarks": user},
    ][rng.integers(3)]
    return {"spec": spec, "X": X, "how": how}


def frequencies(rng):
    made = [clouds, ties, constants, duplicates, offsets][rng.integers(5)](rng)
    spec = (str(rng.choice(["rbf", "laplacian"])), 10.0 ** rng.uniform(-3, 2) / float(np.ptp(made["X"]) or 1) ** 2)
    return {
        "spec": spec,
        "X": made["X"],
        "how": {"approximation": "fourier", "rank": int(rng.choice([1, 2, 7, 60, 400]))},
    }


MAKERS = (
    clouds,
    ties,
    constants,
    duplicates,
    crumbs,
    offsets,
    powers,
    pairs,
    graphs,
    given,
    landmarks,
    frequencies,
    rows_beyond_a_thousand,
)


def _problem(make, family, seed, rng):
    made = make(rng)
    spec, X, k = made["spec"], made["X"], made.get("k")
    n = len(X)
    how = made.get("how") or _how(rng, spec, n)
    form = made.get("form") or drawn(rng, FORM_SHARES)
    if k is None and rng.random() < 0.95:
        k = int(rng.integers(1, min(12, n) + 1))
    if form == "float32" and np.trace(matrix(spec, X)) < np.finfo(np.float32).max:
        X = X.astype(np.float32)
    limit = None
    if how["approximation"] is None and psd(spec) and k is not None and n > 1000 and rng.random() < 0.5:
        # Of what 4 bytes for each of half of the entries take K may have 0.4: it is kept in single precision, or not.
        limit = int(2 * n * (n + 256) / 0.4 * float(rng.choice([0.9, 1.1])))
    return KernelProblem(family, seed, KernelTable(spec, X), k, form, how, limit)


def _how(rng, spec, n):
    if rng.random() < 0.6:
        return {"approximation": None}
    word = "rpcholesky" if psd(spec) and rng.random() < 0.5 else "nystroem"
    return {"approximation": word, "rank": int(rng.choice([3, 10, 30, 100, n]))}


FAMILIES = {f"kernel {make.__name__.replace('_', ' ')}": functools.partial(_problem, make) for make in MAKERS}
