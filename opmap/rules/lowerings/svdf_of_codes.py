"""SVDF of codes with fewer nodes.

It is in float64, where the multipliers are in the weights, with a state that is kept as rows, or by
products of 32-bit integers.

B batch, F filters over M steps, U units: a state [B, F, M].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.cells.svdf_integer import (
    ALL,
    REACH,
    WRAPS,
    View,
    added_to_sums,
    bias_of,
    carried_zero,
    constant_of,
    largest_sum,
    newest_step,
    output_codes,
    output_multiplier,
    rescaled_product,
    state_after,
    state_multiplier,
    state_steps,
    sums_lift,
    sums_of_state,
    time_weights,
    wrapped,
)
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.windows import has_window, with_newest
from tflite_ort.opmap.idioms.fixed_point import (
    clip,
    first_factor,
    is_exact_in_double,
    may_tie,
    multiplies_in_double,
    reach,
    rounded_twice,
    rounds_alike,
    shifted_right,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.values.sizes import has_zero

# Marks numbers in float64 whose whole parts are codes.
_WHOLE_PARTS = "whole parts are codes"
# Up to so many weights a product in float64 takes less time than the nodes that it saves.
_FEW = 2**15

# Adds the newest step [B, F], codes in float64, to the state, and writes the state; makes its sums
# [B, U] in float64, larger by a number than TFLite's.
Sums = Callable[[View, Graph, int, ir.Value], ir.Value]


def svdf_of_codes(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """SVDF by sums in float64, or by products of matrices of 32-bit integers: these wrap around by
    themselves, as TFLite's sums do."""
    if not op["input"].is_quantized or has_zero(*op["weights_time"].shape):
        return ()
    lift = sums_lift(op)
    sums = _lowering(op, "sums", partial(_svdf, op, g, sums_of_state, lift))
    rows = _lowering(op, "rows", partial(_svdf, op, g, _products_of_rows, 0))
    if not has_window(op["state"], op["weights_time"].shape[1]):
        return [sums, rows]
    return [_lowering(op, "window", partial(_svdf_of_window, op, g, lift)), sums, rows]


def _lowering(op: View, name: str, build: Callable[[], None]) -> Lowering:
    filters, memory = op["weights_time"].shape
    work = {"": 1.0, " codes": float(filters * memory), " filters": float(filters)}
    return Lowering(name, {f"State {name}{what}": each for what, each in work.items()}, build)


def _svdf(op: View, g: Graph, sums: Sums, lift: int) -> None:
    """The nodes of the operator.

    Args:
        lift: by how much `sums` makes sums too large.
    """
    codes = _output_codes(op, g, sums(op, g, lift, _newest(op, g)), lift)
    g.write(op.output, codes, domain=Domain.STORED)


def _svdf_of_window(op: View, g: Graph, lift: int) -> None:
    """The nodes of the operator with a state that is kept as rows [M, F] in float64.

    Where it makes no difference, the weights are multiplied by what the sums would be multiplied
    by. A sum that may wrap around is moved by half of its unit, so that no error takes it across
    the end of 32 bits.
    """
    newest, added, scaling = _newest(op, g), added_to_sums(op, lift), _scaling(op)
    if scaling is None or not _rounds_alike(op, lift):
        sums = wrapped(g, _weighted_window(op, g, newest, 1.0, added), lift)
        g.write(op.output, _output_codes(op, g, sums, lift), domain=Domain.STORED)
        return
    factor, half = scaling
    added = (added + 0.5) * factor if lift else added * factor + half
    sums = _weighted_window(op, g, newest, factor, added)
    if lift:
        sums = g.op("Mod", sums, g.constant(ALL * factor), fmod=1)
        sums = g.op("Add", sums, g.constant(half - (lift + 0.5) * factor))
    g.write(op.output, _integer_codes(g, sums), domain=Domain.STORED)


def _newest(op: View, g: Graph) -> ir.Value:
    """The newest step of the state, by a product in float64 where that is exact."""
    feature = constant_of(op["weights_feature"]).astype(np.int64)
    # The products with the zero point are added, so that sums may be twice as large.
    largest = 2 * float(REACH * reach(feature.T).max())
    exact = feature.size <= _FEW and is_exact_in_double(state_multiplier(op), largest)
    product = _product(op, g, feature, largest) if exact else rescaled_product(op, g)
    return newest_step(op, g, product)


def _product(op: View, g: Graph, feature: npt.NDArray[np.int64], largest: float) -> ir.Value:
    """As `rescaled_product`, of sums up to `largest`: weights have the multiplier in them."""
    multiplier = state_multiplier(op)
    factor, right = first_factor(multiplier)
    at_once = bool(right) and not may_tie(*quantize_multiplier(multiplier), largest, bits=17)
    factor, half = (factor * 2.0**-right, 0.0) if at_once else (factor, 0.5)
    weights = g.constants.add(feature.T * factor, "weights_feature")
    rest = half - carried_zero(op["input"]) * feature.sum(axis=1) * factor
    sums = g.op("Gemm", _in_double(op, g), weights, g.constants.add(rest, "zero_point"))
    if at_once:
        return rounded_twice(g, sums, int(right))
    return shifted_right(g, g.op("Floor", sums), right)


