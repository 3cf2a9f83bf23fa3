"""Columns of other rows, by name."""

import io

import numpy as np
import pytest

from princomp import PCA
from princomp.data import read
from princomp.data.wrapped import columns


@pytest.fixture
def rows():
    lines = [f"{i},{i * i % 7},t{i},{i % 3}" for i in range(40)]
    return read(io.BytesIO("\n".join(["a,b,text,c", *lines]).encode()), block_rows=7)


def test_columns_come_in_the_order_asked_for(rows):
    some = columns(rows, ["c", "a"])
    assert some.shape == (40, 2)
    assert some.names == ("c", "a")
    whole = np.concatenate([some.block(i) for i in range(len(some.offsets) - 1)])
    assert (whole == np.array([[i % 3, i] for i in range(40)])).all()
    assert list(some.labels["text"][:2]) == ["t0", "t1"]
    assert np.isclose(PCA(2).fit(some).explained_variance_.sum(), whole.var(axis=0, ddof=1).sum())


def test_the_same_columns_are_the_same_rows(rows):
    assert columns(rows, ["a", "b", "c"]) is rows


def test_what_is_missing_is_named(rows):
    with pytest.raises(ValueError, match=r"missing: x, text \(text is there, but holds text\)"):
        columns(rows, ["a", "x", "text"])
