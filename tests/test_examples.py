"""Every example runs, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
DEMO = EXAMPLES / "demo.py"


@pytest.mark.parametrize("path", sorted(set(EXAMPLES.glob("*.py")) - {DEMO}), ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.needs("matplotlib")
def test_demo_names_the_files_it_wrote(tmp_path):
    done = subprocess.run([sys.executable, DEMO, "pictures"], cwd=tmp_path, capture_output=True, text=True, check=True)
    named = [tmp_path / line.removeprefix("Written: ") for line in done.stdout.splitlines() if "Written: " in line]
    assert named
    assert set(named) == {path for path in tmp_path.rglob("*") if path.is_file()}
