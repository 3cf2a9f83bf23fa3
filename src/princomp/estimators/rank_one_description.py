"""What pairs of rank one say of themselves: how much each holds, its features, its course, how it was found."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import count, percent
from princomp._typing import Array
from princomp.estimators.description import Atoms, Column, Courses, Description, Loadings, Table, basics, marks
from princomp.estimators.description import numbered as by_component

SHARES = (
    "How many of the squares of the data, centred if that was asked for, each pair holds. Pairs are found one after "
    "the other, each in what those before it leave."
)
REFINED = " After sweeps, in which each was fitted to what all others leave, shares need not add up."
FEATURES = (
    "The features of each pair, and by how much they follow its course: all others are 0. Those of opposite sign go "
    "against it."
)
COURSES = "The course of each pair over the samples, in their order; each is of length 1."
SMALL = 100  # features, up to which their weights are shown as bars, not as lines


def describe_pairs(model: Any) -> Description:
    """Return what a fitted `RankOneDictionary` says of itself."""
    V, shares = np.asarray(model.components_, np.float64), np.asarray(model.shares_, np.float64)
    used, held = model.nonzeros_, 1.0 - float(model.residual_share_)
    found = basics(model, objective=float(model.result_.objective), share_of_squares=held, shares=shares, nonzeros=used)
    features, k, table = found.sides[0].features, len(V), _table(shares, used, refined=bool(model.refine))
    names = tuple(f"Pair {j + 1} ({percent(share)})" for j, share in enumerate(shares))
    kind = Loadings if len(features) <= SMALL else Atoms
    summary = (
        f"{count(k, 'pair')} of {_each(used)} hold{'s' if k == 1 else ''} {percent(max(held, 0.0))} of the squares."
    )
    return replace(
        found,
        computation=(_how(model), str(found.status)),
        verdict=_verdict(model) if _open_ended(model) else found.verdict,
        assurance=_assurance(model),
        open_ended=_open_ended(model),
        counts=(("features", count(len(features))), ("pairs", count(k)), ("of the squares", percent(max(held, 0.0)))),
        summary=summary,
        below=summary,
        notes=_notes(V),
        sections=(
            table,
            kind("loadings", "Features", FEATURES, features, V, names, marks(k), "Pair"),
            _courses(np.asarray(model.atoms_, np.float64), names),
            "scores",
        ),
        lines=(*table.columns[:3],),
        loadings={"feature": features, **by_component(model.components_)},
    )


def _table(shares: Array, used: Array, *, refined: bool) -> Table:
    columns = (
        Column("pair", np.arange(1, len(shares) + 1), "count", "No."),
        Column("share of squares", shares, "share", "Share"),
        Column("nonzeros", used, "count", "Features"),
    )
    text = SHARES + REFINED * refined
    return Table("pairs", "Pairs", text, columns, bars="share of squares", axis="Share of squares")


def _courses(U: Array, names: tuple[str, ...]) -> Courses:
    samples = tuple(str(i + 1) for i in range(len(U)))
    return Courses("courses", "Courses", COURSES, samples, U.T, names, marks(U.shape[1]), "Pair")


def _each(used: Array) -> str:
    """Say how many features pairs have."""
    if used.min() == used.max():
        return f"{count(int(used[0]), 'feature')}{' each' * (len(used) > 1)}"
    return f"{count(int(used.min()))} to {count(int(used.max()), 'feature')}"


def _how(model: Any) -> str:
    starts = f", each from {count(int(model.n_init), 'start')}" if model.n_init > 1 else ""
    sweeps = f", then {count(int(model.refine), 'sweep')} over all of them, at the most" if model.refine else ""
    return f"Pairs one after the other{starts}{sweeps}: {count(int(model.n_iter_), 'step')} in all."


def _open_ended(model: Any) -> bool:
    """Tell whether sweeps ended when as many were made as were asked for."""
    return bool(model.refine) and model.result_.status.code == "iteration limit" and not model.certificate_.holds


def _verdict(model: Any) -> str:
    sweeps = count(int(model.refine), "sweep")
    return f"Ended after {sweeps}, as asked: some pairs still move, and are not certified."


def _assurance(model: Any) -> tuple[str, ...]:
    """Say what the certificate measured, and what it cannot say."""
    known, on = model.certificate_, "all others leave" if model.refine else "those before it leave"
    return (
        f"The residual is {known.residual:.1e}; up to {known.tol:.0e} was allowed. It is the most by which a pair "
        "would move if its course were fitted once more to its features, or its features to its course, on what "
        f"{on}: at 0 neither step makes it better.",
        "Pairs have many local optima: whether another start ends in a better one was not looked at.",
    )


def _notes(V: Array) -> tuple[str, ...]:
    empty = int((~V.any(axis=1)).sum())
    if not empty:
        return ()
    return (f"Nothing was left of the data after {count(len(V) - empty, 'pair')}: the others are zero.",)
