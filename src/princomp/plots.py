"""Pictures of fitted models, drawn with matplotlib: each function returns the axes that it drew on.

Only public attributes and methods of estimators are used. ``pip install "princomp[plot]"`` brings matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._text import percent
from princomp._typing import Array
from princomp.images.residual_cells import residual_cells as _residual_cells
from princomp.images.shades import shades as _shades
from princomp.images.slices import painted as _painted
from princomp.images.slices import slices as _slices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from princomp.data.layout import VoxelLayout


COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")  # colour-blind safe
GREY = "#999999"
OUTLINE = np.linspace(0.0, 2.0 * np.pi, 65)
IN_A_ROW = 4  # panels
FAR = 10.0  # times a limit: an axis of an outlier map that goes farther is logarithmic beyond the limit
MISSING = 0.45  # grey of a missing cell


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
    chosen = list(_two_of(components, model.n_components_))
    mean, covariance = (np.asarray(part) for part in model.posterior(X))
    _check_length("labels", labels, len(mean))
    axes = axes or _new_axes()
    centres = mean[:, chosen]
    # The columns of the root of a covariance are the ellipse's axes, whatever their order.
    values, vectors = np.linalg.eigh(covariance[:, chosen][:, :, chosen])
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    outlines = centres[:, :, None] + deviations * roots @ np.array([np.cos(OUTLINE), np.sin(OUTLINE)])
    for colour, mine, name in _by_group(labels, len(centres)):
        for outline in outlines[mine]:
            axes.fill(*outline, facecolor=colour, edgecolor=colour, alpha=0.15, lw=0.8)
        axes.scatter(centres[mine, 0], centres[mine, 1], s=10, color=colour, label=name)
    if labels is not None:
        axes.legend()
    axes.set(xlabel=f"latent score {chosen[0] + 1}", ylabel=f"latent score {chosen[1] + 1}")
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
    gammas = np.unique(tried[:, 0])
    for number, gamma in enumerate(gammas):
        mine = tried[tried[:, 0] == gamma]
        colour = COLOURS[number % len(COLOURS)]
        style = "-" if number < len(COLOURS) else "--"
        axes.plot(mine[:, 1], mine[:, 2], "o" + style, ms=4, color=colour, label=f"gamma = {gamma:.3g}")
    best = tried[int(np.argmin(tried[:, 2]))]
    axes.plot(best[1], best[2], "o", ms=11, mfc="none", mec=GREY, mew=1.5)
    if gammas.any():  # 0 is that of a kernel without
        axes.legend()
    axes.set(xscale="log", xlabel="components", ylabel="mean squared error of held-out rows")
    return axes


def score_scatter(
    model: Any,
    X: Any,
    *,
    components: tuple[int, int] = (0, 1),
    labels: Any = None,
    values: Any = None,
    axes: Axes | None = None,
) -> Axes:
    r"""Draw two scores of each row as a point.

    Parameters
    ----------
    model : estimator
        Fitted, with `transform` and at least two components.
    X : (n, p) array-like
        Data.
    components : (int, int), default (0, 1)
        Which scores.
    labels : (n,) array-like, optional
        Groups, each drawn in a colour of its own.
    values : (n,) array-like, optional
        Numbers, drawn on a scale of colours; not with labels.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from princomp import KernelPCA, plots
    >>> from princomp.datasets import make_circles
    >>> data = make_circles(200, random_state=0)
    >>> axes = plots.score_scatter(KernelPCA(2, gamma=2.0).fit(data.X), data.X, labels=data.groups)
    >>> axes.get_xlabel()
    'component 1 (23\xa0%)'
    """
    _check_model(model, "transform", "estimator with transform")
    if labels is not None and values is not None:
        raise ValueError("Points have one colour: give labels or values, not both.")
    found = np.asarray(model.transform(X))
    first, second = _two_of(components, found.shape[1])
    for what, given in (("labels", labels), ("values", values)):
        _check_length(what, given, len(found))
    axes = axes or _new_axes()
    if values is not None:
        drawn = axes.scatter(found[:, first], found[:, second], s=10, c=np.asarray(values), cmap="viridis")
        axes.figure.colorbar(drawn, ax=axes)
    for colour, mine, name in _by_group(labels, len(found)) if values is None else ():
        axes.scatter(found[mine, first], found[mine, second], s=10, color=colour, label=name)
    if labels is not None:
        axes.legend()
    names = _component_names(model, found.shape[1])
    axes.set(xlabel=names[first], ylabel=names[second])
    return axes


def kernel_contours(
    model: Any,
    X: Any,
    *,
    components: int | Sequence[int] = 8,
    labels: Any = None,
    levels: int = 12,
    grid: int = 80,
    axes: Any = None,
) -> Array:
    r"""Draw scores as functions of the plane: along a contour the score of a component is the same.

    Components of linear PCA have straight, parallel contours, those of kernel PCA follow the data.

    Parameters
    ----------
    model : estimator
        Fitted to data of two columns, with `transform`.
    X : (n, 2) array-like
        Data, drawn as points; the picture reaches a tenth of their range beyond them.
    components : int or sequence of int, default 8
        How many, the first ones, or if there are fewer all; or which, from 0 on.
    labels : (n,) array-like, optional
        Groups, whose points are drawn in colours of their own.
    levels : int, default 12
        Steps of the score, from minus its largest magnitude to that.
    grid : int, default 80
        Places each way at which the scores are computed.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each component; by default new ones, up to four in a row.

    Returns
    -------
    array of matplotlib Axes, one for each component

    Examples
    --------
    >>> from princomp import KernelPCA, plots
    >>> from princomp.datasets import make_circles
    >>> X = make_circles(200, random_state=0).X
    >>> drawn = plots.kernel_contours(KernelPCA(8, gamma=2.0).fit(X), X)
    >>> drawn.shape, drawn[0].get_title()
    ((8,), 'component 1 (23\xa0%)')
    """
    _check_model(model, "transform", "estimator with transform")
    points = np.asarray(X)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"Contours are drawn over two columns, got data of shape {points.shape}.")
    _check_length("labels", labels, len(points))
    low, high = points.min(axis=0), points.max(axis=0)
    beyond = 0.1 * np.where(high > low, high - low, 1.0)
    across, up = (np.linspace(a, b, grid) for a, b in zip(low - beyond, high + beyond))
    places = np.stack([each.ravel() for each in np.meshgrid(across, up)], axis=1)
    scores = np.asarray(model.transform(_in_kind_of(X, places))).reshape(grid, grid, -1)
    chosen = _some_of(components, scores.shape[2])
    panels = _panels(axes, len(chosen))
    names = _component_names(model, scores.shape[2])
    for each, number in zip(panels, chosen):
        heights = scores[:, :, number]
        steps = (np.abs(heights).max() or 1.0) * np.linspace(-1.0, 1.0, levels + 1)
        each.contourf(across, up, heights, steps, cmap="PuOr")
        each.contour(across, up, heights, steps, colors="black", linewidths=0.4, linestyles="solid")
        for colour, mine, name in _by_group(labels, len(points)):
            look: dict[str, Any] = {"color": "black", "s": 4} if name is None else {"color": colour, "s": 12}
            each.scatter(points[mine, 0], points[mine, 1], edgecolors="black", linewidths=0.3, label=name, **look)
        each.set(title=names[number], aspect="equal")
    return panels


def image_mosaic(
    rows: Mapping[str, Any],
    *,
    shape: tuple[int, ...] | None = None,
    most: int = 10,
    limits: tuple[float, float] | None = None,
    cmap: str = "gray",
    axes: Axes | None = None,
) -> Axes:
    """Draw images one below the other: originals, noisy ones, and what methods make of them.

    Parameters
    ----------
    rows : mapping from str to (n, pixels) array-like
        Images by what they are, each as a row of numbers.
    shape : (height, width) or (height, width, 3), optional
        Shape of an image, with three channels if it is coloured; a grey square if not given.
    most : int, default 10
        Images to draw of each, the first ones.
    limits : (float, float), optional
        Numbers at the ends of the grey scale, or of each channel, on which all images are drawn: what lies beyond is
        cut off. By default the least and the largest of the first images.
    cmap : str, default "gray"
        Colours of grey images, as matplotlib names them: "gray_r" draws large numbers black.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from princomp import PCA, plots
    >>> X = load_digits().data
    >>> noisy = X + np.random.default_rng(0).normal(size=X.shape, scale=4)
    >>> pca = PCA(16).fit(X)
    >>> mended = pca.inverse_transform(pca.transform(noisy[:8]))
    >>> axes = plots.image_mosaic({"original": X, "noisy": noisy, "PCA": mended})
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['original', 'noisy', 'PCA']
    """
    images = {name: np.asarray(each) for name, each in rows.items()}
    if not images:
        raise ValueError("There is no image to draw: give a mapping from names to arrays, one image in each row.")
    height, width, *channels = size = _mosaic_shape(images, shape)
    first = next(iter(images.values()))
    count = min(most, *(len(each) for each in images.values()))
    if count < 1:
        raise ValueError("There is no image to draw: an array has no row, or most is below 1.")
    whole = np.full((len(images) * (height + 1) - 1, count * (width + 1) - 1, *channels), np.nan)
    for i, each in enumerate(images.values()):
        for j, image in enumerate(each[:count]):
            top, left = i * (height + 1), j * (width + 1)
            whole[top : top + height, left : left + width] = image.reshape(size)
    axes = axes or _new_axes()
    low, high = (first[:count].min(), first[:count].max()) if limits is None else limits
    if channels:  # colours go from 0 to 1; white lines between
        whole = np.where(np.isnan(whole), 1.0, np.clip((whole - low) / ((high - low) or 1.0), 0.0, 1.0))
    axes.imshow(whole, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
    axes.set_yticks(np.arange(len(images)) * (height + 1) + (height - 1) / 2, list(images))
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    return axes


def atoms(
    dictionary: Any,
    *,
    shape: tuple[int, ...] | None = None,
    usage: Any = None,
    columns: int | None = None,
    cmap: str = "gray",
    axes: Axes | None = None,
) -> Axes:
    """Draw the atoms of a dictionary as small images, side by side.

    Each is drawn on a scale of its own: what matters is the pattern, since a code may have any size and sign. An atom
    with entries of both signs has 0 in the middle of the scale, one with entries of one sign goes from its least entry
    to its largest one.

    Parameters
    ----------
    dictionary : (n_atoms, n_pixels) array-like, or fitted estimator
        Atoms as rows; of an estimator its ``components_``.
    shape : (height, width) or (height, width, 3), optional
        Shape of an atom, with three channels if it is coloured; a grey square if not given.
    usage : (n_atoms,) array-like, optional
        How much each atom is used, for example the number of codes that hold it: the most used ones come first.
    columns : int, optional
        Atoms side by side; by default as many as make a square.
    cmap : str, default "gray"
        Colours of grey atoms, as matplotlib names them.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from princomp import plots
    >>> from princomp.images import dct_dictionary
    >>> axes = plots.atoms(dct_dictionary(8))
    >>> axes.images[0].get_array().shape  # 16 x 16 atoms of 8 x 8 pixels, and lines between them
    (143, 143)
    """
    if hasattr(dictionary, "fit"):
        check_is_fitted(dictionary)
        if not hasattr(dictionary, "components_"):
            raise TypeError(f"{type(dictionary).__name__} has no components_, and so no atoms to draw.")
        dictionary = dictionary.components_
    rows = np.asarray(dictionary, dtype=np.float64)
    size = _atom_shape(rows, shape)
    if usage is not None:
        _check_length("usage", usage, len(rows))
        rows = rows[np.argsort(-np.asarray(usage, dtype=np.float64), kind="stable")]
    tiles = _shades(rows).reshape(-1, *size)
    whole = _side_by_side(tiles, columns or math.ceil(math.sqrt(len(rows))))
    if len(size) == 3:
        whole = np.where(np.isnan(whole), 1.0, (whole + 1.0) / 2.0)  # colours go from 0 to 1; white lines between
    axes = axes or _new_axes()
    axes.imshow(whole, cmap=cmap, vmin=-1.0, vmax=1.0, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return axes


def maps(
    components: Any,
    layout: VoxelLayout,
    *,
    background: Any = None,
    names: Sequence[str] | None = None,
    slices: int = 6,
    figure: Any = None,
) -> Array:
    """Draw components of voxels as slices of a volume, seen from above, in colours over a grey image.

    For each component the slices through its largest values are shown, the front up and left on the left. Warm colours
    are positive, cold ones negative, on a scale about 0 of each component's own; what is near 0 is transparent.

    Parameters
    ----------
    components : (k, p) array-like, or fitted estimator
        Components as rows; of an estimator its ``components_``.
    layout : VoxelLayout
        Where the p voxels lie: ``read("brain.nii.gz", mask="mask.nii.gz").layout``.
    background : (p,) array-like, optional
        The grey image beneath, the mean of all volumes for example; by default one grey.
    names : sequence of str, optional
        Of the components; by default they are counted.
    slices : int, default 6
        How many of each, or if there are fewer all.
    figure : matplotlib Figure, optional
        Where to draw; by default a new one.

    Returns
    -------
    (k, slices) array of matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA, plots
    >>> from princomp.data.layout import VoxelLayout
    >>> layout = VoxelLayout(np.ones((8, 9, 7), bool), np.diag([3.0, 3.0, 4.0, 1.0]))
    >>> X = np.random.default_rng(0).normal(size=(20, layout.size))
    >>> drawn = plots.maps(PCA(2).fit(X), layout, background=X.mean(axis=0), slices=4)
    >>> drawn.shape
    (2, 4)
    """
    if hasattr(components, "fit"):
        check_is_fitted(components)
        names = names or _component_names(components, len(components.components_))
        components = components.components_
    rows = np.asarray(components, dtype=np.float64)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != layout.size:
        raise ValueError(f"Components must be rows of {layout.size} voxels, as the layout has, got shape {rows.shape}.")
    for what, given, length in (("background", background, layout.size), ("names", names, len(rows))):
        if given is not None and np.shape(given) != (length,):
            raise ValueError(f"{what} must have {length} entries, got shape {np.shape(given)}.")
    drawn = [_slices(layout, row, background=background, count=slices) for row in rows]
    count = len(drawn[0].numbers)
    tall, wide = drawn[0].colours.shape[1:3]
    across, along, _ = layout.spacing()
    if figure is None:
        size = (1.5 * count + 0.8, (1.5 * (tall * along) / (wide * across) + 0.5) * len(rows))
        figure = _pyplot().figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), count + 1, squeeze=False, width_ratios=[1.0] * count + [0.07])
    for j, (line, each) in enumerate(zip(panels, drawn, strict=True)):
        for axes, number, image in zip(line, each.numbers, each.colours, strict=False):
            axes.imshow(image, aspect=along / across, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            axes.set_xlabel(_minus(f"z = {round(layout.height(number))} mm"), fontsize=7, color="#666666", labelpad=1)
        line[0].set_title(f"component {j + 1}" if names is None else names[j], loc="left", fontsize=10)
        _scale_of_maps(figure, line[-1], each.limit)
    for side, place in (("L", 0.03), ("R", 0.97)):
        panels[0, 0].text(place, -0.02, side, transform=panels[0, 0].transAxes, ha="center", va="top", fontsize=7)
    return np.asarray(panels[:, :-1])


def _scale_of_maps(figure: Any, axes: Axes, limit: float) -> None:
    """Draw the colours of `maps`, as they are over a grey in the middle, from minus the limit to that."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colours = ListedColormap(_painted(np.linspace(-1.0, 1.0, 255), np.full(255, 0.5)))
    bar = figure.colorbar(ScalarMappable(Normalize(-limit, limit), colours), cax=axes, ticks=[-limit, 0.0, limit])
    bar.ax.set_yticklabels([_minus(f"{tick:.2g}") for tick in (-limit, 0.0, limit)], fontsize=7)
    bar.ax.tick_params(length=2)
    bar.outline.set_visible(False)


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


