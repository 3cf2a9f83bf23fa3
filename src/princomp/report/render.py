"""The page itself: content in, one self-contained HTML text out.

Three things keep it safe whatever names the data hold: Jinja2 escapes all text, data travel as JSON that cannot end
its script element, and a content-security policy forbids every request.
"""

import base64
import csv
import io
import itertools
import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from princomp._text import count, harmless
from princomp._typing import Array
from princomp.estimators.description import Curve, Table
from princomp.report.collect import BARS, POINTS, Atoms, CellMap, Content, Density, Loadings, OutlierMap, Points

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
    return template().render(
        content=content,
        sections=[(SECTIONS[type(section)][0], section) for section in content.sections],
        points=count(POINTS),
        policy=POLICY,
        style=_text("page.css"),
        plotly=_text(BUNDLE),
        script=_text("page.js"),
        data=json_for_script(_data(content)),
    )


@cache
def template() -> Any:
    """Return the compiled template, or say how to install what it needs."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError('The report needs Jinja2. Install it with: pip install "princomp[report]"') from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = cell
    return environment.from_string(_text("template.html"))


def cell(number: Any, kind: str) -> str:
    r"""Return a number as a cell of a table shows it.

    >>> cell(0.25, "share"), cell(12345.678, "number"), cell(3, "count")
    ('25.00\xa0%', '1.235e+04', '3')
    """
    if kind == "share":
        return f"{100 * number:.2f}\xa0%"
    return f"{number:d}" if kind == "count" else f"{number:.4g}"


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
    sections = [(section, *SECTIONS[type(section)]) for section in content.sections]
    tables = [section for section in content.sections if isinstance(section, Table | Loadings)]
    return {
        "sections": {section.name: {"kind": kind, **data_of(section)} for section, kind, data_of in sections},
        "files": {f"{section.name}.csv": _file(section) for section in tables},
    }


def _chart(table: Table) -> dict[str, Any]:
    bars = table.column(table.bars)
    return {
        "row": table.columns[0].name,
        "axis": table.axis,
        "share": bars.kind == "share",
        "bars": packed(np.asarray(bars.values)),
        "line": packed(np.asarray(table.column(table.line).values)) if table.line else None,
        "between": [packed(np.asarray(table.column(name).values)) for name in table.between],
    }


def _curve(table: Curve) -> dict[str, Any]:
    over, along = table.columns[0], table.column(table.bars)
    return {
        "row": over.name,
        "axis": table.axis,
        "over": packed(np.asarray(over.values, np.float64)),
        "along": packed(np.asarray(along.values, np.float64)),
    }


def _points(scores: Points) -> dict[str, Any]:
    labels, panels = scores.labels, scores.panels
    return {
        "axes": scores.axes,
        "columns": [packed(_single(column)) for column in scores.columns],
        "names": scores.names,
        "labels": labels
        and {
            "name": labels.name,
            "values": packed(labels.values),
            "categories": labels.categories,
            "coloured": labels.n_coloured,
        },
        "panels": panels and panels.names,
        "panel": panels and packed(panels.codes.astype(np.uint16)),
    }


def _density(scores: Density) -> dict[str, Any]:
    kind = np.min_scalar_type(int(scores.counts.max()))
    pairs = list(itertools.combinations(range(len(scores.axes)), 2))
    return {
        "axes": scores.axes,
        "limits": np.column_stack([scores.low, scores.high]).tolist(),
        "cells": scores.counts.shape[-1],
        "counts": [
            {f"{i} {j}": packed(table.astype(kind)) for (i, j), table in zip(pairs, panel)} for panel in scores.counts
        ],
        "panels": scores.panels and scores.panels.names,
    }


def _loadings(loadings: Loadings) -> dict[str, Any]:
    return {
        "features": loadings.features,
        "weights": [packed(column) for column in loadings.weights.T],
        "heatMap": loadings.in_heat_map.tolist(),
        "bars": BARS,
        "marks": loadings.marks,
        "axis": loadings.axis,
    }


def _atoms(atoms: Atoms) -> dict[str, Any]:
    return {
        "values": [packed(row) for row in atoms.values],
        "shape": atoms.shape,
        "features": atoms.features,
        "names": atoms.components,
        "marks": atoms.marks,
        "axis": atoms.axis,
        "places": atoms.places,
    }


def _outlier_map(section: OutlierMap) -> dict[str, Any]:
    return {
        "score": packed(_single(section.score)),
        "orthogonal": packed(_single(section.orthogonal)),
        "limits": section.limits,
        "numbers": packed(section.numbers.astype(np.uint32)),
        "names": section.names,
        "outliers": packed(section.outliers.astype(np.uint8)),
        "farthest": section.farthest,
    }


def _cell_map(section: CellMap) -> dict[str, Any]:
    found = section.found
    numbers = {"shades": found.shades, "missing": found.missing, "worst": found.worst}
    places = {"row": found.row, "column": found.column, "rowEdges": found.row_edges, "columnEdges": found.column_edges}
    return {
        "shape": found.shades.shape,
        "features": section.features,
        "samples": section.samples,
        "badRows": packed(found.bad_rows.astype(np.float32)),
        **{name: packed(array.astype(np.float32)) for name, array in numbers.items()},
        **{name: packed(array.astype(np.uint32)) for name, array in places.items()},
    }


# What template and script call a section, and what the script needs to draw it.
SECTIONS: dict[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    Table: ("chart", _chart),
    Points: ("points", _points),
    Density: ("density", _density),
    Loadings: ("loadings", _loadings),
    Curve: ("curve", _curve),
    Atoms: ("atoms", _atoms),
    OutlierMap: ("distances", _outlier_map),
    CellMap: ("cells", _cell_map),
}


# Tables to download


def _file(section: Table | Loadings) -> str:
    """Return a section's table as CSV, in which no spreadsheet takes a name for a formula."""
    rows: list[Any]
    if isinstance(section, Table):
        rows = [[column.name for column in section.columns], *zip(*(column.values for column in section.columns))]
    else:
        rows = [["feature", *(f"{section.axis.lower()} {mark}" for mark in section.marks)]]
        rows += ([harmless(name), *numbers] for name, numbers in zip(section.features, section.weights))
    text = io.StringIO()
    csv.writer(text).writerows(map(str, row) for row in rows)
    return text.getvalue()
