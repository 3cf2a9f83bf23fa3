"""A report that holds hostile names everywhere a name can be."""

import numpy as np
import pytest

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    """'"`""",
    "\u202egnp.exe",
    "line\u2028break",
    "x" * 2**20,
    "",
    "twice",
    "twice",
    "__proto__",
    "constructor",
    "{{7*7}}",
    "%{x}",
    "<b>bold</b>",
    "&lt;",
    "\x1b[31mred",
    "\ud800",
    "-1+1",
]


@pytest.fixture(scope="session")
def hostile_names():
    return HOSTILE


@pytest.fixture(scope="session")
def hostile_page():
    """The page, as text."""
    from princomp import PCA
    from princomp.report.collect import collect, shown
    from princomp.report.render import render

    p = len(HOSTILE)
    X = np.random.default_rng(0).normal(size=(2 * p, p)) * np.linspace(2, 1, p)
    pca = PCA(3).fit(X)
    scores = pca.transform(X)
    pca.feature_names_in_ = np.array(HOSTILE, dtype=object)  # no frame would take a name twice
    return render(
        collect(
            pca,
            None,
            scores=scores,
            title=" ".join(shown(name, 20) for name in HOSTILE),
            source=HOSTILE[0],
            notes=HOSTILE,
            labels=HOSTILE * 2,
            label_name=HOSTILE[0],
            sample_names=HOSTILE * 2,
        )
    )
