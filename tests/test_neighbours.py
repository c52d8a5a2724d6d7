"""Operators side by side that are each right alone: what ONNX Runtime makes of the two together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, assert_close, graph_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort import AllocationError, Interpreter
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    Conv2DOptions,
    EqualOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    Pool2DOptions,
    SliceOptions,
    SoftmaxOptions,
    TensorType,
)

INT8, INT16, INT64, BOOL = TensorType.INT8, TensorType.INT16, TensorType.INT64, TensorType.BOOL
RELU = ActivationFunctionType.RELU


@pytest.mark.parametrize("codes", [INT8, INT16], ids=lambda type: type.name)
@pytest.mark.parametrize("layer", [Op.CONV_2D, Op.FULLY_CONNECTED], ids=lambda op: op.name)
def test_float_weights_between_codes_are_not_rounded(layer: Op, codes: TensorType) -> None:
    """ONNX Runtime rounds them to 8 bits between a DequantizeLinear and a QuantizeLinear."""
    rng = np.random.default_rng(0)
    convolution = layer is Op.CONV_2D
    image = (1, 6, 6) if convolution else (36,)
    filter = (5, 1, 1, 4) if convolution else (5, 4)
    scale = 0.03 if codes is INT8 else 0.0001
    weights = rng.uniform(-1, 1, filter) * [1, 0.01, 0.1, 0.5]
    tensors = {
        "codes": T((*image, 4), codes, scale=scale),
        "x": T((*image, 4)),
        "weights": T.constant(weights.astype(np.float32)),
        "bias": T.constant(rng.uniform(-1, 1, 5).astype(np.float32)),
        "real": T((*image, 5)),
        "y": T((*image, 5), INT16, scale=2e-4),
    }
    options: Any = FullyConnectedOptions(fused_activation_function=RELU)
    if convolution:
        options = Conv2DOptions(stride_h=1, stride_w=1, fused_activation_function=RELU)
    nodes = [
        Node(Op.DEQUANTIZE, ["codes"], ["x"], version=2),
        Node(layer, ["x", "weights", "bias"], ["real"], options),
        Node(Op.QUANTIZE, ["real"], ["y"], version=2),
    ]
    model = graph_model(tensors, nodes, ["y"])
    feeds = [tensors["codes"].random(rng)]
    expected = litert(model, feeds, "reference")[0].astype(int)
    for found in (ours(model, feeds)[0], exported(model, feeds)):
        assert np.abs(found[0] - expected).max() <= 1


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_a_constant_without_dimensions_stays_so(providers: Any) -> None:
    """A scalar of int8 codes, which are carried as uint8, is not made a vector."""
    tensors = {
        "x": T((), INT8, scale=0.012, zero_point=-128),
        "constant": T.constant(np.array(-63, np.int8), scale=0.015, zero_point=3),
        "y": T((), BOOL),
    }
    nodes = [Node(Op.EQUAL, ["x", "constant"], ["y"], EqualOptions(), version=2)]
    model = graph_model(tensors, nodes, ["y"])
    feeds = [np.array(-128, np.int8)]
    (got,), _ = ours(model, feeds, providers)
    assert got.shape == litert(model, feeds)[0].shape == ()
    assert exported(model, feeds)[0].shape == ()


FOUND: dict[str, tuple[Node, T]] = {
    "add": (Node(Op.ADD, ["found", "found"], ["y"], AddOptions(), 2), T((1,), INT8, scale=0.3)),
    "mul": (Node(Op.MUL, ["found", "found"], ["y"], MulOptions(), 2), T((1,), INT8, scale=0.3)),
    "softmax": (
        Node(Op.SOFTMAX, ["found"], ["y"], SoftmaxOptions(beta=1.0), 2),
        T((1, 3), INT8, scale=1 / 256, zero_point=-128),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_nothing_found_of_codes(name: str) -> None:
    """ONNX Runtime's integer operators on no elements end the process, or give nothing."""
    node, y = FOUND[name]
    rest = (3,) if name == "softmax" else ()
    tensors = {
        "mask": T((4,), BOOL),
        "codes": T((4, *rest), INT8, scale=0.1, zero_point=3),
        "where": T((1, 1), INT64),
        "found": T((1, *rest), INT8, scale=0.1, zero_point=3),
        "y": y,
    }
    nodes = [
        Node(Op.WHERE, ["mask"], ["where"]),
        Node(Op.GATHER_ND, ["codes", "where"], ["found"]),
        node,
    ]
    model = graph_model(tensors, nodes, ["y"])
    codes = tensors["codes"].random(np.random.default_rng(0))
    interpreter = Interpreter(model_content=model, num_threads=2)
    interpreter.allocate_tensors()
    for mask in (np.ones(4, np.bool_), np.zeros(4, np.bool_)):
        for detail, array in zip(interpreter.get_input_details(), (mask, codes), strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        expected = litert(model, [mask, codes], "reference")[0]
        assert got.shape == expected.shape
        assert np.abs(got.astype(int) - expected).max(initial=0) <= 1
    assert {row.runs_on for row in interpreter.delegation()} == {"ort"}


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL], ids=lambda op: op.name)
def test_an_exported_file_computes_no_codes(op: Op) -> None:
    """ONNX Runtime's QLinearMul of no elements ends the process."""
    tensors = {
        "x": T((0,), INT8, scale=0.1, zero_point=3),
        "constant": T.constant(np.zeros((0, 2, 0), np.int8), scale=0.1),
        "y": T((0, 2, 0), INT8, scale=0.3),
    }
    options = AddOptions() if op is Op.ADD else MulOptions()
    model = graph_model(tensors, [Node(op, ["x", "constant"], ["y"], options, 2)], ["y"])
    (made,) = exported(model, [np.zeros(0, np.int8)], input_shapes={"x": ("N",)})
    assert (made.shape, made.dtype) == ((0, 2, 0), np.int8)


