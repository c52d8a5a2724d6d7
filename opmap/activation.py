"""Activation functions: RELU and its kin, sigmoids, HARD_SWISH, GELU, SOFTMAX, LOG_SOFTMAX.

Rows of a table: relu, relu6, relu_n1_to_1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.by_code import by_code, by_tabulated_code, every_code
from tflite_ort.opmap.idioms.function_codes import Function, write_function
from tflite_ort.opmap.idioms.rescaled_codes import Codes, requantized, rescaled_codes
from tflite_ort.opmap.idioms.sloped_codes import rounds_as_reals, write_sloped
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    ActivationFunctionType,
    GeluOptions,
    LeakyReluOptions,
    Op,
    OperatorView,
    SoftmaxOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.code_functions import (
    fast_sigmoid_int16,
    fast_tanh_int16,
    leaky_relu_codes,
)
from tflite_ort.schema.arithmetic.softmax_tables import softmax_powers, softmax_reciprocals
from tflite_ort.schema.values.semantics import rounded_ratio
from tflite_ort.schema.values.sizes import LARGEST_SIZE, is_known

with late:
    from tflite_ort.opmap.idioms import hard_swish_codes as gates
    from tflite_ort.schema.arithmetic import function_table


Array = npt.NDArray[Any]
View = OperatorView[Any]

_POWER_BITS = 15
# The slopes of a LEAKY_RELU from codes to codes, which LiteRT holds in 256ths, have to be within
# these.
_PARTS = 256
_LEAST, _MOST, _STEEPEST_FALL = 1 / _PARTS, 128.0, 1 / _PARTS - 128
# Moves halves up, and no other number past a half: results are multiples of 1/256.
_MOVE = 2.0**-18

_T = TensorType
_BYTES = frozenset({_T.UINT8, _T.INT8})
_CODES = _BYTES | {_T.INT16}
_FLOAT32 = frozenset({_T.FLOAT32})
_HALF = frozenset({_T.FLOAT32, _T.FLOAT16})

_FINE = 2.0**-21


def check_types(op: View, types: frozenset[TensorType], *, widened: bool = False) -> None:
    """Refuses an input that is not of one of `types`, and integer codes without a scale.

    Args:
        widened: the output is of a wider type than the input.
    """
    input, output = op["input"], op.output
    if input.type not in types or (input.type is not output.type and not widened):
        raise Untranslatable(f"{input.type.name} to {output.type.name} is not translated")
    if input.type in _CODES and not (input.is_quantized and output.is_quantized):
        raise Untranslatable(f"{input.type.name} without a scale")


def unary(
    op_type: str, types: frozenset[TensorType], attributes: dict[str, Any], op: View, g: Graph
) -> None:
    """One node on real numbers, in the layout of the input."""
    check_types(op, types)
    layout = g.layout(op["input"], rows=True)
    result = g.op(op_type, g.read(op["input"], layout=layout), **attributes)
    g.write(op.output, result, layout=layout)


def of_reals_or_codes(
    op_type: str, function: Function, attributes: dict[str, Any], op: View, g: Graph
) -> None:
    """One node on real numbers; of codes in a unit in which they become TFLite's."""
    if op["input"].is_quantized:
        write_function(op, g, function, partial(g.op, op_type, **attributes))
        return
    layout = g.layout(op["input"], rows=True)
    result = g.op(op_type, g.read(op["input"], layout=layout), **attributes)
    g.write(op.output, result, layout=layout)


@translator(Op.HARD_SWISH, versions=(1, 1))
def hard_swish(op: View, g: Graph) -> None:
    """HardSwish; of codes the function whose results are rounded to TFLite's, where the target
    wants them exact."""
    check_types(op, _FLOAT32 | _BYTES)
    layout = g.layout(op["input"], rows=True)
    if op["input"].type in _BYTES and (g.target.exact or g.target.exact_gates):
        gates.write_hard_swish(op, g, layout)
        return
    g.write(op.output, g.op("HardSwish", g.read(op["input"], layout=layout)), layout=layout)


