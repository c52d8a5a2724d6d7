"""What a provider computes otherwise than TFLite goes to the next delegate, see `traits`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.delegated import allocated
from tests.lstm_models import Lstm
from tests.models import model_path
from tests.one_op import Node, T, assert_close, graph_model, one_op_model, ours
from tests.ops.loop_models import loop
from tests.ops.test_control_flow import MODELS
from tests.ops.test_control_flow_counted_loops import SCALED
from tests.ops.test_detection_postprocess import PLAIN, model_and_feeds
from tests.oracle import litert
from tests.providers.samples import OPENVINO, WEBGPU
from tests.rnn_models import Svdf
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BitcastOptions,
    Conv2DOptions,
    DivOptions,
    FullyConnectedOptions,
    LocalResponseNormalizationOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    Padding,
    PowOptions,
    ReducerOptions,
    ReverseV2Options,
    RightShiftOptions,
    SplitOptions,
    SplitVOptions,
    StridedSliceOptions,
    TensorType,
    TransposeConvOptions,
)

INT8, INT32, INT64, UINT32 = (
    TensorType.INT8,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT32,
)
LOOP, _ = MODELS["while that grows its state"]
AXIS = T.constant(np.array([1], np.int32))
WIDE = np.array([[2**24, 2**24 + 1], [-(2**24) - 1, -(2**24)]], np.int32)
EQUAL = np.random.default_rng(0).integers(0, 5, (1, 40)).astype(np.int32)

CODES = Svdf(weights="integer", activation=ActivationFunctionType.RELU)

CASES: dict[str, tuple[Op, list[T], list[T], Any, list[Any]]] = {
    "int64": (
        Op.ADD,
        [T((2,), INT64)] * 2,
        [T((2,), INT64)],
        AddOptions(),
        [np.array([2**40, -(2**40)]), np.array([1, 2**33])],
    ),
    "uint32": (
        Op.RIGHT_SHIFT,
        [T((1,), UINT32)] * 2,
        [T((1,), UINT32)],
        RightShiftOptions(),
        [np.array([2**32 - 1], np.uint32), np.array([1], np.uint32)],
    ),
    "bitcast": (
        Op.BITCAST,
        [T((3,), INT32)],
        [T((3, 4), TensorType.UINT8)],
        BitcastOptions(),
        [np.array([-1, 2**31 - 1, 0x01020304], np.int32)],
    ),
    "negative": (Op.NEG, [T((2,), INT8)], [T((2,), INT8)], None, [np.array([-128, 5], np.int8)]),
    "equal-values": (
        Op.TOPK_V2,
        [T((1, 40), INT32), T.constant(np.array(10, np.int32))],
        [T((1, 10), INT32)] * 2,
        None,
        [EQUAL],
    ),
} | {
    op.name: (op, [T((2, 2), INT32), AXIS], [T((2,), INT32)], ReducerOptions(), [WIDE])
    for op in (Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_MIN)
}


def operand(*values: int) -> T:
    return T.constant(np.array(values, np.int32))


PLACE, PAIR = T((1,), INT32), T((2,), INT32)
LOWEST = np.array([-(2**31), 32767], np.int32)
WINDOW = LocalResponseNormalizationOptions(radius=1, bias=0.5, alpha=1.0, beta=0.5)
LARGE = np.arange(36, dtype=np.float32).reshape(2, 6, 3)
CASES |= {
    "divided": (Op.DIV, [PAIR] * 2, [PAIR], DivOptions(), [LOWEST, LOWEST[::-1].copy()]),
    "power": (Op.POW, [PAIR] * 2, [PAIR], PowOptions(), [LOWEST // 2, np.array([1, 2], np.int32)]),
    "products": (
        Op.FULLY_CONNECTED,
        [
            T((1, 4), TensorType.INT16, scale=5e-4, zero_point=0),
            T.constant(np.array([[1, -2, 3, 127]], np.int8), scale=0.01, zero_point=0),
        ],
        [T((1, 1), TensorType.INT16, scale=2e-3, zero_point=0)],
        FullyConnectedOptions(),
        [np.array([[32767, -32767, 5, 300]], np.int16)],
    ),
    "columns": (
        Op.RFFT2D,
        [T((4, 8)), operand(4, 8)],
        [T((4, 5), TensorType.COMPLEX64)],
        None,
        [np.arange(32, dtype=np.float32).reshape(4, 8)],
    ),
    "start": (
        Op.STRIDED_SLICE,
        [T((4,)), PLACE, operand(0), operand(1)],
        [T(())],
        StridedSliceOptions(shrink_axis_mask=1),
        [np.arange(4, dtype=np.float32), np.array([-1], np.int32)],
    ),
    "window": (
        Op.LOCAL_RESPONSE_NORMALIZATION,
        [T((1, 2, 6, 3))],
        [T((1, 2, 6, 3))],
        WINDOW,
        [LARGE.reshape(1, 2, 6, 3)],
    ),
    "axes": (
        Op.REVERSE_V2,
        [T((2, 6, 3)), PAIR],
        [T((2, 6, 3))],
        ReverseV2Options(),
        [LARGE, np.array([0, 1], np.int32)],
    ),
    "sizes": (
        Op.SPLIT_V,
        [T((2, 6, 3)), PAIR, operand(1)],
        [T((2, 3, 3))] * 2,
        SplitVOptions(num_splits=2),
        [LARGE, np.array([2, 4], np.int32)],
    ),
    "axis": (
        Op.SPLIT,
        [PLACE, T((2, 6, 3))],
        [T((2, 3, 3))] * 2,
        SplitOptions(num_splits=2),
        [np.array([1], np.int32), LARGE],
    ),
}


Case = tuple[Op, list[T], list[T], Any]


def convolution(channels: int, outputs: int) -> Case:
    weights = np.random.default_rng(0).normal(size=(outputs, 3, 3, channels)).astype(np.float32)
    inputs = [
        T((1, 5, 6, channels)),
        T.constant(weights),
        T.constant(np.zeros(outputs, np.float32)),
    ]
    return Op.CONV_2D, inputs, [T((1, 3, 4, outputs))], Conv2DOptions(Padding.VALID, 1, 1)


def backwards() -> Case:
    places = [T.constant(np.array(values, np.int32)) for values in ([4], [1], [-1])]
    return Op.STRIDED_SLICE, [T((6,)), *places], [T((3,))], StridedSliceOptions()


def mirrored() -> Case:
    paddings = T.constant(np.array([[2, 1]], np.int32))
    return Op.MIRROR_PAD, [T((5,)), paddings], [T((8,))], MirrorPadOptions(MirrorPadMode.SYMMETRIC)


def transposed() -> Case:
    shape = T.constant(np.array([1, 5, 6, 4], np.int32))
    weights = T.constant(np.ones((4, 3, 3, 2), np.float32))
    options = TransposeConvOptions(Padding.SAME, 1, 1)
    return Op.TRANSPOSE_CONV, [shape, weights, T((1, 5, 6, 2))], [T((1, 5, 6, 4))], options


WEBGPU_CASES = {
    "channels": convolution(6, 8),
    "backwards": backwards(),
    "mirrored": mirrored(),
    "no-bias": transposed(),
    "sine": (Op.SIN, [T((5,))], [T((5,))], None),
}


def assert_left_and_right(provider: str, case: Case, feeds: Any) -> None:
    op, inputs, outputs, options = case
    model = one_op_model(op, inputs, outputs, options)
    (row,) = allocated(model, providers=[provider, CPU]).delegation()
    assert row.delegate != provider
    assert "wrong in" in row.reason
    got, _ = ours(model, feeds, providers=[provider, CPU])
    for result, want in zip(got, litert(model, feeds), strict=True):
        tolerance = 0 if want.dtype.kind in "iu" else 1e-5
        np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance)


@pytest.mark.openvino
@pytest.mark.parametrize("name", CASES)
def test_openvino_leaves_what_it_computes_otherwise(name: str) -> None:
    op, inputs, outputs, options, feeds = CASES[name]
    assert_left_and_right(OPENVINO, (op, inputs, outputs, options), feeds)


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("model", "feeds"),
    [
        (layer.model(), layer.feeds(1)[0])
        for layer in (
            Lstm(peephole=True),
            Lstm(Op.BIDIRECTIONAL_SEQUENCE_LSTM, peephole=True, coupled=True),
        )
    ],
    ids=["peepholes", "both-ways"],
)
def test_openvino_leaves_layers(model: bytes, feeds: list[Any]) -> None:
    rows = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert "wrong in" in rows[0].reason
    assert_right(model, feeds)


@pytest.mark.openvino
def test_openvino_leaves_loops() -> None:
    feeds = [np.int32(0), np.int32(0), np.ones(3, np.float32)]
    rows = allocated(LOOP, providers=[OPENVINO, CPU]).delegation()
    assert OPENVINO not in {row.provider for row in rows}
    assert_right(LOOP, feeds)


@pytest.mark.openvino
def test_openvino_leaves_long_scans() -> None:
    content = loop(SCALED, x="y", until=100)
    rows = allocated(content, providers=[OPENVINO, CPU]).delegation()
    (row,) = (each for each in rows if each.operator == "WHILE")
    assert "its loops" in row.reason
    rng = np.random.default_rng(0)
    shapes = [each["shape"] for each in allocated(content).get_input_details()]
    assert_right(content, [rng.normal(size=shape).astype(np.float32) for shape in shapes])


@pytest.mark.openvino
def test_openvino_takes_a_cell_in_a_loop_of_known_length() -> None:
    content = Path(model_path("tf__gru_f32.tflite")).read_bytes()
    rows = allocated(content, providers=[OPENVINO, CPU]).delegation()
    assert {row.provider for row in rows} == {OPENVINO}
    x = np.random.default_rng(0).normal(size=(1, 12, 8)).astype(np.float32)
    assert_right(content, [x])


@pytest.mark.openvino
@pytest.mark.parametrize("layer", [Lstm(), Lstm(coupled=True, projection=True)], ids=str)
def test_openvino_takes_lstms_without_peepholes(layer: Lstm) -> None:
    (row,) = allocated(layer.model(), providers=[OPENVINO, CPU]).delegation()
    assert "wrong in" not in row.reason


@pytest.mark.openvino
@pytest.mark.parametrize("op", [Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_PROD, Op.SUM])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_openvino_adds_to_a_reduction_along_the_right_axis(op: Op, axis: int) -> None:
    shape = tuple(np.delete((2, 6, 3), axis))
    row = np.arange(shape[-1], dtype=np.float32)
    tensors = {"x": T((2, 6, 3)), "axis": operand(axis), "less": T(shape), "made": T(shape)}
    tensors["row"] = T.constant(row)
    nodes = [
        Node(op, ["x", "axis"], ["less"], ReducerOptions()),
        Node(Op.ADD, ["less", "row"], ["made"], AddOptions()),
    ]
    model = graph_model(tensors, nodes, ["made"])
    rows = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert {row.provider for row in rows} == {OPENVINO}
    assert_right(model, [LARGE])


@pytest.mark.openvino
def test_openvino_reads_a_mean_of_codes_as_it_was_written() -> None:
    """Of codes that are counted from their zero point it reads the second mean with another one."""
    codes = partial(T, type=TensorType.INT8, scale=0.05, zero_point=1)
    tensors = {"x": codes((1, 8, 3, 3)), "axis": operand(-1)}
    tensors |= {"rows": codes((1, 8, 3)), "made": codes((1, 8))}
    nodes = [
        Node(Op.MEAN, ["x", "axis"], ["rows"], ReducerOptions()),
        Node(Op.MEAN, ["rows", "axis"], ["made"], ReducerOptions()),
    ]
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 3, 3)).astype(np.int8)
    model = graph_model(tensors, nodes, ["made"])
    rows = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert {row.provider for row in rows} == {OPENVINO}
    assert_right(model, [x], quanta=1)


@pytest.mark.openvino
@pytest.mark.parametrize("layer", [Svdf(), Svdf(rank=2), CODES, replace(CODES, rank=2)], ids=str)
def test_openvino_is_given_svdf(layer: Svdf) -> None:
    """The provider of the wheel leaves 64-bit floats, and so the codes, to the CPU."""
    (row,) = allocated(layer.model(), providers=[OPENVINO, CPU]).delegation()
    assert "wrong in" not in row.reason
    assert_right(layer.model(), layer.feeds(1)[0])


@pytest.mark.openvino
def test_openvino_leaves_svdf_whose_sums_need_more_bits() -> None:
    layer = replace(CODES, scale=1e-7)
    (row,) = allocated(layer.model(), providers=[OPENVINO, CPU]).delegation()
    assert "24 bits" in row.reason


@pytest.mark.openvino
@pytest.mark.filterwarnings("error::tflite_ort.DelegateWarning")
def test_openvino_does_not_fail_over_clipped_lstms() -> None:
    """Its plug-in takes them; the provider of the wheel leaves a Scan to the CPU."""
    layer = Lstm(cell_clip=1.5)
    assert_right(layer.model(), layer.feeds(1)[0])


def assert_right(model: bytes, feeds: list[Any], quanta: int = 0) -> None:
    got, _ = ours(model, feeds, providers=[OPENVINO, CPU])
    for result, want in zip(got, litert(model, feeds), strict=True):
        assert_close(result, want, quanta, 1e-5, "on OpenVINO")


@pytest.mark.openvino
def test_openvino_does_not_end_the_process_without_detections() -> None:
    options = {**PLAIN, "max_detections": 0}
    model, _ = model_and_feeds(options, np.random.default_rng(0), 3, 1, False)
    (row,) = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert "without elements" in row.reason


@pytest.mark.webgpu
@pytest.mark.parametrize("name", WEBGPU_CASES)
def test_webgpu_leaves_what_it_computes_otherwise(name: str) -> None:
    case = WEBGPU_CASES[name]
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=t.shape).astype(np.float32) for t in case[1] if not t.is_constant]
    assert_left_and_right(WEBGPU, case, feeds)


@pytest.mark.webgpu
def test_webgpu_takes_the_convolutions_it_can() -> None:
    op, inputs, outputs, options = convolution(8, 8)
    model = one_op_model(op, inputs, outputs, options)
    (row,) = allocated(model, providers=[WEBGPU, CPU]).delegation()
    assert row.provider == WEBGPU
