"""What spectral solvers return, and what is derived from it: counts, variances, ratios, rank, noise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates import in_units
from princomp.estimators.standardise import as_given
from princomp.result import Certificate, Result, Status
from princomp.solvers.signs import signs


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenvalues and vectors of X'X, X in units that a solver chose."""

    solver: str
    values: Array  # (k,) eigenvalues of X'X, descending
    V: Array  # (p, k)
    total: float  # trace of X'X
    certificate: Certificate
    run: Result | None = None  # of an iterative solver
    count: int = 0  # samples; 0 if unknown
    freedom: float = 1.0  # divisor of variances
    mean: Array = field(default_factory=lambda: np.zeros(0))  # (p,)
    scale: Array | None = None  # (p,)
    unit: float = 1.0  # X was multiplied by this
    centred: bool = False

    @cached_property
    def variances(self) -> Array:
        """Variances in the user's units (inf where they overflow)."""
        return as_given(self.values / self.freedom, self.unit)

    @property
    def singular_values(self) -> Array:
        """Singular values in the user's units."""
        return np.sqrt(self.values) / self.unit

    @property
    def ratio(self) -> Array:
        """Share of the total, 0 if nothing varies."""
        return self.values / self.total if self.total > 0 else np.zeros_like(self.values)

    @property
    def most(self) -> int:
        """The largest possible rank."""
        p = len(self.V)
        return min(self.count, p) if self.count else p

    @cached_property
    def rank(self) -> int:
        """How many eigenvalues stand above rounding: LAPACK's bound, for X'X if that was formed, else for X."""
        if len(self.values) == 0 or self.values[0] <= 0:
            return 0
        bound = max(self.count, len(self.V)) * np.finfo(np.float64).eps
        above = int((self.values > self.values[0] * (bound if self.solver == "eigh" else bound**2)).sum())
        # A mean that is rounded, as that of numbers near 5e-324 is, leaves more.
        return min(above, self.count - 1) if self.centred else above

    @property
    def noise_variance(self) -> float:
        """Mean variance of the p - k directions left out."""
        return self.left / max(len(self.V) - len(self.values), 1)

    @property
    def left(self) -> float:
        """Variance left out."""
        if len(self.values) >= self.most:
            return 0.0
        rest = max(self.total - float(self.values.sum()), 0.0)
        return float(as_given(rest / self.freedom, self.unit))

    def leading(self, k: int) -> Spectrum:
        """Return the first k, signs fixed."""
        V = self.V[:, :k]
        return replace(self, values=self.values[:k], V=V * signs(V))

    def count_kept(self, n_components: Any) -> int:
        """Return how many components to keep, now that the spectrum is known."""
        if n_components == "mle":
            return minka_count(self)
        if isinstance(n_components, Real) and not isinstance(n_components, Integral) and n_components < 1:
            # The first k whose share reaches it; rounding must not cost a component.
            reached = np.cumsum(self.ratio) >= float(n_components) - 1e-12
            return int(np.argmax(reached)) + 1 if reached.any() else len(self.values)
        return len(self.values)

    def _rounded(self, certificate: Certificate, dtype: Any) -> Certificate:
        """Return the certificate of the components that are kept, once rounded to ``dtype``."""
        details, k = dict(certificate.details), len(self.values)
        for name in {"residuals", "floor", "known", "error"} & details.keys():
            details[name] = details[name][:k]
        if "error" in details and dtype != np.float64:  # whose own rounding is in the floor
            details["error"] = details["error"] + np.finfo(dtype).eps * self.variances
        return replace(certificate, details=details)

    def result(self, dtype: Any) -> Result:
        """Return what `result_` holds; ``dtype`` is that of the attributes, whose rounding counts as error."""
        value = {"V": self.V, "variances": self.variances}
        certificate = self._rounded(in_units(self.certificate, self.freedom, self.unit, self.unit), dtype)
        if self.run is not None:
            return replace(self.run, value=value, objective=self.left, certificate=certificate)
        status = Status("exact", "Solved exactly, up to rounding.")
        return Result(value, self.left, certificate, status)


def minka_count(spectrum: Spectrum) -> int:
    """Return the number of components of largest evidence (Minka, Automatic choice of dimensionality, NIPS 2000)."""
    n, p = spectrum.count, len(spectrum.V)
    if n < p:
        raise ValueError(
            f'n_components="mle" needs at least as many samples as features, got {n} and {p}. '
            "Give a number or a share of the variance."
        )
    rank = min(spectrum.rank, p)
    values = spectrum.values / spectrum.values[0] if rank else spectrum.values
    # Beyond the rank the noise variance is zero and the evidence infinite.
    evidence = [minka_log_evidence(values, k, n) for k in range(1, max(min(rank, p - 1), 1) + 1)] if rank > 1 else [0.0]
    return int(np.argmax(evidence)) + 1


def apart(larger: Array, smaller: Array) -> Array:
    """Return the difference, kept off zero where two eigenvalues tie."""
    return np.maximum(larger - smaller, np.finfo(np.float64).eps * larger)


def minka_log_evidence(values: Array, k: int, n: int) -> float:
    """Return Laplace's approximation of log p(X | k), Minka's equation 76, from all p covariance eigenvalues."""
    from scipy.special import gammaln

    p = len(values)
    noise = float(values[k:].sum()) / (p - k)
    if noise <= 0:
        return -np.inf
    volume = -k * np.log(2.0) + sum(gammaln((p - i) / 2) - np.log(np.pi) * (p - i) / 2 for i in range(k))
    fit = -n / 2 * (np.log(values[:k]).sum() + (p - k) * np.log(noise))
    free = p * k - k * (k + 1) / 2
    modelled = np.concatenate([values[:k], np.full(p - k, noise)])
    curvature = 0.0
    for i in range(k):
        j = np.arange(i + 1, p)
        curvature += float(
            (np.log(apart(1 / modelled[j], 1 / modelled[i])) + np.log(apart(values[i], values[j])) + np.log(n)).sum()
        )
    return float(volume + fit + (free + k) / 2 * np.log(2 * np.pi) - curvature / 2 - k / 2 * np.log(n))
