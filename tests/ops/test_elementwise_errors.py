"""Operands that elementwise operators cannot take: errors, in the interpreter and in exports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from tests.one_op import T, one_op_model, ours
from tests.ops.operands import exported
from tests.ops.test_elementwise import options
from tests.oracle import litert
from tflite_ort.schema import DelegateError, KernelError, Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

INT32, INT64 = TensorType.INT32, TensorType.INT64
UINT8, INT8, INT16 = TensorType.UINT8, TensorType.INT8, TensorType.INT16


ZERO_DIVISORS = (
    (Op.DIV, T((2,), INT32), 0),
    (Op.FLOOR_DIV, T((2,), INT32), 0),
    (Op.DIV, T((2,), INT8, scale=0.1, zero_point=5), 5),
    (Op.DIV, T((2,), UINT8, scale=0.1, zero_point=160), 160),
)


@pytest.mark.parametrize(("op", "tensor", "zero"), ZERO_DIVISORS)
def test_integer_division_by_zero_is_an_error(op: Op, tensor: T, zero: int) -> None:
    model = one_op_model(op, [tensor, tensor], [tensor], options(op))
    dtype = NUMPY_DTYPE[tensor.type]
    with pytest.raises(KernelError, match="division by 0"):
        ours(model, [np.ones(2, dtype), np.array([1, zero], dtype)], providers=[])


@pytest.mark.parametrize(("op", "tensor", "zero"), ZERO_DIVISORS)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
def test_onnx_runtime_does_not_answer_a_division_by_zero(
    op: Op, tensor: T, zero: int, constant: bool
) -> None:
    """Codes are divided as reals, and an infinity would become the largest code."""
    dividends, divisors = (np.array([1, n], NUMPY_DTYPE[tensor.type]) for n in (1, zero))
    feeds = [dividends] if constant else [dividends, divisors]
    second = replace(tensor, data=divisors) if constant else tensor
    model = one_op_model(op, [tensor, second], [tensor], options(op))
    with pytest.raises((KernelError, DelegateError), match="division by 0"):
        ours(model, feeds)
    if not constant:
        with pytest.raises(InvalidArgument, match=rf"{op.name}_0/Gather.*out of data bounds"):
            exported(model, feeds)


@pytest.mark.parametrize("type", [INT8, UINT8], ids=lambda type: type.name)
def test_quotients_of_codes_next_to_0_are_0(type: TensorType) -> None:
    """LiteRT shifts them by 32 bits and more, modulo 32: up to 95 codes off."""
    middle = 160 if type is UINT8 else 32
    tensors = [T((3,), type, scale, middle) for scale in (0.0625, 0.27, 0.0625)]
    dividends, divisors = np.add([10, 9, -1], middle), np.add([90, 80, -39], middle)
    model = one_op_model(Op.DIV, tensors[:2], tensors[2:], options(Op.DIV))
    feeds = [codes.astype(NUMPY_DTYPE[type]) for codes in (dividends, divisors)]
    for providers in (None, []):
        assert ours(model, feeds, providers)[0][0].tolist() == [middle] * 3


LOWEST = np.iinfo(np.int32).min
DIVIDENDS, DIVISORS = [7, -7, 7, LOWEST, LOWEST], [2, 2, -2, -1, 3]


@pytest.mark.parametrize("op", [Op.DIV, Op.FLOOR_DIV, Op.FLOOR_MOD], ids=lambda op: op.name)
def test_exported_divisions_end_in_an_error_not_the_process(op: Op) -> None:
    """The processor faults on a division by 0, and on the lowest integer over -1."""
    model = one_op_model(op, [T((5,), INT32)] * 2, [T((5,), INT32)], options(op))
    dividends, divisors = (np.array(list, np.int32) for list in (DIVIDENDS, DIVISORS))
    by_numpy = ours(model, [dividends, divisors], providers=[])[0][0]
    np.testing.assert_array_equal(exported(model, [dividends, divisors])[0], by_numpy)
    with pytest.raises(InvalidArgument, match=rf"{op.name}_0/Gather.*out of data bounds"):
        exported(model, [dividends, np.array([1, 1, 0, 1, 1], np.int32)])


def test_exported_powers_end_in_an_error_where_an_exponent_is_negative() -> None:
    model = one_op_model(Op.POW, [T((2,), INT32)] * 2, [T((2,), INT32)])
    bases = np.array([2, 3], np.int32)
    assert exported(model, [bases, np.array([5, 0], np.int32)])[0].tolist() == [32, 1]
    with pytest.raises(InvalidArgument, match=r"POW_0/Gather.*out of data bounds"):
        exported(model, [bases, np.array([1, -1], np.int32)])


def test_exported_root_of_16_bit_codes() -> None:
    """Whether a code is negative is seen by the kernel beforehand, in a graph when it runs."""
    every = np.arange(32768, dtype=np.int16)
    model = one_op_model(
        Op.RSQRT, [T((32768,), INT16, scale=0.01)], [T((32768,), INT16, scale=0.001)]
    )
    (want,) = litert(model, [every], "reference")
    np.testing.assert_array_equal(exported(model, [every])[0], want)
    with pytest.raises(InvalidArgument, match=r"RSQRT_0/Gather.*out of data bounds"):
        exported(model, [every - 1])


@pytest.mark.parametrize("op", [Op.SQRT, Op.RSQRT], ids=lambda op: op.name)
def test_root_of_a_negative_code_is_an_error(op: Op) -> None:
    tensor = T((2,), INT8, scale=0.1, zero_point=5)
    with pytest.raises(KernelError, match="only defined for"):
        ours(one_op_model(op, [tensor], [tensor]), [np.array([9, 3], np.int8)])


def test_negative_integer_exponent_is_an_error() -> None:
    model = one_op_model(Op.POW, [T((2,), INT32)] * 2, [T((2,), INT32)])
    with pytest.raises(KernelError, match="negative exponent"):
        ours(model, [np.array([2, 3], np.int32), np.array([1, -1], np.int32)])


UNSCALED = ((Op.ADD, 2), (Op.MUL, 2), (Op.EXP, 1), (Op.ABS, 1), (Op.HARD_SWISH, 1), (Op.RELU, 1))


@pytest.mark.parametrize(("op", "operands"), UNSCALED)
def test_codes_without_a_scale_are_refused(op: Op, operands: int) -> None:
    """LiteRT would divide by a scale of 0."""
    scaled, unscaled = T((2,), INT8, scale=0.1), T((2,), INT8)
    for inputs, output in (([unscaled] * operands, scaled), ([scaled] * operands, unscaled)):
        with pytest.raises(KernelError, match=r"not quantized|is not implemented"):
            ours(one_op_model(op, inputs, [output], options(op)), [np.ones(2, np.int8)] * operands)
