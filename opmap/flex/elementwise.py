"""TensorFlow's arithmetic element by element.

ONNX Runtime's CPU provider has most nodes for float, double, int32 and int64 alone. Other types are
computed in the next wider one: integers wrap in the cast back, 16-bit floats are rounded in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms import complex_arithmetic, division
from tflite_ort.opmap.idioms.angles import angle
from tflite_ort.opmap.idioms.extremes import chosen
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import custom_translator, flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.complex_pairs import is_complex, part_dtype
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]
Emit = Callable[..., ir.Value]
_T = TensorType

# The type that each type is computed in.
_COMPUTED: dict[TensorType, np.dtype[Any]] = {
    _T.FLOAT32: np.dtype(np.float32),
    _T.FLOAT64: np.dtype(np.float64),
    _T.INT32: np.dtype(np.int32),
    _T.INT64: np.dtype(np.int64),
    _T.FLOAT16: np.dtype(np.float32),
    _T.BFLOAT16: np.dtype(np.float32),
    _T.INT8: np.dtype(np.int32),
    _T.UINT8: np.dtype(np.int32),
    _T.INT16: np.dtype(np.int32),
    _T.UINT16: np.dtype(np.int32),
    _T.UINT32: np.dtype(np.int64),
    _T.UINT64: np.dtype(np.int64),
    _T.BOOL: np.dtype(np.int32),
}
FLOAT = frozenset({_T.FLOAT32, _T.FLOAT16, _T.BFLOAT16})
FLOATS = FLOAT | {_T.FLOAT64}
_NARROW = frozenset({_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.UINT32})
_SIGNED = frozenset({_T.INT8, _T.INT16, _T.INT32, _T.INT64})
INTEGERS = _NARROW | {_T.INT64, _T.UINT64}


def computed_type(type: TensorType) -> np.dtype[Any]:
    """The type that ONNX Runtime computes a type in."""
    return _COMPUTED[type]


def read_computed(
    g: Graph, tensor: TensorView, types: frozenset[TensorType], layout: Layout
) -> ir.Value:
    """`tensor` in the type that it is computed in.

    Raises:
        Untranslatable: its type is not among `types`.
    """
    if tensor.type not in types:
        raise Untranslatable(f"ONNX Runtime does not compute this of {tensor.type.name}")
    value, wide = g.read(tensor, layout=layout, domain=Domain.FILE), _COMPUTED[tensor.type]
    return value if tensor.dtype == wide else g.cast(value, wide)


def write_computed(g: Graph, tensor: TensorView, value: ir.Value, layout: Layout) -> None:
    """`value`, in the type that `tensor` is computed in, as `tensor`."""
    if tensor.dtype != _COMPUTED[tensor.type]:
        value = g.cast(value, tensor.dtype)
    g.write(tensor, value, layout=layout, domain=Domain.FILE)


def _node(op_type: str) -> Emit:
    def emit(g: Graph, *values: ir.Value) -> ir.Value:
        return g.op(op_type, *values)

    return emit


def _squared(g: Graph, x: ir.Value) -> ir.Value:
    return g.op("Mul", x, x)


def _zero_where(g: Graph, zero: ir.Value, other: ir.Value, like: TensorView) -> ir.Value:
    """`other`, but 0 where `zero` is 0."""
    none = g.constant(0, _COMPUTED[like.type])
    return g.op("Where", g.op("Equal", zero, none), none, other)


_UNARY: dict[str, tuple[Emit, frozenset[TensorType]]] = {
    "Abs": (_node("Abs"), FLOATS | INTEGERS - {_T.UINT64}),
    "Atan": (_node("Atan"), FLOAT),
    "Ceil": (_node("Ceil"), FLOATS),
    "Cos": (_node("Cos"), FLOATS),
    "Cosh": (_node("Cosh"), FLOAT),
    "Erf": (_node("Erf"), FLOAT),
    "Exp": (_node("Exp"), FLOATS),
    "Floor": (_node("Floor"), FLOATS),
    "Inv": (_node("Reciprocal"), FLOATS),
    "Log": (_node("Log"), FLOATS),
    "Neg": (_node("Neg"), FLOATS | INTEGERS),
    "Reciprocal": (_node("Reciprocal"), FLOATS),
    "Round": (_node("Round"), FLOATS),
    "Rsqrt": (lambda g, x: g.op("Reciprocal", g.op("Sqrt", x)), FLOATS),
    "Sign": (
        lambda g, x: g.op("Where", g.op("Equal", x, x), g.op("Sign", x), x),
        FLOATS | _SIGNED,
    ),
    "Sin": (_node("Sin"), FLOATS),
    "Sinh": (_node("Sinh"), FLOAT),
    "Sqrt": (_node("Sqrt"), FLOATS),
    "Square": (_squared, FLOATS | INTEGERS),
    "Tan": (_node("Tan"), FLOAT),
    "Tanh": (_node("Tanh"), FLOATS),
}


# Of complex numbers: of each part by itself, or what computes with both.
_OF_PAIRS: dict[str, Emit] = {
    **dict.fromkeys(("Add", "AddV2"), _node("Add")),
    "Sub": _node("Sub"),
    "Neg": _node("Neg"),
    "Mul": complex_arithmetic.product,
    "Square": lambda g, x: complex_arithmetic.product(g, x, x),
    **dict.fromkeys(("Div", "RealDiv"), complex_arithmetic.quotient),
    **dict.fromkeys(("Inv", "Reciprocal"), complex_arithmetic.reciprocal),
    "Exp": complex_arithmetic.exponential,
}


def _of_pairs(op: View, g: Graph) -> bool:
    """Compute a complex result; whether it is one that is known here."""
    emit = _OF_PAIRS.get(op.name.removeprefix("Flex"))
    if emit is None or not is_complex(op.output):
        return False
    values = [g.read(tensor, domain=Domain.FILE) for tensor in op.present_inputs()]
    g.write(op.output, emit(g, *values), domain=Domain.FILE)
    return True


@flex_translator(*_UNARY)
def unary(op: View, g: Graph) -> None:
    """A node of `_UNARY`, or of `_OF_PAIRS`."""
    if _of_pairs(op, g):
        return
    emit, types = _UNARY[op.name.removeprefix("Flex")]
    (x,) = op.present_inputs()
    layout = g.layout(x)
    write_computed(g, op.output, emit(g, read_computed(g, x, types, layout)), layout)


def _floor_divided(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    return g.op("Floor", g.op("Div", x, y))


def _squared_difference(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    return _squared(g, g.op("Sub", x, y))


_OF_INTEGERS: dict[str, Emit] = {
    "FloorDiv": division.floor_of_integers,
    "FloorMod": division.modulo_of_integers,
    "TruncateDiv": division.quotient_of_integers,
}
_SUMS = FLOATS | INTEGERS
_ORDERED = FLOATS | INTEGERS - {_T.UINT64}
_BINARY: dict[str, tuple[Emit, frozenset[TensorType]]] = {
    "Add": (_node("Add"), _SUMS),
    "AddV2": (_node("Add"), _SUMS),
    "Div": (_node("Div"), FLOATS),
    "Mul": (_node("Mul"), _SUMS),
    "Pow": (_node("Pow"), FLOATS),
    "RealDiv": (_node("Div"), FLOATS),
    "SquaredDifference": (_squared_difference, _SUMS),
    "Sub": (_node("Sub"), _SUMS),
}


def _log1p(g: Graph, y: ir.Value) -> ir.Value:
    """log(1 + y) of float32, computed in float64, where 1 + y does not round y away."""
    wide = g.op("Add", g.cast(y, ir.DataType.DOUBLE), g.constant(1, np.float64))
    return g.cast(g.op("Log", wide), ir.DataType.FLOAT)


# 0 where the first or the second operand is 0.
_GUARDED: dict[str, tuple[Emit, int]] = {
    "DivNoNan": (_node("Div"), 1),
    "MulNoNan": (_node("Mul"), 1),
    "Xdivy": (_node("Div"), 0),
    "Xlog1py": (lambda g, x, y: g.op("Mul", x, _log1p(g, y)), 0),
    "Xlogy": (lambda g, x, y: g.op("Mul", x, g.op("Log", y)), 0),
}


def operands(op: View, g: Graph, types: frozenset[TensorType]) -> tuple[list[ir.Value], Layout]:
    """All inputs in the types that they are computed in, and the layout that they have."""
    inputs: Sequence[TensorView] = op.present_inputs()
    same = all(tensor.rank == op.output.rank for tensor in inputs)
    layout = g.layout(*inputs) if same else Layout.LAST
    return [read_computed(g, tensor, types, layout) for tensor in inputs], layout


@flex_translator(*_BINARY)
def binary(op: View, g: Graph) -> None:
    """A node of `_BINARY`, or of `_OF_PAIRS`."""
    if _of_pairs(op, g):
        return
    emit, types = _BINARY[op.name.removeprefix("Flex")]
    values, layout = operands(op, g, types)
    write_computed(g, op.output, emit(g, *values), layout)


@flex_translator(*_GUARDED)
def guarded(op: View, g: Graph) -> None:
    """A node of `_GUARDED`."""
    emit, place = _GUARDED[op.name.removeprefix("Flex")]
    values, layout = operands(op, g, FLOAT if op.name == "FlexXlog1py" else FLOATS)
    result = _zero_where(g, values[place], emit(g, *values), op.output)
    write_computed(g, op.output, result, layout)


@flex_translator("FloorDiv", "FloorMod", "TruncateDiv")
def divided(op: View, g: Graph) -> None:
    """Quotients and what is left of them; of integers in 64 bits."""
    name, dtype = op.name.removeprefix("Flex"), computed_type(op.output.type)
    if op.output.type in FLOATS and name != "TruncateDiv":
        (x, y), layout = operands(op, g, FLOATS)
        modulo = name == "FloorMod"
        made = division.modulo_of_floats(g, x, y, dtype) if modulo else _floor_divided(g, x, y)
        write_computed(g, op.output, made, layout)
        return
    (x, y), layout = operands(op, g, INTEGERS - {_T.UINT64})
    x, y = g.cast(x, ir.DataType.INT64), g.cast(y, ir.DataType.INT64)
    y = division.nonzero(g, op.present_inputs()[1], y)
    write_computed(g, op.output, g.cast(_OF_INTEGERS[name](g, x, y), dtype), layout)


@flex_translator("Cast")
def cast(op: View, g: Graph) -> None:
    """Cast; of complex numbers, of their real parts. Floats become narrow integers by way of wide
    ones, as on most processors: ONNX leaves open what is out of range."""
    (x,), dtype = op.present_inputs(), op.output.dtype
    if node_of(op)["Truncate"]:
        raise Untranslatable("a cast that truncates")
    value = g.read(x, domain=Domain.FILE)
    if is_complex(x) and is_complex(op.output):
        value = g.cast(value, part_dtype(dtype))
    elif is_complex(op.output):
        real = g.cast(value, part_dtype(dtype))
        zeros = g.op("Expand", g.constant(0, part_dtype(dtype)), g.op("Shape", real))
        value = complex_arithmetic.joined(g, real, zeros)
    else:
        value = complex_arithmetic.parts(g, value)[0] if is_complex(x) else value
        if x.dtype.kind in "fc" and dtype.kind in "iu" and dtype.itemsize < 4:
            value = g.cast(value, ir.DataType.INT64)
        value = g.cast(value, dtype)
    g.write(op.output, value, domain=Domain.FILE)


@flex_translator("Atan2")
def atan2(op: View, g: Graph) -> None:
    """The angle of operands of one shape."""
    (y, x), layout = operands(op, g, FLOATS)
    shape = g.op("Shape", g.op("Add", y, x))
    y, x = (g.op("Expand", value, shape) for value in (y, x))
    write_computed(g, op.output, angle(g, y, x, computed_type(op.output.type)), layout)


@flex_translator("AddN")
def add_n(op: View, g: Graph) -> None:
    """A chain of Add."""
    values, layout = operands(op, g, _SUMS)
    total = values[0]
    for value in values[1:]:
        total = g.op("Add", total, value)
    write_computed(g, op.output, total if values[1:] else g.op("Identity", total), layout)


def extreme(op_type: str, g: Graph, type: TensorType, x: ir.Value, y: ir.Value) -> ir.Value:
    """Max or Min in the type that `type` is computed in. ONNX Runtime's nodes are wrong of 64-bit
    integers beyond 32 bits."""
    wide = computed_type(type) == np.int64
    return chosen(op_type, g, x, y) if wide else g.op(op_type, x, y)


@flex_translator("Maximum", "Minimum")
def maximum_minimum(op: View, g: Graph) -> None:
    """The larger or the smaller one."""
    values, layout = operands(op, g, _ORDERED)
    kind = op.name.removeprefix("Flex")[:3]
    write_computed(g, op.output, extreme(kind, g, op.output.type, *values), layout)


@flex_translator("ClipByValue")
def clip_by_value(op: View, g: Graph) -> None:
    """Min(Max(x, low), high)."""
    (x, low, high), layout = operands(op, g, _ORDERED)
    type = op.output.type
    limited = extreme("Min", g, type, extreme("Max", g, type, x, low), high)
    write_computed(g, op.output, limited, layout)


@flex_translator("SelectV2")
def select_v2(op: View, g: Graph) -> None:
    """Where."""
    condition = g.read(op.present_inputs()[0], domain=Domain.FILE)
    _write_chosen(op, g, condition)


def _write_chosen(op: View, g: Graph, condition: ir.Value) -> None:
    types = frozenset(_COMPUTED)
    x, y = (read_computed(g, t, types, Layout.LAST) for t in op.present_inputs()[1:])
    write_computed(g, op.output, g.op("Where", condition, x, y), Layout.LAST)


@flex_translator("Select")
def select(op: View, g: Graph) -> None:
    """Where; a vector chooses rows."""
    test, first, _ = op.present_inputs()
    condition = g.read(test, domain=Domain.FILE)
    if test.rank == 1 and first.rank > 1:
        condition = g.op("Unsqueeze", condition, g.ints(list(range(1, first.rank))))
    _write_chosen(op, g, condition)


_LEFT = {"Atan": "Atan", "ATAN": "Atan", "Sinh": "Sinh"}


def left_custom(op: View, g: Graph) -> None:
    """The ONNX operator of `_LEFT`, element by element; float32."""
    if op["x"].type is not TensorType.FLOAT32:
        raise Untranslatable(f"{op['x'].type.name} input, only FLOAT32 is defined")
    layout = g.layout(op["x"])
    g.write(op.output, g.op(_LEFT[op.name], g.read(op["x"], layout=layout)), layout=layout)


for _name in _LEFT:
    custom_translator(_name, versions=(1, 1))(left_custom)
