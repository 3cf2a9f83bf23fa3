"""PCA two ways: as an eigenproblem and as an optimisation, and a case where it misleads.

python examples/pca_two_ways.py                 prints the numbers
python examples/pca_two_ways.py picture.svg     draws them too (needs matplotlib)
"""

import sys

import numpy as np

from princomp import PCA
from princomp.datasets import make_height_weight


def cloud(n=300, seed=3):
    """A tilted Gaussian cloud in the plane, not centred."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) @ [[2.0, 1.2], [0.0, 0.7]] + [4.0, -1.0]


def two_ways(X):
    """Fit the same components by linear algebra and by gradient steps; return both."""
    by_algebra = PCA(2, solver="eigh").fit(X)
    by_steps = PCA(2, solver="optimize", tol=1e-10, random_state=0).fit(X)

    print("One: eigenvectors of the covariance")
    S = np.cov(X.T)
    values, vectors = np.linalg.eigh(S)
    print(f"  numpy     {values[::-1].round(6)}   first direction {vectors[:, -1].round(6)} (up to sign)")
    print(
        f"  princomp  {by_algebra.explained_variance_.round(6)}   first direction {by_algebra.components_[0].round(6)}"
    )

    print("Two: the reconstruction error |X - X w w'|^2, made small step by step")
    for number, trace in enumerate(by_steps.trace_, start=1):
        print(
            f"  component {number}: {len(trace['loss'])} steps, loss {trace['loss'][0]:.6f} -> {trace['loss'][-1]:.6f}"
        )
    apart = np.abs(np.abs(by_steps.components_) - np.abs(by_algebra.components_)).max()
    print(f"  the two answers differ by at most {apart:.1e}")
    print(f"  {by_steps.certificate_}")
    return by_algebra, by_steps


def hidden_groups():
    """All athletes together, then each group by itself."""
    people = make_height_weight(random_state=0)
    print("When not: heights and weights of two groups that nobody wrote down")
    pooled = PCA(1).fit(people.X)
    within = [PCA(1).fit(people.X[people.groups == g]) for g in (0, 1)]
    for name, pca in [("all together", pooled), *zip(people.group_names, within, strict=True)]:
        v = pca.components_[0]
        print(f"  {name:12}  one cm taller goes with {v[1] / v[0]:+.2f} kg")
    return people, pooled, within


def draw(path, X, by_algebra, by_steps, groups):
    """Three panels: the components, the descent, the misleading case."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    left.scatter(*X.T, s=8, color="0.6")
    for w in by_steps.trace_[0]["parameters"]:
        left.plot(*np.transpose([by_algebra.mean_ - 5 * w, by_algebra.mean_ + 5 * w]), color="C1", alpha=0.3, lw=1)
    w = by_algebra.components_[0]
    left.plot(*np.transpose([by_algebra.mean_ - 5 * w, by_algebra.mean_ + 5 * w]), color="C0", lw=2)
    left.set(title="first component, and the way there", aspect="equal")
    for number, trace in enumerate(by_steps.trace_, start=1):
        middle.plot(trace["loss"], ".-", label=f"component {number}")
    middle.set(title="reconstruction error", xlabel="step")
    middle.legend()
    people, pooled, within = groups
    right.scatter(*people.X.T, s=8, color="0.6")
    for pca, colour in zip([pooled, *within], ["C3", "C0", "C0"], strict=True):
        v = pca.components_[0] * 2.5 * np.sqrt(pca.explained_variance_[0])
        right.plot(*np.transpose([pca.mean_ - v, pca.mean_ + v]), color=colour, lw=2)
    right.set(title="red: all together, blue: each group", xlabel="height, cm", ylabel="weight, kg", aspect="equal")
    figure.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    X = cloud()
    fits = two_ways(X)
    groups = hidden_groups()
    if len(sys.argv) > 1:
        draw(sys.argv[1], X, *fits, groups)
