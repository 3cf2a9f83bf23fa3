"""Eight numbers in vector registers, as one value in a compiled loop.

LLVM makes scalar code of a loop over eight columns (it is unrolled before the vectoriser sees it), so loops that
work on eight columns at a time say so: `load`, `spread`, `fused`, `choose`, `store`.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, register_model

COUNT = 8


class Lanes(types.Type):
    """Eight numbers of one type."""

    def __init__(self, scalar: Any) -> None:
        self.scalar = scalar
        super().__init__(name=f"Lanes({scalar})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(manager.lookup(lanes.scalar).get_value_type(), COUNT))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), context.get_value_type(Lanes(array_type.dtype)).as_pointer())


@intrinsic
def load(_typing: Any, array: Any, at: Any) -> Any:
    """Return the eight numbers of a C-contiguous array that begin ``at`` this flat position; not checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_pointer(context, builder, signature.args[0], *args))
        value.align = array.dtype.bitwidth // 8
        return value

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def store(_typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    """Put eight numbers into a C-contiguous array, from this flat position on; not checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        instruction = builder.store(args[2], _pointer(context, builder, signature.args[0], *args[:2]))
        instruction.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def spread(_typing: Any, number: Any) -> Any:
    """Return the number eight times."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        undefined = ir.Constant(ir.VectorType(args[0].type, COUNT), ir.Undefined)
        int32 = ir.IntType(32)
        first = builder.insert_element(undefined, args[0], ir.Constant(int32, 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(int32, COUNT), [0] * COUNT))

    return Lanes(number)(number), generate


@intrinsic
def fused(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded once where the processor can."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.fadd(builder.fmul(args[0], args[1], flags=("contract",)), args[2], flags=("contract",))

    return a(a, a, a), generate


@intrinsic
def choose(_typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where a > b, else ``no``."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return yes(a, a, yes, yes), generate
