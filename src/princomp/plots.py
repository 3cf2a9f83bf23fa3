"""Pictures of fitted models, drawn with matplotlib: each function returns the axes that it drew on.

Only public attributes and methods of estimators are used. ``pip install "princomp[plot]"`` brings matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")  # colour-blind safe
GREY = "#999999"
OUTLINE = np.linspace(0.0, 2.0 * np.pi, 65)


def posterior_scores(
    model: Any,
    X: Any,
    *,
    components: tuple[int, int] = (0, 1),
    labels: Any = None,
    deviations: float = 2.0,
    axes: Axes | None = None,
) -> Axes:
    """Draw two latent scores of each row with the ellipse in which they lie.

    Parameters
    ----------
    model : ProbabilisticPCA
        Fitted, with at least two components.
    X : (n, p) array-like
        Data; NaN = missing. The more cells a row misses, the wider its ellipse.
    components : (int, int), default (0, 1)
        Which scores.
    labels : (n,) array-like, optional
        Groups, each drawn in a colour of its own.
    deviations : float, default 2
        Size of the ellipses in standard deviations of the posterior: 2 hold 86 % of it.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from princomp import ProbabilisticPCA, plots
    >>> from princomp.datasets import load_tobamovirus
    >>> X = load_tobamovirus().X
    >>> axes = plots.posterior_scores(ProbabilisticPCA(2).fit(X), X)
    >>> axes.get_xlabel()
    'latent score 1'
    """
    _check_model(model, "posterior", "ProbabilisticPCA")
    k = model.n_components_
    if k < 2:
        raise ValueError("The model has one component, and two scores are to be drawn: fit one with at least 2.")
    chosen = [int(each) for each in components]
    if len(set(chosen)) != 2 or len(chosen) != 2 or min(chosen) < 0 or max(chosen) >= k:
        raise ValueError(f"components must be two different numbers from 0 to {k - 1}, got {tuple(chosen)}.")
    first, second = chosen
    mean, covariance = (np.asarray(part) for part in model.posterior(X))
    if labels is not None and len(labels) != len(mean):
        raise ValueError(f"labels must have one entry per row, {len(mean)}, got {len(labels)}.")
    axes = axes or _new_axes()
    centres = mean[:, chosen]
    # The columns of the root of a covariance are the ellipse's axes, whatever their order.
    values, vectors = np.linalg.eigh(covariance[:, chosen][:, :, chosen])
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    outlines = centres[:, :, None] + deviations * roots @ np.array([np.cos(OUTLINE), np.sin(OUTLINE)])
    groups = np.zeros(len(centres)) if labels is None else np.asarray(labels)
    for number, name in enumerate(np.unique(groups)):
        colour, mine = COLOURS[number % len(COLOURS)], groups == name
        for outline in outlines[mine]:
            axes.fill(*outline, facecolor=colour, edgecolor=colour, alpha=0.15, lw=0.8)
        axes.scatter(
            centres[mine, 0], centres[mine, 1], s=10, color=colour, label=None if labels is None else str(name)
        )
    if labels is not None:
        axes.legend()
    axes.set(xlabel=f"latent score {first + 1}", ylabel=f"latent score {second + 1}")
    return axes


def imputed_cells(
    model: Any, X: Any, *, truth: Any = None, deviations: float = 1.6449, most: int = 60, axes: Axes | None = None
) -> Axes:
    """Draw missing cells as a model fills them, with error bars.

    Parameters
    ----------
    model : ProbabilisticPCA or ProbabilisticPCAMixture
        Fitted.
    X : (n, p) array-like
        Data; NaN = missing.
    truth : (n, p) array-like, optional
        What the cells really hold, if it is known: drawn beside.
    deviations : float, default 1.6449
        Half length of the bars in standard deviations: 1.6449 hold 90 %.
    most : int, default 60
        Cells to draw: the first ones, row by row.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import ProbabilisticPCA, plots
    >>> from princomp.datasets import load_tobamovirus
    >>> X = load_tobamovirus().X
    >>> X[::5, 2] = np.nan
    >>> plots.imputed_cells(ProbabilisticPCA(2).fit(X), X).get_xlabel()
    '8 missing cells, row by row'
    """
    _check_model(model, "impute", "ProbabilisticPCA or ProbabilisticPCAMixture")
    filled, deviation = (np.asarray(part) for part in model.impute(X, return_std=True))
    i, j = np.nonzero(deviation)  # 0 of an observed cell
    cells = len(i)
    i, j = i[:most], j[:most]
    if truth is not None and np.shape(truth) != filled.shape:
        raise ValueError(f"truth must have the shape of X, {filled.shape}, got {np.shape(truth)}.")
    axes = axes or _new_axes()
    place = np.arange(len(i))
    bars = deviations * deviation[i, j]
    axes.errorbar(place, filled[i, j], bars, fmt="o", ms=4, color=COLOURS[0], capsize=2, lw=1, label="imputed")
    if truth is not None:
        axes.scatter(place, np.asarray(truth)[i, j], marker="x", s=24, color=COLOURS[3], zorder=3, label="true value")
        axes.legend()
    count = f"{cells}" if len(i) == cells else f"{len(i)} of {cells}"
    shown = f"{count} missing cell{'' if cells == 1 else 's'}"
    axes.set(xlabel=f"{shown}, row by row", ylabel="value")
    return axes


def likelihood_path(models: Any, X: Any = None, *, axes: Axes | None = None) -> Axes:
    """Draw the log-likelihood of models against their numbers of components.

    Parameters
    ----------
    models : list of ProbabilisticPCA
        Fitted to the same data.
    X : array-like, optional
        Further data, which the fits have not seen: the mean log-likelihood of its rows is drawn too, and falls where
        there are too many components.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from princomp import ProbabilisticPCA, plots
    >>> from princomp.datasets import make_spiked
    >>> X = make_spiked(300, 12, rank=3, random_state=0).X
    >>> models = [ProbabilisticPCA(k).fit(X[::2]) for k in range(1, 7)]
    >>> axes = plots.likelihood_path(models, X[1::2])
    >>> axes.get_xlabel()
    'components'
    """
    models = list(models) if isinstance(models, Iterable) else [models]
    if not models:
        raise ValueError("There is no model to draw: give a list of fitted ones.")
    for model in models:
        _check_model(model, "total_weight_", "ProbabilisticPCA")
        if model.log_likelihood_ is None:
            raise ValueError("A model has no likelihood: give fit_covariance the number of samples, n_samples.")
    models.sort(key=lambda model: model.n_components_)
    counts = [model.n_components_ for model in models]
    axes = axes or _new_axes()
    seen = [model.log_likelihood_ / model.total_weight_ for model in models]
    axes.plot(counts, seen, "o-", ms=4, color=COLOURS[0], label="data of the fit")
    if X is not None:
        unseen = [model.score(X) for model in models]
        axes.plot(counts, unseen, "s-", ms=4, color=COLOURS[3], label="other data")
        best = int(np.argmax(unseen))
        axes.axvline(counts[best], color=GREY, lw=1, ls=":")
        axes.legend()
    axes.set(xlabel="components", ylabel="log-likelihood per row", xticks=counts)
    return axes


def held_out_errors(model: Any, *, axes: Axes | None = None) -> Axes:
    """Draw how well rows that were held out are restored, against the number of components, a line for each gamma.

    Parameters
    ----------
    model : KernelPCA
        Fitted with ``n_components="held-out"``, ``gamma="held-out"`` or both.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes
        The model that was chosen is marked by a ring.

    Examples
    --------
    >>> from princomp import KernelPCA, plots
    >>> from princomp.datasets import make_circles
    >>> X = make_circles(100, noise=0.1, random_state=0).X
    >>> model = KernelPCA("held-out", gamma=1.0, noise=0.1, random_state=0).fit(X)
    >>> axes = plots.held_out_errors(model)
    >>> axes.get_ylabel()
    'mean squared error of held-out rows'
    """
    _check_model(model, "denoise", "KernelPCA")
    tried = getattr(model, "held_out_", None)
    if tried is None:
        raise ValueError('Nothing was held out: fit with n_components="held-out" or gamma="held-out".')
    axes = axes or _new_axes()
    gammas = np.unique(tried[:, 0])  # NaN, of a kernel without, is one of them
    for number, gamma in enumerate(gammas):
        mine = tried[np.isnan(tried[:, 0]) if np.isnan(gamma) else tried[:, 0] == gamma]
        colour = COLOURS[number % len(COLOURS)]
        style = "-" if number < len(COLOURS) else "--"
        axes.plot(mine[:, 1], mine[:, 2], "o" + style, ms=4, color=colour, label=f"gamma = {gamma:.3g}")
    best = tried[int(np.argmin(tried[:, 2]))]
    axes.plot(best[1], best[2], "o", ms=11, mfc="none", mec=GREY, mew=1.5)
    if not np.isnan(gammas).any():
        axes.legend()
    axes.set(xscale="log", xlabel="components", ylabel="mean squared error of held-out rows")
    return axes


def _check_model(model: Any, needed: str, kinds: str) -> None:
    if not hasattr(type(model), needed):
        raise TypeError(f"This picture is of a fitted {kinds}, got {type(model).__name__}.")
    check_is_fitted(model)


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "princomp[plot]"') from error
    return plt.subplots(layout="constrained")[1]