@translator(Op.ELU, versions=(1, 1))
def elu(op: View, g: Graph) -> None:
    """Elu. ONNX Runtime takes 1 off a power, so that small numbers lose their last bits: of codes
    that are as small, those that are not cut are the numbers themselves."""
    check_types(op, _FLOAT32 | {_T.INT8})
    if not _is_fine(op):
        of_reals_or_codes("Elu", function_table.exact_elu, {}, op, g)
        return
    layout = g.layout(op["input"])
    g.write(op.output, g.read(op["input"], layout=layout), layout=layout)


def _is_fine(op: View) -> bool:
    """Whether a quantum of 8-bit results is near the last bits that float32 has of 1."""
    made = op.output.quantization
    return op["input"].type in _BYTES and made is not None and made.scalar_scale < _FINE


def _refuse_fine(op: View) -> None:
    """Leaves to numpy what is next to 0 as a difference of powers from 1."""
    if _is_fine(op):
        raise Untranslatable(f"a scale below {_FINE:g} of the result")


@translator(Op.TANH, versions=(1, 3))
def tanh(op: View, g: Graph) -> None:
    """Tanh; for 16-bit codes a Gather, since TFLite's own table is up to 3 codes off."""
    if op["input"].type is _T.INT16:
        _of_int16("Tanh", fast_tanh_int16, op, g)
        return
    unary("Tanh", _HALF | _BYTES, {}, op, g)


def _of_int16(
    name: str, function: Callable[[Array, np.float32], Array], op: View, g: Graph
) -> None:
    """A function of 16-bit codes; by the node `name` where there are pairs around nodes."""
    wanted = of_every_code(op, function)
    if not g.target.paired_codes:
        by_code(op, g, wanted)
        return
    layout = g.layout(op["input"])
    g.write(op.output, g.op(name, g.read(op["input"], layout=layout)), layout=layout)


def of_every_code(op: View, function: Callable[[Array, np.float32], Array]) -> Array:
    """The results of `function` for all int16 codes, with the quantization that TFLite requires."""
    check_types(op, _CODES)
    given, made = op["input"].quantization, op.output.quantization
    assert given is not None and made is not None
    exact = math.isclose(made.scalar_scale, 1 / 32768, rel_tol=1e-3)
    if not exact or given.scalar_zero_point or made.scalar_zero_point:
        raise Untranslatable("INT16 with a zero point, or an output scale other than 1/32768")
    return function(every_code(_T.INT16), given.sole_scale)


@translator(Op.LOGISTIC, versions=(1, 3))
def logistic(op: View, g: Graph) -> None:
    """Sigmoid for 8-bit codes, a Gather for 16-bit ones, and 1 / (1 + Exp(-x)) for floats.

    ONNX Runtime's Sigmoid of floats is off by 1e-8, so that 1e-9 and 1e-20 both become 0.
    """
    input = op["input"]
    if input.type is _T.INT16:
        _of_int16("Sigmoid", fast_sigmoid_int16, op, g)
        return
    if input.is_quantized:
        _refuse_fine(op)
        unary("Sigmoid", _BYTES, {}, op, g)
        return
    check_types(op, _HALF)
    layout = g.layout(input, rows=True)
    power = g.op("Exp", g.op("Neg", g.read(input, layout=layout)))
    result = g.op("Reciprocal", g.op("Add", power, g.constant(1, input.dtype)))
    g.write(op.output, result, layout=layout)


def relu_between(
    activation: ActivationFunctionType, types: frozenset[TensorType], op: View, g: Graph
) -> None:
    """Relu or Clip; on the codes themselves if input and output have the same quantization."""
    check_types(op, _FLOAT32 | types)
    input, output = op["input"], op.output
    layout, domain = g.layout(input, rows=True), Domain.REAL
    if input.type in _CODES:
        if input.type is _T.INT16 or not _are_alike(input, output):
            rescaled_codes(op, g, _requantized(op), activation=activation)
            return
        domain = Domain.STORED
    x = g.read(input, layout=layout, domain=domain)
    g.write(output, x, layout=layout, domain=domain, activation=activation)


