"""Estimators that are models with a density: how likely data are, and what missing cells would be."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._typing import Array
from princomp.data import Centered, Rows
from princomp.estimators.base import Estimator
from princomp.estimators.checks import check_count


class Density(Estimator):
    """Base of estimators with log-likelihoods."""

    _score_samples: Callable[[Any], Any]  # of X, when it is fitted

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row: of its observed cells, and 0 without any, where cells may be missing.

        Parameters
        ----------
        X : as in `fit`
            Data.

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        return self._score_samples(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows of X.

        Parameters
        ----------
        X : as in `fit`
            Data.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        return float(np.mean(np.asarray(self.score_samples(X))))


class CellDensity(Density):
    """Base of models of the observed cells of each row (NaN = missing), from which new rows can be drawn."""

    _missing_allowed = True  # method="closed-form" refuses it in fit alone
    _model: Callable[[], tuple[Any, ...]]  # what functions of tiles are given
    _centered: Callable[[Rows], Centered]
    _imputed: Callable[[Any, bool], Any]  # cells of X, and beside them their deviations if these are asked for
    _sample: Callable[[int, np.random.Generator], Any]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to the observed cells of X.

        Parameters
        ----------
        X : array-like, sparse, frame, list of shards, Dask array or Rows
            The data, rows are samples; NaN = missing.
        y : None
            Ignored.
        sample_weight : (n,) array-like, optional
            How often each row counts; at least 0.

        Returns
        -------
        self
        """
        return self._all_or_nothing(self._fit, X, sample_weight)

    def impute(self, X: Any, *, return_std: bool = False) -> Any:
        """Return X with missing cells replaced by their expectation, given the observed cells of their rows.

        Parameters
        ----------
        X : as in `fit`
            Data; NaN = missing.
        return_std : bool, default False
            Whether to return standard deviations too: 0 of an observed cell; of a missing one, without clusters,
            sqrt(noise + noise w'M^-1 w), M = W'W + noise I. They take the model for the true one.

        Returns
        -------
        (n, p) array, or two of them
            NumPy arrays, also for a frame; a Dask array stays lazy.
        """
        check_is_fitted(self)
        p = self.n_features_in_
        both = self._imputed(X, return_std)
        return (both[:, :p], both[:, p:]) if return_std else both[:, :p]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Return new rows drawn from the model; of a mixture their clusters, too.

        Parameters
        ----------
        n_samples : int, default 1
            How many.
        random_state : int, RandomState or None
            By default that of the estimator.

        Returns
        -------
        (n_samples, p) array, of a mixture also an (n_samples,) array of int
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        return self._sample(n_samples, self._generator(random_state))

    def _map(
        self, X: Any, fn: Callable[..., Array], *state: Any, width: int, dtype: Any = None, as_it_is: bool = False
    ) -> Any:
        """Return what a function of tiles, of the model and of ``state`` makes of each row, less the mean and scaled.

        ``as_it_is`` gives it the rows themselves: observed cells stay the same to the last bit. Infinite cells are
        refused.
        """
        rows = self._open(X, reset=False)
        tiles = Centered(rows, dense_tiles=True) if as_it_is else self._centered(rows)
        return self._finite(rows, tiles.map(fn, *self._model(), *state, width=width, dtype=dtype or rows.dtype))


def precision(V: Array, variances: Array, noise: float, scale: Array | None) -> Array:
    """Return the inverse of a covariance: with variances along the columns of V, noise elsewhere, of scaled columns.

    That is Woodbury's formula in the basis of V, where no digits cancel: nothing of that size is inverted.
    """
    found: Array = (V / variances) @ V.T
    if V.shape[1] < len(V):
        found += (np.eye(len(V)) - V @ V.T) / noise
    return found if scale is None else found / np.outer(scale, scale)
