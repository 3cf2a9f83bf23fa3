"""Rank-1 dictionary learning: X as a sum of pairs, each of a course over the rows and few features that follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._kinds import CORRELATION, NONNEGATIVE, POSITIVE, SHARE, Count, Kind, Number, Numbers
from princomp._typing import Array
from princomp.data import Centered, Rows, as_rows, statistics
from princomp.estimators.base import Estimator, moved
from princomp.estimators.checks import check_count, check_values, count_components
from princomp.estimators.description import Description
from princomp.estimators.rank_one_description import describe_pairs
from princomp.estimators.rank_one_fit import Found, find_pairs
from princomp.estimators.standardise import SAFE_TOTAL, safe_unit
from princomp.progress import Tell
from princomp.result import State


class RankOneDictionary(Estimator):
    r"""Write X as a sum of pairs :math:`u_j v_j'`, each with few features: rank-1 dictionary learning (R1DL).

    One pair after the other minimises

    .. math:: \|R - u v'\|_F^2, \quad \|u\| = 1, \quad \|v\|_0 \le r,

    where R is X less the pairs before. For functional MRI rows are time points, columns are voxels, subjects one after
    the other in time: each u is a course in time, and v the few voxels that follow it. X is taken as it is, but scans
    have a baseline, which ``center=True`` takes away.

    Parameters
    ----------
    n_components : int or float, optional
        Number of pairs; or a share in (0, 1]: as many as hold this share of the squares of X, min(n, p) at the most; by
        default min(n, p).
    nonzeros : int, float or list, default 0.07
        The most entries of a v that are not zero: a count, a share of the features, or a list with one of either for
        each pair. Those largest in magnitude are kept.
    refine : int, default 0
        Sweeps over all pairs afterwards, in which each gets one step on what all others leave: pairs that were taken
        too early, and hold parts of several, come apart. It ends before that when no pair moves by more than ``tol``.
    n_init : int, default 1
        Random starts of each pair, all in the same passes over the data; the best pair is kept.
    nonnegative : bool, default False
        Whether entries of v must not be negative.
    center : bool, default False
        Whether columns are taken less their means.
    scale : bool, default False
        Whether columns are divided by their standard deviations (n - 1).
    warm_start : bool, default False
        Whether each pair begins at the one that the last fit found in its place. With ``refine``, and as many pairs as
        it found, sweeps begin there at once: pairs are not found one after the other before (nor at ``n_init`` starts).
    tol : float, default 1e-6
        A pair is done when u moves by no more in a step. 0 asks for ``max_iter`` steps.
    max_iter : int, default 100
        Bound on the steps of a pair.
    random_state : int or RandomState, optional
        Seed of the starts.
    verbose, callback, checkpoint
        As in `PCA`.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so.

    Attributes
    ----------
    atoms_ : (n, k) array
        The u's, in columns of length 1; of zeros where nothing was left.
    components_ : (k, p) array
        The v's, which carry the scale; the entry of largest magnitude is positive.
    nonzeros_ : (k,) array of int
        How many entries of each v are not zero.
    shares_ : (k,) array
        Squares of each v, relative to those of X: without ``refine`` what the pair took of X.
    residual_share_ : float
        What all pairs leave: \|X - UV\|^2 / \|X\|^2.
    mean_, scale_ : (p,) array
        What columns are less by, 0 unless ``center``, and divided by, None unless ``scale``.
    n_components_, n_features_in_, n_samples_ : int
        Counts.
    n_iter_ : int
        Steps of all pairs together; each is a pass over the data, at the most.
    result_ : Result
        ``value`` ("U", "V"), ``objective`` (the squares left), ``certificate``, ``status``, ``history``.
    certificate_ : Certificate
        That each u is the best one for its v, and each v for its u, given the pairs before (with ``refine``: all
        others), measured on the data after the fit. Whether another start leads to a better pair is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import RankOneDictionary
    >>> rng = np.random.default_rng(0)
    >>> course, voxels = rng.normal(size=(50, 1)), np.zeros((1, 200))
    >>> voxels[0, 40:60] = 3.0
    >>> model = RankOneDictionary(1, nonzeros=20, random_state=0).fit(course @ voxels + rng.normal(size=(50, 200)))
    >>> np.flatnonzero(model.components_[0])
    array([40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59])
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "atoms_": Numbers("n k", CORRELATION),
        "components_": Numbers("k p"),
        "nonzeros_": Numbers("k", NONNEGATIVE, dtypes="iu"),
        "shares_": Numbers("k", NONNEGATIVE),
        "residual_share_": Number(SHARE),
        "mean_": Numbers("p", rounds="_mean"),
        "_mean": Numbers("p"),
        "scale_": Numbers("p", POSITIVE, or_none=True),
        "n_samples_": Count(1),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        nonzeros: int | float | Sequence[int | float] = 0.07,
        refine: int = 0,
        n_init: int = 1,
        nonnegative: bool = False,
        center: bool = False,
        scale: bool = False,
        warm_start: bool = False,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.nonzeros = nonzeros
        self.refine = refine
        self.n_init = n_init
        self.nonnegative = nonnegative
        self.center = center
        self.scale = scale
        self.warm_start = warm_start
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    def _fit(self, X: Any, tell: Tell) -> None:
        before = self.components_.astype(np.float64) if self.warm_start and hasattr(self, "components_") else None
        rows = self._open(X, reset=True, least_rows=2)
        self._check_limits()
        check_count("refine", self.refine, least=0)
        check_count("n_init", self.n_init)
        n, p = rows.shape
        k = count_components(self.n_components, min(n, p), share=True, more=True)
        share = None if self.n_components is None or isinstance(self.n_components, Integral) else self.n_components
        counts = how_many(self.nonzeros, None if share is not None else k, p)
        if before is not None and before.shape[1] != p:
            before = None  # other features
        self._keep(
            find_pairs(
                rows,
                np.broadcast_to(counts, k),
                self._drive(tell, rows),
                self._generator(),
                share=1.0 if share is None else float(share),
                sweeps=int(self.refine),
                starts=int(self.n_init),
                nonnegative=bool(self.nonnegative),
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                begin=before,
                center=bool(self.center),
                scale=bool(self.scale),
                names=self._names,
            ),
            rows,
        )

    def _keep(self, found: Found, rows: Rows) -> None:
        self.atoms_, self.components_ = found.U, found.V
        self.nonzeros_ = np.count_nonzero(found.V, axis=1)
        self.shares_ = found.shares.astype(rows.dtype)
        self.residual_share_ = found.left
        self._mean, self.scale_ = found.standard.mean, found.standard.scale
        self.mean_ = self._mean.astype(rows.dtype)
        self.n_components_, self.n_samples_ = len(found.V), rows.shape[0]
        self._keep_result(found.result)

    def _describe(self) -> Description:
        return describe_pairs(self)

    # Using the fit

    def transform(self, X: Any) -> Any:
        """Return the scores of X: those with which sums of components come closest to its rows.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, k) array
            In the kind of X: a Dask array stays lazy.
        """
        rows = self._open(X, reset=False)
        centered = statistics.dense_enough(Centered(rows, self._mean if self._mean.any() else None))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = statistics.apply(centered, self._to_scores(), dtype=rows.dtype)
        return self._finite(rows, scores)

    def _to_scores(self) -> Array:
        """Return what centred rows are multiplied by, (p, k): the pseudo-inverse of the components, by the scales."""
        V = self.components_.astype(np.float64)
        unit = float(np.abs(V).max()) or 1.0
        return np.linalg.pinv(V / unit) / unit / (1.0 if self.scale_ is None else self.scale_[:, None])

    def inverse_transform(self, X: Any) -> Any:
        """Return the rows that scores stand for: scores times components, unscaled, plus the mean.

        Parameters
        ----------
        X : (n, k) array-like
            Scores, as `transform` gives them; or `atoms_`.

        Returns
        -------
        (n, p) array
            In the kind of X.
        """
        check_is_fitted(self)
        rows = as_rows(X)
        if rows.width != len(self.components_):
            raise ValueError(f"Scores must have {len(self.components_)} columns, one per component, got {rows.width}.")
        back = self.components_.astype(np.float64) * (1.0 if self.scale_ is None else self.scale_)
        return Centered(rows).map(moved, back, self._mean, width=back.shape[1], dtype=rows.dtype)

    def score(self, X: Any, y: Any = None) -> float:
        r"""Return the share of the squares of X that components hold: 1 - \|X - TV\|^2 / \|X\|^2, T the scores of X.

        Parameters
        ----------
        X : as in `fit`
            Data that the fit may not have seen.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        rows = self._open(X, reset=False)
        V = self.components_.astype(np.float64)
        _, lengths, basis = np.linalg.svd(V / (float(np.abs(V).max()) or 1.0), full_matrices=False)
        Q = basis[lengths > lengths[0] * max(V.shape) * np.finfo(np.float64).eps].T
        factor = np.ones(rows.width) if self.scale_ is None else 1.0 / self.scale_
        mean = self._mean if self._mean.any() else None
        for unit in (None, safe_unit):  # squares may overflow, or vanish
            if unit is not None:
                largest = check_values(rows, self._names, center=mean is not None).max()
                factor = factor * (unit(largest) if largest > 0 else 1.0)
            squares, held = statistics.dense_enough(Centered(rows, mean, factor)).reduce(_squares_held, Q)
            if SAFE_TOTAL[0] < squares < SAFE_TOTAL[1]:
                break
        return float(held) / float(squares) if squares > 0 else 1.0


def _squares_held(block: Any, rows: slice, Q: Array) -> tuple[Array, Array]:
    scores = np.asarray(block @ Q)
    squares = np.vdot(block, block) if isinstance(block, np.ndarray) else block.square_sums().sum()
    return np.asarray(squares), np.asarray(np.vdot(scores, scores))


def how_many(nonzeros: Any, k: int | None, p: int) -> Array:
    """Return the nonzeros of each of k pairs, or one number for however many there will be (k = None)."""
    if isinstance(nonzeros, np.ndarray) and not nonzeros.ndim:
        nonzeros = nonzeros.item()  # one number
    if isinstance(nonzeros, Sequence | np.ndarray) and not isinstance(nonzeros, str):
        if k is None:
            raise ValueError("nonzeros must be one number where n_components is a share: how many pairs is not known.")
        if len(nonzeros) != k:
            raise ValueError(f"nonzeros must have one entry for each of {k} pairs, got {len(nonzeros)}.")
        return np.array([_count(each, p) for each in nonzeros])
    return np.array(_count(nonzeros, p))


def _count(nonzeros: Any, p: int) -> int:
    """Return a number of features, given as such or as a share of all p."""
    whole = isinstance(nonzeros, Integral) and not isinstance(nonzeros, bool | np.bool_)
    if whole and 1 <= int(nonzeros) <= p:
        return int(nonzeros)
    if not isinstance(nonzeros, Integral) and isinstance(nonzeros, Real) and 0 < float(nonzeros) <= 1:
        return max(1, round(float(nonzeros) * p))
    raise ValueError(
        f"nonzeros must be an integer from 1 to {p}, the number of features, or a share of them in (0, 1]; got "
        f"{nonzeros!r}."
    )