# Robust PCA


def outlier_map(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    names: Sequence[str] | None = None,
    most: int = 5,
    axes: Axes | None = None,
) -> Axes:
    """Draw how far rows lie out: along the components, and from what these span.

    Beyond the upright line rows are extreme, but follow the components; above the level line they do not follow them;
    beyond both they would turn the components of plain PCA the most (Hubert, Rousseeuw & Vanden Branden 2005).

    Outliers are those of ``outliers_``, or rows that are bad by the same measure. Of a method that judges cells, others
    may be beyond a limit: one wild cell takes a row far from the components, and makes it no outlier. An axis on which
    rows are farther than ten times its limit is logarithmic beyond the limit.

    Parameters
    ----------
    model : RobustPCA
        Fitted.
    X : (n, p) array-like, optional
        Rows to draw; by default those of the fit.
    labels : (n,) array-like, optional
        Groups, each drawn in a colour of its own; by default outliers are, and others that are beyond a limit.
    names : sequence of n str, optional
        Of the rows; by default they are counted from 0, as in arrays.
    most : int, default 5
        Outliers to name: the farthest.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import RobustPCA, plots
    >>> X = np.random.default_rng(0).normal(size=(100, 10)) * [5, 4, 1, 1, 1, 1, 1, 1, 1, 1]
    >>> X[:7, 5] += 20.0
    >>> axes = plots.outlier_map(RobustPCA(2, method="robpca", random_state=0).fit(X))
    >>> axes.get_ylabel()
    'orthogonal distance'
    """
    score, orthogonal, limits, outliers = _distances(model, X)
    for what, given in (("labels", labels), ("names", names)):
        _check_length(what, given, len(score))
    axes = axes or _new_axes()
    beyond = (score > limits[0]) | (orthogonal > limits[1])
    kinds = [
        (COLOURS[0], ~beyond & ~outliers, "within both limits"),
        (GREY, beyond & ~outliers, "beyond a limit, no outliers"),
        (COLOURS[3], outliers, "outliers"),
    ]
    groups = [(colour, mine, f"{name}: {mine.sum()}") for colour, mine, name in kinds if mine.any() or colour != GREY]
    for colour, mine, name in groups if labels is None else _by_group(labels, len(score)):
        axes.scatter(score[mine], orthogonal[mine], s=14, color=colour, label=name)
    axes.axvline(limits[0], color=GREY, lw=1, ls="--")
    axes.axhline(limits[1], color=GREY, lw=1, ls="--")
    axes.set(xlabel="score distance", ylabel="orthogonal distance")
    for side, values, limit in (("x", score, limits[0]), ("y", orthogonal, limits[1])):
        farthest = float(values.max(initial=0.0))
        if 0 < FAR * limit < farthest:
            getattr(axes, f"set_{side}scale")("symlog", linthresh=limit)
        axes.set(**{f"{side}lim": (0.0, 1.06 * max(farthest, 1.1 * limit) or 1.0)})
    far = np.maximum(score / (limits[0] or 1.0), orthogonal / (limits[1] or 1.0))
    _name_points(axes, score, orthogonal, [i for i in np.argsort(-far, kind="stable") if outliers[i]][:most], names)
    axes.legend()
    return axes


