"""Files of floats that count steps: the codes that LiteRT makes, in runtimes without codes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.lstm_models import Lstm
from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.oracle import litert, litert_interpreter
from tflite_ort import BridgeError, ExportError, export_onnx
from tflite_ort.export.presets import PRESETS, ROUNDED
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    CastOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    IfOptions,
    ModelBuilder,
    MulOptions,
    Op,
    Padding,
    Pool2DOptions,
    ReducerOptions,
    ResizeBilinearOptions,
    SoftmaxOptions,
    TensorType,
    TransposeConvOptions,
)

Array = npt.NDArray[Any]
INT8, UINT8, INT32 = TensorType.INT8, TensorType.UINT8, TensorType.INT32
INT16 = TensorType.INT16
ROWS = [name for name, row in PRESETS.items() if row.quantization == ROUNDED]
RNG = np.random.default_rng(5)
SIDE = {"type": INT8, "scale": 0.05, "zero_point": -7}
SAME = {"padding": Padding.SAME, "stride_w": 1, "stride_h": 1}
RELU6 = ActivationFunctionType.RELU6


def weights(*shape: int, axis: int = 0) -> T:
    """8-bit codes with a scale for each channel."""
    scales = RNG.uniform(0.005, 0.02, shape[axis]).tolist()
    codes = RNG.integers(-127, 128, shape).astype(np.int8)
    return T.constant(codes, INT8, scale=scales, zero_point=[0] * len(scales), axis=axis)


def with_bias(weights: T, axis: int = 0) -> list[T]:
    """Weights, and 32-bit codes for each channel; their scales are those of the products."""
    scales = [0.05 * scale for scale in np.atleast_1d(np.asarray(weights.scale))]
    codes = RNG.integers(-900, 900, weights.shape[axis]).astype(np.int32)
    bias = T.constant(codes, INT32, scale=scales, zero_point=[0] * len(scales))
    return [weights, bias]


def made(*shape: int, scale: float = 0.31, zero_point: int = 11) -> T:
    return T(shape, INT8, scale, zero_point)


X = T((1, 5, 6, 4), **SIDE)
DEPTHWISE = DepthwiseConv2DOptions(**SAME, depth_multiplier=1)
# Exactly LiteRT's codes: name, operator, inputs, output, options, version.
EXACT: list[tuple[Op, list[T], T, Any, int]] = [
    (Op.CONV_2D, [X, *with_bias(weights(3, 3, 3, 4))], made(1, 5, 6, 3), Conv2DOptions(**SAME), 3),
    (
        Op.CONV_2D,
        [X, *with_bias(weights(3, 3, 3, 4))],
        made(1, 5, 6, 3),
        Conv2DOptions(**SAME, fused_activation_function=RELU6),
        3,
    ),
    (
        Op.DEPTHWISE_CONV_2D,
        [X, *with_bias(weights(1, 3, 3, 4, axis=3), 3)],
        made(1, 5, 6, 4),
        DEPTHWISE,
        3,
    ),
    (
        Op.FULLY_CONNECTED,
        [T((3, 40), **SIDE), *with_bias(weights(7, 40))],
        made(3, 7, scale=0.4),
        FullyConnectedOptions(),
        5,
    ),
    (
        Op.TRANSPOSE_CONV,
        [
            T.constant(np.array([1, 10, 12, 3], np.int32)),
            weights(3, 3, 3, 4),
            X,
        ],
        made(1, 10, 12, 3),
        TransposeConvOptions(padding=Padding.SAME, stride_w=2, stride_h=2),
        2,
    ),
    (
        Op.BATCH_MATMUL,
        [T((5, 40), **SIDE), T.constant(RNG.integers(-128, 128, (3, 40)).astype(np.int8), **SIDE)],
        made(5, 3, scale=1.9),
        BatchMatMulOptions(adj_y=True),
        2,
    ),
    *(
        (Op.SQUARED_DIFFERENCE, [X, T((1, 5, 6, 1), INT8, scale, -35)], made(1, 5, 6, 4), None, 2)
        for scale in (0.003, 0.05, 0.4)
    ),
    *(
        (Op.RSQRT, [T((9, 40), INT8, scale, -128)], T((9, 40), INT8, 0.147, -128), None, 2)
        for scale in (4e-6, 0.0014, 0.3)
    ),
    (
        Op.CONCATENATION,
        [X, X],
        T((1, 5, 6, 8), **SIDE),
        ConcatenationOptions(axis=3),
        2,
    ),
    (
        Op.MAX_POOL_2D,
        [X],
        T((1, 2, 3, 4), **SIDE),
        Pool2DOptions(
            padding=Padding.VALID, filter_width=2, filter_height=2, stride_w=2, stride_h=2
        ),
        2,
    ),
]


POOL = Pool2DOptions(padding=Padding.VALID, filter_width=2, filter_height=2, stride_w=2, stride_h=2)
SOFTMAX, U8 = SoftmaxOptions(beta=1.0), T((1, 5), UINT8, 0.07, 120)
DEQUANTIZED: dict[str, Any] = {"dequantize": True, "float_io": True}


def compared(content: bytes, name: str, seed: int = 0) -> tuple[Array, Array]:
    """The codes of what a file for `name` gives, and LiteRT's; the inputs are random."""
    model, rng = export_onnx(content, for_=name, check=True), np.random.default_rng(seed)
    interpreter = litert_interpreter(content)
    interpreter.allocate_tensors()
    feeds = {}
    for detail, value in zip(interpreter.get_input_details(), model.graph.input, strict=True):
        limits, (scale, zero) = np.iinfo(detail["dtype"]), detail["quantization"]
        codes = rng.integers(limits.min, limits.max + 1, detail["shape"]).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], codes)
        feeds[value.name] = (codes.astype(np.float32) - zero) * np.float32(scale)
    interpreter.invoke()
    # It multiplies weights by scales, which makes sums of them other numbers. Others do not.
    (got,) = onnxruntime.InferenceSession(
        model.SerializeToString(), disabled_optimizers=["ConvMulFusion"]
    ).run(None, feeds)
    (output,) = interpreter.get_output_details()
    scale, zero = output["quantization"]
    return np.rint(got / np.float32(scale)) + zero, interpreter.get_tensor(output["index"])


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case[0].name)
def test_what_sums_and_moves_codes_gives_those_of_litert(case: tuple[Any, ...]) -> None:
    op, inputs, output, options, version = case
    for seed in range(3):
        got, want = compared(one_op_model(op, inputs, [output], options, version), "tract", seed)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("zero_point", [-128, -7, 0, 4])