def _are_alike(a: TensorView, b: TensorView) -> bool:
    """Whether the codes of both mean the same numbers."""
    return a.quantization is not None and a.quantization.equals(b.quantization)


def _requantized(op: View) -> Array:
    """Every code in the unit of the output; TFLite divides the scales in float32 here."""
    source, target = Codes.of(op["input"]), Codes.of(op.output)
    return requantized(source, target, float(np.float32(source.scale) / np.float32(target.scale)))


for operator, last, activation, types in (
    (Op.RELU, 3, ActivationFunctionType.RELU, _CODES),
    (Op.RELU6, 3, ActivationFunctionType.RELU6, _CODES),
    (Op.RELU_N1_TO_1, 1, ActivationFunctionType.RELU_N1_TO_1, _BYTES),
):
    translator(operator, versions=(1, last))(partial(relu_between, activation, types))


@translator(Op.RELU_0_TO_1, versions=(1, 1))
def relu_0_to_1(op: View, g: Graph) -> None:
    """Clip to [0, 1]."""
    check_types(op, _FLOAT32 | _BYTES)
    if op.output.quantization is not None and op.output.is_quantized:
        most = rounded_ratio(1.0, op.output.quantization.scalar_scale)
        relu = ActivationFunctionType.RELU
        rescaled_codes(op, g, _requantized(op), activation=relu, most=most)
        return
    layout, (low, high) = g.layout(op["input"]), (g.constant(x, np.float32) for x in (0, 1))
    x = g.op("Clip", g.read(op["input"], layout=layout), low, high)
    g.write(op.output, x, layout=layout)


@translator(Op.LEAKY_RELU, versions=(1, 2))
def leaky_relu(op: OperatorView[LeakyReluOptions], g: Graph) -> None:
    """LeakyRelu with the slope `alpha` below 0; for 16-bit codes a Gather."""
    check_types(op, _FLOAT32 | _CODES)
    input, output, alpha = op["input"], op.output, np.float32(op.options.alpha)
    given, made = input.quantization, output.quantization
    if input.type is _T.FLOAT32 or given is None or made is None:
        unary("LeakyRelu", _FLOAT32, {"alpha": float(alpha)}, op, g)
        return
    scale, unit = given.sole_scale, made.sole_scale
    slopes = None if input.type is _T.INT16 else leaky_slopes(scale / unit, alpha)
    if slopes is not None:
        layout, (unit_of_codes, slope) = g.layout(input), slopes
        x = g.read_steps(input, float(scale) / unit_of_codes, layout=layout)
        g.write(output, g.op("LeakyRelu", x, alpha=slope), layout=layout)
        return
    source, target, slope = Codes.of(input), Codes.of(output), float(alpha)
    steps = source.steps().astype(np.int32)
    wanted = target.filed(leaky_relu_codes(steps, scale, alpha, unit))
    if input.type is _T.INT16:
        by_code(op, g, wanted)
        return
    rescaled_codes(op, g, wanted, slope, sloped=lambda x: g.op("LeakyRelu", x, alpha=slope))


# The opset that brought Gelu.
_GELU_SINCE = 20


@translator(Op.GELU, versions=(1, 3))
def gelu(op: OperatorView[GeluOptions], g: Graph) -> None:
    """Gelu, exact or by Tanh; for 16-bit codes a Gather."""
    if by_tabulated_code(op, g):
        return
    _refuse_fine(op)
    if g.opset < _GELU_SINCE:
        check_types(op, _HALF | _BYTES)
        layout = g.layout(op["input"])
        x, half = g.read(op["input"], layout=layout), op["input"].type is _T.FLOAT16
        dtype = np.dtype(np.float16 if half else np.float32)
        g.write(op.output, _composed_gelu(g, x, dtype, op.options.approximate), layout=layout)
        return
    approximate = op.options.approximate
    function = function_table.gelu_by_tanh if approximate else function_table.exact_gelu
    check_types(op, _HALF | _BYTES)
    attributes = {"approximate": "tanh" if approximate else "none"}
    of_reals_or_codes("Gelu", function, attributes, op, g)


