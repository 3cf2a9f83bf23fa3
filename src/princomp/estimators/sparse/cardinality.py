"""The cardinality formulation: most variance with few features, one component after the other, and how good that is."""

from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates import CardinalityCertificate
from princomp.certificates.constrained import own_residuals
from princomp.certificates.proof import scaled
from princomp.certificates.remainder import ROUNDING, remainder, remainder_of_rows
from princomp.data import statistics
from princomp.estimators.sparse.certificate import SparseCertificate
from princomp.estimators.sparse.penalised import counts, labels
from princomp.estimators.sparse.problem import SparseFound, SparseProblem
from princomp.result import Result, Status, measured
from princomp.solvers import cardinality
from princomp.solvers.exchange import Units
from princomp.solvers.scatter import MATRIX_SIDE, Data, Scatter
from princomp.solvers.scatter_sparse import SparseData

MOST_SQUARE = 2000  # columns up to which X'X is made, even if X is smaller: searching is quicker with it
WIDE = 4  # times as many columns as rows: then products of many features are made with X even so
LEAST = float(np.finfo(np.float64).tiny)  # a bound below would have lost digits, and be none
SAME = 1e-12  # of the variance: two components that differ by less are equally good
MOST_ROWS = 1000  # up to which the eigenvalues of XX' are computed for a bound


def solve(problem: SparseProblem) -> SparseFound:
    """Return what the cardinality formulation finds."""
    given, p, k = problem.parameters, problem.width, problem.k
    allowed, of, units, how_many = _may_be_chosen(problem)
    scatter, largest = _scatter(problem)
    proofs = _Proofs(problem, scatter, allowed, of)
    steps = partial(
        cardinality.cardinality,
        scatter if len(allowed) == p else scatter.among(allowed),
        counts=how_many,
        k=k,
        units=units,
        deflation=given["deflation"],
        largest=largest,
        prover=proofs if given["certify"] else None,
    )
    how: dict[str, Any] = {"tol": given["tol"], "max_iter": k * max(int(given["max_iter"]), 1)}
    if given["certify"]:
        how["deadline"] = None  # of the proofs: a proof cut off is one, half a search is no component
    result = problem.drive(steps, cardinality.start(len(allowed)), **how)
    V = np.zeros((p, k))
    V[allowed] = cardinality.components(result.value, k)
    heights, residuals = own_residuals(problem.images, V, given["deflation"])
    if result.status:  # all components are there
        result = _with_budget(measured(result, float(residuals.max())), k)
    certificate = _certificate(problem, result, heights, how_many, proofs)
    objective = float(problem.squares_as_given(result.objective))
    return SparseFound(V, {"V": V}, objective, replace(result, certificate=certificate))


# What is asked for


def _may_be_chosen(problem: SparseProblem) -> tuple[Array, Array | None, Units, Array | float]:
    """Return the features allowed, the group of each feature, the units of those allowed, and `_counts`."""
    given, p = problem.parameters, problem.width
    allowed, of = _allowed(given, p), _labels(given["groups"], p)
    units = _units(given, of, allowed)
    return allowed, of, units, _counts(given, units, problem.k)


def _allowed(given: dict[str, Any], p: int) -> Array:
    """Return the features that are not excluded."""
    exclude, include = (np.asarray(given[name] or [], dtype=int) for name in ("exclude", "include"))
    both = np.intersect1d(exclude, include)
    if len(both):
        raise ValueError(f"Feature {both[0]} is in include and in exclude: leave it out of one of them.")
    allowed = np.setdiff1d(np.arange(p), exclude)
    if not len(allowed):
        raise ValueError("exclude leaves no feature: exclude fewer.")
    return allowed


def _labels(groups: Any, p: int) -> Array | None:
    """Return the group of each feature, as a number."""
    found = labels(groups, p)
    if groups is not None and found is None:
        raise ValueError('formulation="cardinality" counts disjoint groups; these share features.')
    return found


def restrictions(problem: SparseProblem) -> dict[str, Any]:
    """Return what components may be chosen at all, as a certificate has it."""
    given = problem.parameters
    include, exclude = (tuple(given[name] or ()) for name in ("include", "exclude"))
    names = () if problem.names is None else tuple(str(problem.names[j]) for j in (*include, *exclude))
    grouped = _labels(given["groups"], problem.width) is not None
    how = {"nonnegative": bool(given["nonnegative"]), "unit": "group" if grouped else "feature"}
    return {"include": include, "exclude": exclude, "names": names, "deflation": given["deflation"], **how}


