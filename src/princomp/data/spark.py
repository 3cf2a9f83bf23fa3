"""Rows of a Spark DataFrame: block functions run where the partitions are, small sums come back through Arrow.

Only what Spark Connect has is used (`DataFrame.mapInArrow`, `toArrow`): state travels in the closure of the function,
and nothing asks for a SparkContext, an RDD or a pandas frame.
"""

import importlib.util
import operator
import pickle
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from princomp._text import listed
from princomp._typing import Array
from princomp.data.outputs import Outputs
from princomp.data.rows import Function, Merge, Rows, add, block_offsets, itself, listed_part

# A sum over 400 x 30 numbers in two persisted partitions took 0.18 to 1.0 s, in the median of 20 0.34 s (pyspark 4.3 in
# local[2], two busy cores); a cluster has a network besides.
PASS_SECONDS = 0.5
PIECE_BYTES = 4 * 2**20  # of one cell of a table that brings sums back: Spark holds several copies of it
GATHER_BYTES = 128 * 2**20  # of sums may come here in one job, an eighth of what Spark allows by default
NUMBERS = ("double", "float", "long", "integer", "short", "byte", "boolean", "decimal")
SCORES = "scores"
PARTS = "partition int, leaf int, piece int, part binary"
FAULT = -1  # in place of a leaf: what went wrong
NO_NUMBER = 2**62  # rows that have no number get those from here on
PERSIST = "call .persist() or .localCheckpoint() on the DataFrame, and pass what that returns"


class Features(NamedTuple):
    """Where the numbers are in a table of Arrow columns, and what they become."""

    places: tuple[int, ...]  # of the columns
    nested: bool  # whether there is one column, of arrays
    width: int
    dtype: np.dtype[Any]

    def read(self, table: Any) -> Array:
        """Return the numbers (m, width) of a table; nulls are NaN."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = pa.from_numpy_dtype(self.dtype)
        if self.nested:
            return self._read_arrays(table.column(self.places[0]), kind)
        out = np.empty((self.width, len(table)), self.dtype)  # as Arrow holds them, column by column
        for j, place in enumerate(self.places):
            out[j] = pc.cast(table.column(place), kind, safe=False).to_numpy()
        return out.T

    def _read_arrays(self, column: Any, kind: Any) -> Array:
        import pyarrow.compute as pc

        there = pc.is_valid(column)
        lengths = pc.list_value_length(column.filter(there)).to_numpy()
        if np.any(lengths != self.width):
            wrong = lengths[lengths != self.width][0]
            raise ValueError(f"The arrays of the DataFrame differ: one has {self.width} numbers, another {wrong}.")
        cells: Array = pc.cast(pc.list_flatten(column), kind, safe=False).to_numpy().reshape(-1, self.width)
        if len(cells) == len(column):
            return cells
        out = np.full((len(column), self.width), np.nan, self.dtype)
        out[there.to_numpy()] = cells
        return out


class Blocks(NamedTuple):
    """How the rows of partitions are numbered, and cut into blocks."""

    offsets: Array  # block i holds rows offsets[i]:offsets[i + 1]
    first: Array  # partition j holds blocks first[j]:first[j + 1]
    wanted: frozenset[int]

    def partitions(self) -> list[int]:
        """Return the partitions that have wanted blocks."""
        return np.unique(np.searchsorted(self.first, sorted(self.wanted), side="right") - 1).tolist()

    def read(self, partition: int, batches: Iterator[Any]) -> Iterator[tuple[Any, slice]]:
        """Yield the wanted blocks of a partition, as tables, and their row numbers; complain if it is not as it was."""
        if partition + 1 >= len(self.first):
            raise _changed(f"it has more partitions than {len(self.first) - 1}")
        here = range(self.first[partition], self.first[partition + 1])
        last = max(self.wanted.intersection(here), default=-1)
        source = _Stream(batches)
        for i in here:
            if i > last:
                if i == here[-1]:  # a worker that leaves rows unread dies, and the next one takes a second to begin
                    source.take(int(self.offsets[i + 1] - self.offsets[i]) + 1)
                return
            rows = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
            table = source.take(rows.stop - rows.start)
            if table is None:
                raise _changed(f"partition {partition} has fewer rows than it had")
            if i in self.wanted:
                yield table, rows
        if len(self.wanted) == len(self.offsets) - 1 and source.take(1) is not None:
            raise _changed(f"partition {partition} has more rows than it had")


class _Stream:
    """Arrow batches, taken by any number of rows."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._held: list[Any] = []
        self._rows = 0

    def take(self, rows: int) -> Any:
        """Return the next so many rows as a table, or None if there are not so many."""
        import pyarrow as pa

        while self._rows < rows:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._held.append(batch)
            self._rows += batch.num_rows
        table = pa.Table.from_batches(self._held)
        self._held = table.slice(rows).to_batches()
        self._rows -= rows
        return table.slice(0, rows)


