"""Fixtures and reporting shared by all tests."""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest

# --- threads ------------------------------------------------------------------------------------------
# Test processes side by side, each with a BLAS thread per core, wait for each other most of the time. Set before NumPy
# is imported; tests about threads ask for theirs with threadpoolctl.

if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

# --- random numbers ------------------------------------------------------------------------------------
# Estimators that are given no random_state draw from NumPy's global generator, as everywhere in scikit-learn's world.
# What a test says must hold for every seed, but a run should be told apart from the one before by the code alone; other
# seeds are tried with PRINCOMP_TEST_SEED=1, 2 ...


@pytest.fixture(autouse=True)
def _global_generator():
    import numpy as np

    np.random.seed(int(os.environ.get("PRINCOMP_TEST_SEED", "0")))  # noqa: NPY002


# --- the reliability table ----------------------------------------------------------------------
# Tests named after a code (F1, F13, ...) note what they saw; the table is printed when the run ends.
# Notes travel as user properties of the test report, so that they also arrive from xdist workers.


@pytest.fixture
def observe(request):
    """observe(code, input, observed): one row of the reliability table."""

    def note(code, given, observed):
        request.node.user_properties.append(("reliability", (code, given, str(observed))))

    return note


def _reliability_rows(reporter):
    """Rows (code, input, observed, outcome), in the order of the codes."""
    rows = {
        (*value, "" if report.passed else "FAILED")
        for outcome in ("passed", "failed")
        for report in reporter.stats.get(outcome, [])
        for key, value in getattr(report, "user_properties", [])
        if key == "reliability" and report.when == "call"
    }
    return sorted(rows, key=lambda row: (row[0][0], int("".join(filter(str.isdigit, row[0])) or 0), row))


def _merged(rows):
    """Rows with equal codes and observations as one, named after the first."""
    together = {}
    for code, given, observed, outcome in rows:
        together.setdefault((code, observed, outcome), []).append(given)
    for (code, observed, outcome), inputs in together.items():
        more = f" (and {len(inputs) - 1} more)" if len(inputs) > 1 else ""
        yield code, inputs[0] + more, observed, outcome


def pytest_terminal_summary(terminalreporter):
    rows = _reliability_rows(terminalreporter)
    if not rows:
        return
    if terminalreporter.verbosity < 1:  # -v shows each input
        rows = list(_merged(rows))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    terminalreporter.section("reliability table")
    for code, given, observed, outcome in rows:
        terminalreporter.line(f"{code:<{widths[0]}}  {given:<{widths[1]}}  {observed}  {outcome}".rstrip())


# --- one engine of each kind ------------------------------------------------------------------------
# A Dask cluster and a Spark session are started once in a run: of the test processes that run side by side one gets all
# tests that need Dask, and one all that need Spark. They are known by their names.

ENGINES = {"dask_client": ("dask", "test_passes.py", "test_wrapped.py", "test_sparse_workers.py"), "spark": ("spark",)}


