"""TensorFlow's linear algebra that ONNX has: products, Einsum, Det, and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import read_computed, write_computed
from tflite_ort.opmap.graph import Domain, Graph, Layout, ir
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.arithmetic.diagonals import ALIGN, Band, Places, is_band
from tflite_ort.schema.arithmetic.einsum import Equation
from tflite_ort.schema.values.complex_pairs import is_complex, part_dtype
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import has_zero, is_known

View = OperatorView[Any]
_T = TensorType

_PRODUCTS = frozenset(
    {
        *(_T.FLOAT32, _T.FLOAT64, _T.FLOAT16, _T.BFLOAT16),
        *(_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.INT64, _T.UINT32),
    }
)


@flex_translator("MatMul", "BatchMatMul", "BatchMatMulV2")
def product(op: View, g: Graph) -> None:
    """MatMul after the transpositions asked for; of complex numbers one for each pair of parts."""
    node, factors = node_of(op), list(op.present_inputs())
    single = node.operator.name == "MatMul"
    names = ("transpose_a", "transpose_b") if single else ("adj_x", "adj_y")
    turns = [bool(node[name]) for name in names]
    depth = factors[0].shape[-2 if turns[0] else -1]
    if not is_known(depth) or not depth:
        raise Untranslatable("sums of no product, or of an unknown number of them")
    if not is_complex(factors[0]):
        x, y = (
            _turned(g, read_computed(g, each, _PRODUCTS, Layout.LAST), each, turn)
            for each, turn in zip(factors, turns, strict=True)
        )
        write_computed(g, op.output, g.op("MatMul", x, y), Layout.LAST)
        return
    (a, b), (c, d) = (
        [_turned(g, part, each, turn) for part in _parts(g, each)]
        for each, turn in zip(factors, turns, strict=True)
    )
    b, d = (
        g.op("Neg", part) if turn and not single else part
        for part, turn in zip((b, d), turns, strict=True)
    )
    real = g.op("Sub", g.op("MatMul", a, c), g.op("MatMul", b, d))
    imaginary = g.op("Add", g.op("MatMul", a, d), g.op("MatMul", b, c))
    ends = g.ints([-1])
    pairs = g.op("Concat", *(g.op("Unsqueeze", x, ends) for x in (real, imaginary)), axis=-1)
    g.write(op.output, pairs)


def _parts(g: Graph, tensor: TensorView) -> list[ir.Value]:
    value = g.read(tensor, domain=Domain.FILE)
    return [g.op("Gather", value, g.ints(which), axis=-1) for which in (0, 1)]


def _turned(g: Graph, value: ir.Value, tensor: TensorView, turn: bool) -> ir.Value:
    """Its matrices transposed, if asked."""
    if not turn:
        return value
    *batch, rows, columns = range(tensor.rank)
    return g.op("Transpose", value, perm=[*batch, columns, rows])


_SUMS = frozenset({_T.FLOAT32, _T.FLOAT64, _T.FLOAT16, _T.BFLOAT16, _T.INT32, _T.INT64})


@flex_translator("Einsum")
def einsum(op: View, g: Graph) -> None:
    """Einsum; dimensions that dots stand for have letters, since ONNX Runtime's dots stand for the
    same number of them in every input, and do not broadcast."""
    tensors = op.present_inputs()
    if any(has_zero(*tensor.shape) for tensor in tensors):
        raise Untranslatable("sums of no element")
    equation = Equation.of(node_of(op)["equation"], [each.shape for each in tensors])
    dotted = [each for each in equation.dotted if each is not None]
    if len(dotted) > 1 and not all(is_known(*each) for each in dotted):
        raise Untranslatable("dots that stand for sizes that are not known")
    text, dropped = equation.lettered()
    values = [read_computed(g, each, _SUMS, Layout.LAST) for each in tensors]
    values = [
        g.op("Squeeze", value, g.ints(axes)) if axes else value
        for value, axes in zip(values, dropped, strict=True)
    ]
    made = g.op("Einsum", *values, equation=text)
    write_computed(g, op.output, made, Layout.LAST)


@flex_translator("MatrixDeterminant", "BatchMatrixDeterminant")
def determinant(op: View, g: Graph) -> None:
    """Det, which ONNX Runtime has for float32."""
    x = op["input"]
    if x.type is not _T.FLOAT32 or not is_known(*x.shape[-2:]) or has_zero(*x.shape):
        raise Untranslatable(f"determinants of {x.type.name} matrices of {x.shape}")
    g.write(op.output, g.op("Det", g.read(x)))


def _sizes(tensor: TensorView, count: int) -> list[int]:
    """The last sizes of a tensor, which have to be known."""
    sizes = list(tensor.shape[-count:])
    if not is_known(*sizes):
        raise Untranslatable(f"sizes {sizes} are not known")
    return sizes


@flex_translator("MatrixBandPart", "BatchMatrixBandPart")
def band_part(op: View, g: Graph) -> None:
    """Where, with a constant condition."""
    rows, columns = _sizes(op["input"], 2)
    (lower,), (upper,) = integers(op["num_lower"]), integers(op["num_upper"])
    if lower > rows or upper > columns:
        raise Untranslatable(f"{lower} and {upper} diagonals of {rows} rows of {columns}")
    below = np.arange(rows)[:, None] - np.arange(columns)
    kept = ((lower < 0) | (below <= lower)) & ((upper < 0) | (-below <= upper))
    _write_where(op, g, kept, g.read(op["input"], domain=Domain.FILE), None)


def _write_where(op: View, g: Graph, kept: Any, value: ir.Value, other: ir.Value | None) -> None:
    """`value` where a matrix of bool has True, else `other` or zeros."""
    output = op.output
    if is_complex(output):
        kept = kept[..., None]
    dtype = part_dtype(output.dtype)
    wide = np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype
    if dtype.kind in "iub" and dtype.itemsize in (1, 2):
        wide = np.dtype(np.int32)
    other = g.constant(0, dtype) if other is None else other
    if wide != dtype:
        value, other = (g.cast(each, wide) for each in (value, other))
    made = g.op("Where", g.constant(kept), value, other)
    made = made if wide == dtype else g.cast(made, dtype)
    g.write(output, made, domain=Domain.FILE)


def _flat(g: Graph, tensor: TensorView, count: int) -> ir.Value:
    """The last `count` dimensions as one, with one element of padding at its end."""
    value, parts = g.read(tensor, domain=Domain.FILE), [2] if is_complex(tensor) else []
    sizes = _sizes(tensor, count) if count else []
    batch = tensor.shape[: tensor.rank - count]
    return g.reshape(value, (*batch, int(np.prod(sizes, dtype=np.int64)), *parts))


def _write_picked(
    op: View, g: Graph, flat: ir.Value, axis: int, places: Places, padding: TensorView | None
) -> None:
    """The elements of `flat` at `places` along an axis; those at -1 are padding."""
    if not places.size or has_zero(*op.output.shape):
        raise Untranslatable("no element")
    if (places < 0).any():
        dtype = part_dtype(op.output.dtype)
        parts = 1 if is_complex(op.output) else 0
        shape = [1] * (axis + 1) + [2] * parts
        if padding is None:
            filler = g.constant(np.zeros(shape, dtype))
        else:
            filler = g.reshape(g.read(padding, domain=Domain.FILE), shape)
        first = g.op("Gather", flat, g.ints([0]), axis=axis)
        filler = g.op("Expand", filler, g.op("Shape", first))
        flat = g.op("Concat", filler, flat, axis=axis)
        places = places + 1
    g.write(op.output, g.op("Gather", flat, g.ints(places), axis=axis), domain=Domain.FILE)


def _band(op: View) -> tuple[Band, bool]:
    if "k" not in op.names:
        return Band(), False
    k = np.array(integers(op["k"]))
    align = node_of(op)["align"] if op.name.endswith("V3") else ALIGN
    return Band.of(k, align), is_band(k)


def _padding(op: View) -> TensorView | None:
    return op["padding_value"] if "padding_value" in op.names else None


@flex_translator("MatrixDiagPart", "BatchMatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(op: View, g: Graph) -> None:
    """Gather of the flat matrices, with padding before them."""
    x, (band, several) = op["input"], _band(op)
    places = band.places(*_sizes(x, 2))
    places = places if several else places[0]
    _write_picked(op, g, _flat(g, x, 2), x.rank - 2, places, _padding(op))


@flex_translator("MatrixDiag", "BatchMatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(op: View, g: Graph) -> None:
    """Gather of the flat diagonals, with padding before them."""
    x, (band, several) = op["diagonal"], _band(op)
    dimensions = 2 if several else 1
    names = [name for name in ("num_rows", "num_cols") if name in op.names]
    wanted = [integers(op[name])[0] for name in names] or [-1, -1]
    rows, columns = band.size(_sizes(x, 1)[0], *wanted)
    places = band.inverse(rows, columns).reshape(rows, columns)
    _write_picked(op, g, _flat(g, x, dimensions), x.rank - dimensions, places, _padding(op))


@flex_translator("MatrixSetDiag", "BatchMatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(op: View, g: Graph) -> None:
    """Gather of the flat matrices and after them the flat diagonals."""
    x, diagonals, (band, several) = op["input"], op["diagonal"], _band(op)
    rows, columns = _sizes(x, 2)
    places, axis = band.inverse(rows, columns), x.rank - 2
    both = [_flat(g, x, 2), _flat(g, diagonals, 2 if several else 1)]
    places = np.where(places >= 0, places + rows * columns, np.arange(rows * columns))
    joined = g.op("Concat", *both, axis=axis)
    _write_picked(op, g, joined, axis, places.reshape(rows, columns), None)


@flex_translator("Diag")
def diag(op: View, g: Graph) -> None:
    """Gather of the flat elements, with a zero before them."""
    x = op["diagonal"]
    count = int(np.prod(_sizes(x, x.rank), dtype=np.int64))
    places = Band().inverse(count, count).reshape(x.shape * 2)
    _write_picked(op, g, _flat(g, x, x.rank), 0, places, None)


@flex_translator("DiagPart")
def diag_part(op: View, g: Graph) -> None:
    """Gather of the flat elements."""
    x = op["input"]
    shape = _sizes(x, x.rank)[: x.rank // 2]
    count = int(np.prod(shape, dtype=np.int64))
    places = Band().places(count, count).reshape(shape)
    _write_picked(op, g, _flat(g, x, x.rank), 0, places, None)
