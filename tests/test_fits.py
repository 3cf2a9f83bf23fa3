"""Fits of every kind find what they found, and say what they said: see ``golden/fits.py``, which writes it down."""

import json

import pytest

from golden.fits import COVARIANCES, FITS, WRITTEN, differences, fits

EXPECTED = json.loads(WRITTEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", fits())
def test_a_fit_leaves_and_says_what_was_written_down(name):
    found = json.loads(json.dumps(fits()[name]()))
    assert not list(differences(found, EXPECTED[name]))


def test_nothing_else_is_written_down():
    assert EXPECTED.keys() == FITS.keys() | COVARIANCES.keys()