def engine_of(nodeid):
    """The fixture of the engine that a test is about, or None."""
    return next((name for name, words in ENGINES.items() if any(word in nodeid.lower() for word in words)), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByEngine(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return engine_of(nodeid) or nodeid.partition("[")[0]

    return ByEngine(config, log)


@pytest.fixture(autouse=True)
def _named_after_its_engine(request):
    for name, words in ENGINES.items():
        if name in request.fixturenames and engine_of(request.node.nodeid) != name:
            pytest.fail(f"name this test after one of {', '.join(words)}, or add its file to ENGINES", pytrace=False)


# --- a Dask cluster of two processes --------------------------------------------------------------


@pytest.fixture(scope="session")
def dask_client():
    """Client of a local cluster with two worker processes, one thread each."""
    distributed = pytest.importorskip("distributed", reason='pip install "princomp[dask]"')
    try:
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
    except RuntimeError as error:  # seen once: its loop had ended before, and so had all tests
        if "IOLoop is closed" not in str(error):
            raise


# --- Spark on two cores -----------------------------------------------------------------------------


def spark_session(master, **settings):
    """A Spark session as small and quiet as it can be, its workers run by this Python."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # compiling well takes longer
        "spark.sql.shuffle.partitions": "2",
    }
    for name, value in (quiet | settings).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark():
    """Spark with two threads, each with a worker process."""
    session = spark_session("local[2]")
    yield session
    session.stop()


# --- components -----------------------------------------------------------------------------------
# What some tests need: mark them @pytest.mark.needs("dask", ...). Where it is missing they are skipped with the line
# that installs it; with PRINCOMP_REQUIRE_COMPONENTS=1 (as in CI) they fail instead, and so does any other test that
# skips because something is not installed.

REQUIRE_COMPONENTS = os.environ.get("PRINCOMP_REQUIRE_COMPONENTS", "") not in ("", "0")


def _has_module(*names):
    return all(importlib.util.find_spec(name) is not None for name in names)


def _has_java():
    """Java 17 or newer; run, because a bare stub may be called java."""
    try:
        answer = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.search(r'version "(\d+)', answer)
    return version is not None and int(version[1]) >= 17


def chromium_path():
    """Path of a Chromium or Chrome on this computer, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


COMPONENTS = {  # name: (is it there?, what installs it)
    "java": (_has_java, "sudo apt-get install default-jre-headless (or: brew install openjdk@17)"),
    "chromium": (lambda: chromium_path() is not None, "sudo apt-get install chromium (or: brew install chromium)"),
    "pyspark": (lambda: _has_module("pyspark"), 'pip install "princomp[spark]"'),
    "grpc": (lambda: _has_module("grpc"), 'pip install "princomp[spark]"'),
    "dask": (lambda: _has_module("dask", "distributed"), 'pip install "princomp[dask]"'),
    "pandas": (lambda: _has_module("pandas"), "pip install pandas"),
    "polars": (lambda: _has_module("polars"), "pip install polars"),
    "pyarrow": (lambda: _has_module("pyarrow"), 'pip install "princomp[io]"'),
    "nibabel": (lambda: _has_module("nibabel"), 'pip install "princomp[neuro]"'),
    "pillow": (lambda: _has_module("PIL"), 'pip install "princomp[io]"'),
    "openpyxl": (lambda: _has_module("openpyxl"), 'pip install "princomp[io]"'),
    "matplotlib": (lambda: _has_module("matplotlib"), 'pip install "princomp[plot]"'),
    "jinja2": (lambda: _has_module("jinja2"), 'pip install "princomp[report]"'),
    "h5py": (lambda: _has_module("h5py"), 'pip install "princomp[hdf5]"'),
    "zarr": (lambda: _has_module("zarr"), 'pip install "princomp[zarr]"'),
    "playwright": (lambda: _has_module("playwright"), "pip install playwright"),
}


@functools.cache
def has_component(name):
    return COMPONENTS[name][0]()


def pytest_runtest_setup(item):
    for name in (name for marker in item.iter_markers("needs") for name in marker.args):
        if name not in COMPONENTS:
            pytest.fail(f"needs({name!r}): no such component; known are {', '.join(COMPONENTS)}", pytrace=False)
        if not has_component(name):
            reason = f"needs {name}; to install it: {COMPONENTS[name][1]}"
            pytest.fail(reason, pytrace=False) if REQUIRE_COMPONENTS else pytest.skip(reason)


def _not_for_want_of_a_component(report):
    """The report, turned into a failure where components are required and one is missing."""
    if REQUIRE_COMPONENTS and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if re.search(r"could not import|install", reason):
            report.outcome, report.longrepr = "failed", f"component missing: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _not_for_want_of_a_component((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _not_for_want_of_a_component((yield))


# --- soak -----------------------------------------------------------------------------------------


def pytest_collection_modifyitems(config, items):
    """Leave the soak tests out unless an expression of marks (-m) asks for them."""
    if config.option.markexpr:
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    items[:] = [item for item in items if not item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=soak)
