"""Products of float rows and a weight matrix, which may stay in 8-bit codes.

R rows of K columns, weights [N, K]. ONNX Runtime multiplies uint8 by int8 where the CPU does that
exactly, otherwise uint8 by uint8. Both take a fraction of the time of a float product, because they
read a quarter of the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.graph.costs import rounding_costs
from tflite_ort.opmap.idioms.hybrid import (
    Codes,
    Rounding,
    quantized_row,
    reach,
    rounded,
    rounded_rows,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView

Array = npt.NDArray[Any]

_FLOAT, _INT32, _UINT8 = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.UINT8
_ZERO_POINT = 128
# The shifts of the three bytes of a 24-bit integer. Every byte has the zero point 128, so the
# integer has the zero point _ZERO.
_SHIFTS = np.array([16, 8, 0])
_ZERO = float((_ZERO_POINT << _SHIFTS).sum())
_LARGEST = float(127 << _SHIFTS[0])
# Of a row in digits; _LARGEST divided by it is a float32.
_LEAST = 2.0**-104
_CODES = (TensorType.INT8, TensorType.INT4)
_MOST_COLUMNS = 2**17  # sums of so many products of 8 bits stay in 32 bits


@record
class WeightMatrix:
    """Weights [N, K].

    Args:
        codes: int8 or float32.
        scale: float32 [N], of int8 codes.
    """

    codes: Array
    scale: npt.NDArray[np.float32] | None = None

    @classmethod
    def of_codes(cls, tensor: TensorView) -> WeightMatrix | None:
        """The matrix of a constant in 4- or 8-bit codes, with zero point 0 and one scale or one a
        row.

        None for any other tensor.
        """
        quantization, rows = tensor.quantization, tensor.shape[0]
        if not tensor.is_constant or tensor.type not in _CODES or quantization is None:
            return None
        if quantization.zero_point.any() or quantization.scale.size not in (1, rows):
            return None
        assert tensor.data is not None
        codes = tensor.data.astype(np.int8, copy=False)
        return cls(codes, np.broadcast_to(quantization.scale, rows))

    @property
    def reals(self) -> npt.NDArray[np.float32]:
        """The weights [N, K] as float32."""
        if self.scale is None:
            return self.codes
        return self.codes.astype(np.float32) * self.scale[:, np.newaxis]

    def __neg__(self) -> WeightMatrix:
        return (
            WeightMatrix(-self.codes)
            if self.scale is None
            else WeightMatrix(self.codes, -self.scale)
        )

    @classmethod
    def stacked(cls, parts: Sequence[WeightMatrix]) -> WeightMatrix:
        """The rows of all `parts`."""
        scales = [part.scale for part in parts if part.scale is not None]
        if len(scales) < len(parts):
            return cls(np.concatenate([part.reals for part in parts]))
        return cls(np.concatenate([part.codes for part in parts]), np.concatenate(scales))


Term = tuple[ir.Value, WeightMatrix]


def keeps_codes(
    g: Graph,
    matrix: WeightMatrix,
    rounding: Rounding | None,
    *,
    single_row: bool,
    repeated: bool = False,
) -> bool:
    """Whether the product is computed with the codes of `matrix`, not with floats.

    It is for rounded rows, and for a single row in digits, where that is faster.

    Args:
        rounding: of rows to 8 bits; None for none.
        single_row: there is known to be one row.
        repeated: the float product would be one of many inside one node.
    """
    if not keeps_exact_codes(g, matrix):
        return False
    if rounding is not None:
        costs = rounding_costs(g.target)
        return matrix.codes.size * costs.saved >= costs.always
    return single_row and digits_save_time(g.target, matrix.codes.size, repeated=repeated)


def digits_save_time(target: Target, weights: int, *, repeated: bool) -> bool:
    """Whether the digits of a row cost less than so many weights save as codes: fewer weights fit
    in the cache as floats. A float product that is one of many inside one node is faster."""
    costs = rounding_costs(target)
    return weights * costs.saved >= costs.digits * (2 if repeated else 1)


def keeps_exact_codes(g: Graph, matrix: WeightMatrix) -> bool:
    """Whether products with the codes of `matrix` are exact."""
    is_narrow = matrix.scale is not None and matrix.codes.shape[1] <= _MOST_COLUMNS
    return g.target.exact_integers and is_narrow


def multiplied_codes(g: Graph, matrix: WeightMatrix) -> tuple[ir.Value, ir.Value | None]:
    """The codes of `matrix` [K, N] in the type that the CPU multiplies exactly, and their zero
    point; None for 0."""
    if g.target.weights == "int8":
        return g.constants.add(matrix.codes.T, "weights"), None
    codes = moved_codes(matrix).T
    return g.constants.add(codes, "weights"), g.constant(_ZERO_POINT, np.uint8)


def moved_codes(matrix: WeightMatrix) -> npt.NDArray[np.uint8]:
    """The codes [N, K] as uint8, with the zero point 128."""
    return matrix.codes.view(np.uint8) ^ np.uint8(_ZERO_POINT)


def sum_of_products(
    g: Graph,
    terms: Sequence[Term],
    *,
    rounding: Rounding | None = None,
    single_row: bool = False,
    added: ir.Value | None = None,
) -> ir.Value:
    """The sum over all terms of `x` [..., K] times the transposed matrix.

    Args:
        rounding: of rows to 8 bits; None for none.
        single_row: each `x` is known to be [1, K].
        added: a further summand; with float products `x` is then [R, K].
    """
    products, reals = list[ir.Value](), list[Term]()
    for x, matrix in terms:
        if not keeps_codes(g, matrix, rounding, single_row=single_row):
            reals.append(
                (x if rounding is None else rounded(g, x, rounding, [-1]).reals(g), matrix)
            )
        elif rounding is Rounding.XNNPACK and single_row:
            products.append(_product_of_quantized_row(g, x, matrix))
        else:
            products.append(_coded_product(g, x, rounding, matrix))
    if reals:
        added = _float_product(g, reals, added)
    return reduce(partial(g.op, "Add"), products if added is None else [added, *products])


def joined_reals(matrices: Sequence[WeightMatrix]) -> npt.NDArray[np.float32]:
    """The weights [N, columns of all] as float32."""
    weights = [matrix.reals for matrix in matrices]
    return np.concatenate(weights, axis=1) if len(weights) > 1 else weights[0]


def _float_product(g: Graph, terms: Sequence[Term], added: ir.Value | None) -> ir.Value:
    """The sum of float products, as one product: inputs and weights are concatenated."""
    joined = joined_reals([matrix for _, matrix in terms])
    x, *others = (x for x, _ in terms)
    x = g.op("Concat", x, *others, axis=-1) if others else x
    if added is None:
        return g.op("MatMul", x, g.constants.add(joined.T, "weights"))
    return g.op("Gemm", x, g.constants.add(joined, "weights"), added, transB=1)


def _coded_product(
    g: Graph, x: ir.Value, rounding: Rounding | None, matrix: WeightMatrix
) -> ir.Value:
    """The product of `x`, rounded if there is a rounding, and a matrix that keeps its codes."""
    if rounding is None:
        return _product_of_digits(g, x, matrix)
    return product_of_codes(g, rounded_rows(g, x, rounding, matrix.codes.shape[1]), matrix)


def product_of_codes(g: Graph, x: Codes, matrix: WeightMatrix) -> ir.Value:
    """The product of rounded rows: sums of products of codes, times the scales."""
    assert matrix.scale is not None
    if x.unsigned:
        sums = _sums_of_codes(g, x.codes, None, matrix)
    else:
        moved = g.op("Add", x.codes, g.constant(_ZERO_POINT, np.int32))
        sums = _integer_product(g, g.cast(moved, _UINT8), matrix)
    if x.zero_point is not None:
        ones = g.constant(matrix.codes.sum(axis=1, dtype=np.int32))
        zero_point = g.cast(x.zero_point, _INT32)
        sums = g.op("Sub", sums, g.op("Mul", zero_point, ones))
    # If the scales were multiplied first, ONNX Runtime would take several row scales for one.
    columns = g.op("Mul", g.cast(sums, _FLOAT), g.constant(matrix.scale))
    return g.op("Mul", columns, x.scale)


def _product_of_quantized_row(g: Graph, x: ir.Value, matrix: WeightMatrix) -> ir.Value:
    """The product of one row, rounded as XNNPACK does. Its zero point is a single code, so two
    QuantizeLinear with steps of 1 round, add and cut off, and MatMulInteger subtracts it.

    DynamicQuantizeLinear is fewer nodes, but divides by a step where XNNPACK multiplies by its
    inverse: a number halfway between two codes, which the ends of every symmetric row are, then
    becomes the other one."""
    assert matrix.scale is not None
    codes, zero_point, scale = quantized_row(g, x)
    sums = g.cast(_sums_of_codes(g, codes, zero_point, matrix), _FLOAT)
    return g.op("Mul", sums, g.op("Mul", scale, g.constant(matrix.scale)))


def _product_of_digits(g: Graph, x: ir.Value, matrix: WeightMatrix) -> ir.Value:
    """The product of one row x [1, K], whose elements become 24-bit integers: digits of 8 bits.

    Let m be the largest magnitude in x, and w = round(x * L / m) for L = 127 * 2**16. Then
    |w| <= L, and w + Z, with Z = 128 * (2**16 + 2**8 + 1), has three bytes a, b, c in 0..255:
    w = (a - 128) * 2**16 + (b - 128) * 2**8 + (c - 128). The sum x * L / m + Z is computed in
    float32. It is below 2**24, and from 2**23 on float32 numbers are integers; below, Cast cuts
    off a fraction. The three rows [a; b; c] take one MatMulInteger with zero point 128. Its sums,
    times (2**16, 2**8, 1) * m / L, add up to the product.
    """
    assert matrix.scale is not None
    largest = reach(g, x, [-1], _LEAST)
    factor = g.op("Div", g.constant(_LARGEST, np.float32), largest)
    wholes = g.op("Add", g.op("Mul", x, factor), g.constant(_ZERO, np.float32))
    shifts = g.constant(_SHIFTS[:, np.newaxis], np.uint32)
    wholes = g.cast(wholes, ir.DataType.UINT32)
    digits = g.cast(g.op("BitShift", wholes, shifts, direction="RIGHT"), _UINT8)
    sums = g.cast(_integer_product(g, digits, matrix), _FLOAT)
    values = g.op("Mul", largest, g.constant([2.0**_SHIFTS / _LARGEST], np.float32))
    return g.op("Mul", g.op("MatMul", values, sums), g.constant(matrix.scale))


def _integer_product(g: Graph, codes: ir.Value, matrix: WeightMatrix) -> ir.Value:
    """The product int32 [..., N] of uint8 codes with zero point 128 and the codes of `matrix`."""
    return _sums_of_codes(g, codes, g.constant(_ZERO_POINT, np.uint8), matrix)


def _sums_of_codes(
    g: Graph, codes: ir.Value, zero_point: ir.Value | None, matrix: WeightMatrix
) -> ir.Value:
    """The sums int32 [..., N] of products of uint8 codes and the codes of `matrix`.

    Args:
        zero_point: of `codes`, uint8; None for 0.
    """
    weights, middle = multiplied_codes(g, matrix)
    zero_points = (zero_point, middle) if middle is not None else (zero_point,)
    return g.op("MatMulInteger", codes, weights, *zero_points)
