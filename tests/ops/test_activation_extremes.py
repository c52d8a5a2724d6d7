"""Slopes and scales so large that TFLite's fixed-point multipliers are shifted out of 32 bits: C
does not define what LiteRT gives there, here it is the true value, clamped."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import BridgeError, Interpreter
from tflite_ort.schema import GeluOptions, LeakyReluOptions, Op, SoftmaxOptions, TensorType
from tflite_ort.schema.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)

Array = npt.NDArray[Any]
INT8, INT16 = TensorType.INT8, TensorType.INT16
BOTH = (None, [])


def results(model: bytes, fed: Array) -> list[Array]:
    """Through ONNX Runtime and by numpy."""
    made = []
    for providers in BOTH:
        interpreter = Interpreter(model_content=model, providers=providers)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], fed)
        interpreter.invoke()
        made.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return made


@pytest.mark.parametrize("exponent", [31, 32, 33, 40, 63, 64, 100])
def test_a_shift_out_of_32_bits(exponent: int) -> None:
    q31, shift = quantize_multiplier(np.float64(0.75) * 2.0**exponent)
    assert shift == exponent
    got = multiply_by_quantized_multiplier(np.array([-3, -1, 0, 1, 3], np.int32), q31, shift)
    if exponent > 31:
        assert (np.sign(got) == [-1, -1, 0, 1, 1]).all()
        assert (np.abs(got[[0, 1, 3, 4]].astype(np.int64)) > 2**30).all()


def test_each_channel_has_its_own_shift() -> None:
    q31, shift = quantize_multiplier(np.array([0.5, 2.0, 2.0**40]))
    got = multiply_by_quantized_multiplier(np.full((2, 3), [[100], [-100]], np.int32), q31, shift)
    assert got[:, :2].tolist() == [[50, 200], [-50, -200]]
    assert got[0, 2] > 2**29
    assert got[1, 2] < -(2**29)


@pytest.mark.parametrize("alpha", [1e10, 1e20, 3e38, -1e10])
@pytest.mark.parametrize("type", [INT8, INT16])
def test_a_steep_leaky_relu(alpha: float, type: TensorType) -> None:
    x, dtype = T((5,), type, scale=0.01), np.dtype(type.name.lower())
    model = one_op_model(Op.LEAKY_RELU, [x], [x], LeakyReluOptions(alpha=alpha), version=2)
    fed = np.array([-100, -1, 0, 1, 100], dtype)
    info = np.iinfo(dtype)
    edge = info.min if alpha > 0 else info.max
    for got in results(model, fed):
        assert got.tolist() == [edge, edge, 0, 1, 100]


def test_a_sharp_softmax_of_16_bits() -> None:
    x, y = T((2, 3), INT16, scale=1e-4), T((2, 3), INT16, scale=2.0**-15)
    model = one_op_model(Op.SOFTMAX, [x], [y], SoftmaxOptions(beta=1e10))
    first, second = results(model, np.array([[5, -7, 4], [-30000, 2, 2]], np.int16))
    np.testing.assert_array_equal(first, second)
    assert first[0, 0] > 32700
    assert (first[0, 1:] < 10).all()
    assert first[1, 1] == first[1, 2] > 16000


@pytest.mark.parametrize(
    ("type", "zero_point"),
    [(INT8, -128), (TensorType.UINT8, 0), (TensorType.UINT8, 2), (TensorType.INT16, 0)],
)
def test_a_softmax_of_codes_with_a_beta_below_0_is_refused(
    type: TensorType, zero_point: int
) -> None:
    unit = 2.0**-15 if type is TensorType.INT16 else 2.0**-8
    x, y = T((2, 3), type, scale=0.1), T((2, 3), type, scale=unit, zero_point=zero_point)
    model = one_op_model(Op.SOFTMAX, [x], [y], SoftmaxOptions(beta=-1.0))
    for providers in BOTH:
        interpreter = Interpreter(model_content=model, providers=providers)
        with pytest.raises(BridgeError, match="beta"):
            interpreter.allocate_tensors()
            interpreter.invoke()


@pytest.mark.parametrize(
    ("op", "options", "true"),
    [(Op.GELU, GeluOptions(), lambda x: np.maximum(x, 0)), (Op.EXP, None, np.exp)],
    ids=["GELU", "EXP"],
)
@pytest.mark.parametrize(("scale", "unit"), [(1e3, 2.0), (1e6, 1e-6), (1e12, 1e9)])
def test_a_function_of_16_bits_that_rises_by_all_codes_within_a_step(
    op: Op, options: Any, true: Any, scale: float, unit: float
) -> None:
    """TFLite interpolates between every 128th code, with slopes and corrections of 16 bits, which
    wrap here. GELU of such numbers is their positive part; a step in which nothing wraps is as
    coarse as LiteRT's."""
    x, y = (T((2**16,), TensorType.INT16, scale=each) for each in (scale, unit))
    codes = np.arange(-(2**15), 2**15).astype(np.int16)
    with np.errstate(over="ignore"):
        want = np.clip(true(codes * np.float64(scale)) / unit, -(2**15), 2**15 - 1)
    for got in results(one_op_model(op, [x], [y], options), codes):
        assert np.abs(got - want).max() < 128
