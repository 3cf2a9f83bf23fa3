"""Fits of every kind find what they found, and say what they said; parameters and their defaults are what they were.

``golden/fits.py``, ``golden/shown.py`` and ``golden/signatures.py`` write it down.
"""

import json

import pytest

from golden import shown, signatures
from golden.fits import COVARIANCES, FITS, WRITTEN, differences, fits

EXPECTED = json.loads(WRITTEN.read_text(encoding="utf-8"))
SEEN = json.loads(shown.WRITTEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", fits())
def test_a_fit_leaves_and_says_what_was_written_down(name):
    found = json.loads(json.dumps(fits()[name]()))
    assert not list(differences(found, EXPECTED[name]))


@pytest.fixture(scope="module")
def everything():
    for name in ("matplotlib", "pyarrow", "jinja2"):
        pytest.importorskip(name, reason='pip install "princomp[cli,plot]"')
    return shown.everything()


@pytest.mark.parametrize("name", SEEN)
def test_pictures_pages_and_what_is_printed_are_those_written_down(name, everything):
    found = json.loads(json.dumps(everything[name]()))
    assert not list(differences(found, SEEN[name]))


def test_nothing_else_is_written_down(everything):
    assert EXPECTED.keys() == FITS.keys() | COVARIANCES.keys()
    assert SEEN.keys() == everything.keys()


def test_names_parameters_and_defaults_are_those_written_down():
    assert list(signatures.lines()) == signatures.WRITTEN.read_text(encoding="utf-8").splitlines()