def _changed(how: str) -> ValueError:
    return ValueError(
        f"The DataFrame changed between two readings: {how}. A fit reads it more than once, and Spark computes it anew "
        f"each time: {PERSIST}."
    )


# What runs on workers. Each function is given the Arrow batches of one partition.


def _partition() -> int:
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


def _count(batches: Iterator[Any]) -> Iterator[Any]:
    yield from _pieces(_partition(), 0, pickle.dumps(sum(batch.num_rows for batch in batches)))


def _sum(batches: Iterator[Any], blocks: Blocks, features: Features, fn: Any, state: Any, combine: Any) -> Any:
    """Return the sum of ``fn`` over the blocks of this partition, None if it has none, or what was wrong with them."""
    total = None
    try:
        for table, rows in blocks.read(_partition(), batches):
            part = fn(features.read(table), rows, *state)
            total = part if total is None else combine(total, part)
    except (ValueError, TypeError, ArithmeticError) as error:  # which Spark would try again, three times
        return error
    return total


def _send_sum(batches: Iterator[Any], *how: Any) -> Iterator[Any]:
    total = _sum(batches, *how)
    if total is not None:
        yield from _pieces(_partition(), 0, pickle.dumps(total, protocol=5))


def _pieces(partition: int, leaf: int, content: bytes) -> Iterator[Any]:
    """Yield rows of `PARTS` that hold the content."""
    for piece, start in enumerate(range(0, len(content), PIECE_BYTES)):
        yield _row(partition, leaf, piece, content[start : start + PIECE_BYTES])


def _row(partition: int, leaf: int, piece: int, content: bytes) -> Any:
    import pyarrow as pa

    numbers = [pa.array([number], pa.int32()) for number in (partition, leaf, piece)]
    return pa.record_batch([*numbers, pa.array([content], pa.binary())], names=["partition", "leaf", "piece", "part"])


def _send_leaves(batches: Iterator[Any], *how: Any) -> Iterator[Any]:
    """Send the arrays of a sum in pieces that can be added up each by itself."""
    total = _sum(batches, *how)
    if isinstance(total, Exception):
        yield _row(_partition(), FAULT, 0, pickle.dumps(total))
    elif total is not None:
        for leaf, array in enumerate(_leaves(total)):
            yield from _pieces(_partition(), leaf, array.tobytes())


def _add_pieces(batches: Iterator[Any], dtypes: list[Any]) -> Iterator[Any]:
    """Add up pieces, sorted by leaf, piece and partition; the sum says of how many partitions it is."""
    key, total, count = None, np.empty(0), 0
    for batch in batches:
        for partition, leaf, piece, part in zip(*(batch.column(j) for j in range(4))):
            here = (leaf.as_py(), piece.as_py())
            if here[0] == FAULT:
                yield _row(partition.as_py(), *here, part.as_py())
                continue
            numbers = np.frombuffer(part.as_buffer(), dtypes[here[0]])
            if here == key:
                total += numbers
                count += 1
                continue
            if key is not None:
                yield _row(count, *key, total.tobytes())
            key, total, count = here, numbers.copy(), 1
    if key is not None:
        yield _row(count, *key, total.tobytes())


