"""Parquet files: types are known before, row groups are read batch by batch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import listed
from princomp._typing import Array
from princomp.data.reading import DataError, File, Request, brief, naming, plural
from princomp.data.rows import Rows
from princomp.data.stored import Sink
from princomp.data.tables import Texts, check_names, check_same, described, need_pyarrow, text_notes

BATCH_BYTES = 8 * 2**20
BUFFER_BYTES = 16 * 2**20  # for all columns of a row group together
NUMBERS, TEXT, OTHER, DROPPED = "numbers", "text", "other", "dropped"


def read_parquet(files: Sequence[File], request: Request) -> Rows:
    """Read Parquet files with the same columns, one after the other."""
    need_pyarrow()
    schemas = [_schema(file) for file in files]
    names = schemas[0].names
    for file, schema in zip(files, schemas):
        check_same(files[0], names, file, schema.names)
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise DataError(f"{files[0].name} has columns of the same name: {listed(twice)}.")
    with _errors(files[0]):
        request, index_columns = _with_index(schemas[0], request)
    check_names(names, request, files[0])
    kinds = {name: _kind([schema.field(name).type for schema in schemas]) for name in names}
    kinds |= dict.fromkeys([*request.label, *index_columns, *([request.index] if request.index else [])], TEXT)
    kinds |= dict.fromkeys(request.drop, DROPPED)
    features = [name for name in names if kinds[name] == NUMBERS]
    if not features:
        raise DataError(f"{files[0].name} has no column of numbers; its columns are {listed(names)}.")
    single = all(schema.field(name).type == "float" for schema in schemas for name in features)
    sink = Sink(len(features), np.float32 if single else np.float64, request.kept)
    text = [name for name in names if kinds[name] == TEXT]
    texts = Texts(text, request.index, request.kept)
    for file in files:
        for batch in _batches(file, features, texts):
            sink.append(_values(batch, features, file))
            for name in texts.wanted():
                texts.add(name, _strings(batch.column(name), file))
    notes = text_notes([name for name in text if name not in (*request.label, request.index)], texts)
    other = [name for name in names if kinds[name] == OTHER]
    if other:
        notes.append(f"Left out {plural(len(other), 'column')} of neither numbers nor text: {listed(other)}.")
    return described(sink, request, files[0], names=features, texts=texts, notes=notes)


def _kind(types: list[Any]) -> str:
    from pyarrow import types as of

    number = (of.is_integer, of.is_floating, of.is_boolean, of.is_decimal, of.is_null)
    text = (of.is_string, of.is_large_string, of.is_date, of.is_time, of.is_timestamp)
    if all(any(is_kind(each) for is_kind in number) for each in types):
        return NUMBERS
    flat = [each.value_type if of.is_dictionary(each) else each for each in types]
    return TEXT if all(any(is_kind(each) for is_kind in (*number, *text)) for each in flat) else OTHER


def _with_index(schema: Any, request: Request) -> tuple[Request, list[str]]:
    """Return the request, with the index that pandas stored as sample names if none is asked for; and its columns."""
    said = schema.pandas_metadata
    columns = said.get("index_columns") if isinstance(said, dict) else None
    columns = columns if isinstance(columns, list) else []
    stored = [name for name in columns if name in schema.names and name not in request.drop]
    if len(stored) == 1 and request.index is None:
        request = replace(request, index=stored[0])
    return request, stored


def _schema(file: File) -> Any:
    with _opened(file) as parquet:
        return parquet.schema_arrow


def _batches(file: File, features: list[str], texts: Texts) -> Iterator[Any]:
    text = texts.wanted()
    width = len(features) + len(text)
    with _opened(file, width, read_dictionary=text) as parquet:
        batches = parquet.iter_batches(max(1, BATCH_BYTES // (8 * width)), columns=[*features, *text])
        while True:
            with _errors(file):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


@contextmanager
def _opened(file: File, width: int = 1, **how: Any) -> Iterator[Any]:
    """Yield a file as pyarrow reads it, a little at a time."""
    import pyarrow.parquet as pq

    buffer = max(2**12, min(2**20, BUFFER_BYTES // width))
    with file.open() as stream:
        with _errors(file):
            parquet = pq.ParquetFile(
                stream, buffer_size=buffer, pre_buffer=False, page_checksum_verification=True, **how
            )
        yield parquet


@contextmanager
def _errors(file: File) -> Iterator[None]:
    """Turn what pyarrow raises on a damaged file into a DataError that names it."""
    import pyarrow as pa

    try:
        with naming(file.name):
            yield
    except (pa.ArrowException, ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file.name} cannot be read as Parquet ({brief(error)}).") from error


def _values(batch: Any, features: list[str], file: File) -> Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    out = np.empty((len(batch), len(features)))
    for j, name in enumerate(features):
        column = batch.column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            with _errors(file):
                column = pc.cast(column, pa.float64(), safe=False)
        out[:, j] = column.to_numpy(zero_copy_only=False)
    return out


def _strings(column: Any, file: File) -> Any:
    """Return a column as Arrow strings, in codes if it came so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with _errors(file):
        if not pa.types.is_dictionary(column.type):
            return pc.cast(column, pa.string())
        return pa.DictionaryArray.from_arrays(column.indices, pc.cast(column.dictionary, pa.string()))
