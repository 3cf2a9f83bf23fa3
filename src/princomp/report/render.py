"""The page itself: content in, one self-contained HTML text out.

Three things keep it safe whatever names the data hold: Jinja2 escapes all text, data travel as JSON that cannot end
its script element, and a content-security policy forbids every request.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._text import harmless
from princomp.report.collect import BARS, POINTS, Content, Density, Loadings, Points, Variance
from princomp.report.words import count

Array = NDArray[Any]

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
BUNDLE = "plotly-cartesian.min.js"
# Characters that could end a script element, or a line of a script.
UNSAFE_IN_SCRIPT = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def render(content: Content) -> str:
    """Return the page.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA
    >>> from princomp.report.collect import collect
    >>> from princomp.report.render import render
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> page = render(collect(PCA().fit(X), X, title="<b>"))
    >>> "<title>&lt;b&gt;</title>" in page
    True
    """
    page: str = template().render(
        content=content,
        is_density=isinstance(content.scores, Density),
        points=count(POINTS),
        policy=POLICY,
        style=_text("page.css"),
        plotly=_text(BUNDLE),
        script=_text("page.js"),
        data=json_for_script(_data(content)),
    )
    return page


@cache
def template() -> Any:
    """Return the compiled template, or say how to install what it needs."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError('The report needs Jinja2. Install it with: pip install "princomp[report]"') from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_text("template.html"))


def _text(name: str) -> str:
    return files("princomp.report").joinpath(name).read_text(encoding="utf-8")


# Data for the script


def json_for_script(data: Any) -> str:
    r"""Return JSON that may stand inside a script element.

    >>> json_for_script("</script>")
    '"\\u003c/script\\u003e"'
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(UNSAFE_IN_SCRIPT)


def packed(array: Array) -> dict[str, str]:
    """Return numbers as base64 of a little-endian array, as plotly names its kinds: f4, f8, u1, u2, u4."""
    kind = f"{array.dtype.kind}{array.dtype.itemsize}"
    raw = array.astype(f"<{kind}").tobytes()
    return {"dtype": kind, "bdata": base64.b64encode(raw).decode("ascii")}


def _single(array: Array) -> Array:
    """Return the array in single precision, which is plenty for a position on the screen, if its range allows."""
    largest = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    return array.astype(np.float32) if largest == 0 or 1e-30 < largest < 1e30 else array


def _data(content: Content) -> dict[str, Any]:
    return {
        "variance": None if content.variance is None else _variance(content.variance),
        "scores": None if content.scores is None else _scores(content.scores),
        "loadings": None if content.loadings is None else _loadings(content.loadings),
        "files": _files(content),
    }


def _variance(variance: Variance) -> dict[str, Any]:
    return {"ratio": packed(variance.ratio), "cumulative": packed(variance.cumulative)}


def _scores(scores: Points | Density) -> dict[str, Any]:
    if isinstance(scores, Density):
        kind = np.min_scalar_type(int(scores.counts.max()))
        pairs = itertools.combinations(range(len(scores.axes)), 2)
        counts = {f"{i} {j}": packed(table.astype(kind)) for (i, j), table in zip(pairs, scores.counts)}
        limits = np.column_stack([scores.low, scores.high]).tolist()
        return {"axes": scores.axes, "limits": limits, "cells": scores.counts.shape[1], "counts": counts}
    data: dict[str, Any] = {
        "axes": scores.axes,
        "columns": [packed(_single(column)) for column in scores.columns],
        "names": scores.names,
        "labels": None,
    }
    if scores.labels is not None:
        labels = scores.labels
        data["labels"] = {
            "name": labels.name,
            "values": packed(labels.values),
            "categories": labels.categories,
            "coloured": labels.n_coloured,
        }
    return data


def _loadings(loadings: Loadings) -> dict[str, Any]:
    return {
        "features": loadings.features,
        "weights": [packed(column) for column in loadings.weights.T],
        "heatMap": loadings.in_heat_map.tolist(),
        "bars": BARS,
    }


# Tables to download


def _files(content: Content) -> dict[str, str]:
    """Return the tables as CSV, by file name."""
    found = {}
    if (variance := content.variance) is not None:
        columns = (variance.variance, variance.ratio, variance.cumulative)
        rows = ([str(j + 1), *map(str, numbers)] for j, numbers in enumerate(zip(*columns)))
        found["variance.csv"] = _csv([["component", "variance", "share", "cumulative share"], *rows])
    if (loadings := content.loadings) is not None:
        header = ["feature", *(f"component {j + 1}" for j in range(loadings.weights.shape[1]))]
        named = zip(loadings.features, loadings.weights)
        found["loadings.csv"] = _csv([header, *([_cell(name), *map(str, numbers)] for name, numbers in named)])
    return found


def _csv(rows: Iterable[Iterable[str]]) -> str:
    return "".join(",".join(row) + "\r\n" for row in rows)


def _cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet takes for a formula."""
    text = harmless(text)
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\r\n]', text) else text