def _name_points(axes: Axes, across: Array, up: Array, chosen: Sequence[int], names: Sequence[str] | None) -> None:
    """Write names, or numbers, beside some points: on the side where there is room."""
    for i in chosen:
        left = across[i] > 0.85 * axes.get_xlim()[1]
        axes.annotate(
            str(i if names is None else names[i]),
            (across[i], up[i]),
            xytext=(-5 if left else 5, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=8,
        )


def cell_map(
    model: Any,
    X: Any,
    *,
    features: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    most: tuple[int, int] = (120, 60),
    axes: Axes | None = None,
) -> Axes:
    """Draw which cells do not follow the components.

    White cells are as the components say, up to 2.58 standard deviations, within which 99 % of good cells are; warm
    ones are too high, cool ones too low, the darker the farther, up to ten standard deviations; grey ones are missing.
    Rows more than half of whose cells are coloured are marked on the left.

    Parameters
    ----------
    model : RobustPCA
        Fitted, by a method that judges cells.
    X : (n, p) array-like
        Data.
    features, names : sequences of str, optional
        Of columns and rows; by default columns have the names of the fit, or are counted from 0, as rows are. Where
        there is no room for all, some are named.
    most : (int, int), default (120, 60)
        Rows and columns to draw. Of more, neighbours are drawn as one block, the darker the more of its cells are bad.
    axes : matplotlib Axes, optional
        Where to draw; by default new ones.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import RobustPCA, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(60, 8))
    >>> X[3, 5] += 9.0
    >>> axes = plots.cell_map(RobustPCA(2, method="cellwise", random_state=0).fit(X), X)
    >>> axes.get_ylabel()
    'rows'
    """
    _check_model(model, "cell_residuals", "RobustPCA")
    residuals = np.asarray(model.cell_residuals(X))
    for what, given, length in (("features", features, residuals.shape[1]), ("names", names, len(residuals))):
        if given is not None and len(given) != length:
            raise ValueError(f"{what} must have {length} entries, got {len(given)}.")
    found = _residual_cells(residuals, most)
    axes = axes or _new_axes()
    axes.imshow(_cell_colours(found.shades, found.missing), aspect="auto", interpolation="nearest")
    _mark_rows(axes, found.bad_rows)
    axes.spines[:].set(visible=True, color=GREY, linewidth=0.8)
    known = getattr(model, "feature_names_in_", None) if features is None else features
    _name_blocks(axes.xaxis, found.column_edges, known, 20 if known is None else 40)
    _name_blocks(axes.yaxis, found.row_edges, names, 25)
    axes.tick_params(axis="x", rotation=0 if known is None else 90)
    axes.tick_params(axis="y", pad=9, length=0)
    axes.set(ylabel="rows", xlabel="columns")
    return axes


def _mark_rows(axes: Axes, shares: Array) -> None:
    """Draw bars on the left of rows, black where all that a row stands for are bad."""
    marks = np.where(shares > 0, 0.35 + 0.65 * shares, 0.0)[:, None]
    bars = np.dstack([np.zeros((len(marks), 1, 3)), marks])
    side = axes.inset_axes((-0.022, 0.0, 0.014, 1.0), sharey=axes)
    side.imshow(bars, aspect="auto", interpolation="nearest", extent=(0.0, 1.0, len(marks) - 0.5, -0.5))
    side.axis("off")


def _name_blocks(axis: Any, edges: Array, names: Sequence[str] | None, room: int) -> None:
    """Write names, or numbers, beside the blocks that hold them: of some, where there is no room for all."""
    length = int(edges[-1])
    step = max(-(-length // room), 1)
    if names is None and step > 1:  # round numbers
        power = 10 ** int(math.log10(step))
        step = next(size * power for size in (1, 2, 5, 10) if size * power >= step)
    chosen = np.arange(0, length, step)
    places = np.searchsorted(edges, chosen, side="right") - 1
    axis.set_ticks(places, [str(i if names is None else names[int(i)]) for i in chosen], fontsize=8)


def _cell_colours(shades: Array, missing: Array) -> Array:
    """Return colours (rows, columns, 3): from white to red or blue, towards grey by the share that is missing."""
    from matplotlib import colormaps

    colours = np.asarray(colormaps["RdBu_r"](0.5 + 0.5 * shades))[..., :3]
    colours = np.where((shades == 0)[..., None], 1.0, colours)
    return colours * (1.0 - missing[..., None]) + MISSING * missing[..., None]


def _distances(model: Any, X: Any) -> tuple[Array, Array, tuple[float, float], Array]:
    """Return distances of the rows of the fit or of others, along and off the plane, limits, and which are outliers."""
    _check_model(model, "score_distance", "RobustPCA")
    limits = float(model.score_limit_), float(model.orthogonal_limit_)
    if X is None:
        return model.score_distances_, model.orthogonal_distances_, limits, model.outliers_
    found = model._describe_scores(X, None, None).distances
    return found.score, found.orthogonal, limits, found.outliers


# What pictures share


def _check_model(model: Any, needed: str, kinds: str) -> None:
    if not hasattr(type(model), needed):
        raise TypeError(f"This picture is of a fitted {kinds}, got {type(model).__name__}.")
    check_is_fitted(model)


def _check_length(what: str, given: Any, n: int) -> None:
    if given is not None and len(given) != n:
        raise ValueError(f"{what} must have one entry per row, {n}, got {len(given)}.")


def _two_of(components: tuple[int, int], k: int) -> tuple[int, int]:
    """Return the numbers of two scores, checked."""
    if k < 2:
        raise ValueError("The model has one component, and two scores are to be drawn: fit one with at least 2.")
    chosen = [int(each) for each in components]
    if len(set(chosen)) != 2 or len(chosen) != 2 or min(chosen) < 0 or max(chosen) >= k:
        raise ValueError(f"components must be two different numbers from 0 to {k - 1}, got {tuple(chosen)}.")
    return chosen[0], chosen[1]


def _some_of(components: int | Sequence[int], k: int) -> list[int]:
    """Return the numbers of scores, checked: the first ones, or those asked for."""
    if isinstance(components, int | np.integer):
        if components < 1:
            raise ValueError(f"components must be at least 1, got {components}.")
        return list(range(min(int(components), k)))
    chosen = [int(each) for each in components]
    if not chosen or min(chosen) < 0 or max(chosen) >= k:
        raise ValueError(f"components must be numbers from 0 to {k - 1}, got {chosen}.")
    return chosen


def _by_group(labels: Any, n: int) -> Iterator[tuple[str, Array, str | None]]:
    """Yield the colour of each group, which rows it has, and its name; without labels there is one, without a name."""
    groups = np.zeros(n) if labels is None else np.asarray(labels)
    for number, name in enumerate(np.unique(groups)):
        yield COLOURS[number % len(COLOURS)], groups == name, None if labels is None else str(name)


def _component_names(model: Any, k: int) -> list[str]:
    """Return names of components, with their share of the variance where it is known."""
    ratio = getattr(model, "explained_variance_ratio_", None)
    shares = [""] * k if ratio is None or len(ratio) != k else [f" ({percent(float(share))})" for share in ratio]
    return [f"component {j + 1}{share}" for j, share in enumerate(shares)]


def _in_kind_of(X: Any, places: Array) -> Any:
    """Return places as a frame where X is one: estimators that know names of columns ask for them."""
    if not hasattr(X, "columns"):
        return places
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    columns = dict(zip(frame.columns, places.T))
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _image_shape(images: Mapping[str, Array], shape: tuple[int, ...] | None) -> tuple[int, int]:
    """Return height and width of all images; complain where they are not rows of so many numbers."""
    pixels = {each.shape[1] if each.ndim == 2 else -1 for each in images.values()}
    if len(pixels) > 1 or -1 in pixels:
        shapes = ", ".join(f"{name}: {each.shape}" for name, each in images.items())
        raise ValueError(f"Images must be rows of equally many numbers, got arrays of shapes {shapes}.")
    (number,) = pixels
    side = math.isqrt(number)
    height, width = (side, side) if shape is None else shape
    if height * width != number:
        what = "no square" if shape is None else f"not {height} x {width}"
        raise ValueError(f"Images have {number} pixels, which is {what}: give shape=(height, width).")
    return height, width


def _mosaic_shape(images: Mapping[str, Array], shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return height and width of all images, and 3 if they are coloured."""
    if shape is None or len(shape) == 2:
        return _image_shape(images, shape)
    if len(shape) != 3 or shape[2] != 3:
        raise ValueError(f"Coloured images have a shape (height, width, 3), got shape={tuple(shape)}.")
    _image_shape(images, (shape[0], 3 * shape[1]))
    return shape


def _atom_shape(rows: Array, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return height and width of all atoms, and 3 if they are coloured."""
    if rows.ndim == 2 and not len(rows):
        raise ValueError("There is no atom to draw: the dictionary has no row.")
    if shape is None or len(shape) == 2:
        return _image_shape({"atoms": rows}, shape)
    if len(shape) != 3 or shape[2] != 3 or rows.shape[1:] != (math.prod(shape),):
        raise ValueError(
            f"Coloured atoms have a shape (height, width, 3) and so many numbers each, got shape={tuple(shape)} and an "
            f"array of shape {rows.shape}."
        )
    return shape


def _side_by_side(tiles: Array, across: int) -> Array:
    """Tiles (n, height, width, ...) row by row as one image, NaN between them and where there is none."""
    n, height, width, *channels = tiles.shape
    down = -(-n // across)
    whole = np.full((down * (height + 1), across * (width + 1), *channels), np.nan)
    cells = whole.reshape(down, height + 1, across, width + 1, *channels)
    i, j = np.divmod(np.arange(n), across)
    cells[i, :-1, j, :-1] = tiles
    return whole[:-1, :-1]


def _panels(axes: Any, count: int) -> Array:
    """Return axes for so many pictures: those given, or new ones."""
    if axes is None:
        rows, columns = -(-count // IN_A_ROW), min(count, IN_A_ROW)
        panels = _pyplot().subplots(rows, columns, figsize=(3 * columns, 3 * rows), layout="constrained", squeeze=False)
        found = panels[1].ravel()
        for unused in found[count:]:
            unused.remove()
        return np.asarray(found[:count])
    found = np.ravel(np.asarray(axes, dtype=object))
    if len(found) != count:
        raise ValueError(f"axes must be as many as components are drawn, {count}, got {len(found)}.")
    return found


def _new_axes() -> Axes:
    return _pyplot().subplots(layout="constrained")[1]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Pictures need matplotlib: pip install "princomp[plot]"') from error
    return plt