def _units(given: dict[str, Any], group: Array | None, allowed: Array) -> Units:
    include = np.asarray(given["include"] or [], dtype=int)
    if group is None:
        return Units(None, np.isin(allowed, include), bool(given["nonnegative"]))
    kept, of = np.unique(group[allowed], return_inverse=True)
    return Units(of, np.isin(kept, group[include]), bool(given["nonnegative"]))


def _counts(given: dict[str, Any], units: Units, k: int) -> Array | float:
    """Return how many units each component may use, or the share of variance that the fewest are to keep."""
    if given["nonzeros"] is None:
        share = float(given["retain"]) if isinstance(given["retain"], Real) else np.nan
        if not 0 < share <= 1:
            raise ValueError(f"retain must be a number above 0, up to 1, got {given['retain']!r}.")
        return share
    many = counts(given["nonzeros"], k, len(units.forced))
    forced = int(units.forced.sum())
    if (many < forced).any():
        raise ValueError(f"include forces {forced} in, but nonzeros allows only {int(many.min())}: raise nonzeros.")
    return many


# Where S comes from


def _scatter(problem: SparseProblem) -> tuple[Scatter, float]:
    """Return S, as a matrix unless that is too large, and a bound on its eigenvalues, where it is quickly had."""
    if problem.S is not None:
        return problem.scatter, np.inf
    n, p = problem.rows.shape
    largest = np.inf
    if p > min(n, MATRIX_SIDE) and n <= MOST_ROWS:
        largest = float(np.linalg.eigvalsh(statistics.row_gram(problem.rows))[-1]) * (1 + cardinality.RAISED)
    if p > MOST_SQUARE:
        return problem.scatter, largest
    if WIDE * n <= p and problem.known is None and isinstance(problem.by_rows, Data | SparseData):
        problem.squared.quicker = problem.by_rows
    return problem.squared, largest


# How good it is


def _with_budget(result: Result, k: int) -> Result:
    """Return the result, of which the status says where the search for the fewest features ended with its budget."""
    cut = np.flatnonzero(result.value["cut"])
    if not len(cut) or not result.status:
        return result
    which = "every component" if 1 < len(cut) == k else f"component {', '.join(map(str, cut))} (counted from 0)"
    counts = ", ".join(str(count) for count in result.value["counts"][cut])
    sentence = (
        f"{result.status.sentence} In {which} the search for the fewest features ended with its budget, at {counts}: "
        "that somewhat fewer keep as much is not ruled out."
    )
    return replace(result, status=Status(result.status.code, sentence))


@dataclass
class _Proofs:
    """Proves components in safe units, all features counted; remembers the proofs, by component, in the user's."""

    problem: SparseProblem
    scatter: Scatter
    allowed: Array
    labels: Array | None
    kept: dict[int, CardinalityCertificate] = field(default_factory=dict)

    def __call__(self, found: Array, count: int, v: Array) -> cardinality.Proof:
        from princomp.solvers.branch_and_bound import prove

        given, j = self.problem.parameters, found.shape[1]
        exclude = np.setdiff1d(np.arange(self.problem.width), self.allowed)
        matrix, data, rounding = self.matrix(found)
        support = np.union1d(self.allowed[np.flatnonzero(v)], np.asarray(given["include"] or [], dtype=int))
        proof = prove(
            matrix,
            count,
            support=support.tolist(),
            include=tuple(given["include"] or ()),
            exclude=tuple(exclude.tolist()),
            nonnegative=bool(given["nonnegative"]),
            groups=None if self.labels is None else self.labels.tolist(),
            data=data,
            node_limit=given["node_limit"],
            time_limit=self.problem.tell.deadline.left / (self.problem.k - j),
            callback=self.problem.tell,
            certifies=f"component {j + 1}" + (" given those before it" if j else ""),
            rounding=rounding,
        )
        proof = _with_vector(proof, matrix, data, self.placed(v[:, None])[:, 0], support)
        with np.errstate(over="ignore", under="ignore"):
            kept = scaled(proof, 1 - int(np.frexp(self.problem.unit)[1]))  # the unit is a power of two
        self.kept[j] = replace(kept, upper=_at_least(kept.upper))
        # The component is the proof's: of several that are equally good the next proof is about what this one leaves.
        vector, freedom = proof.vector[self.allowed], self.problem.freedom
        value, upper = (proof.lower + rounding) * freedom, proof.upper * freedom
        return cardinality.Proof(vector, value, upper, proof.nodes, proof.seconds)

    def placed(self, vectors: Array) -> Array:
        """Return vectors of the features allowed, (a, j), among all features, (p, j)."""
        placed = np.zeros((self.problem.width, vectors.shape[1]))
        placed[self.allowed] = vectors
        return placed

    def matrix(self, found: Array) -> tuple[Array, bool, float]:
        """Return the covariance that the components found have left: a matrix, or data; and the rounding in it.

        Sums over many rows round like a random walk. The rounding is taken eightfold: whoever rechecks a proof makes
        the matrix again, with rounding of its own, and must still find it true.
        """
        V = self.placed(found)
        kind, freedom = self.problem.parameters["deflation"], self.problem.freedom
        S, X = self.scatter.matrix, self.scatter.data
        if S is not None:
            whole = np.zeros_like(S)
            within = np.ix_(self.allowed, self.allowed)
            whole[within] = S[within] / freedom
            size, (left, rounding) = float(np.linalg.norm(whole)), remainder(whole, V, kind)
        elif X is None or kind == "hotelling":
            raise ValueError(
                "certify=True needs the data in memory, and a deflation other than hotelling where there are more than "
                f"{MOST_SQUARE} features. Fit a sample of the rows, or call fit_covariance."
            )
        else:
            rows = np.zeros_like(X)
            rows[:, self.allowed] = X[:, self.allowed] / np.sqrt(freedom)
            size, (left, rounding) = float(np.vdot(rows, rows)), remainder_of_rows(rows, V, kind)
        return left, S is None, 8 * (rounding + ROUNDING * np.sqrt(freedom) * size)