def test_halves_are_rounded_as_litert_does(zero_point: int) -> None:
    """Of means of four codes a quarter are halves."""
    side = {"type": INT8, "scale": 0.05, "zero_point": zero_point}
    x, y, flat = T((1, 2, 2, 300), **side), T((1, 1, 1, 300), **side), T((1, 300), **side)
    axes, size = (T.constant(np.array(each, np.int32)) for each in ([1, 2], [1, 1]))
    resize = ResizeBilinearOptions(half_pixel_centers=True)
    for op, inputs, output, options, version in (
        (Op.AVERAGE_POOL_2D, [x], y, POOL, 2),
        (Op.MEAN, [x, axes], flat, ReducerOptions(), 2),
        (Op.RESIZE_BILINEAR, [x, size], y, resize, 3),
    ):
        got, want = compared(one_op_model(op, inputs, [output], options, version), "tract")
        np.testing.assert_array_equal(got, want, err_msg=op.name)


NEAR = [
    (Op.ADD, [X, T((1, 5, 6, 4), INT8, 0.11, 3)], made(1, 5, 6, 4), AddOptions(), 2),
    (
        Op.BATCH_MATMUL,
        [T((2, 5, 40), **SIDE), T((2, 40, 3), INT8, 0.07, 9)],
        made(2, 5, 3, scale=1.9),
        BatchMatMulOptions(),
        2,
    ),
    (Op.SOFTMAX, [T((2, 9), **SIDE)], made(2, 9, scale=1 / 256, zero_point=-128), SOFTMAX, 2),
    (Op.LOGISTIC, [X], made(1, 5, 6, 4, scale=1 / 256, zero_point=-128), None, 2),
    (Op.ADD, [U8, U8], T((1, 5), UINT8, 0.09, 100), AddOptions(), 1),
]


@pytest.mark.parametrize("case", NEAR, ids=lambda case: case[0].name)
def test_other_operators_are_within_one_code(case: tuple[Any, ...]) -> None:
    """They compute real numbers, which LiteRT has in fixed point."""
    op, inputs, output, options, version = case
    got, want = compared(one_op_model(op, inputs, [output], options, version), "tract")
    assert np.abs(got - want).max() <= 1
    assert np.mean(got != want) < 0.1


def test_all_that_a_file_gives_are_numbers_of_codes() -> None:
    """Of an input between two codes too."""
    content = one_op_model(Op.RELU, [T((1, 64), **SIDE)], [T((1, 64), **SIDE)], None, 2)
    x = np.linspace(-9, 9, 64, dtype=np.float32)[None]
    for name in ROWS:
        model = export_onnx(content, for_=name)
        (got,) = onnxruntime.InferenceSession(model.SerializeToString()).run(
            None, {model.graph.input[0].name: x}
        )
        steps = np.rint(x / np.float32(0.05)).clip(-121, 134).clip(0)
        np.testing.assert_allclose(got, steps * np.float32(0.05), rtol=1e-6)


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def test_dequantize_leaves_the_rounding_out() -> None:
    """PyTorch trains such a file: gradients of Round are 0."""
    path = model_path("mlperf-tiny__kws_ref_model.tflite")
    for name in ("tract", "torch"):
        rounded, plain = (export_onnx(path, for_=name, **more) for more in ({}, DEQUANTIZED))
        assert kinds(rounded)["Round"] > 10
        assert not kinds(plain)["Round"]