def test_no_channels_are_not_kept_in_blocks() -> None:
    """ONNX Runtime loads no convolution of no channels, as which a PRELU of blocks is written."""
    tensors = {
        "x": T((2, 2, 1, 0)),
        "alpha": T.constant(np.zeros((1, 1, 0), np.float32)),
        "prelu": T((2, 2, 1, 0)),
        "y": T((2, 2, 1, 0)),
    }
    nodes = [
        Node(Op.PRELU, ["x", "alpha"], ["prelu"]),
        Node(Op.MUL, ["prelu", "x"], ["y"], MulOptions()),
    ]
    (got,), runners = ours(graph_model(tensors, nodes, ["y"]), [np.zeros((2, 2, 1, 0), np.float32)])
    assert got.shape == (2, 2, 1, 0)
    assert runners == {"constant"}


@pytest.mark.parametrize("sizes", [np.array([1, np.nan], np.float32), np.array([True, True])])
def test_sizes_that_are_no_integers_are_refused(sizes: Any) -> None:
    tensors = {
        "x": T((2, 3)),
        "begin": T.constant(np.array([0, 0], np.int32)),
        "size": T.constant(sizes),
        "y": T((1, 1)),
    }
    nodes = [Node(Op.SLICE, ["x", "begin", "size"], ["y"], SliceOptions())]
    interpreter = Interpreter(model_content=graph_model(tensors, nodes, ["y"]))
    with pytest.raises(AllocationError, match="SLICE_0"):
        interpreter.allocate_tensors()


def test_zeros_around_an_image_count_in_its_largest() -> None:
    """ONNX Runtime pads with the lowest number when it makes one node of Pad and MaxPool."""
    tensors = {
        "x": T((1, 6, 6, 4)),
        "around": T.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)),
        "padded": T((1, 8, 8, 4)),
        "y": T((1, 3, 3, 4)),
    }
    windows = Pool2DOptions(
        padding=Padding.VALID, stride_h=2, stride_w=2, filter_height=3, filter_width=3
    )
    nodes = [
        Node(Op.PAD, ["x", "around"], ["padded"]),
        Node(Op.MAX_POOL_2D, ["padded"], ["y"], windows),
    ]
    model = graph_model(tensors, nodes, ["y"])
    feeds = [np.random.default_rng(0).uniform(-3, -1, (1, 6, 6, 4)).astype(np.float32)]
    expected = litert(model, feeds)[0]
    for found in (ours(model, feeds)[0], exported(model, feeds)):
        np.testing.assert_array_equal(found[0], expected)


OF_SINGLE_ELEMENTS = (
    *(Op.ABS, Op.NEG, Op.EXP, Op.LOG, Op.SQRT, Op.RSQRT, Op.SQUARE, Op.SIN, Op.FLOOR, Op.SIGN),
    *(Op.ELU, Op.GELU, Op.HARD_SWISH, Op.LEAKY_RELU, Op.LOGISTIC, Op.RELU, Op.RELU6, Op.TANH),
)


@pytest.mark.parametrize("op", OF_SINGLE_ELEMENTS, ids=lambda op: op.name)
def test_an_operator_beside_a_product_takes_its_input_in_rows(op: Op) -> None:
    """The product makes its input a matrix; the sum needs the dimensions of the file."""
    rng = np.random.default_rng(0)
    tensors = {
        "x": T((2, 8, 1, 7)),
        "weights": T.constant(rng.uniform(-1, 1, (3, 7)).astype(np.float32)),
        "bias": T.constant(rng.uniform(-1, 1, 3).astype(np.float32)),
        "product": T((2, 8, 1, 3)),
        "each": T((2, 8, 1, 7)),
        "first": T.constant(np.array([0], np.int32)),
        "sum": T((8, 1, 7)),
    }
    nodes = [
        Node(
            Op.FULLY_CONNECTED,
            ["x", "weights", "bias"],
            ["product"],
            FullyConnectedOptions(keep_num_dims=True),
            version=5,
        ),
        Node(op, ["x"], ["each"]),
        Node(Op.SUM, ["each", "first"], ["sum"]),
    ]
    model = graph_model(tensors, nodes, ["product", "each", "sum"])
    feeds = [rng.uniform(0.1, 3, (2, 8, 1, 7)).astype(np.float32)]
    expected = litert(model, feeds)
    for found in (ours(model, feeds)[0], exported(model, feeds)):
        for got, want in zip(found, expected, strict=True):
            assert_close(got, want, 0, 1e-5, op.name)
