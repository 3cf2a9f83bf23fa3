"""The pictures of docs/robust_pca.md, drawn by make_pictures.py."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FRAMES = 24  # of the animation


def video(plt):
    """Frames of a clip, their background and what moves: what examples/video_background.py draws."""
    sys.path.insert(0, str(ROOT / "examples"))
    from video_background import draw, split

    from princomp.datasets import make_video

    clip = make_video(random_state=0)
    return draw(plt, clip, split(clip))


def clip(plt):
    """The same as an animation: images, one after the other."""
    sys.path.insert(0, str(ROOT / "examples"))
    from video_background import side_by_side

    from princomp import RobustPCA
    from princomp.datasets import make_video

    found = make_video(random_state=0)
    background = RobustPCA(random_state=0).fit(found.X).low_rank_
    chosen = np.linspace(4, len(found.X) - 5, FRAMES).astype(int)
    return [image.quantize(24) for image in side_by_side(found, background, chosen)]


def planted_rows(n=100, p=10, bad=20):
    """Rows near a plane, the last ones elsewhere: 14 off the plane, six far out within it."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    scores, off = rng.normal(size=(n, 2)) * [5.0, 3.0], 0.5 * rng.normal(size=(n, p - 2))
    off[n - bad : n - 6, 0] += 25.0
    scores[n - 6 :] += [30.0, 0.0]
    return scores @ Q[:, :2].T + off @ Q[:, 2:].T, np.arange(n) >= n - bad


def outliers(plt):
    """Distances of planted rows, by PCA and by robpca."""
    from princomp import PCA, RobustPCA, plots

    X, bad = planted_rows()
    pca, robust = PCA(2).fit(X), RobustPCA(2, method="robpca", random_state=0).fit(X)
    labels = np.where(bad, "planted", "others")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    Z = pca.transform(X)
    apart = np.linalg.norm(X - pca.inverse_transform(Z), axis=1)
    score = np.sqrt((Z**2 / pca.explained_variance_).sum(axis=1))
    for mine, colour, name in ((~bad, plots.COLOURS[0], "others"), (bad, plots.COLOURS[1], "planted")):
        left.scatter(score[mine], apart[mine], s=14, color=colour, label=name)
    left.axvline(robust.score_limit_, color=plots.GREY, lw=1, ls="--")
    left.set(title="PCA", xlabel="score distance", ylabel="orthogonal distance", xlim=(0, None), ylim=(0, None))
    plots.outlier_map(robust, labels=labels, most=0, axes=right)
    right.set(title="robpca")
    left.legend()
    return figure


def spoilt_wines():
    """The wines, one number in fifty ten times as large, one in thirty missing."""
    from princomp.datasets import load_wine

    wine, rng = load_wine(), np.random.default_rng(0)
    X = np.where(rng.random(wine.X.shape) < 0.02, 10.0, 1.0) * wine.X
    return np.where(rng.random(X.shape) < 0.03, np.nan, X), wine


def cells(plt):
    """Wines with wild and missing cells: which ones they are."""
    from princomp import RobustPCA, plots

    X, wine = spoilt_wines()
    chosen = slice(40, 100)
    model = RobustPCA(4, method="cellwise", scale=True, random_state=0).fit(X)
    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    names = [f"{kind} {number}" for number, kind in enumerate(wine.cultivar)]
    plots.cell_map(model, X[chosen], features=wine.names, names=names[chosen], axes=axes)
    axes.set(xlabel="", ylabel="")
    return figure
