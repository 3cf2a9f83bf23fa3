"""Draw the pictures of the documentation: python docs/make_pictures.py (needs matplotlib and scikit-learn).

Writes SVG files to docs/pictures/, and PNG files of what has thousands of outlines. The same versions of the libraries
give the same files. house.svg is drawn by hand. Names of pictures draw these alone.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

PICTURES = Path(__file__).resolve().parent / "pictures"
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#999999"  # colour-blind safe
SETTINGS = {
    "svg.hashsalt": "princomp",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "legend.frameon": False,
}


def cloud(n=200, seed=3):
    """A tilted Gaussian cloud in the plane."""
    return np.random.default_rng(seed).standard_normal((n, 2)) @ [[2.0, 1.2], [0.0, 0.7]]


def line(axes, center, direction, length, **style):
    """Draw a segment through a point."""
    axes.plot(*np.transpose([center - length * direction, center + length * direction]), **style)


def bare(axes, **settings):
    """Same scale both ways, no frame, no ticks."""
    axes.set(aspect="equal", xticks=[], yticks=[], **settings)
    axes.spines[:].set_visible(False)


def two_ways(plt):
    """Maximum variance = minimum error: both as functions of the direction."""
    from princomp import PCA

    X = cloud()
    pca = PCA(2).fit(X)
    w, mean = pca.components_[0], pca.mean_
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    feet = mean + np.outer((X - mean) @ w, w)
    for x, foot in zip(X[:60], feet[:60], strict=True):
        left.plot(*np.transpose([x, foot]), color=ORANGE, lw=0.8, zorder=1)
    left.scatter(*X.T, s=9, color=GREY, zorder=2)
    line(left, mean, w, 6.5, color=BLUE, lw=2, zorder=3, label="first component")
    line(left, mean, pca.components_[1], 2, color=GREEN, lw=2, zorder=3, label="second component")
    left.plot([], [], color=ORANGE, label="what the first one misses")
    bare(left, title="200 points and their components")
    left.legend(loc="lower right", fontsize=8)

    angles = np.linspace(0, 180, 361)
    directions = np.column_stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))])
    along = np.var((X - mean) @ directions.T, axis=0, ddof=1)
    total = pca.explained_variance_.sum()
    right.plot(angles, along, color=BLUE, lw=2, label="variance along the direction")
    right.plot(angles, total - along, color=ORANGE, lw=2, label="squared distance to the line")
    right.axhline(total, color="black", lw=1, ls="--", label="their sum")
    right.axvline(np.degrees(np.arctan2(w[1], w[0])) % 180, color=BLUE, lw=1, ls=":")
    right.set(
        title="most variance = least error", xlabel="direction, degrees", xticks=range(0, 181, 45), ylim=(0, None)
    )
    right.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, columnspacing=1)
    return figure


def descent(plt):
    """PCA as an optimisation: the way of the first component in the plane, and the loss in 30 dimensions."""
    from princomp import PCA
    from princomp.datasets import make_decay

    X = np.random.default_rng(3).standard_normal((200, 2)) @ [[1.3, 0.5], [0.0, 1.0]]
    pca = PCA(1, solver="optimize", tol=1e-10, random_state=0).fit(X)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.scatter(*X.T, s=9, color=GREY)
    steps = pca.trace_[0]["parameters"]
    for number, w in enumerate(steps):
        shade = 0.25 + 0.75 * number / max(len(steps) - 1, 1)
        line(left, pca.mean_, np.asarray(w), 3.5, color=BLUE, alpha=shade, lw=1 + shade)
    bare(left, title="two columns: directions tried, pale to dark")

    pca = PCA(3, solver="optimize", tol=1e-8, random_state=0).fit(make_decay(200, 30).X)
    for number, (trace, colour) in enumerate(zip(pca.trace_, (BLUE, GREEN, ORANGE), strict=True), start=1):
        above = trace["loss"][:-1] - trace["loss"][-1]
        right.semilogy(np.maximum(above, 1e-16), ".-", color=colour, label=f"component {number}")
    right.set(title="30 columns: error above the final one", xlabel="step", ylim=(1e-14, 3))
    right.legend()
    return figure


def misleads(plt):
    """Three clouds on which the components of PCA do not say what one hopes for."""
    from princomp import PCA
    from princomp.datasets import make_circles, make_height_weight, make_swiss_roll

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    people = make_height_weight(300)
    left.scatter(*people.X.T, s=8, color=GREY, rasterized=True)
    pooled = PCA(1).fit(people.X)
    line(left, pooled.mean_, pooled.components_[0], 26, color=RED, lw=2, label="all together")
    for group in (0, 1):
        own = PCA(1).fit(people.X[people.groups == group])
        line(left, own.mean_, own.components_[0], 17, color=BLUE, lw=2, label=None if group else "each group")
    left.set(title="hidden groups", xlabel="height, cm", ylabel="weight, kg", aspect="equal", ylim=(45, 110))
    left.legend(fontsize=8, loc="upper right")

    circles = make_circles(300)
    scores = PCA(1).fit_transform(circles.X)[:, 0]
    bins = np.linspace(-1.2, 1.2, 25)
    for group, colour, name in ((0, ORANGE, "outer circle"), (1, BLUE, "inner circle")):
        middle.hist(scores[circles.groups == group], bins, color=colour, alpha=0.6, label=name)
    middle.set(title="two circles: mixed", xlabel="score", ylim=(0, 50))
    middle.legend(fontsize=8, loc="upper left")

    roll = make_swiss_roll(400)
    plane = PCA(2).fit_transform(roll.X)
    right.scatter(*plane.T, s=8, c=roll.angle, cmap="viridis", rasterized=True)
    bare(right, title="rolled sheet: not unrolled")
    return figure


def offsets(plt):
    """Error of the variances against a constant added to the data."""
    from sklearn.decomposition import PCA as Theirs

    from princomp import PCA

    ways = {
        "princomp": (lambda X: PCA(5).fit(X), BLUE, "o"),
        "scikit-learn, default": (lambda X: Theirs(5).fit(X), RED, "s"),
        'scikit-learn, svd_solver="full"': (lambda X: Theirs(5, svd_solver="full").fit(X), ORANGE, "^"),
    }
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for axes, dtype, powers in zip(panels, (np.float64, np.float32), (range(11), range(7)), strict=True):
        errors = {name: [] for name in ways}
        for power in powers:
            X = (np.random.default_rng(0).standard_normal((2000, 20)) + 10.0**power).astype(dtype)
            near = X.astype(np.longdouble) - X[0].astype(np.longdouble)  # the reference: stored values, more digits
            near -= near.mean(axis=0)
            truth = np.linalg.eigvalsh((near.T @ near / 1999).astype(np.float64))[::-1][:5]
            for name, (fit, *_) in ways.items():
                found = np.asarray(fit(X).explained_variance_, dtype=np.float64)
                errors[name].append(max(np.max(np.abs(found / truth - 1)), 1e-16))
        for name, (_, colour, marker) in ways.items():
            axes.loglog(10.0 ** np.array(powers), errors[name], color=colour, marker=marker, ms=4, label=name)
        axes.axhspan(1, 1e8, color=RED, alpha=0.08, lw=0)
        axes.set(title=np.dtype(dtype).name, xlabel="constant added to the data", ylim=(1e-16, 1e8))
    panels[0].set_ylabel("relative error of the variances")
    panels[1].text(1.2, 1e6, "no digit right", fontsize=8, color=RED)
    panels[0].legend(fontsize=8)
    return figure


def sparse_loadings(plt):
    """Components of the wines: PCA's, and sparse ones of each formulation."""
    from princomp import PCA, SparsePCA
    from princomp.datasets import load_wine

    wine = load_wine()
    columns = {"PCA": PCA(3, scale=True).fit(wine.X)}
    for name in ("dictionary", "regression", "constrained"):
        columns[name] = SparsePCA(3, formulation=name, nonzeros=[4, 4, 3], scale=True, random_state=0).fit(wine.X)
    figure, panels = plt.subplots(1, 4, figsize=(9, 4), layout="constrained", sharey=True)
    for axes, (name, model) in zip(panels, columns.items(), strict=True):
        V = model.components_.T
        picture = axes.imshow(V, cmap="RdBu_r", vmin=-0.8, vmax=0.8, aspect="auto")
        share = 100 * model.explained_variance_ratio_.sum()
        axes.set(xticks=range(3), xticklabels=["1", "2", "3"])
        axes.set_title(f"{name}\n{share:.0f} % of variance", fontsize=10)
        axes.spines[:].set_visible(False)
        for (i, j), value in np.ndenumerate(V):
            if value != 0:
                shade = "white" if abs(value) > 0.5 else "black"
                axes.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize=7, color=shade)
    panels[0].set_yticks(range(len(wine.names)), wine.names)
    figure.colorbar(picture, ax=panels, label="loading (numbers: hundredths)", shrink=0.8)
    return figure


