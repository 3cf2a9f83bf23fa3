"""What a dictionary says of itself: how much atoms are used, what they keep of the data, how far learning came."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import count, percent
from princomp._typing import Array
from princomp.estimators.description import Atoms, Column, Curve, Description, Scores, Table, basics
from princomp.estimators.dictionary_use import hardly_used, how_little

USE = "How many of the samples have each atom in their codes, the most used one first."
ATOMS = (
    "The atoms, the most used one first: a sample is the sum of a few of them, each times its coefficient. As "
    "coefficients may have any size, each atom is drawn to fill its place."
)
CODES = (
    "How many atoms each sample takes, and the length of what they stand for. Samples far up are strong, those far to "
    "the right are hard to describe."
)
LEFT = " What is left of a sample is a share of its squares: near 1, no atom is like it."
OBJECTIVE = (
    "The mean over samples of half the squared error plus the penalty, as learning went on. An online objective is an "
    "estimate from the samples seen, which forgets."
)
STEPS = 100  # of the history on a page
TWINS = 0.99  # |cos| from which two atoms are nearly one
WAYS = {
    "online": "Learnt online, from mini-batches",
    "batch": "Learnt by turns: codes, then atoms",
    "ksvd": "Learnt by K-SVD",
}


def describe_dictionary(model: Any) -> Description:
    """Return what a fitted `DictionaryLearning` says of itself."""
    D, shares = np.asarray(model.components_, np.float64), model.atom_counts_ / model.n_coded_
    per_row, kept = float(shares.sum()), None if model.residual_share_ is None else 1.0 - float(model.residual_share_)
    used, alike = int(np.count_nonzero(shares)), coherence(D)
    found = basics(
        model,
        objective=float(model.result_.objective),
        atoms_used=used,
        mean_nonzeros=per_row,
        share_of_squares=kept,
        coherence=alike,
        atoms_replaced=int(model.n_replaced_),
        atom_use=shares,
        objective_history=_history(model)[1],
    )
    order = np.argsort(-shares, kind="stable")
    table, summary = _use(order, shares, D), _summary(len(D), used, per_row, kept)
    return replace(
        found,
        computation=(_how(model), str(found.status)),
        verdict=_verdict(model) if _open_ended(model) else found.verdict,
        assurance=_assurance(model),
        open_ended=_open_ended(model),
        counts=(
            ("features", count(D.shape[1])),
            ("atoms", count(len(D))),
            ("atoms in a sample", f"{per_row:.3g}"),
            *([] if kept is None else [("of the squares", percent(max(kept, 0.0)))]),
        ),
        summary=summary,
        below=summary,
        notes=_notes(model, used, alike),
        sections=(table, _atoms(found.sides[0].features, D, order, shares), "scores", _curve(model)),
        lines=(table.columns[1], Column("samples", shares[order], "share")),
        loadings=_as_file(found.sides[0].features, model.components_, shares),
        loadings_file="atoms.csv",
    )


def scores_of_codes(codes: Any, D: Array, left: Array | None = None) -> Scores:
    """Return codes (n, K), CSR or dense, as a table of what is not 0, and samples by how many atoms they take.

    ``left`` (n,) is what codes leave of the squares of each sample, if that is known.
    """
    from scipy.sparse import csr_array

    codes = csr_array(codes)
    n = codes.shape[0]
    rows = np.repeat(np.arange(n), np.diff(codes.indptr))
    stands_for = np.linalg.norm(codes @ np.asarray(D, np.float64), axis=1)
    axes, values = ["Atoms used", "Length of what they stand for"], [np.diff(codes.indptr), stands_for]
    if left is not None:
        axes, values = [axes[0], "Share of squares left", axes[1]], [values[0], left, values[1]]
    return Scores(
        {"atom": codes.indices + 1, "coefficient": codes.data},
        tuple(axes),
        np.column_stack(values).astype(np.float64),
        CODES if left is None else CODES.replace("Samples far up are strong, those", "Samples") + LEFT,
        title="Codes",
        file="codes",
        rows=rows,
    )


def squares_left(block: Any, rows: slice, codes: Any, D: Array) -> Array:
    """Return |x - a D|^2 / |x|^2 of each row of a block, over the cells that are there; 0 of a row that is 0."""
    X = np.asarray(block.toarray() if hasattr(block, "tocsr") else block, np.float64)
    there = ~np.isnan(X)
    X = np.where(there, X, 0.0)
    left = np.where(there, X - codes[rows.start : rows.stop] @ D, 0.0)
    squares = np.einsum("ij,ij->i", X, X)
    return (np.einsum("ij,ij->i", left, left) / np.where(squares > 0, squares, 1.0))[:, None]


def coherence(D: Array) -> float:
    """Return the largest |cos| of two atoms, 0 if there is one only; an atom of length 0 is like no other."""
    lengths = np.linalg.norm(D, axis=1, keepdims=True)
    unit = D / np.where(lengths > 0, lengths, 1.0)
    largest = 0.0
    for first in range(0, len(D), 512):
        alike = np.abs(unit[first : first + 512] @ unit.T)
        alike[np.arange(len(alike)), first + np.arange(len(alike))] = 0.0
        largest = max(largest, float(alike.max()))
    return min(largest, 1.0)


def _use(order: Array, shares: Array, D: Array) -> Table:
    columns = (
        Column("place", np.arange(1, len(D) + 1), "count", "No."),
        Column("atom", order + 1, "count", "Atom"),
        Column("share of samples", shares[order], "share", "Samples"),
        Column("length", np.linalg.norm(D[order], axis=1), "number", "Length"),
    )
    return Table("use", "Use of the atoms", USE, columns, bars="share of samples", axis="Share of samples")


def _atoms(features: tuple[str, ...], D: Array, order: Array, shares: Array) -> Atoms:
    names = tuple(f"Atom {k + 1}, in {percent(float(shares[k]))} of the samples" for k in order)
    return Atoms("atoms", "Atoms", ATOMS, features, D[order], names, tuple(str(k + 1) for k in order), "Atom")


def _as_file(features: tuple[str, ...], D: Array, shares: Array) -> dict[str, Any]:
    """Return a row for each atom: its number, the share of samples that have it, and its value for each feature."""
    own = {"atom": np.arange(1, len(D) + 1), "use": shares}
    return own | {f"{name} (feature)" if name in own else name: D[:, j] for j, name in enumerate(features)}


def _history(model: Any) -> tuple[Array, Array]:
    """Return some of the steps that were recorded, and their objectives: the last one among them."""
    recorded = np.asarray(model.result_.history.objective, np.float64)
    steps = np.unique(np.linspace(1, len(recorded), min(len(recorded), STEPS)).round().astype(int))
    return steps, recorded[steps - 1]


def _curve(model: Any) -> Curve:
    steps, values = _history(model)
    columns = (Column("step", steps, "count", "Step"), Column("objective", values, "number", "Objective"))
    return Curve("objective", "Objective", OBJECTIVE, columns, bars="objective", axis="Objective")


def _summary(K: int, used: int, per_row: float, kept: float | None) -> str:
    if not used:
        return "No sample takes any atom: every code is 0."
    of = count(K, "atom") if used == K else f"{count(used)} of {count(K, 'atom')}"
    if kept is None:
        return f"{of}, {per_row:.3g} of them in a sample on average."
    return f"{of}, {per_row:.3g} of them in a sample on average, keep {percent(max(kept, 0.0))} of the squares."


def _how(model: Any) -> str:
    """Say which way the dictionary was learnt, with which codes."""
    told = model.result_.status.code == "iteration limit"  # by the status
    passes = "" if told else f", {count(int(model.n_iter_))} pass{'' if model.n_iter_ == 1 else 'es'} over the data"
    new = int(model.n_replaced_)
    given = f" {count(new, 'atom')} that hardly served gave way to samples that were badly coded." if new else ""
    return f"{WAYS[model.method]}, with {_codes(model)}{passes}.{given}"


def _codes(model: Any) -> str:
    """Say what codes cost."""
    if model.nonzeros is not None or model.error is not None:
        most = [] if model.nonzeros is None else [f"at most {count(int(model.nonzeros), 'atom')}"]
        until = [] if model.error is None else [f"as many as leave no more than {model.error:.4g}"]
        return f"codes of {' or '.join([*most, *until])}"
    return f"penalty {_named(model)}"


def _named(model: Any) -> str:
    if not isinstance(model.penalty, str):
        return repr(model.penalty)
    l2 = f", l2 {model.l2:.4g}" if model.l2 else ""
    return f"“{model.penalty}” of weight {model.alpha:.4g}{l2}"


def _open_ended(model: Any) -> bool:
    """Tell whether learning ended where it was told to, short of a certificate: all but "batch" do, as a rule."""
    known, code = model.certificate_, model.result_.status.code
    told = code == "iteration limit" or (code == "stopped" and model.max_seconds is not None)
    return model.method != "batch" and not known.holds and bool(np.isfinite(known.residual)) and told


def _verdict(model: Any) -> str:
    """Say how learning ended without a certificate."""
    passes = f"{count(int(model.n_iter_))} pass{'' if model.n_iter_ == 1 else 'es'}"
    return f"Ended after {passes}, as “{model.method}” does: the atoms still move, and are not certified."


def _assurance(model: Any) -> tuple[str, ...]:
    """Say what the certificate measured, and what it cannot say."""
    known = model.certificate_
    said = [
        f"The residual is {known.residual:.1e}; up to {known.tol:.0e} was allowed. It is the length of the slope of "
        "the objective, as a function of the atoms that the constraint allows, relative to that of the mean of code "
        "times sample: with codes at their best, 0 means that no small change of the atoms improves them."
    ]
    if _open_ended(model):
        said.append(
            f"“{model.method}” ends when its passes, or its time, are over: that says nothing against the atoms, and "
            "nothing for them. For a certificate go on from them with "
            'DictionaryLearning(method="batch", dict_init=model.components_), which learns until the bound is met.'
        )
    if "coding gap" in known.details:
        said.append(
            f"The codes were found to a duality gap of {float(known.details['coding gap']):.1e} of half the squares "
            "of a sample: no code is better by more."
        )
    elif model.nonzeros is not None or model.error is not None:
        said.append("Codes were found greedily, atom after atom: a better choice of as many may exist.")
    said.append(
        "Dictionaries have many local optima: this is one, and whether another start ends in a better one was not "
        "looked at."
    )
    return tuple(said)


def _notes(model: Any, used: int, alike: float) -> tuple[str, ...]:
    """Return what a reader would otherwise take for granted."""
    K, notes, per_row = int(model.n_components_), [], float(model.atom_counts_.sum()) / model.n_coded_
    if hardly_used(per_row, model.residual_share_):
        which = "alpha" if model.nonzeros is None and model.error is None else "error"
        said = how_little(per_row, model.residual_share_)
        notes.append(f"{said}: make {which} smaller, or bring the rows to one scale.")
    if 0 < used < K:
        notes.append(f"{count(K - used, 'atom')} of {K} {'is' if K - used == 1 else 'are'} in no code.")
    if used and alike >= TWINS:
        notes.append(f"Two atoms are nearly the same: the |cos| of their angle is {alike:.4f}.")
    if model.n_samples_ <= K:
        notes.append(f"There are as many atoms as samples: {K} for {model.n_samples_}. Each may simply be a sample.")
    return tuple(notes)
