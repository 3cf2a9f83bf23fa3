"""The pictures of docs/rank_one.md, drawn by make_pictures.py."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


def networks(plt):
    """Networks of a synthetic brain by five ways: what examples/brain_networks.py draws."""
    sys.path.insert(0, str(ROOT / "examples"))
    from brain_networks import compare, draw

    from princomp.datasets import make_brain

    brain = make_brain(random_state=0)
    return draw(plt, brain, {"true": (brain.maps, None)} | compare(brain))


def planted_pairs(plt):
    """The planted problem of benchmarks/rank_one.py, sweep after sweep: v's found, and squares left."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from rank_one import FOUND, PAIRS, planted, recovered, signed_pairs, starts

    from princomp import RankOneDictionary, plots

    sweeps, found, left, signed, floors = 30, [], [], [], []
    for seed in range(8):
        X, V, floor = planted(200, 5000, PAIRS, seed)
        states = []
        model = RankOneDictionary(PAIRS, refine=sweeps, random_state=seed, tol=0, callback=states.append)
        model.fit(X)
        states = [state for state in states if len(state.value["captured"]) == PAIRS]
        total = np.vdot(X, X)
        found.append([recovered(state.value["V"], V) for state in states])
        left.append([state.objective / total for state in states])
        U, theirs = signed_pairs(X, PAIRS, 350, starts(seed))
        signed.append((recovered(theirs, V), np.sum((X - U @ theirs) ** 2) / total))
        floors.append(floor)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharex=True)
    blue, orange, grey = plots.COLOURS[0], plots.COLOURS[1], plots.GREY
    for axes, curves, theirs in zip(panels, (found, left), np.median(signed, axis=0), strict=True):
        for curve in curves:
            axes.plot(curve, color=blue, lw=0.8, alpha=0.3)
        axes.plot(np.median(curves, axis=0), color=blue, lw=2, label="median of eight")
        axes.plot(0, np.median(curves, axis=0)[0], "o", color=blue, ms=6, label="one by one")
        axes.axhline(theirs, color=orange, lw=1.5, ls="--", label="largest signed entries")
        axes.set(xlabel="sweeps over all pairs")
    panels[0].set(title=f"v's found, |correlation| above {FOUND}", ylim=(-0.03, 1.03))
    panels[1].axhline(np.median(floors), color=grey, lw=1, ls=":", label="noise")
    panels[1].set(title="share of the squares left", ylim=(0, 0.5))
    panels[1].legend(loc="center right")
    return figure