def _in_double(op: View, g: Graph) -> ir.Value:
    """The carried codes of the input; those of another SVDF are not made integers before."""
    codes = g.read(op["input"], domain=Domain.STORED)
    maker = codes.producer()
    source = None if maker is None or maker.op_type != "Cast" else maker.inputs[0]
    if source is not None and _WHOLE_PARTS in source.marks:
        return g.op("Floor", source)
    return g.cast(codes, ir.DataType.DOUBLE)


def _output_codes(op: View, g: Graph, sums: ir.Value, lift: int) -> ir.Value:
    """The carried codes [B, U] of the output for sums in float64, which are `lift` too large."""
    scaling = _scaling(op)
    if scaling is None:
        return output_codes(op, g, sums, lift)
    factor, half = scaling
    sums = g.op("Mul", sums, g.constant(factor))
    return _integer_codes(g, g.op("Add", sums, g.constant(half - lift * factor)))


def _scaling(op: View) -> tuple[float, float] | None:
    """(factor, half): the code of a sum is the whole part of sum * factor + half, as far as it is
    no code below 0; None where it is not.

    What is below 0 is clipped. Above, both roundings are one: they take halves upwards. Lifted
    products are below 2**63, and so within 2**9 of the double, as `multiplies_in_double` wants.
    """
    multiplier, most = output_multiplier(op), float(min(largest_sum(op), WRAPS))
    if carried_zero(op.output) or not multiplies_in_double(multiplier, most, bits=9):
        return None
    factor, right = first_factor(multiplier)
    half = 0.5 + (2.0 ** -float(right + 1) if right else 0)
    return float(factor * 2.0 ** -float(right)), half


def _rounds_alike(op: View, lift: int) -> bool:
    """Whether codes are the same where weights are multiplied before they are summed.

    Then numbers with 31 more bits are rounded to float64: all products, which together are below
    the largest sum, all partial sums, and what is added.
    """
    largest = (largest_sum(op) + float(added_to_sums(op, lift).max(initial=0)) + 1) * 2.0**31
    terms = op.options.rank * op["weights_time"].shape[1]
    return rounds_alike(output_multiplier(op), (terms + 4) * largest * 2.0**-53, bits=8)


def _integer_codes(g: Graph, value: ir.Value) -> ir.Value:
    """`value`, from 0 to 255, rounded down to codes."""
    value = clip(g, value, (0, REACH))
    value.marks |= {_WHOLE_PARTS}
    return g.cast(value, ir.DataType.UINT8)


def _weighted_window(
    op: View, g: Graph, newest: ir.Value, factor: float, added: npt.NDArray[np.float64]
) -> ir.Value:
    """The sums [1, U] of a state that is kept as rows, times `factor`, and `added`: a product of
    ones and the weighted rows."""
    time, rank = constant_of(op["weights_time"]), op.options.rank
    filters, memory = time.shape
    rows = with_newest(g, op["state"], newest, memory, ir.DataType.DOUBLE)
    zero_point = carried_zero(op["state"])
    rows = g.op("Sub", rows, g.constant(zero_point, np.float64)) if zero_point else rows
    weights = g.constants.add(time.T * factor, "weights_time")
    rows = g.op("Mul", rows, weights)
    if rank > 1:
        rows = g.op("ReduceSum", g.reshape(rows, (memory, -1, rank)), g.ints([2]), keepdims=0)
    bias = np.ascontiguousarray(np.broadcast_to(added, filters // rank))
    ones = g.constant(np.ones((1, memory)))
    return g.op("Gemm", ones, rows, g.constants.add(bias, "bias"))


def _products_of_rows(op: View, g: Graph, lift: int, newest: ir.Value) -> ir.Value:
    """[B, U] of the state's codes: each row times its weights, in 32-bit integers, which wrap
    around by themselves."""
    time, rank, bias = constant_of(op["weights_time"]), op.options.rank, bias_of(op)
    filters, memory = time.shape
    units, columns = filters // rank, rank * memory
    steps = state_steps(op, g, state_after(op, g, newest), np.int32)
    steps = g.reshape(steps, (-1, units, 1, columns))
    weights = time_weights(g, time.reshape(units, columns, 1), np.int32)
    sums = g.reshape(g.op("MatMul", steps, weights), (-1, units))
    sums = g.op("Add", sums, g.constant(bias.astype(np.int32))) if bias.any() else sums
    return g.cast(sums, ir.DataType.DOUBLE)