def best_supports(S):
    """For each number of features: variance and reconstruction of the best component for either aim.

    Over all supports. Most variance: the largest eigenvalue of the block of S. Least error: the largest value of
    |S v|^2 / v'Sv, what the regression of all features on X v explains.
    """
    p = len(S)
    curves = {"most variance": np.zeros((p, 2)), "least error": np.zeros((p, 2))}
    for number in range(1, 2**p):
        support = np.flatnonzero(number >> np.arange(p) & 1)
        values, vectors = np.linalg.eigh(S[np.ix_(support, support)])
        whitening = vectors / np.sqrt(values)
        images = S[:, support] @ whitening
        explained, turned = np.linalg.eigh(images.T @ images)
        v = whitening @ turned[:, -1]  # of variance 1
        for (name, best), found in zip(
            curves.items(), [(values[-1], images[:, -1] @ images[:, -1]), (1.0 / (v @ v), explained[-1])], strict=True
        ):
            aim = int(name == "least error")
            if found[aim] > best[len(support) - 1, aim]:
                best[len(support) - 1] = found
    return curves


def two_answers(plt):
    """Most variance and least error part company: the best first components of pitprops, by number of features."""
    from princomp.datasets import load_pitprops

    S = load_pitprops().correlation
    curves, numbers = best_supports(S), np.arange(2, len(S) + 1)  # all single features have variance 1
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharex=True)
    for (name, found), colour, marker in zip(curves.items(), (BLUE, ORANGE), "os", strict=True):
        left.plot(numbers, found[1:, 0], color=colour, marker=marker, ms=4, label=f"chosen for {name}")
        right.plot(numbers, len(S) - found[1:, 1], color=colour, marker=marker, ms=4, label=f"chosen for {name}")
    left.set(title="variance of the component", xlabel="features it uses", xticks=range(1, 14, 2), ylim=(0, None))
    right.set(title="error of the reconstruction", xlabel="features it uses", ylim=(8.5, None))
    left.legend(fontsize=8, loc="lower right")
    return figure


