"""A copy of an AnnData file with more in it: arrays, sparse matrices, texts, numbers and mappings of these."""

import shutil
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from princomp.data.hdf5 import errors, member, need_h5py
from princomp.data.reading import File


def write_copy(source: File, target: str | PathLike[str], slots: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the file ``source`` to ``target``, byte by byte, then what ``slots`` holds by group and key.

    Nothing of the file needs to be in memory, or to be understood. What was there under these keys is replaced.
    """
    need_h5py()
    import h5py

    with source.open() as stream, open(target, "wb") as copy:
        shutil.copyfileobj(stream, copy, 2**22)
    # Not locked, which some disks refuse: nobody else knows of the copy.
    with errors(source.name), h5py.File(target, "r+", locking=False) as h5:
        for place, held in slots.items():
            if not h5.id.links.exists(place.encode()):
                _write(h5, place, {})
            group = member(h5, place, source.name)  # in this file, whatever links there are
            for key, value in held.items():
                if group.id.links.exists(key.encode()):
                    del group[key]
                _write(group, key, value)


def _write(group: Any, key: str, value: Any) -> None:
    """Put a value into a group, as anndata does."""
    if isinstance(value, Mapping):
        _mark(group.create_group(key), "dict", "0.1.0")
        for name, each in value.items():
            _write(group[key], name, each)
    elif hasattr(value, "tocsr"):
        csr = value.tocsr()
        found = group.create_group(key)
        found.attrs["shape"] = csr.shape
        for name in ("data", "indices", "indptr"):
            found.create_dataset(name, data=getattr(csr, name))
        _mark(found, "csr_matrix", "0.1.0")
    elif isinstance(value, str):
        _mark(group.create_dataset(key, data=value), "string", "0.2.0")
    elif np.ndim(value):
        _mark(group.create_dataset(key, data=np.asarray(value)), "array", "0.2.0")
    else:
        _mark(group.create_dataset(key, data=value), "numeric-scalar", "0.2.0")


def _mark(found: Any, kind: str, version: str) -> None:
    found.attrs["encoding-type"], found.attrs["encoding-version"] = kind, version
