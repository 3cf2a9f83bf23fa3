"""What a mixture says of itself: groups, each with components of its own."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import count, percent
from princomp._typing import Array
from princomp.estimators.description import (
    WEIGHTS,
    Column,
    Description,
    Groups,
    Loadings,
    Scores,
    Table,
    basics,
    numbered,
)

SAID = 6  # shares, one by one
GROUPS = (
    "How many of the samples each group has, how much of the variance inside it its components hold, and the standard "
    "deviation of the noise that they leave in every feature."
)
WITHIN = (
    "Where the samples lie along two components of their group, the one that each most probably belongs to. Samples of "
    "one group that are close to each other are alike in what these components describe; components of another group "
    "are other directions, so that places in different groups cannot be compared."
)
HOLDS = "Certified that a further step gains next to nothing."
GAIN = (
    "The likelihood of a mixture has many maxima, and saddles between them: this is one of these, and whether it is "
    "the highest, or a maximum at all, was not looked at. More starts (n_init) make a good one more probable."
)
TIMES = (
    "Where the samples lie along two components, times the probability that a sample belongs to the group of the "
    "component: samples of other groups are at 0."
)


def describe_mixture(model: Any) -> Description:
    """Return what a fitted `ProbabilisticPCAMixture` says of itself."""
    own = {"shares": model.shares_, "log_likelihood": model.log_likelihood_, "noise_variance": model.noise_variance_}
    found, (m, k, p) = basics(model, **own), model.components_.shape
    features, noise = found.sides[0].features, model.noise_variance_.astype(np.float64)[:, None]
    variance = (model.weights_.astype(np.float64) ** 2).sum(axis=1) + noise  # (m, k)
    ratio = variance / (variance.sum(axis=1, keepdims=True) + (p - k) * noise)
    groups = f"{count(m, 'group')}, of {_shares(model.shares_.tolist())} of the samples" if m > 1 else "1 group"
    likelihood = f"Log-likelihood {model.log_likelihood_:.2f}, of all cells that are there."
    group, number = np.repeat(np.arange(1, m + 1), k), np.tile(np.arange(1, k + 1), m)
    return replace(
        found,
        counts=(
            ("features", count(p)),
            ("group" if m == 1 else "groups", count(m)),
            (f"component{'' if k == 1 else 's'} in each group", count(k)),
        ),
        summary=f"{groups}; {'its' if m == 1 else 'the'} components hold {_range(ratio.sum(axis=1))} of the variance "
        f"inside {'it' if m == 1 else 'them'}.",
        computation=(*found.computation, likelihood),
        verdict=HOLDS if model.certificate_.holds else found.verdict,
        assurance=(_residual(model.certificate_), GAIN),
        sections=(_groups(model.shares_, ratio, noise), "scores", _loadings(features, model.components_, ratio)),
        lines=(
            Column("group", group, "count"),
            Column("samples", np.repeat(model.shares_, k), "share"),
            Column("component", number, "count"),
            Column("variance", variance.ravel()),
            Column("share", ratio.ravel(), "share"),
        ),
        loadings={
            "group": np.repeat(np.arange(1, m + 1), p),
            "feature": features * m,
            **numbered(model.components_.transpose(1, 0, 2).reshape(k, -1)),
        },
    )


def scores_in_groups(probability: Array, scores: Array) -> Scores:
    """Return where samples lie in their most probable groups: ``scores`` (n, k) are those in these groups."""
    codes = probability.argmax(axis=1)
    probabilities = {f"probability_{c + 1}": column for c, column in enumerate(probability.T)}
    return Scores(
        {"group": codes + 1, **probabilities, **numbered(scores.T)},
        tuple(f"Component {j + 1}" for j in range(scores.shape[1])),
        scores,
        WITHIN,
        Groups("Most probable group", tuple(f"Group {c + 1}" for c in range(probability.shape[1])), codes),
    )


def scores_times_probabilities(values: Array, m: int) -> Scores:
    """Return what ``transform`` gives, (n, m k)."""
    k = values.shape[1] // m
    axes = tuple(f"Group {c + 1}, component {j + 1}" for c in range(m) for j in range(k))
    return Scores(numbered(values.T), axes, values, TIMES)


def _groups(shares: Array, ratio: Array, noise: Array) -> Table:
    columns = (
        Column("group", np.arange(1, len(shares) + 1), "count", "Group"),
        Column("share of samples", shares, "share", "Samples"),
        Column("share of variance", ratio.sum(axis=1), "share", "Variance held"),
        Column("noise", np.sqrt(noise[:, 0]), "number", "Noise"),
    )
    return Table("groups", "Groups", GROUPS, columns, bars="share of samples", axis="Share of samples")


def _loadings(features: tuple[str, ...], components: Array, ratio: Array) -> Loadings:
    m, k, p = components.shape
    places = [(c, j) for c in range(m) for j in range(k)]
    return Loadings(
        "loadings",
        "Loadings",
        f"{WEIGHTS} Each group has components of its own.",
        features,
        components.reshape(m * k, p),
        tuple(f"Group {c + 1}, component {j + 1} ({percent(float(ratio[c, j]))})" for c, j in places),
        tuple(f"{c + 1}.{j + 1}" for c, j in places),
        "Group.component",
        groups=m,
    )


def _residual(certificate: Any) -> str:
    measured = "estimated gain" in certificate.details  # or EM ended early, and there is only the estimate
    how = "by one further step" if measured else "that is left, as estimated from the last steps"
    return (
        f"The residual is {certificate.residual:.1e}; up to {certificate.tol:.0e} was allowed. It is the gain of the "
        f"log-likelihood, for each cell, {how}."
    )


def _shares(shares: list[float]) -> str:
    r"""Return two or more shares, largest first, or of many the first and the last.

    >>> _shares([0.5, 0.3, 0.2]), _shares([0.3] + [0.1] * 7)
    ('50\xa0%, 30\xa0% and 20\xa0%', '30\xa0% down to 10\xa0%')
    """
    *others, last = [percent(share) for share in shares]
    return f"{', '.join(others)} and {last}" if len(shares) <= SAID else f"{others[0]} down to {last}"


def _range(shares: Array) -> str:
    """Return the least and the largest share, or the one that there is."""
    least, largest = percent(float(shares.min())), percent(float(shares.max()))
    return least if least == largest else f"{least} to {largest}"
