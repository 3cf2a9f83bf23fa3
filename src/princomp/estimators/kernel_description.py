"""What kernel PCA says of itself: its kernel, eigenvalues and where they lie, and what components leave of samples."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import count, percent
from princomp._typing import Array
from princomp.estimators.description import (
    SAMPLES_LIE,
    Column,
    Description,
    Scores,
    Table,
    numbered,
    usual_description,
    usual_scores,
)
from princomp.estimators.kernel_choice import in_words
from princomp.estimators.kernel_fit import novelty, scores

EIGENVALUES = (
    "The eigenvalues of the kernel matrix, how much of their sum each component holds, and how much the first ones "
    "hold together."
)
BETWEEN = (
    " They are those of the approximation. Of the matrix itself, which was not formed, each share is for sure no "
    "smaller, and at most the number under “At most”: up to there whiskers on the bars reach."
)
CURVED = f"{SAMPLES_LIE} Components of a kernel are curved: features have no weights in them."
NOVELTY = " Novelty is what the components leave of a sample: large if it is unlike the samples of the fit."
NEGLIGIBLE = 1e-6  # of all eigenvalues: as many negative ones are the rounding of a matrix that was stored in float32
SHOWN = 9  # scores on a page, so that novelty is among those to choose from
ALONE = 2.0  # a first share below this many times that of a matrix in which no sample is like another
WAYS = {
    "nystroem": "landmarks",
    "rpcholesky": "landmarks, each chosen as unlike those before",
    "fourier": "random features",
}


def describe_kernel(model: Any) -> Description:
    """Return what a fitted `KernelPCA` says of itself."""
    own = {
        "eigenvalues": model.eigenvalues_,
        "eigenvalue_intervals": model.eigenvalue_intervals_,
        "explained_variance_ratio_intervals": model.ratio_intervals_,
        "negative_share": model.negative_share_,
        "kernel": _kernel_in_words(model),
        "gamma": model.gamma_,
        "approximation": model.approximation_,
        "rank": _rank(model),
        "noise": getattr(model, "noise_", None),
    }
    found = usual_description(model, **own)
    table = _table(model)
    verdict, assurance = found.verdict, found.assurance
    if model.approximation_ != "exact" and model.certificate_.holds:
        verdict = "Certified: these are the leading components of the approximation."
        assurance = (*assurance, _apart(model))
    return replace(
        found,
        summary=_summary(model, found.summary),
        computation=(_how(model), *_chosen(model), _ended(model)),
        verdict=verdict,
        assurance=assurance,
        notes=_notes(model),
        sections=(table, "scores"),
        lines=(*table.columns[:-1], replace(table.columns[-1], name="together")),
    )


def scores_and_novelty(
    values: Array, rows: slice, coefficients: Array, offset: Array, mean: Array, square: float, centred: bool
) -> Array:
    """Return scores of rows and what they leave, side by side, from features and k(x, x)."""
    left = novelty(values, rows, coefficients, offset, mean, square, centred)
    return np.hstack([scores(values[:, :-1], rows, coefficients, offset), left])


def scores_with_novelty(model: Any, values: Array) -> Scores:
    """Return where samples lie: ``values`` (n, k + 1) are scores, and what they leave."""
    along, left = values[:, :-1], values[:, -1]
    usual = usual_scores(model, None, along)
    return replace(
        usual,
        columns={**numbered(along.T), "novelty": left},
        axes=(*usual.axes[:SHOWN], "Novelty"),
        values=np.column_stack([along[:, :SHOWN], left]),
        text=CURVED + NOVELTY,
    )


def _table(model: Any) -> Table:
    ratio, known = model.explained_variance_ratio_, model.ratio_intervals_
    bound = () if known is None else (Column("at most", known[:, 1], "share", "At most"),)
    return Table(
        "eigenvalues",
        "Eigenvalues",
        EIGENVALUES + ("" if known is None else BETWEEN),
        (
            Column("component", np.arange(1, len(ratio) + 1), "count", "No."),
            Column("eigenvalue", model.eigenvalues_, "number", "Eigenvalue"),
            Column("share", ratio, "share", "Share"),
            *bound,
            Column("cumulative share", np.cumsum(ratio, dtype=np.float64), "share", "Cumulative"),
        ),
        bars="share",
        axis="Share of the sum",
        line="cumulative share",
        between=() if known is None else ("share", "at most"),
    )


def _rank(model: Any) -> int | None:
    """Return how many landmarks, or random features, stand for the rows."""
    if model.approximation_ == "exact":
        return None
    return len(model._coefficients)


def _kernel_in_words(model: Any) -> str:
    return model.kernel if isinstance(model.kernel, str) else repr(model.kernel_)


def _with_width(model: Any) -> str:
    width = "" if model.gamma_ is None or not isinstance(model.kernel, str) else f" with gamma {model.gamma_:.4g}"
    return f"{_kernel_in_words(model)}{width}"


def _summary(model: Any, held: str) -> str:
    """Say how many components hold how much, and of what."""
    if not model.eigenvalues_.any():
        return f"All samples are alike to the kernel {_with_width(model)}."
    return f"{held} The variance is that in the feature space of the kernel {_with_width(model)}."


def _how(model: Any) -> str:
    """Say which kernel was used, and what stands for the rows."""
    kernel = f"Kernel {_with_width(model)}"
    if model.approximation_ == "exact":
        return f"{kernel}, between all {count(model.n_samples_)} samples."
    name, rank = model.approximation_, _rank(model)
    return f"{kernel}, by {count(rank or 0)} {WAYS[name]} (approximation “{name}”)."


def _chosen(model: Any) -> tuple[str, ...]:
    """Say what was chosen by held-out rows; model files of older versions do not have it."""
    tried = getattr(model, "held_out_", None)
    return () if tried is None else (in_words(tried, model.noise_),)


def _ended(model: Any) -> str:
    """Say how the fit ended, and of what that is said."""
    status = model.result_.status
    if model.approximation_ == "exact" or status.code != "exact":
        return str(status)
    return "The approximation itself was solved exactly, up to rounding."


def _apart(model: Any) -> str:
    """Say how far an approximation is from the matrix itself."""
    if model.eigenvalue_intervals_ is None:
        return "How far its eigenvalues are from those of the kernel matrix itself is not known."
    lower, upper = model.eigenvalue_intervals_.T
    return (
        f"The kernel matrix itself was not formed. Landmarks make no eigenvalue larger, and none smaller by more than "
        f"{float((upper - lower).max()):.1e}, all that they leave of its trace."
    )


def _notes(model: Any) -> tuple[str, ...]:
    """Return what a reader would otherwise take for granted."""
    notes = []
    n, first = model.n_samples_, float(model.explained_variance_ratio_[0])
    if model.approximation_ != "fourier" and n > 2 * ALONE and 0 < first * (n - 1) < ALONE:
        notes.append(
            "To this kernel each sample is like itself alone: no component holds much more than any other would. Take "
            'a smaller gamma, such as gamma="median", or columns in comparable units.'
        )
    if (model.negative_share_ or 0.0) > NEGLIGIBLE:
        notes.append(
            f"The kernel is not positive semidefinite: {percent(model.negative_share_)} of its eigenvalues, by "
            "magnitude, are negative. Components are of the positive ones."
        )
    if model.rank is not None and model.approximation_ == "exact":
        notes.append(f"rank={model.rank} was not used: the fit is exact. Name an approximation to have landmarks.")
    return tuple(notes)
