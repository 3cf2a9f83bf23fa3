"""Some numbers in vector registers, as one value in a compiled loop.

LLVM makes scalar code of a loop over eight columns (it is unrolled before the vectoriser sees it), so loops that
work on eight columns at a time say so: `load`, `spread`, `fused`, `choose`, `store`. `load_wide` and
`spread_wide` are for two registers and more: where a loop waits for what its last round found, it has more to do
meanwhile.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, register_model

COUNT = 8
WIDE = 16


class Lanes(types.Type):
    """So many numbers of one type."""

    def __init__(self, scalar: Any, count: int) -> None:
        self.scalar, self.count = scalar, count
        super().__init__(name=f"Lanes({scalar}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(manager.lookup(lanes.scalar).get_value_type(), lanes.count))


def _pointer(context: Any, builder: Any, array_type: Any, lanes: Lanes, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), context.get_value_type(lanes).as_pointer())


def _load(array: Any, count: int) -> Any:
    lanes = Lanes(array.dtype, count)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_pointer(context, builder, signature.args[0], lanes, *args))
        value.align = array.dtype.bitwidth // 8
        return value

    return lanes(array, types.intp), generate


def _spread(number: Any, count: int) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        undefined = ir.Constant(ir.VectorType(args[0].type, count), ir.Undefined)
        int32 = ir.IntType(32)
        first = builder.insert_element(undefined, args[0], ir.Constant(int32, 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(int32, count), [0] * count))

    return Lanes(number, count)(number), generate


@intrinsic
def load(_typing: Any, array: Any, at: Any) -> Any:
    """Return the eight numbers of a C-contiguous array that begin ``at`` this flat position; not checked."""
    return _load(array, COUNT)


@intrinsic
def load_wide(_typing: Any, array: Any, at: Any) -> Any:
    """Return the sixteen numbers of a C-contiguous array that begin ``at`` this flat position; not checked."""
    return _load(array, WIDE)


@intrinsic
def spread(_typing: Any, number: Any) -> Any:
    """Return the number eight times."""
    return _spread(number, COUNT)


@intrinsic
def spread_wide(_typing: Any, number: Any) -> Any:
    """Return the number sixteen times."""
    return _spread(number, WIDE)


@intrinsic
def store(_typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    """Put numbers into a C-contiguous array, from this flat position on; not checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        instruction = builder.store(args[2], _pointer(context, builder, signature.args[0], lanes, *args[:2]))
        instruction.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def fused(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded once where the processor can."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fadd(builder.fmul(args[0], args[1], flags=("contract",)), args[2], flags=("contract",))

    return a(a, a, a), generate


@intrinsic
def lessened(_typing: Any, c: Any, a: Any, b: Any) -> Any:
    """Return c - a b, rounded once where the processor can."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fsub(args[0], builder.fmul(args[1], args[2], flags=("contract",)), flags=("contract",))

    return c(c, c, c), generate


@intrinsic
def choose(_typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where a > b, ``no`` elsewhere, also where a or b is not a number."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return yes(a, a, yes, yes), generate


@intrinsic
def counted(_typing: Any, like: Any) -> Any:
    """Return 0, 1, 2 ... as lanes of this kind."""

    def generate(context: Any, _builder: Any, _signature: Any, _args: Any) -> Any:
        return ir.Constant(context.get_value_type(like), [float(lane) for lane in range(like.count)])

    return like(like), generate


@intrinsic(prefer_literal=True)
def exchanged(_typing: Any, lanes: Any, step: Any) -> Any:
    """Return the lanes with each at the place of the one ``step`` away; a power of two, written as a number."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        order = [lane ^ step.literal_value for lane in range(lanes.count)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), order)
        return builder.shuffle_vector(args[0], args[0], mask)

    return lanes(lanes, step), generate


@intrinsic
def first(_typing: Any, lanes: Any) -> Any:
    """Return the number in the first lane."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], ir.Constant(ir.IntType(32), 0))

    return lanes.scalar(lanes), generate