class Answer(NamedTuple):
    """What becomes of the answers of a row-by-row function."""

    kept: list[int]  # columns that stay beside it
    pick: int | None  # which of several is taken
    dtype: np.dtype[Any]

    def put(self, table: Any, answer: Any) -> Any:
        """Return a table of the columns kept, and of the rows of an answer (dense or CSR) as arrays."""
        import pyarrow as pa

        answer = answer if self.pick is None else answer[self.pick]
        dense = answer if isinstance(answer, np.ndarray) else answer.toarray()
        rows, width = dense.shape
        if self.kept and rows != len(table):
            raise ValueError("A function of row numbers cannot be mapped over a DataFrame, whose rows have none.")
        ends = pa.array(width * np.arange(rows + 1), pa.int32())
        arrays = pa.ListArray.from_arrays(ends, pa.array(np.ascontiguousarray(dense, self.dtype).reshape(-1)))
        columns = [table.column(j).combine_chunks() for j in self.kept]
        return pa.table([*columns, arrays], names=[*(table.column_names[j] for j in self.kept), SCORES])


def _map(
    batches: Iterator[Any], blocks: Blocks | int, features: Features, fn: Any, state: Any, found: Answer
) -> Iterator[Any]:
    tables = _unnumbered(batches, blocks) if isinstance(blocks, int) else blocks.read(_partition(), batches)
    for table, rows in tables:
        yield from found.put(table, fn(features.read(table), rows, *state)).to_batches()


def _unnumbered(batches: Iterator[Any], most: int) -> Iterator[tuple[Any, slice]]:
    """Yield tables of at most so many rows, and numbers that no row has."""
    import pyarrow as pa

    for batch in batches:
        for start in range(0, batch.num_rows, most):
            table = pa.Table.from_batches([batch.slice(start, most)])
            yield table, slice(NO_NUMBER, NO_NUMBER + len(table))


# What runs here.