def _composed_gelu(g: Graph, x: ir.Value, dtype: np.dtype[Any], approximate: bool) -> ir.Value:
    """x / 2 * (1 + Erf(x / sqrt 2)), or by Tanh, of floats."""

    def number(value: float) -> ir.Value:
        return g.constant(value, dtype)

    if approximate:
        cube = g.op("Mul", g.op("Mul", x, x), g.op("Mul", x, number(0.044715)))
        inner = g.op("Mul", g.op("Add", x, cube), number(math.sqrt(2 / math.pi)))
        turned = g.op("Tanh", inner)
    else:
        turned = g.op("Erf", g.op("Mul", x, number(math.sqrt(0.5))))
    return g.op("Mul", g.op("Mul", x, number(0.5)), g.op("Add", turned, number(1)))


def check_prelu(op: View) -> None:
    """Refuse types that TFLite does not have together."""
    input, alpha = op["input"], op["alpha"]
    check_types(op, _FLOAT32 | _CODES)
    expected = _T.INT8 if input.type is _T.INT16 else input.type
    if alpha.type is not expected or alpha.is_quantized is not input.is_quantized:
        raise Untranslatable(f"{input.type.name} input with {alpha.type.name} alpha")


@translator(Op.PRELU, versions=(1, 1), check=check_prelu)
def prelu(op: View, g: Graph) -> None:
    """PRelu with a slope that broadcasts to the shape of the input."""
    input, alpha = op["input"], op["alpha"]
    layout = g.layout(input)
    if input.is_quantized and input.type in _BYTES and not rounds_as_reals(op):
        write_sloped(op, g, layout)
        return
    slope = g.read(alpha, layout=layout, rank=input.rank)
    g.write(op.output, g.op("PRelu", g.read(input, layout=layout), slope), layout=layout)


@translator(Op.SOFTMAX, versions=(1, 4))
def softmax(op: OperatorView[SoftmaxOptions], g: Graph) -> None:
    """Softmax(beta * x) along the last axis.

    For 8-bit codes it is fused to QLinearSoftmax, which equals TFLite for two elements or more.
    """
    input, output = op["input"], op.output
    widened = input.type is _T.INT8 and output.type is _T.INT16
    check_types(op, _HALF | _CODES, widened=widened)
    if input.rank < 1:
        raise Untranslatable("softmax of a scalar")
    # Of a beta below 0 TFLite's kernels end the process, or compute something else.
    if input.is_quantized and not op.options.beta >= 0:
        raise Untranslatable(f"beta is {op.options.beta}")
    if input.type is _T.INT16 and not g.target.paired_codes:
        softmax_of_int16(op, g)
        return
    x = g.read(input, layout=Layout.LAST)
    if input.is_quantized and input.shape[-1] == 1:
        # ONNX Runtime's integer softmax of one element wraps 256 to 0.
        g.write(output, g.op("Exp", g.op("Sub", x, x)))
        return
    if op.options.beta != 1.0:
        dtype = np.float32 if input.is_quantized else input.dtype
        if op.options.beta > 1.0 and not input.is_quantized:  # the products would be less exact
            x = g.op("Sub", x, g.op("ReduceMax", x, g.ints([-1]), keepdims=1))
        x = g.op("Mul", x, g.constant(op.options.beta, dtype))
    g.write(output, g.op("Softmax", x, axis=-1))


@translator(Op.LOG_SOFTMAX, versions=(1, 2))
def log_softmax(op: View, g: Graph) -> None:
    """LogSoftmax along the last axis."""
    check_types(op, _FLOAT32 | _BYTES)
    input, output = op["input"], op.output
    if input.rank < 1:
        raise Untranslatable("softmax of a scalar")
    quantization = output.quantization
    if quantization is not None and input.is_quantized and quantization.scalar_scale != 1 / 16:
        raise Untranslatable(f"output scale is {quantization.scalar_scale}, expected 1/16")
    g.write(output, g.op("LogSoftmax", g.read(input), axis=-1))


