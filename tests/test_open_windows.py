"""Windows over images of an open size in exports, by windows and strides of all proportions."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
from tests.oracle import litert
from tests.survivor import outcomes
from tflite_ort import ExportError, export_onnx
from tflite_ort.schema import (
    Conv2DOptions,
    Op,
    Padding,
    Pool2DOptions,
    ReduceWindowFunction,
    ReduceWindowOptions,
    TensorType,
)

OPEN: dict[str, Any] = {"in0": (1, "h", "w", 2)}
POOLS = (Op.MAX_POOL_2D, Op.AVERAGE_POOL_2D)


def windows(op: Op, size: int, kernel: int, stride: int) -> bytes:
    """`op` with SAME padding over an image of `size` x `size`."""
    image, result = T((1, size, size, 2)), T((1, -(-size // stride), -(-size // stride), 2))
    strides = {"stride_w": stride, "stride_h": stride}
    if op in POOLS:
        options = Pool2DOptions(filter_width=kernel, filter_height=kernel, **strides)
        return one_op_model(op, [image], [result], options)
    weights = np.random.default_rng(0).normal(size=(2, kernel, kernel, 2)).astype(np.float32)
    bias = T.constant(np.zeros(2, np.float32))
    operands = [image, T.constant(weights), bias]
    return one_op_model(op, operands, [result], Conv2DOptions(**strides))


@pytest.mark.parametrize("op", (*POOLS, Op.CONV_2D), ids=lambda op: op.name)
@pytest.mark.parametrize(("kernel", "stride"), [(1, 2), (1, 5), (2, 2), (3, 2), (3, 3)])
def test_any_size_is_right(op: Op, kernel: int, stride: int) -> None:
    content = export_onnx(windows(op, 6, kernel, stride), input_shapes=OPEN).SerializeToString()
    session = onnxruntime.InferenceSession(content)
    for size in range(2, 12):
        image = np.random.default_rng(size).normal(size=(1, size, size, 2)).astype(np.float32)
        (wanted,) = litert(windows(op, size, kernel, stride), [image])
        (got,) = session.run(None, {"in0": image})
        assert np.allclose(got, wanted, atol=1e-5), size


@pytest.mark.parametrize("op", (*POOLS, Op.CONV_2D), ids=lambda op: op.name)
def test_a_stride_beyond_several_cells_is_refused(op: Op) -> None:
    """ONNX Runtime's MaxPool fails over some sizes, and its Conv begins a cell too late."""
    with pytest.raises(ExportError, match="a stride longer than its windows, over an unknown size"):
        export_onnx(windows(op, 6, 2, 5), input_shapes=OPEN)


@pytest.mark.parametrize("op", (*POOLS, Op.L2_POOL_2D), ids=lambda op: op.name)
@pytest.mark.parametrize("is_coded", [False, True])
def test_an_image_without_a_whole_window_fails(op: Op, is_coded: bool) -> None:
    """ONNX Runtime pools a part of a window, or makes an image without elements."""
    if is_coded and op is Op.L2_POOL_2D:
        return
    given: dict[str, Any] = {"type": TensorType.INT8, "scale": 0.1} if is_coded else {}
    options = Pool2DOptions(Padding.VALID, 2, 2, 3, 3)
    model = one_op_model(op, [T((1, 9, 9, 2), **given)], [T((1, 4, 4, 2), **given)], options)
    session = onnxruntime.InferenceSession(
        export_onnx(model, input_shapes=OPEN).SerializeToString()
    )
    for size in (1, 2, 3, 8):
        image = np.ones((1, size, size, 2), np.int8 if is_coded else np.float32)
        if size < 3:
            with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
                session.run(None, {"in0": image})
        else:
            (got,) = session.run(None, {"in0": image})
            (wanted,) = litert(model, [image])
            np.testing.assert_array_equal(got, wanted)


def reduced(op: Op | str) -> bytes:
    """Windows of 3 x 3 over an image of 9 x 9, by an operator that needs to know these sizes."""
    image, pooled = T((1, 9, 9, 2)), T((1, 3, 3, 2))
    if op == "MaxPoolingWithArgmax2D":
        words = (2, 3, 3, 3, 3, 0, 0, 0, 0, 0)  # VALID, strides, windows, no activation
        return one_op_model(op, [image], [pooled, pooled], struct.pack("<10i", *words))
    zero, lists = T.constant(np.float32(0)), ((1, 3, 3, 1), (1, 3, 3, 1), (1, 1, 1, 1))
    constants = [T.constant(np.array(each, np.int64)) for each in lists]
    options = ReduceWindowOptions(ReduceWindowFunction.MAXIMUM)
    return one_op_model(op, [image, zero, *constants], [pooled], options)


@pytest.mark.parametrize("op", [Op.REDUCE_WINDOW, "MaxPoolingWithArgmax2D"])
def test_windows_that_need_to_know_the_sizes_are_refused(op: Op | str) -> None:
    """So they need no guard against images that are too small."""
    export_onnx(reduced(op))
    with pytest.raises(ExportError, match="a shape depends on data"):
        export_onnx(reduced(op), input_shapes=OPEN)


def test_windows_over_an_open_batch() -> None:
    proto = export_onnx(reduced(Op.REDUCE_WINDOW), input_shapes={"in0": ("N", 9, 9, 2)})
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    images = np.random.default_rng(0).normal(size=(4, 9, 9, 2)).astype(np.float32)
    (got,) = session.run(None, {"in0": images})
    cells = images.reshape(4, 3, 3, 3, 3, 2)
    np.testing.assert_array_equal(got, np.maximum(cells.max(axis=(2, 4)), 0))


def between_convolutions(size: int) -> str:
    """What becomes of an image of `size` x `size` in a pool between convolutions."""
    weights = T.constant(np.ones((16, 1, 1, 16), np.float32))
    tensors = {"in0": T((1, 9, 9, 16)), "weights": weights, "first": T((1, 9, 9, 16))}
    tensors |= {"pooled": T((1, 2, 2, 16)), "last": T((1, 2, 2, 16))}
    options = Conv2DOptions(stride_w=1, stride_h=1)
    nodes = [
        Node(Op.CONV_2D, ["in0", "weights", None], ["first"], options),
        Node(Op.AVERAGE_POOL_2D, ["first"], ["pooled"], Pool2DOptions(Padding.VALID, 2, 2, 7, 7)),
        Node(Op.CONV_2D, ["pooled", "weights", None], ["last"], options),
    ]
    proto = export_onnx(
        graph_model(tensors, nodes, ["last"]), input_shapes={"in0": (1, "h", "w", 16)}
    )
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    try:
        (result,) = session.run(None, {"in0": np.ones((1, size, size, 16), np.float32)})
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
        return "fails"
    return str(result.shape)


def test_the_process_lives() -> None:
    """ONNX Runtime's pool of blocked channels ends it where no window fits."""
    wanted = {5: "fails", 9: "(1, 2, 2, 16)"}
    assert dict(outcomes(between_convolutions, wanted)) == wanted
