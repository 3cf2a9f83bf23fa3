"""What canonical correlation says of itself: two sides, and pairs of scores."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import count
from princomp.estimators.description import (
    Column,
    Description,
    Loadings,
    Scores,
    Table,
    as_table,
    basics,
    marks,
    numbered,
    side_of,
)

CORRELATIONS = (
    "How closely the scores of the two sides go together on the data of the fit. If samples are few, this is more than "
    "new samples will show."
)
PAIRS = (
    "Where the samples lie along the scores of both sides. In a pair, the closer they are to a rising line, the higher "
    "its correlation."
)
ONE_SIDE = "Where the samples lie along two scores of X, one side of the pairs; the other was not given here."
WEIGHTS = (
    "The weight of each feature of this side in the scores of a pair. Features with weights of the same sign move the "
    "scores the same way; those without any weight are in no pair."
)


def describe_canonical(model: Any) -> Description:
    """Return what a fitted `SparseCCA` says of itself."""
    found, k, correlations = basics(model, correlations=model.correlations_), model.n_components_, model.correlations_
    sides = (found.sides[0], side_of(getattr(model, "_y_names", None), len(model.y_weights_), "y"))
    weights = (model.x_weights_.T, model.y_weights_.T)
    used = [f"{int(W.any(axis=0).sum())} of {W.shape[1]}" for W in weights]
    names = tuple(f"Pair {j + 1}" for j in range(k))
    pair = Column("pair", np.arange(1, k + 1), "count", "Pair")
    correlation = Column("correlation", correlations, "number", "Correlation")
    last = "" if k == 1 else f", down to {correlations[-1]:.3g}"
    return replace(
        found,
        sides=sides,
        facts={**found.facts, "n_features_y": len(sides[1].features), "features_y": list(sides[1].features)},
        counts=(
            ("features of X used", used[0]),
            ("features of Y used", used[1]),
            ("pair" if k == 1 else "pairs", count(k)),
            ("highest correlation", f"{correlations[0]:.3g}"),
        ),
        summary=f"{count(k, 'pair')} of scores, of correlation {correlations[0]:.3g}{last}, made of {used[0]} features "
        f"of X and {used[1]} features of Y.",
        sections=(
            Table("correlations", "Correlations", CORRELATIONS, (pair, correlation), "correlation", "Correlation"),
            "scores",
            *(
                Loadings(
                    f"loadings-{x}", f"Loadings of {x.upper()}", WEIGHTS, side.features, W, names, marks(k), "Pair"
                )
                for x, side, W in zip("xy", sides, weights)
            ),
        ),
        lines=(pair, correlation),
        loadings={
            "side": ["x"] * weights[0].shape[1] + ["y"] * weights[1].shape[1],
            "feature": sides[0].features + sides[1].features,
            **numbered(np.hstack(weights)),
        },
    )


def scores_of_sides(values: Any) -> Scores:
    """Return the scores of X, or those of X and Y, (n, k) each: by turns, so that the two of a pair are drawn first."""
    parts = [as_table(part) for part in (values if isinstance(values, tuple) else (values,))]
    n, k = parts[0].shape
    columns = {f"{x}_{name}": column for x, part in zip("xy", parts) for name, column in numbered(part.T).items()}
    axes = tuple(f"Pair {j + 1}, {x}" for j in range(k) for x in "XY"[: len(parts)])
    return Scores(columns, axes, np.stack(parts, axis=2).reshape(n, -1), PAIRS if len(parts) == 2 else ONE_SIDE)