def _with_vector(
    proof: CardinalityCertificate, matrix: Array, data: bool, v: Array, support: Array
) -> CardinalityCertificate:
    """Return the proof with the component of the search, if it is as good: with and without a proof it is the same."""
    used = np.flatnonzero(v)
    part = matrix[:, used] @ v[used]
    value = float(part @ part if data else v[used] @ part[used])
    if value < proof.lower + proof.rounding - SAME * abs(value):
        return proof
    lower = value - proof.rounding
    return replace(proof, vector=v, support=tuple(support.tolist()), lower=lower, upper=max(lower, proof.upper))


def _at_least(upper: Any) -> Any:
    """Return bounds, those too small to be numbers raised to the least that is one."""
    return np.where(np.abs(upper) < LEAST, LEAST, upper)[()]


def _certificate(
    problem: SparseProblem, result: Result, heights: Array, how_many: Array | float, proofs: _Proofs
) -> SparseCertificate:
    """Return what is known of each component; ``heights`` are their variances, measured, times the freedom."""
    value, k = result.value, problem.k
    done = len(value["captured"])
    lower, upper, seconds = np.zeros(k), np.full(k, np.inf), np.zeros(k)  # infinite for what is not done
    nodes, features = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    seconds[:done], nodes[:done] = value["seconds"], value["nodes"]
    lower[:done] = problem.squares_as_given(heights[:done] / problem.freedom)
    upper[:done] = _at_least(problem.squares_as_given(np.maximum(value["upper"], heights[:done]) / problem.freedom))
    for j, proof in proofs.kept.items():
        lower[j], upper[j] = proof.lower, proof.upper
    if isinstance(how_many, float):
        features[:done] = value["counts"]
    else:
        features[:] = how_many
    base = result.certificate
    certificate = SparseCertificate(
        base.residual,
        base.tol,
        "local",
        lower=lower,
        upper=upper,
        features=features,
        nodes=nodes,
        seconds=seconds,
        proofs=tuple(proofs.kept.get(j) for j in range(k)) if problem.parameters["certify"] else (),
        **restrictions(problem),
    )
    return replace(certificate, scope="global") if bool(certificate.proved.all()) else certificate


def certificate_of_nothing(problem: SparseProblem) -> SparseCertificate:
    """Return what is known where nothing varies: components of zeros are the best."""
    given, k = problem.parameters, problem.k
    _, _, units, how_many = _may_be_chosen(problem)
    return SparseCertificate(
        0.0,
        given["tol"],
        "global",
        lower=np.zeros(k),
        upper=np.zeros(k),
        features=np.full(k, len(units.forced), dtype=np.int64) if isinstance(how_many, float) else how_many,
        nodes=np.zeros(k, dtype=np.int64),
        seconds=np.zeros(k),
        proofs=(None,) * k if given["certify"] else (),
        **restrictions(problem),
    )