def softmax_of_int16(op: OperatorView[SoftmaxOptions], g: Graph) -> None:
    """SOFTMAX by Gather from a table of powers and one of reciprocals: exact.

    The sum of the powers is s = m * 2**n with m in [2**14, 2**15). All numbers are integers in
    float64. The second table has 1 / m, and the result is power / m / 2**n, rounded.
    """
    input, output = op["input"].quantization, op.output.quantization
    assert input is not None and output is not None
    if not math.isclose(output.scalar_scale, 2**-15, rel_tol=1e-3) or output.scalar_zero_point:
        raise Untranslatable("INT16 with a zero point, or an output scale other than 1/32768")
    powers = _powers(op, g, float(input.sole_scale * np.float32(op.options.beta)))
    total = g.op("ReduceSum", powers, g.ints([-1]), keepdims=1)
    shrink = _to_power_of_two(g, total, op["input"].shape[-1])
    place = _rounded(g, g.op("Mul", g.op("Mul", total, shrink), g.constant(4, np.float64)))
    place = g.op("Min", g.op("Sub", place, g.constant(2**16, np.float64)), g.constant(65535.0))
    index = g.cast(place, ir.DataType.INT32)
    inverse = g.op("Gather", g.constant(softmax_reciprocals()), index)
    inverse = g.cast(inverse, ir.DataType.DOUBLE)
    factor = g.op("Mul", g.op("Mul", inverse, shrink), g.constant(2.0**-14))
    codes = g.op("Min", _rounded(g, g.op("Mul", powers, factor)), g.constant(32767.0))
    result = g.cast(codes, ir.DataType.INT16)
    g.write(op.output, result, layout=Layout.LAST, domain=Domain.STORED)


def _powers(op: OperatorView[SoftmaxOptions], g: Graph, scale: float) -> ir.Value:
    """e**(scale * (code - largest code of the row)) in Q0.15, as float64."""
    codes = g.read(op["input"], layout=Layout.LAST, domain=Domain.STORED)
    codes = g.cast(codes, ir.DataType.INT32)
    largest = g.op("ReduceMax", codes, g.ints([-1]), keepdims=1)
    index = g.op("Sub", codes, g.op("Sub", largest, g.constant(65535, np.int32)))
    powers = g.op("Gather", g.constant(softmax_powers(scale)), index)
    if g.target.only_runs and is_known(*op["input"].shape):
        powers.shape = op["input"].shape  # see `look_up_elements`
    return g.cast(powers, ir.DataType.DOUBLE)


def _to_power_of_two(g: Graph, total: ir.Value, count: int) -> ir.Value:
    """The 2**-n that scales the sum of `count` powers to below 2**15."""
    count = count if is_known(count) else LARGEST_SIZE
    most = max((count << _POWER_BITS).bit_length() - _POWER_BITS, 1)
    limits = g.constant(2.0 ** np.arange(_POWER_BITS, _POWER_BITS + most))
    reached = g.cast(g.op("GreaterOrEqual", total, limits), ir.DataType.INT32)
    n = g.op("ReduceSum", reached, g.ints([-1]), keepdims=1)
    return g.op("Gather", g.constant(0.5 ** np.arange(most + 1)), n)


def _rounded(g: Graph, value: ir.Value) -> ir.Value:
    return g.op("Floor", g.op("Add", value, g.constant(0.5, np.float64)))


def leaky_slopes(ratio: np.float32, alpha: np.float32) -> tuple[float, float] | None:
    """The unit to read the codes in, and the slope below 0, for results as LiteRT's default has.

    With these, rounding halves to even gives what LiteRT's rounding of halves upwards gives.
    There are none where LiteRT does not use XNNPACK.

    Args:
        ratio: the scale of the input in units of the output's.
        alpha: the slope below 0, of reals.
    """
    fall = ratio * alpha
    if not (_LEAST <= ratio <= _MOST and _STEEPEST_FALL <= fall <= _MOST and abs(fall) >= _LEAST):
        return None
    above, below = (float(np.rint(slope * np.float32(_PARTS))) / _PARTS for slope in (ratio, fall))
    above, below = above * (1 + _MOVE), below - abs(below) * _MOVE
    return float(ratio) / above, below / above