SIDE = 16  # of the images, in pixels


def planted_parts(n=60, noise=2.5, seed=0):
    """Images of four parts, each as bright as chance has it, in noise: the images (n, 256) and the parts (4, 256)."""
    rows, columns = np.mgrid[:SIDE, :SIDE] / SIDE
    parts = [
        (abs(rows - 0.25) < 0.17) & (abs(columns - 0.25) < 0.17),
        (rows - 0.3) ** 2 + (columns - 0.7) ** 2 < 0.19**2,
        (abs(rows - 0.72) < 0.22) & (abs(columns - 0.22) < 0.11),
        (abs(rows - 0.72) < 0.12) & (abs(columns - 0.68) < 0.25),
    ]
    parts, rng = np.array([part.ravel() for part in parts], dtype=float), np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) * np.linspace(1.3, 0.9, 4) @ parts + noise * rng.normal(size=(n, SIDE**2)), parts


def windows(side=SIDE, of=2):
    """All windows of ``of`` x ``of`` pixels, cut off at the edge, so that every pixel is in as many."""
    return [
        [side * i + j for i in range(max(top, 0), min(top + of, side)) for j in range(max(at, 0), min(at + of, side))]
        for top in range(1 - of, side)
        for at in range(1 - of, side)
    ]


def fit_parts(X):
    """PCA, sparse PCA with l1, and with overlapping windows."""
    from princomp import PCA, SparsePCA

    return {
        "PCA": PCA(4).fit(X),
        "sparse, l1": SparsePCA(4, alpha_share=0.2, random_state=0).fit(X),
        "sparse, overlapping windows": SparsePCA(4, alpha_share=0.37, groups=windows(), random_state=0).fit(X),
    }


