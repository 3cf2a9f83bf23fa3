"""pytest plugin: scikit-learn's own decomposition tests, with our classes in the place of theirs.

    SK_SWAP=PCA=sklearn_names:PCA PYTHONPATH=tests \
        python -m pytest -p sk_swap --pyargs sklearn.decomposition.tests.test_pca

Each name is replaced in sklearn.decomposition and its modules before the test modules are imported; helpers that the
tests import by themselves stay scikit-learn's. SK_REPORT=FILE writes one line per test: outcome, test id.
"""

import importlib
import os
import sys
from pathlib import Path

SWAPPED = {}
OUTCOMES = {}


def swap(name, new):
    theirs = importlib.import_module("sklearn.decomposition")
    old = getattr(theirs, name)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("sklearn.decomposition") and getattr(module, name, None) is old:
            setattr(module, name, new)
    SWAPPED[name] = new


def pytest_configure(config):
    for item in filter(None, os.environ.get("SK_SWAP", "").split(",")):
        name, target = item.split("=")
        module, attribute = target.split(":")
        swap(name, getattr(importlib.import_module(module), attribute))


def pytest_report_header(config):
    return "swapped: " + ", ".join(f"{name} -> {new.__module__}.{new.__qualname__}" for name, new in SWAPPED.items())


def pytest_runtest_logreport(report):
    """A test passed if none of its three phases (setup, call, teardown) failed or skipped."""
    if report.when == "setup" or not report.passed:
        OUTCOMES[report.nodeid] = report.outcome


def pytest_sessionfinish(session):
    target = os.environ.get("SK_REPORT")
    if target:
        lines = [f"{outcome} {nodeid.rpartition('::')[2]}\n" for nodeid, outcome in OUTCOMES.items()]
        Path(target).write_text("".join(lines), encoding="utf-8")
