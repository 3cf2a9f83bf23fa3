"""The pages: every picture and fragment they show is there, and small."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def targets(page):
    """Files that a page shows or includes, or links to within the repository."""
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"```\{(?:image|include)\} (\S+)", text)
    linked = re.findall(r"\]\(([^)#:\s]+)\)", text)
    return [page.parent / name for name in shown + linked]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_there(page):
    missing = [str(path.relative_to(ROOT)) for path in targets(page) if not path.exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_reached(page):
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert page.name in ("README.md", "index.md") or f"\n{page.stem}\n" in contents.split("{toctree}")[1]


def test_every_promise_is_on_its_page_and_every_code_has_a_test():
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| ([A-Z]\d+) \|", page, re.MULTILINE))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = [code for names in re.findall(r"def test_((?:[FLMNPS]\d+[a-e]?_)+)", tests) for code in names.split("_")]
    noted = re.findall(r"""observe\(\s*"([A-Z]\d+[a-e]?)\"""", tests)
    tested = {code.rstrip("abcde") for code in [*named, *noted] if code}
    assert tested - explained == set(), "explain these codes in docs/promises.md"
    assert explained - tested == set(), "no test keeps these promises"


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert pictures
    assert {path.name: path.stat().st_size for path in pictures if path.stat().st_size >= 100_000} == {}


def test_every_picture_is_used():
    used = {path.resolve() for page in PAGES for path in targets(page)}
    assert set((ROOT / "docs" / "pictures").iterdir()) <= used


def test_every_module_says_what_it_holds():
    """On its first line, by which readers find it: `docs/modules.py` prints these."""
    said = subprocess.run([sys.executable, ROOT / "docs" / "modules.py"], check=True, capture_output=True, text=True)
    lines = said.stdout.splitlines()
    assert len(lines) == len(list((ROOT / "src").rglob("*.py")))
    assert [line for line in lines if len(line.split()) < 3] == []
