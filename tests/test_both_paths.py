"""Odd models that ONNX Runtime's path runs: the numpy kernels run them too, and what one path
refuses the other refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, one_op_model, ours
from tests.oracle import litert
from tests.subgraph_models import Sub, model_of
from tflite_ort import BridgeError, Interpreter
from tflite_ort.schema import (
    BatchMatMulOptions,
    GatherOptions,
    Op,
    Padding,
    SoftmaxOptions,
    SplitOptions,
    TensorType,
    TransposeConvOptions,
    VarHandleOptions,
)

F32, I8, U8, I16 = TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16
I32, BOOL = TensorType.INT32, TensorType.BOOL
Codes = dict[str, Any]

ALL = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)


def quantised(type: TensorType, scale: float, zero_point: int = 0) -> Codes:
    return {"type": type, "scale": scale, "zero_point": zero_point}


def softmax(scale: float, beta: float, out: Codes, op: Op = Op.SOFTMAX) -> bytes:
    options = SoftmaxOptions(beta) if op is Op.SOFTMAX else None
    shape = ALL.shape
    return one_op_model(op, [T(shape, I8, scale=scale)], [T(shape, **out)], options)


UNIT = quantised(I8, 1 / 256, -128)
MODELS = {
    "logistic of another unit": one_op_model(
        Op.LOGISTIC, [T(ALL.shape, I8, scale=0.05)], [T(ALL.shape, I8, scale=0.01, zero_point=-9)]
    ),
    "a small beta": softmax(0.1, 1e-9, UNIT),
    "a beta of 0": softmax(0.1, 0.0, UNIT),
    "a small scale": softmax(1e-9, 1.0, UNIT),
    "log softmax of a small scale": softmax(1e-9, 1.0, quantised(I8, 1 / 16, 127), Op.LOG_SOFTMAX),
}


@pytest.mark.parametrize("name", MODELS)
def test_both_paths_give_the_codes_of_litert(name: str) -> None:
    (want,) = litert(MODELS[name], [ALL])
    for providers in (None, []):
        (got,), _ = ours(MODELS[name], [ALL], providers)
        assert np.max(np.abs(got.astype(int) - want.astype(int))) <= 1, providers


def test_softmax_of_bytes_in_another_unit() -> None:
    shape, x = ALL.shape, ALL.view(np.uint8)
    outputs = [T(shape, U8, scale=0.01)]
    model = one_op_model(Op.SOFTMAX, [T(shape, U8, scale=0.1)], outputs, SoftmaxOptions(1.0))
    (want,) = litert(model, [x])
    for providers in (None, []):
        (got,), _ = ours(model, [x], providers)
        assert np.max(np.abs(got.astype(int) - want.astype(int))) <= 1, providers


def wide(zero_point: int) -> T:
    return T((9,), I16, scale=0.01, zero_point=zero_point)


INT16 = {
    "prelu": (
        one_op_model(
            Op.PRELU, [wide(0), T.constant(np.full(9, 40, np.int8), scale=0.01)], [wide(7)]
        ),
        1,
    ),
    "equal": (one_op_model(Op.EQUAL, [wide(3), wide(0)], [T((9,), BOOL)]), 2),
    "not equal": (one_op_model(Op.NOT_EQUAL, [wide(3), wide(0)], [T((9,), BOOL)]), 2),
}


@pytest.mark.parametrize("name", INT16)
def test_both_paths_take_the_zero_point_of_16_bits(name: str) -> None:
    model, inputs = INT16[name]
    x = np.array([-32768, -300, -3, 0, 1, 3, 5, 999, 32767], np.int16)
    fed = [x, np.array([*x[:4] - np.int16(3), *x[4:]], np.int16)][:inputs]
    (want,) = litert(model, fed)
    for providers in (None, []):
        (got,), _ = ours(model, fed, providers)
        assert np.max(np.abs(got.astype(int) - want.astype(int))) <= 1, providers


@pytest.mark.parametrize("type", [I16, I32])
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("constant", [True, False])
def test_places_are_no_real_numbers(type: TensorType, batch: int, constant: bool) -> None:
    """A scale that the file gives to indices means nothing."""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    places = np.array([[3, 0], [1, 2]], np.int16 if type is I16 else np.int32)
    listed = T.constant(places, scale=0.1) if constant else T(places.shape, type, scale=0.1)
    shape = (2, 2) if batch else (2, 2, 2)
    options = GatherOptions(axis=1, batch_dims=batch)
    model = one_op_model(Op.GATHER, [T(x.shape), listed], [T(shape)], options)
    fed = [x] if constant else [x, places]
    (want,) = litert(model, fed)
    for providers in (None, []):
        (got,), _ = ours(model, fed, providers)
        assert np.array_equal(got, want), providers


AXIS = T.constant(np.array([0], np.int32))
WRONG = {
    "MEAN": one_op_model(Op.MEAN, [T((3, 4)), AXIS], [T((4,), I16, scale=0.1)]),
    "SUM": one_op_model(Op.SUM, [T((3, 4), U8, scale=0.1), AXIS], [T((4,), I8, scale=0.1)]),
    "CUMSUM": one_op_model(Op.CUMSUM, [T((3, 4)), AXIS], [T((3, 4), U8, scale=0.1)]),
    "SQUEEZE": one_op_model(Op.SQUEEZE, [T((1, 4), I8, scale=0.1)], [T((4,), U8, scale=0.1)]),
    "BATCH_MATMUL": one_op_model(
        Op.BATCH_MATMUL, [T((3, 4)), T((4, 2))], [T((3, 2), I32)], BatchMatMulOptions()
    ),
    "RNN": one_op_model(
        Op.RNN,
        [
            *(T((1, 4)), T.constant(np.ones((5, 4), np.float32))),
            *(T.constant(np.ones((5, 5), np.float32)), T.constant(np.ones(5, np.int16))),
            T((1, 5), is_variable=True),
        ],
        [T((1, 5))],
    ),
    "SPLIT": one_op_model(
        Op.SPLIT,
        [T.constant(np.float32(1)), T((2, 4))],
        [T((2, 2)), T((2, 2))],
        SplitOptions(num_splits=2),
    ),
    "MATRIX_SET_DIAG": one_op_model(
        Op.MATRIX_SET_DIAG, [T((2, 3), I16), T((2,), I32)], [T((2, 3), I16)]
    ),
    "STABLEHLO_MULTIPLY": one_op_model(Op.STABLEHLO_MULTIPLY, [T((2,), I32)] * 2, [T((2,))]),
    "VAR_HANDLE": one_op_model(Op.VAR_HANDLE, [T((2,))], [T((2,))], VarHandleOptions()),
}


@pytest.mark.parametrize("providers", [None, []])
@pytest.mark.parametrize("name", WRONG)
def test_both_paths_refuse_what_the_file_declares_wrongly(
    name: str, providers: list[str] | None
) -> None:
    with pytest.raises(BridgeError):
        interpreter = Interpreter(model_content=WRONG[name], providers=providers)
        interpreter.allocate_tensors()
        interpreter.invoke()


def test_a_transposed_convolution_has_the_padding_of_the_size_that_the_file_states() -> None:
    """Another number of windows fits in that size than the input has cells."""
    model = one_op_model(
        Op.TRANSPOSE_CONV,
        [
            *(T.constant(np.array([1, 10, 12, 1], np.int32)),),
            *(T.constant(np.ones((1, 3, 3, 1), np.float32)), T((1, 5, 6, 1))),
        ],
        [T((1, 10, 12, 1))],
        TransposeConvOptions(padding=Padding.VALID, stride_w=2, stride_h=2),
    )
    x = np.random.default_rng(0).normal(size=(1, 5, 6, 1)).astype(np.float32)
    (want,) = litert(model, [x])
    assert want.shape == (1, 12, 14, 1)
    for providers in (None, []):
        np.testing.assert_allclose(ours(model, [x], providers)[0][0], want, atol=1e-6)


def test_dequantize_gives_floats_whatever_the_file_says() -> None:
    model = one_op_model(Op.DEQUANTIZE, [T((4,), U8, scale=0.5)], [T((4,), I8, scale=0.5)])
    x = np.array([0, 1, 2, 255], np.uint8)
    for providers in (None, []):
        (got,), _ = ours(model, [x], providers)
        assert got.dtype == np.float32 and got.tolist() == [0, 0.5, 1, 127.5]


def test_what_nothing_reads_is_run_on_neither_path() -> None:
    """An index out of bounds whose row is read by an operator that no output needs."""
    tensors = {
        **{name: T((4, 3)) for name in ("x", "y")},
        **{name: T((1, 3)) for name in ("row", "unread")},
        "i": T((1,), I32),
    }
    nodes = [
        Node(Op.GATHER, ["x", "i"], ["row"], GatherOptions()),
        Node(Op.NEG, ["row"], ["unread"]),
        Node(Op.NEG, ["x"], ["y"]),
    ]
    model = model_of(Sub(tensors, nodes, ["x", "i"], ["y"]))
    x = np.ones((4, 3), np.float32)
    for providers in (None, []):
        (got,), _ = ours(model, [x, np.array([9], np.int32)], providers)
        assert np.array_equal(got, -x)