def test_runtimes_of_16_bit_floats_do_not_round() -> None:
    """Core ML and ncnn compute in these, which hold no sums of steps beyond 65504."""
    path = model_path("mlperf-tiny__kws_ref_model.tflite")
    for name in ("coreml", "ncnn"):
        assert not kinds(export_onnx(path, for_=name))["Round"]


def test_16_bit_codes_are_rounded_floats_for_openvino() -> None:
    """OpenVINO's results of 16-bit codes are wrong: 0.69 of the largest number in a network of ten
    convolutions. It has 8-bit ones."""
    wide = {"type": INT16, "zero_point": 0}
    given, made_of = T((1, 4), **wide, scale=0.001), T((1, 4), **wide, scale=1 / 32768)
    content = one_op_model(Op.TANH, [given], [made_of], version=3)
    model = export_onnx(content, for_="openvino", check=True)
    assert kinds(model)["Round"]
    ends = (*model.graph.input, *model.graph.output)
    assert {each.type.tensor_type.elem_type for each in ends} == {onnx.TensorProto.INT16}
    x = np.int16([[-32768, -700, 3, 32767]])
    (got,) = onnxruntime.InferenceSession(model.SerializeToString()).run(
        None, {model.graph.input[0].name: x}
    )
    # LiteRT interpolates tanh in a table, which is up to 2 codes off.
    assert np.abs(got.astype(int) - litert(content, [x])[0].astype(int)).max() <= 2
    floats = export_onnx(content, for_="openvino", float_io=True, check=True)
    assert not kinds(floats)["QuantizeLinear"]
    narrow = export_onnx(model_path("mlperf-tiny__kws_ref_model.tflite"), for_="openvino")
    assert kinds(narrow)["QuantizeLinear"]


def test_what_recurrent_cells_give_is_rounded() -> None:
    """Their states are real numbers, so OpenVINO, which has integers of 64 bits, gets these."""
    content = Lstm(arithmetic="8x8_16").model()
    assert kinds(export_onnx(content, for_="tract", stateful=False))["Round"]
    assert kinds(export_onnx(content, for_="openvino", stateful=False))["Scan"]


def test_numbers_of_codes_and_codes_as_numbers() -> None:
    """CAST reads codes themselves, and a QUANTIZE moves to another scale."""
    tensors = {
        "x": T((2, 8), **SIDE),
        "y": T((2, 8), INT8, 0.11, 5),
        "f": T((2, 8)),
        "z": T((2, 8), INT8, 0.7, 0),
    }
    cast = CastOptions(in_data_type=INT8, out_data_type=TensorType.FLOAT32)
    nodes = [
        Node(Op.QUANTIZE, ["x"], ["y"], version=2),
        Node(Op.CAST, ["y"], ["f"], cast),
        Node(Op.QUANTIZE, ["f"], ["z"]),
    ]
    got, want = compared(graph_model(tensors, nodes, ["z"]), "tvm")
    assert np.abs(got - want).max() <= 1
    assert np.ptp(want.astype(int)) > 100


def test_branches_are_given_steps() -> None:
    """A called graph reads and makes what its caller has."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("c", (1,), TensorType.BOOL)
    for name in ("x", "y"):
        T((1, 6), **SIDE).declare(main, name)
    main.operator(Op.IF, ["c", "x"], ["y"], IfOptions(1, 2))
    main.inputs("c", "x").outputs("y")
    for op, options in ((Op.ADD, AddOptions()), (Op.MUL, MulOptions())):
        graph = builder.subgraph(op.name)
        for name in ("a", "b"):
            T((1, 6), **SIDE).declare(graph, name)
        graph.operator(op, ["a", "a"], ["b"], options, version=2)
        graph.inputs("a").outputs("b")
    content = builder.write()
    model = export_onnx(content, for_="iree", check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    codes = np.arange(-60, 60, 20, dtype=np.int8)[None]
    real = (codes.astype(np.float32) + 7) * np.float32(0.05)
    for truth in (True, False):
        (got,) = session.run(None, {"c": np.array([truth]), "x": real})
        (want,) = litert(content, [np.array([truth]), codes])
        assert np.abs(np.rint(got / np.float32(0.05)) - 7 - want).max() <= 1


def test_a_tensor_of_several_scales_is_a_typed_error() -> None:
    side = T((1, 2, 2, 3), INT8, [0.1, 0.2, 0.3], [0, 0, 0], axis=3)
    with pytest.raises(ExportError, match="no single scale"):
        export_onnx(one_op_model(Op.RELU, [side], [side], None, 2), for_="tract")
    for op, inputs in ((Op.RSQRT, [side]), (Op.SQUARED_DIFFERENCE, [side, side])):
        with pytest.raises(BridgeError, match="scale"):
            export_onnx(one_op_model(op, inputs, [side], None, 2), for_="tract")


@pytest.mark.parametrize(
    "name", ["mlperf-tiny__pretrainedResnet_quant", "mlperf-tiny__vww_96_int8"]
)
def test_networks_give_the_codes_of_litert(name: str) -> None:
    got, want = compared(model_path(f"{name}.tflite").read_bytes(), "opencv")
    np.testing.assert_array_equal(got, want)
