"""TensorFlow's linear algebra: products, Einsum, Det, diagonals, and eliminations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import read_computed, write_computed
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms import elimination
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
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


_REAL = frozenset({_T.FLOAT32, _T.FLOAT64, _T.FLOAT16})
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


# So many steps of an elimination are in an exported file at most.
_MOST_STEPS = 256


def _matrices(op: View, g: Graph, place: int = 0) -> tuple[ir.Value, int, int]:
    """Matrices of an input as doubles, and their sizes; the interpreter leaves them to LAPACK.

    Raises:
        Untranslatable: numpy runs them, or their sizes or types are none that a graph takes.
    """
    x = op.present_inputs()[place]
    if x.rank < 2 or x.type not in _REAL:
        raise Untranslatable(f"matrices of {x.type.name}")
    rows, columns = _sizes(x, 2)
    if has_zero(*x.shape) or max(rows, columns) > _MOST_STEPS:
        raise Untranslatable(f"matrices of {rows} rows and {columns} columns")
    if g.target.fallback:
        raise Untranslatable("numpy computes it faster")
    value = read_computed(g, x, _REAL, Layout.LAST)
    return g.cast(value, np.dtype(np.float64)), rows, columns


def _write_doubles(g: Graph, output: TensorView, value: ir.Value) -> None:
    g.write(output, g.cast(value, output.dtype), domain=Domain.FILE)


def _square(op: View, g: Graph) -> tuple[ir.Value, int, int]:
    """Square matrices, their rank and their size."""
    value, rows, columns = _matrices(op, g)
    if rows != columns:
        raise Untranslatable(f"matrices of {rows} rows and {columns} columns")
    return value, op.present_inputs()[0].rank, rows


@flex_translator("MatrixInverse", "BatchMatrixInverse")
def inverse(op: View, g: Graph) -> None:
    """What the elimination makes of the identity beside the matrix."""
    value, rank, size = _square(op, g)
    if node_of(op)["adjoint"]:
        value = elimination.transposed(g, value, rank)
    identity = g.op("Mul", value, g.constant(0, np.float64))
    identity = g.op("Add", identity, g.constants.add(np.eye(size), "identity"))
    both = g.op("Concat", value, identity, axis=-1)
    made, _, pivots = elimination.eliminated(g, both, rank, size, 2 * size)
    singular = g.op("Equal", pivots, g.constant(0, np.float64))
    _write_doubles(g, op.output, elimination.checked(g, made, singular))


@flex_translator("MatrixDeterminant", "BatchMatrixDeterminant")
def determinant(op: View, g: Graph) -> None:
    """Det, which ONNX Runtime has for float32; else the product of the pivots."""
    x = op["input"]
    if not is_known(*x.shape[-2:]) or has_zero(*x.shape):
        raise Untranslatable(f"determinants of {x.type.name} matrices of {x.shape}")
    if x.type is _T.FLOAT32:
        g.write(op.output, g.op("Det", g.read(x)))
        return
    pivots, sign = _pivots(op, g)
    product = g.op("ReduceProd", pivots, g.ints([0]), keepdims=0)
    _write_doubles(g, op.output, g.op("Mul", product, sign))


@flex_translator("LogMatrixDeterminant")
def log_determinant(op: View, g: Graph) -> None:
    """The sum of the logarithms of the pivots, and the product of their signs."""
    pivots, sign = _pivots(op, g)
    signs = g.op("ReduceProd", g.op("Sign", pivots), g.ints([0]), keepdims=0)
    _write_doubles(g, op.outputs[0], g.op("Mul", signs, sign))
    logarithms = g.op("Log", g.op("Abs", pivots))
    _write_doubles(g, op.outputs[1], g.op("ReduceSum", logarithms, g.ints([0]), keepdims=0))


def _pivots(op: View, g: Graph) -> tuple[ir.Value, ir.Value]:
    """The pivots [N, ...] of an elimination, and the sign of their order [...]."""
    value, rank, size = _square(op, g)
    _, order, pivots = elimination.eliminated(g, value, rank, size, size)
    sign = g.cast(g.op("Det", g.cast(order, ir.DataType.FLOAT)), np.dtype(np.float64))
    return g.op("Squeeze", pivots, g.ints([rank - 1, rank])), sign


@flex_translator("Cholesky", "BatchCholesky")
def cholesky(op: View, g: Graph) -> None:
    """Column by column."""
    value, rank, size = _square(op, g)
    _write_doubles(g, op.output, elimination.cholesky(g, value, rank, size))


@flex_translator("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def triangular_solve(op: View, g: Graph) -> None:
    """Row by row."""
    node, (value, rank, size) = node_of(op), _square(op, g)
    right, lower = _matrices(op, g, 1)[0], bool(node["lower"])
    kept = np.tril(np.ones((size, size))) if lower else np.triu(np.ones((size, size)))
    value = g.op("Where", g.constant(kept == 0), g.constant(0, np.float64), value)
    if node["adjoint"]:
        value, lower = elimination.transposed(g, value, rank), not lower
    right = g.op("Expand", right, g.shape(op.output.shape))
    made = elimination.solved(g, value, right, op.output.rank, size, lower=lower)
    _write_doubles(g, op.output, made)


@flex_translator("Qr")
def qr(op: View, g: Graph) -> None:
    """Column by column; of both results the first rows and columns, unless all are asked for."""
    value, rows, columns = _matrices(op, g)
    q, r = elimination.orthogonal(g, value, op.present_inputs()[0].rank, rows, columns)
    if not node_of(op)["full_matrices"]:
        first = g.ints([0]), g.ints([min(rows, columns)])
        q, r = g.op("Slice", q, *first, g.ints([-1])), g.op("Slice", r, *first, g.ints([-2]))
    _write_doubles(g, op.outputs[0], q)
    _write_doubles(g, op.outputs[1], r)


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