def contiguous(plt):
    """Parts of images: planted, and as found by three methods."""
    X, parts = planted_parts()
    rows = {"planted": parts} | {name: model.components_ for name, model in fit_parts(X).items()}
    figure, panels = plt.subplots(len(rows), 5, figsize=(7, 5.6), layout="constrained")
    for row, (name, images) in zip(panels, rows.items(), strict=True):
        row[0].axis("off")
        if name != "planted":
            row[0].text(1, 0.5, name.replace(", ", ",\n"), ha="right", va="center", transform=row[0].transAxes)
        for axes, part in zip(row[1:], parts, strict=True):
            image = max(images, key=lambda image, part=part: abs(image @ part))
            image = image * np.sign(image @ part)
            limit = np.abs(image).max()
            axes.imshow(image.reshape(SIDE, SIDE), cmap="RdBu_r", vmin=-limit, vmax=limit)
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(visible=True, color=GREY)
    panels[0, 0].imshow(X[0].reshape(SIDE, SIDE), cmap="RdBu_r", vmin=-7, vmax=7)
    panels[0, 0].set_title(f"one of {len(X)} images", fontsize=9)
    panels[0, 1].set_title("planted:", fontsize=9, loc="left")
    return figure


def write_outlines(figure, path):
    """Write an SVG file."""
    figure.savefig(path, metadata={"Date": None}, dpi=110)
    path.write_text("\n".join(x.rstrip() for x in path.read_text().splitlines()) + "\n")


def write_pixels(figure, path, colours=64):
    """Write a PNG file of few colours."""
    from PIL import Image

    figure.savefig(path, dpi=120)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def write_animation(frames, path):
    """Write a GIF file of images."""
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=160, loop=0, optimize=True)


def main(names):
    """Draw all, or those of these names."""
    import matplotlib

    matplotlib.use("Agg")
    import dictionary_pictures as dictionary
    import image_pictures as images
    import kernel_pictures as kernel
    import rank_one_pictures as rank_one
    import robust_pictures as robust
    from certificate_pictures import certificate, floors
    from matplotlib import pyplot as plt
    from neuroimaging_pictures import maps
    from probabilistic_pictures import how_many, mixture, posterior
    from single_cell_pictures import preparations

    outlines = (two_ways, descent, misleads, offsets, sparse_loadings, two_answers, contiguous)
    outlines += (certificate, floors, posterior, how_many, mixture, dictionary.wild_cells, dictionary.sparsities)
    outlines += (rank_one.planted_pairs, robust.outliers)
    pixels = (kernel.contours, kernel.radial_kernels, kernel.widths, kernel.swiss_roll, kernel.mosaic)
    pixels += (dictionary.atoms, dictionary.from_image, rank_one.networks, preparations)
    pixels += (robust.video, robust.cells)
    pixels += (images.denoised, images.inpainted)
    drawings = [(draw, write_outlines, "svg") for draw in outlines] + [(draw, write_pixels, "png") for draw in pixels]
    drawings += [(maps, partial(write_pixels, colours=200), "png"), (robust.clip, write_animation, "gif")]
    PICTURES.mkdir(exist_ok=True)
    with plt.rc_context(SETTINGS):
        for draw, write, kind in drawings:
            if names and draw.__name__ not in names:
                continue
            path = PICTURES / f"{draw.__name__}.{kind}"
            write(draw(plt), path)
            plt.close("all")
            print(f"{path.relative_to(PICTURES.parent)}  {path.stat().st_size / 1000:.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
