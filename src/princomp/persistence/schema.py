"""What a model file may hold: estimators with their fitted attributes, and small objects inside these.

This is the one place that says of which kind an attribute is and in which range its numbers are (the words for it are
in `checks`). It is compared when a file is written and when it is loaded, so that no file gives what no fit gives.

Files live longer than this table. What is added to it later must go on loading files that do not have it: a parameter
and a field of a small object take their default then (a field without one cannot be added); an attribute must be
``optional``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from numpy.typing import NDArray

from princomp.certificates import CardinalityCertificate, Leaves
from princomp.estimators import PCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, SparsePCA
from princomp.estimators.decompose import SOLVERS
from princomp.estimators.probabilistic_pca import METHODS
from princomp.estimators.sparse.certificate import SparseCertificate
from princomp.estimators.sparse_pca import FORMULATIONS
from princomp.losses import Huber, Squared
from princomp.penalties import L1, Groups, NonNegative, OverlappingGroups, Tree, Zero
from princomp.persistence.checks import (
    ANY,
    CORRELATION,
    ERROR,
    NONNEGATIVE,
    POSITIVE,
    SHARE,
    SQUARABLE,
    VARIANCE,
    Count,
    Directions,
    Length,
    Names,
    Number,
    Numbers,
    Series,
    Shares,
    Word,
)
from princomp.result import Certificate, History, Result, Status
from princomp.solvers.deflation import Kind as Deflation

Array = NDArray[Any]


@dataclass(frozen=True)
class Model:
    """An estimator that files may hold, and what a fit leaves in it."""

    estimator: type
    fitted: Mapping[str, Any]  # attribute: its kind (see checks.py)
    optional: tuple[str, ...] = ("feature_names_in_",)  # attributes that not every fit leaves
    rounded: Mapping[str, str] = field(default_factory=dict)  # attribute: the one that it is in full precision


# Columns are divided by these: none is 0.
SCALE = Numbers("p", POSITIVE, or_none=True)

# The only estimators a file may hold.
MODELS = {
    "PCA": Model(
        PCA,
        {
            "components_": Directions("k p"),
            "mean_": Numbers("p"),
            "_mean": Numbers("p"),
            "_deviation": Numbers("k", VARIANCE),
            "scale_": SCALE,
            "explained_variance_": Numbers("k", VARIANCE),
            "explained_variance_ratio_": Numbers("k", SHARE),
            "singular_values_": Numbers("k", VARIANCE),
            "noise_variance_": Number(VARIANCE),
            "n_components_": Length("k"),
            "n_features_in_": Length("p"),
            "n_samples_": Count(1, or_none=True),
            "rank_": Count(),
            "n_iter_": Count(),
            "solver_": Word(tuple(SOLVERS)),
            "result_": Result,
            "certificate_": Certificate,
            "trace_": list[dict[str, Array]],
            "feature_names_in_": Names("p"),
        },
        optional=("feature_names_in_", "trace_"),
        rounded={"mean_": "_mean"},
    ),
    "ProbabilisticPCA": Model(
        ProbabilisticPCA,
        {
            "weights_": Numbers("p k", SQUARABLE),
            "components_": Directions("k p"),
            "mean_": Numbers("p"),
            "_mean": Numbers("p"),
            "_noise": Number(POSITIVE),
            "scale_": SCALE,
            "_scale": SCALE,
            "noise_variance_": Number(NONNEGATIVE),
            "explained_variance_": Numbers("k", NONNEGATIVE),
            "explained_variance_ratio_": Numbers("k", SHARE),
            "log_likelihood_": Number(or_none=True),
            "n_components_": Length("k"),
            "n_features_in_": Length("p"),
            "n_samples_": Count(1, or_none=True),
            "n_iter_": Count(),
            "method_": Word(METHODS[1:]),  # not "auto"
            "result_": Result,
            "certificate_": Certificate,
            "feature_names_in_": Names("p"),
        },
        optional=("feature_names_in_", "scale_", "_scale"),
        rounded={"mean_": "_mean", "scale_": "_scale", "noise_variance_": "_noise"},
    ),
    "ProbabilisticPCAMixture": Model(
        ProbabilisticPCAMixture,
        {
            "shares_": Shares("m"),
            "means_": Numbers("m p", SQUARABLE),
            "_means": Numbers("m p", SQUARABLE),
            "weights_": Numbers("m p k", SQUARABLE),
            "components_": Directions("m k p"),
            "noise_variance_": Numbers("m", NONNEGATIVE),
            "_noise": Numbers("m", POSITIVE),
            "log_likelihood_": Number(),
            "n_components_": Length("k"),
            "n_features_in_": Length("p"),
            "n_samples_": Count(1),
            "n_iter_": Count(),
            "result_": Result,
            "certificate_": Certificate,
            "feature_names_in_": Names("p"),
        },
        rounded={"means_": "_means", "noise_variance_": "_noise"},
    ),
    "SparsePCA": Model(
        SparsePCA,
        {
            "components_": Directions("k p", or_zero=True),
            "mean_": Numbers("p"),
            "_mean": Numbers("p"),
            "scale_": SCALE,
            "explained_variance_": Numbers("k", VARIANCE),
            "explained_variance_ratio_": Numbers("k", SHARE),
            "_scale": SCALE,
            "deflation_": Word(get_args(Deflation), or_none=True),
            "_images": Numbers("p k", SQUARABLE),
            "_unit": Number(POSITIVE),
            "nonzeros_": Numbers("k", NONNEGATIVE, kinds="i"),
            "alpha_": Numbers(None, VARIANCE, or_none=True, kinds="fi"),
            "formulation_": Word(FORMULATIONS),
            "n_components_": Length("k"),
            "n_features_in_": Length("p"),
            "n_samples_": Count(1, or_none=True),
            "n_iter_": Count(),
            "result_": Result,
            "certificate_": Certificate,
            "feature_names_in_": Names("p"),
        },
        optional=("feature_names_in_", "_scale", "deflation_"),
        rounded={"mean_": "_mean", "scale_": "_scale"},
    ),
    "SparseCCA": Model(
        SparseCCA,
        {
            "x_weights_": Numbers("p k"),
            "y_weights_": Numbers("q k"),
            "components_": Numbers("k p"),
            "correlations_": Numbers("k", CORRELATION),
            "x_mean_": Numbers("p"),
            "y_mean_": Numbers("q"),
            "x_scale_": Numbers("p", POSITIVE),
            "y_scale_": Numbers("q", POSITIVE),
            "alpha_x_": Number(NONNEGATIVE),
            "alpha_y_": Number(NONNEGATIVE),
            "n_components_": Length("k"),
            "n_features_in_": Length("p"),
            "n_samples_": Count(1),
            "n_iter_": Count(),
            "result_": Result,
            "certificate_": Certificate,
            "feature_names_in_": Names("p"),
            "_y_names": Names("q"),
        },
        optional=("feature_names_in_", "_y_names"),
    ),
}

# The only small objects a file may hold. Their fields are of the types that they declare.
OBJECTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Squared, Huber, Zero, L1, NonNegative, Groups, Tree, OverlappingGroups),
        *(Result, Certificate, Status, History, SparseCertificate, CardinalityCertificate, Leaves),
    )
}

# What their types do not say of the fields of some, and of what is derived from these. Losses and penalties see to
# themselves; proofs are for `certificates.verify`, which trusts nothing.
FIELDS: dict[str, dict[str, Any]] = {
    "Result": {"n_iter": Count()},
    "Certificate": {"residual": Number(ERROR), "tol": Number(VARIANCE)},
    "History": {
        "iteration": Series("n"),
        "objective": Series("n"),
        "residual": Series("n"),
        "seconds": Series("n"),
        "stride": Count(1),
    },
    "SparseCertificate": {
        "lower": Numbers("k", ANY),
        "upper": Numbers("k", ANY),
        "features": Numbers("k", NONNEGATIVE, kinds="i"),
        "nodes": Numbers("k", NONNEGATIVE, kinds="i"),
        "seconds": Numbers("k", NONNEGATIVE),
        "deflation": Word(get_args(Deflation)),
    },
}


def checks_of(kind: type) -> dict[str, Any]:
    """Return what `FIELDS` says of a class, and of those that it is derived from."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        found = FIELDS.get(base.__name__, {}) | found
    return found
