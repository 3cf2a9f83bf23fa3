"""Pictures, pages and what the command prints, of a few models: what is drawn where, and every word.

    PYTHONPATH=src:tests python tests/golden/shown.py

writes it down in ``shown.json``, anew, as ``fits.py`` does with fits.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from golden.fits import GAPS, GROUPED, OTHER, TABLE, UNSAID, by_place, write
from princomp import (
    PCA,
    DictionaryLearning,
    KernelPCA,
    ProbabilisticPCA,
    ProbabilisticPCAMixture,
    RankOneDictionary,
    SparseCCA,
    SparsePCA,
    plots,
)
from princomp.datasets import load_wine
from princomp.report.collect import collect

WRITTEN = Path(__file__).with_name("shown.json")
KIND = np.array(["low", "high", "middle"])[np.arange(60) % 3]
IMAGES = np.random.default_rng(2).random((7, 12))


def models():
    return {
        "pca": PCA(3).fit(TABLE),
        "probabilistic": ProbabilisticPCA(3, random_state=0).fit(GAPS),
        "mixture": ProbabilisticPCAMixture(2, n_clusters=2, random_state=0).fit(GROUPED),
        "kernel": KernelPCA(4, gamma=0.02, random_state=0).fit(TABLE),
        "held-out": KernelPCA("held-out", gamma="held-out", random_state=0).fit(TABLE),
        "plane": KernelPCA(4, gamma=0.2, random_state=0).fit(TABLE[:, :2]),
        "sparse": SparsePCA(3, nonzeros=3, certify=True).fit(TABLE),
        "cca": SparseCCA(2, alpha_x=0.05, alpha_y=0.02, tol=1e-9, max_iter=5000).fit(TABLE, OTHER),
        "dictionary": DictionaryLearning(8, alpha=0.5, max_iter=3, random_state=0).fit(TABLE),
        "pairs": RankOneDictionary(3, nonzeros=4, random_state=0).fit(TABLE),
    }


# --- pictures -------------------------------------------------------------------------------------

PICTURES = {
    "posterior": lambda m: plots.posterior_scores(m["probabilistic"], GAPS),
    "posterior, labels": lambda m: plots.posterior_scores(m["probabilistic"], GAPS, components=(2, 0), labels=KIND),
    "imputed": lambda m: plots.imputed_cells(m["probabilistic"], GAPS),
    "imputed, truth": lambda m: plots.imputed_cells(m["probabilistic"], GAPS, truth=TABLE, deviations=2.0, most=20),
    "likelihoods": lambda m: plots.likelihood_path([ProbabilisticPCA(k).fit(TABLE) for k in (3, 1, 2)], TABLE),
    "held-out errors": lambda m: plots.held_out_errors(m["held-out"]),
    "scores": lambda m: plots.score_scatter(m["pca"], TABLE),
    "scores, labels": lambda m: plots.score_scatter(m["kernel"], TABLE, components=(3, 1), labels=KIND),
    "scores, values": lambda m: plots.score_scatter(m["sparse"], TABLE, values=TABLE[:, 0]),
    "contours": lambda m: plots.kernel_contours(m["plane"], TABLE[:, :2], components=2, grid=15, levels=5),
    "contours, labels": lambda m: plots.kernel_contours(
        m["plane"], TABLE[:, :2], components=[3, 0, 1], labels=KIND, grid=10
    ),
    "atoms": lambda m: plots.atoms(m["dictionary"], shape=(3, 4), usage=m["dictionary"].atom_counts_),
    "atoms of one sign, in colours": lambda m: plots.atoms(IMAGES, shape=(2, 2, 3), columns=3),
    "mosaic": lambda m: plots.image_mosaic({"first": IMAGES, "negative": 1 - IMAGES}, shape=(3, 4), most=5),
}


def drawn(axes):
    """What there is on each of some axes."""
    import matplotlib.pyplot as plt

    found = [of_axes(each) for each in plt.gcf().axes]
    plt.close("all")
    return found


def of_axes(axes):
    legend = axes.get_legend()
    return {
        "words": [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale(), axes.get_yscale()],
        "texts": [each.get_text() for each in axes.texts],
        "legend": [] if legend is None else [each.get_text() for each in legend.get_texts()],
        "lines": [each.get_xydata() for each in axes.lines],
        "styles": [f"{each.get_color()} {each.get_linestyle()} {each.get_marker()}" for each in axes.lines],
        "points": [np.asarray(each.get_offsets()) for each in axes.collections],
        "colours": [np.asarray(each.get_facecolor()) for each in axes.collections if len(each.get_offsets()) > 1],
        "values": [np.ma.filled(each.get_array(), np.nan) for each in axes.collections if each.get_array() is not None],
        "bars": [each.get_bbox().bounds for each in axes.patches if hasattr(each, "get_bbox")],
        "shapes": [(each.width, each.height, each.angle) for each in axes.patches if hasattr(each, "angle")],
        "images": [np.ma.filled(each.get_array(), np.nan) for each in axes.images],
        "limits": [axes.get_xlim(), axes.get_ylim()],
        "is on": [axes.axison, *(each.get_visible() for each in axes.spines.values())],
        "marks": [each.get_text() for each in (*axes.get_xticklabels(), *axes.get_yticklabels())],
    }


# --- pages ----------------------------------------------------------------------------------------

PAGES = {
    "pca": lambda m: collect(m["pca"], TABLE, labels=KIND, label_name="kind", sample_names=range(60), source="a/b.csv"),
    "numbers as labels": lambda m: collect(m["pca"], TABLE, labels=TABLE[:, 3], title="T", notes=("One.", "Two.")),
    "other rows": lambda m: collect(m["probabilistic"], GAPS[:9]),
    "mixture": lambda m: collect(m["mixture"], GROUPED),
    "kernel": lambda m: collect(m["kernel"], TABLE),
    "held-out": lambda m: collect(m["held-out"], TABLE),
    "sparse": lambda m: collect(m["sparse"], TABLE),
    "cca": lambda m: collect(m["cca"], TABLE, OTHER),
    "dictionary": lambda m: collect(m["dictionary"], TABLE),
    "dictionary of images": lambda m: collect(m["dictionary"], TABLE, image_shape=(3, 4)),
    "pairs": lambda m: collect(m["pairs"], TABLE),
    "pairs of images": lambda m: collect(m["pairs"], TABLE, image_shape=(3, 4)),
}


# --- the command ----------------------------------------------------------------------------------

FITS = {
    "pca": ("-k", "3", "--scale", "--label", "cultivar"),
    "pca, a share": ("-k", "0.999"),
    "sparse": ("--method", "sparse", "-k", "2", "--nonzeros", "4", "--scale", "--certify"),
    "probabilistic": ("--method", "probabilistic", "-k", "2", "--scale"),
    "mixture": ("--method", "mixture", "-k", "1", "--groups", "2"),
    "kernel": ("--method", "kernel", "-k", "2", "--gamma", "1e-5"),
    "cca": ("--method", "cca", "--other", "hue", "--other", "proline"),
    "dictionary": ("--method", "dictionary", "-k", "5", "--nonzeros", "2", "--max-iter", "2"),
    "rank one": ("--method", "rank-one", "-k", "3", "--nonzeros", "4,0.5,2", "--refine", "2"),
    "dictionary, alpha too large": ("--method", "dictionary", "-k", "3", "--alpha", "1e6", "--max-iter", "1"),
}


def ran(options):
    """What `princomp fit`, `inspect` and `transform` print, and the tables that they write."""
    from running import princomp

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "wine.csv").write_bytes(load_wine().path.read_bytes())
        done = princomp("fit", "wine.csv", *options, "--no-report", "--seed", "0", cwd=folder)
        said = {"fit": done.stderr + done.stdout}
        for command in (("inspect", "out/model.princomp"), ("transform", "out/model.princomp", "wine.csv")):
            again = princomp(*command, cwd=folder)
            said[command[0]] = again.stderr + again.stdout
        tables = {path.name: path.read_text(encoding="utf-8") for path in (Path(folder) / "out").glob("*.csv")}
    return {"said": {name: words(text) for name, text in (said | tables).items()}}


def words(text):
    """Words and numbers of a printed text, apart; how long it took, and the last digits, left out."""
    text = UNSAID.sub("#", text)
    cells = [cell for cell in text.replace(",", " ").split() if cell != "#"]
    return {
        "words": " ".join(cell for cell in cells if not is_number(cell)),
        "numbers": np.array([float(cell) for cell in cells if is_number(cell)]),
    }


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def everything():
    """name: a function that shows something, and returns what is seen."""
    import matplotlib as mpl

    mpl.use("agg")
    fitted = models()
    return (
        {f"picture: {name}": lambda draw=draw: by_place(drawn(draw(fitted))) for name, draw in PICTURES.items()}
        | {f"page: {name}": lambda make=make: page(make(fitted)) for name, make in PAGES.items()}
        | {
            f"command: {name}": partial(lambda options: by_place(ran(options)), options)
            for name, options in FITS.items()
        }
    )


def page(content):
    return {place: seen for place, seen in by_place(content).items() if not place.startswith((".versions", ".written"))}


if __name__ == "__main__":
    write(WRITTEN, everything())