class SparkRows(Rows):
    """Rows of a Spark DataFrame, classic or Connect: its numeric columns, or its one column of arrays.

    A pass is one job: it sends ``state`` to the workers, which read their partitions block by block, and brings one
    small sum per partition back, added up here in the order of partitions: the answer does not depend on who did what.
    Rows are counted once, by a job of their own, when their number is asked for.
    """

    changeable = True
    local = False
    pass_seconds = PASS_SECONDS

    def __init__(self, X: Any, **blocks: Any) -> None:
        _need_arrow()
        self._names = list(X.columns)
        self._frame = X.toDF(*(f"c{j}" for j in range(len(self._names))))  # dots in names have a meaning to Spark
        self._places, self._nested, self.dtype = _found(X.schema.fields)
        self.names = None if self._nested else tuple(self._names)
        self._cut = blocks

    @property
    def width(self) -> int:
        """Number of features; that of arrays is the length of one."""
        return self._features.width

    @cached_property
    def _features(self) -> Features:
        width = len(self._places)
        if self._nested:
            lengths = self._frame.selectExpr(f"size(c{self._places[0]}) as length").where("length >= 0")
            some = _collected(lengths.limit(1)).column("length")
            width = some[0].as_py() if len(some) else 0
        return Features(self._places, self._nested, width, self.dtype)

    @cached_property
    def _blocks(self) -> Blocks:
        """The blocks of all partitions; Spark's own batches are cut anew, so that settings do not change the answer."""
        n, ends, first = 0, [np.zeros(1, dtype=int)], [0]
        for count in self._values(_count):
            ends.append(n + block_offsets(count, self.width, **self._cut)[1:])
            first.append(first[-1] + len(ends[-1]))
            n += count
        return Blocks(np.concatenate(ends), np.array(first), frozenset(range(first[-1])))

    def __getattr__(self, name: str) -> Any:
        """Count the rows when somebody asks for the shape or the offsets."""
        if name not in ("shape", "offsets"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.offsets = self._blocks.offsets
        self.shape = (int(self.offsets[-1]), self.width)
        return self.__dict__[name]

    def block(self, i: int) -> Array:
        """Return block i, computed and brought here."""
        return self.reduce(itself, blocks=[i])

    def reduce(self, fn: Function, *state: Any, blocks: Iterable[int] | None = None, combine: Merge = add) -> Any:
        """Return the sum of ``fn`` over blocks (see `Rows.reduce`); each partition's part is computed on a worker."""
        wanted = self._blocks if blocks is None else self._blocks._replace(wanted=frozenset(blocks))
        how = (wanted, self._features, fn, state, combine)
        template = self._too_much(fn, state) if combine is add else None
        if template is not None:
            return self._added_by_pieces(template, how)
        parts = self._values(_send_sum, *how)
        if len(parts) < len(wanted.partitions()):
            raise _changed("it has fewer partitions than it had")
        return reduce(combine, parts)

    def map(self, fn: Function, *state: Any, lengths: Array | None = None, **outputs: Any) -> Any:
        """Return a lazy DataFrame of ``fn`` over blocks, or several (see `Rows.map`).

        Each holds the columns that are not features, as they are, and one more of arrays, called "scores" (dense: Spark
        has no sparse ones). In a larger plan Spark may deal rows out in other partitions and in another order, so that
        they have no numbers here: a function that asks for them fails, unless it returns ``lengths`` rows of a block.
        """
        wanted = Outputs(**outputs)
        if not wanted.several:
            return self._mapped(fn, state, None, wanted.dtype, lengths)
        return tuple(self._mapped(fn, state, i, one.dtype, lengths) for i, one in enumerate(wanted.each()))

    def gather(self, fn: Function, *state: Any, width: int, dtype: Any) -> Array:
        """Return what `map` does as a NumPy array here, by as many jobs as Spark needs to bring so much."""
        ends = np.arange(1, len(self.offsets) - 1)
        cuts = ends[np.diff(8 * width * self.offsets[1:] // GATHER_BYTES) > 0]
        parts = [
            part
            for some in np.split(np.arange(len(self.offsets) - 1), cuts)
            for part in self.reduce(listed_part, fn, *state, blocks=some.tolist(), combine=operator.add)
        ]
        return np.concatenate(parts).astype(dtype, copy=False)

    def _mapped(self, fn: Any, state: Any, pick: int | None, dtype: Any, lengths: Any) -> Any:
        from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

        kept = [] if lengths is not None else [j for j in range(len(self._names)) if j not in self._places]
        names = [self._names[j] for j in kept]
        if SCORES in names:
            raise ValueError(f"The answer is a column {SCORES!r}, but the DataFrame has one already: rename it first.")
        single = np.dtype(dtype) == np.float32
        cells = FloatType() if single else DoubleType()
        fields = self._frame.schema.fields
        schema = StructType([*(fields[j] for j in kept), StructField(SCORES, ArrayType(cells))])
        most = int(np.diff(block_offsets(2**31, self.width, **self._cut)[:2])[0])
        found = Answer(kept, pick, np.dtype(np.float32 if single else np.float64))
        how = (most if lengths is None else self._blocks, self._features, fn, state, found)
        return _in_arrow(self._frame, schema, _map, *how).toDF(*names, SCORES)

    def _too_much(self, fn: Any, state: Any) -> Any:
        """Return an example of what ``fn`` returns if all partitions' would be too much to bring here; else None."""
        partitions = len(self._blocks.first) - 1
        if 8 * self.width**2 * partitions <= GATHER_BYTES:  # nothing is larger than p x p
            return None
        with np.errstate(all="ignore"):
            example = fn(np.zeros((1, self.width), self.dtype), slice(0, 1), *state)
        size = sum(leaf.nbytes for leaf in _leaves(example))
        return example if size * partitions > GATHER_BYTES else None

    def _added_by_pieces(self, example: Any, how: Any) -> Any:
        """Return a large sum: workers exchange pieces, each adds up some, and the sum comes here once."""
        leaves = [np.zeros_like(leaf, order="C") for leaf in _leaves(example)]
        parts = _in_arrow(self._frame, PARTS, _send_leaves, *how)
        sorted_ = parts.repartition(len(self._blocks.first) - 1, "leaf", "piece").sortWithinPartitions(
            "leaf", "piece", "partition"
        )
        found = _collected(_in_arrow(sorted_, PARTS, _add_pieces, [leaf.dtype for leaf in leaves]))
        partitions = len(how[0].partitions())
        for count, leaf, piece, part in _cells(found):
            if leaf == FAULT:
                raise pickle.loads(part)  # noqa: S301 (our own workers wrote it)
            if count != partitions:
                raise _changed("it has fewer partitions than it had")
            start = piece * PIECE_BYTES
            leaves[leaf].reshape(-1).view(np.uint8)[start : start + len(part)] = np.frombuffer(part, np.uint8)
        return _like(example, iter(leaves))

    def _values(self, worker: Callable[..., Any], *how: Any) -> list[Any]:
        """Return what workers send, by partition; raise what they met with."""
        found = _collected(_in_arrow(self._frame, PARTS, worker, *how))
        values = []
        for _, cells in groupby(sorted(_cells(found)), key=lambda cell: cell[0]):
            value = pickle.loads(b"".join(part for *_, part in cells))  # noqa: S301 (our own workers wrote it)
            if isinstance(value, Exception):
                raise value
            values.append(value)
        return values


def _leaves(tree: Any) -> list[Array]:
    return [leaf for part in tree for leaf in _leaves(part)] if isinstance(tree, tuple) else [np.asarray(tree)]


def _like(tree: Any, leaves: Iterator[Array]) -> Any:
    return tuple(_like(part, leaves) for part in tree) if isinstance(tree, tuple) else next(leaves)


def _in_arrow(frame: Any, schema: Any, worker: Callable[..., Any], *how: Any) -> Any:
    """Return ``worker(batches, *how)`` of each partition, lazily."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        return worker(iter(batches), *how)

    with warnings.catch_warnings():
        # pyspark asks for the version of pandas even where nothing is done with it.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return frame.mapInArrow(work, schema)


def _collected(frame: Any) -> Any:
    """Return the Arrow table of a small DataFrame; say what to do if workers lack a library."""
    try:
        return frame.toArrow()
    except Exception as error:
        if _interrupted(error):
            raise KeyboardInterrupt from None
        missing = re.search(r"No module named '(\w+)", str(error))
        if missing is None:
            raise
        raise ImportError(
            f"The workers of Spark cannot import {missing[1]}. Install princomp there (pip install princomp), or send "
            "an environment that has it: spark-submit --archives, on Spark Connect session.addArtifacts(archive=True)."
        ) from error


def _interrupted(error: BaseException | None) -> bool:
    """Tell whether an error came of Ctrl-C: Spark then cancels its jobs, and tells only that."""
    return error is not None and (isinstance(error, KeyboardInterrupt) or _interrupted(error.__context__))


def _cells(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns)))


def _found(fields: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the places of the features, whether they are in one column of arrays, and the precision of results."""
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Column names must be unique, but these occur more than once: {listed(twice)}.")
    kinds = [field.dataType.typeName() for field in fields]
    nested = [j for j, kind in enumerate(kinds) if kind == "array"]
    if len(nested) > 1:
        arrays = listed([names[j] for j in nested])
        raise ValueError(f"The DataFrame has several columns of arrays ({arrays}): drop all but one, the features.")
    if nested:
        kinds, names = [fields[nested[0]].dataType.elementType.typeName()], [names[nested[0]]]
    other = [name for name, kind in zip(names, kinds) if kind not in NUMBERS]
    if other:
        raise TypeError(
            f"These columns of the DataFrame hold no numbers: {listed(other)}. Drop them, as in X.drop({other[0]!r}), "
            "or keep them beside the features: put those into one column of arrays with pyspark.sql.functions.array "
            "(vectors of Spark ML: pyspark.ml.functions.vector_to_array)."
        )
    single = bool(kinds) and all(kind == "float" for kind in kinds)
    return tuple(nested or range(len(fields))), bool(nested), np.dtype(np.float32 if single else np.float64)


def _need_arrow() -> None:
    missing = [name for name in ("pyarrow", "pandas") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"Spark DataFrames are read through Arrow, for which pyspark wants {' and '.join(missing)}: "
            'pip install "princomp[spark]"'
        )
