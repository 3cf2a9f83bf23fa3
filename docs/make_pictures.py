"""Draw the pictures of the documentation: python docs/make_pictures.py (needs matplotlib and scikit-learn).

Writes SVG files to docs/pictures/. The same versions of the libraries give the same files. house.svg is drawn by hand.
"""

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


def main():
    """Draw all."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    PICTURES.mkdir(exist_ok=True)
    with plt.rc_context(SETTINGS):
        for draw in (two_ways, descent, misleads, offsets):
            path = PICTURES / f"{draw.__name__}.svg"
            draw(plt).savefig(path, metadata={"Date": None}, dpi=110)
            path.write_text("\n".join(x.rstrip() for x in path.read_text().splitlines()) + "\n")
            plt.close("all")
            print(f"{path.relative_to(PICTURES.parent)}  {path.stat().st_size / 1000:.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main()
