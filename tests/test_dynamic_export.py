"""Exported models whose shapes are open: checked by onnx, run by ONNX Runtime, held to LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.across.test_dynamic import CASES, LAYERS, RANK_UNKNOWN
from tests.across.test_dynamic_chains import FIRST_OF_SHAPE, flattened, picked
from tests.across.veiled import veiled
from tests.models import model_path
from tests.one_op import Array, Case, Node, T, assert_close, distance, graph_model, one_op_model
from tests.oracle import litert
from tflite_ort import ExportError, ExportWarning, export_onnx
from tflite_ort.schema import (
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    Op,
    PackOptions,
    Padding,
    Pool2DOptions,
    ReshapeOptions,
    ShapeOptions,
    SpaceToDepthOptions,
    SqueezeOptions,
    StridedSliceOptions,
    TensorType,
)


def checked(model: bytes, **options: Any) -> onnx.ModelProto:
    proto = export_onnx(model, **options)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(proto: onnx.ModelProto, feeds: Sequence[Array]) -> list[Array]:
    """The outputs; inputs that no node reads are fed too."""
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [value.name for value in proto.graph.input]
    return [
        np.asarray(result) for result in session.run(None, dict(zip(names, feeds, strict=True)))
    ]


def dimensions(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("case", [*CASES, *LAYERS], ids=lambda case: case.name)
def test_models_that_depend_on_data(case: Case) -> None:
    model, feeds = veiled(case, open=(0,))
    if case.op in RANK_UNKNOWN:
        with pytest.raises(ExportError, match="a rank depends on data"):
            export_onnx(model)
        return
    got = run(checked(model), feeds)
    references = (litert(model, feeds), litert(model, feeds, case.reference))
    for want, other, result in zip(*references, got, strict=True):
        nearest = want if distance(result, want) <= distance(result, other) else other
        assert_close(result, nearest, case.quanta, case.rtol, case.name)


def test_rows_that_a_condition_picks() -> None:
    proto = checked(picked())
    assert [dimensions(value) for value in proto.graph.output] == [["doubled_dim_0", 3], [3], [2]]
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    for count in (0, 4):
        doubled, _, shape = run(proto, [x, np.arange(6) < count])
        assert np.array_equal(doubled, 2 * x[:count])
        assert shape.tolist() == [count, 3]


@pytest.mark.parametrize("by", FIRST_OF_SHAPE)
@pytest.mark.parametrize("open", [None, -1, "batch"])
def test_an_open_batch_goes_through(open: int | str | None, by: str) -> None:
    """And needs no node to look it up: what is reshaped has one size to infer."""
    proto = checked(flattened(by), input_shapes={"x": (open, 2, 2, 3)})
    name = open if isinstance(open, str) else "x_dim_0"
    assert dimensions(proto.graph.input[0]) == [name, 2, 2, 3]
    assert dimensions(proto.graph.output[0]) == [name, 5]
    assert {node.op_type for node in proto.graph.node} == {"Reshape", "Gemm"}
    for batch in (1, 4):
        x = np.random.default_rng(0).normal(size=(batch, 2, 2, 3)).astype(np.float32)
        assert_close(run(proto, [x])[0], litert(flattened(), [x])[0], 0, 1e-5, "")


def addition() -> bytes:
    inputs = [T((2, 1, 3)), T((4, 3))]
    return one_op_model(Op.ADD, inputs, [T((2, 4, 3))], AddOptions())


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ((("n", 1, 3), (4, 3)), ["n", 4, 3]),
        ((("n", "m", 3), ("m", 3)), ["n", "m", 3]),
        (((None, None, 3), (1, 3)), ["in0_dim_0", "in0_dim_1", 3]),
        (((None, None, 3), (None, 3)), ["in0_dim_0", "out0_dim_1", 3]),
    ],
)
def test_names_of_open_sizes(shapes: Any, expected: list[int | str]) -> None:
    proto = checked(addition(), input_shapes={"in0": shapes[0], "in1": shapes[1]})
    assert dimensions(proto.graph.output[0]) == expected
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=(5, 1, 3)).astype(np.float32)]
    sizes = 1 if "m" in shapes[0] else 4 if shapes[1][0] in (4, None) else 1
    feeds.append(rng.normal(size=(sizes, 3)).astype(np.float32))
    assert np.array_equal(run(proto, feeds)[0], feeds[0] + feeds[1])


def test_shapes_that_cannot_be_are_refused_while_open() -> None:
    with pytest.raises(ValueError, match="do not broadcast"):
        export_onnx(addition(), input_shapes={"in0": (None, 2, 3), "in1": (4, 3)})


@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
@pytest.mark.parametrize("stride", [1, 2])
def test_images_of_any_size(padding: Padding, stride: int) -> None:
    filter = np.random.default_rng(0).normal(size=(8, 3, 3, 4)).astype(np.float32)
    convolution = one_op_model(
        Op.CONV_2D,
        [T((1, 8, 8, 4)), T.constant(filter), T.constant(np.arange(8, dtype=np.float32))],
        [T((1, 8, 8, 8))],
        Conv2DOptions(padding=padding, stride_w=stride, stride_h=stride),
    )
    pooling = one_op_model(
        Op.AVERAGE_POOL_2D,
        [T((1, 8, 8, 4))],
        [T((1, 8, 8, 4))],
        Pool2DOptions(
            padding=padding, stride_w=stride, stride_h=stride, filter_width=3, filter_height=3
        ),
    )
    for model in (convolution, pooling):
        proto = checked(model, input_shapes={"in0": ("n", "h", "w", 4)})
        for shape in ((1, 8, 8, 4), (2, 7, 10, 4), (1, 3, 3, 4)):
            image = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            assert_close(run(proto, [image])[0], litert(model, [image])[0], 0, 1e-5, str(shape))


def padded_to_pairs(type: TensorType, dilated: bool) -> bytes:
    """An image, padded to pairs of rows and columns, through a CONV_2D of every second cell, as
    TFLite dilates it where sizes are open; or through SPACE_TO_DEPTH and a CONV_2D."""
    scale = None if type is TensorType.FLOAT32 else 0.1
    image, ones = (1, 5, 4, 3), np.ones((2, 1, 1, 3 if dilated else 12))
    narrow = ones.astype(np.float32 if scale is None else np.int8)
    bias = np.zeros(2, np.float32 if scale is None else np.int32)
    tensors = {
        "x": T(image, type, scale, shape_signature=(-1, -1, -1, 3)),
        "sizes": T((4,), TensorType.INT32),
        "from": T.constant(np.int32([1])),
        "to": T.constant(np.int32([3])),
        "area": T((2,), TensorType.INT32),
        "two": T.constant(np.int32([2, 2])),
        "more": T((2,), TensorType.INT32),
        "none": T.constant(np.int32([0, 0])),
        "frame": T((2, 2), TensorType.INT32),
        "nothing": T.constant(np.int32([[0, 0]])),
        "pads": T((4, 2), TensorType.INT32),
        "padded": T((1, 6, 4, 3), type, scale),
        "blocks": T((4, 3, 2, 3) if dilated else (1, 3, 2, 12), type, scale),
        "w": T.constant(narrow, scale=None if scale is None else 0.5),
        "b": T.constant(bias, scale=None if scale is None else 0.05),
        "c": T((4, 3, 2, 2) if dilated else (1, 3, 2, 2), type, None if scale is None else 1.5),
        "y": T((1, 5, 4, 2), type, None if scale is None else 1.5),
    }
    nodes = [
        Node(Op.SHAPE, ["x"], ["sizes"], ShapeOptions(TensorType.INT32)),
        Node(Op.STRIDED_SLICE, ["sizes", "from", "to", "from"], ["area"], StridedSliceOptions()),
        Node(Op.FLOOR_MOD, ["area", "two"], ["more"]),
        Node(Op.PACK, ["none", "more"], ["frame"], PackOptions(2, axis=1)),
    ]
    conv = Conv2DOptions(Padding.VALID, 1, 1)
    code = 1 if scale is None else 3
    if dilated:
        nodes += [
            Node(Op.SPACE_TO_BATCH_ND, ["x", "two", "frame"], ["blocks"], version=2),
            Node(Op.CONV_2D, ["blocks", "w", "b"], ["c"], conv, code),
            Node(Op.BATCH_TO_SPACE_ND, ["c", "two", "frame"], ["y"], version=2),
        ]
    else:
        joined = ConcatenationOptions(axis=0)
        nodes += [
            Node(Op.CONCATENATION, ["nothing", "frame", "nothing"], ["pads"], joined),
            Node(Op.PAD, ["x", "pads"], ["padded"], version=2),
            Node(Op.SPACE_TO_DEPTH, ["padded"], ["blocks"], SpaceToDepthOptions(2), 2),
            Node(Op.CONV_2D, ["blocks", "w", "b"], ["c"], conv, code),
        ]
    named = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    used = {name: tensor for name, tensor in tensors.items() if name in named}
    return graph_model(used, nodes, ["y" if dilated else "c"])


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8])
@pytest.mark.parametrize("dilated", [False, True])
def test_paddings_that_depend_on_an_open_size(type: TensorType, dilated: bool) -> None:
    """They leave the channels as they are, of which a convolution needs the number."""
    model = padded_to_pairs(type, dilated)
    proto = checked(model, input_shapes={"x": ("n", "h", "w", 3)})
    for size in ((1, 5, 4, 3), (2, 4, 7, 3), (3, 9, 1, 3)):
        rng = np.random.default_rng(sum(size))
        x = T(size, type, None if type is TensorType.FLOAT32 else 0.1).random(rng)
        assert_close(run(proto, [x])[0], litert(model, [x])[0], 0, 1e-6, f"{size}")


def test_sizes_that_cannot_stay_open_are_fixed_with_a_warning() -> None:
    model = one_op_model(
        Op.SQUEEZE, [T((1, 3, 1), shape_signature=(1, 3, -1))], [T((3,))], SqueezeOptions()
    )
    with pytest.warns(ExportWarning, match="(?s)'in0'.*a rank depends") as seen:
        proto = checked(model)
    assert [Path(each.filename).name for each in seen] == [Path(__file__).name]
    assert dimensions(proto.graph.input[0]) == [1, 3, 1]


def test_a_rank_that_depends_on_an_open_size_is_refused() -> None:
    model = one_op_model(Op.SQUEEZE, [T((1, 3, 1))], [T((3,))], SqueezeOptions())
    with pytest.raises(ExportError, match="SQUEEZE_0 version 1: a rank depends on data"):
        export_onnx(model, input_shapes={"in0": (1, None, 1)})


@pytest.mark.parametrize(
    "name",
    [
        "mlperf-tiny__vww_96_float.tflite",
        "mlperf-tiny__vww_96_int8.tflite",
        "npm-mediapipe-holistic__pose_landmark_lite.tflite",
        "pypi-mediapipe__hand_landmark_lite.tflite",
    ],
)
def test_networks_of_an_open_batch(name: str) -> None:
    content = model_path(name).read_bytes()
    static = export_onnx(content)
    (given,) = static.graph.input
    _, *sizes = dimensions(given)
    proto = checked(content, input_shapes={given.name: ("batch", *sizes)})
    assert all(dimensions(value)[0] == "batch" for value in proto.graph.output)
    rng = np.random.default_rng(0)
    shape = (3, *map(int, sizes))
    images = rng.uniform(-1, 1, shape).astype(np.float32)
    if given.type.tensor_type.elem_type == onnx.TensorProto.INT8:
        images = rng.integers(-128, 128, shape).astype(np.int8)
    together = run(proto, [images])
    for i in range(3):
        alone = run(static, [images[i : i + 1]])
        for one, all_of_them in zip(alone, together, strict=True):
            assert_close(all_of_them[i : i + 1], one, 1, 1e-4, f"{name}, image {i}")


def test_cuts_beside_an_open_batch_need_no_other_layout() -> None:
    """Images stay channels-first from the first window to the last."""
    filter = np.random.default_rng(0).normal(size=(4, 3, 3, 5)).astype(np.float32)
    tensors = {
        "x": T((1, 8, 9, 5)),
        "filter": T.constant(filter),
        "bias": T.constant(np.zeros(4, np.float32)),
        "convolved": T((1, 8, 9, 4)),
        "begin": T.constant(np.array([0, 1, -7, 0], np.int32)),
        "end": T.constant(np.array([0, -1, 9, 0], np.int32)),
        "strides": T.constant(np.array([1, 1, 2, 1], np.int32)),
        "cut": T((1, 6, 4, 4)),
        "y": T((1, 3, 2, 4)),
    }
    pool = Pool2DOptions(stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    convolution = Conv2DOptions(stride_w=1, stride_h=1)
    masks = StridedSliceOptions(begin_mask=9, end_mask=9)
    nodes = [
        Node(Op.CONV_2D, ["x", "filter", "bias"], ["convolved"], convolution),
        Node(Op.STRIDED_SLICE, ["convolved", "begin", "end", "strides"], ["cut"], masks),
        Node(Op.MAX_POOL_2D, ["cut"], ["y"], pool),
    ]
    model = graph_model(tensors, nodes, ["y"])
    proto = checked(model, input_shapes={"x": ("n", 8, 9, 5)})
    expected = ["Transpose", "Conv", "Slice", "MaxPool", "Transpose"]
    assert [node.op_type for node in proto.graph.node] == expected
    x = np.random.default_rng(1).normal(size=(3, 8, 9, 5)).astype(np.float32)
    assert_close(run(proto, [x])[0], litert(model, [x])[0], 0, 1e-5, "")


def test_the_size_of_a_tensor_that_stands_in_rows_alone() -> None:
    """[N, 4] as [N, 1, 4] is the same rows, and BROADCAST_TO asks for its sizes first."""
    tensors = {
        "x": T((4,)),
        "shape": T.constant(np.array([3, 4], np.int32)),
        "wide": T((3, 4)),
    }
    node = Node(Op.BROADCAST_TO, ["x", "shape"], ["wide"], version=2)
    model = graph_model(tensors, [node], ["wide"])
    proto = checked(model, batch="N")
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    (wide,) = run(proto, [x])
    np.testing.assert_array_equal(wide, np.broadcast_to(x[:, np.newaxis], (5, 3, 4)))


def test_two_open_sizes_of_a_reshape_stay_open() -> None:
    """[a, b, 4] as [a, -1, 2], where a is the first of its own sizes."""
    tensors = {
        "x": T((1, 1, 4), shape_signature=(-1, -1, 4)),
        "sizes": T((3,), TensorType.INT32),
        "begin": T.constant(np.int32([0])),
        "end": T.constant(np.int32([1])),
        "first": T((), TensorType.INT32),
        "rest": T.constant(np.int32(-1)),
        "two": T.constant(np.int32(2)),
        "wanted": T((3,), TensorType.INT32),
        "y": T((1, 2, 2), shape_signature=(-1, -1, 2)),
    }
    one = StridedSliceOptions(shrink_axis_mask=1)
    nodes = [
        Node(Op.SHAPE, ["x"], ["sizes"], ShapeOptions(out_type=TensorType.INT32)),
        Node(Op.STRIDED_SLICE, ["sizes", "begin", "end", "end"], ["first"], one),
        Node(Op.PACK, ["first", "rest", "two"], ["wanted"], PackOptions(values_count=3)),
        Node(Op.RESHAPE, ["x", "wanted"], ["y"], ReshapeOptions()),
    ]
    proto = checked(graph_model(tensors, nodes, ["y"]))
    for shape in ((2, 3, 4), (1, 1, 4)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        np.testing.assert_array_equal(run(proto, [x])[0], x.reshape(shape[0], -1, 2))


def test_open_sizes_that_differ_in_the_file_are_no_batch() -> None:
    """A slice of one input is not cut at the size of another."""
    tensors = {
        "x": T((1, 3), shape_signature=(-1, 3)),
        "y": T((2,), shape_signature=(-1,)),
        "z": T((1, 4), shape_signature=(-1, 4)),
        "begin": T.constant(np.array([0], np.int32)),
        "rest": T.constant(np.array([-1], np.int32)),
        "both": T((1, 7)),
        "cut": T((2,)),
    }
    nodes = [
        Node(Op.CONCATENATION, ["x", "z"], ["both"], ConcatenationOptions(axis=1)),
        Node(Op.SLICE, ["y", "begin", "rest"], ["cut"]),
    ]
    model = graph_model(tensors, nodes, ["both", "cut"])
    proto = checked(model)
    (x,), (y,), (z,) = (dimensions(each)[:1] for each in proto.graph.input)
    assert (x, z) == ("batch", "batch")
    assert isinstance(y, str)
    assert y != x
    rng = np.random.default_rng(0)
    feeds = [rng.uniform(-1, 1, tensors[name].shape).astype(np.float32) for name in "xyz"]
    for got, want in zip(run(proto, feeds), litert(model, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


def test_open_first_sizes_of_one_name_may_differ() -> None:
    """A size that is asked of one input is not read from another."""
    tensors = {
        "a": T((1, 3), shape_signature=(-1, 3)),
        "b": T((1, 4), shape_signature=(-1, 4)),
        "shape": T((2,), TensorType.INT32),
        "begin": T.constant(np.array([0], np.int32)),
        "one": T.constant(np.array([1], np.int32)),
        "count": T((1,), TensorType.INT32),
        "five": T.constant(np.float32(5)),
        "twice": T((1, 3)),
        "fives": T((1,)),
    }
    nodes = [
        Node(Op.ADD, ["a", "a"], ["twice"], AddOptions()),
        Node(Op.SHAPE, ["b"], ["shape"], ShapeOptions(out_type=TensorType.INT32)),
        Node(Op.SLICE, ["shape", "begin", "one"], ["count"]),
        Node(Op.FILL, ["count", "five"], ["fives"]),
    ]
    proto = checked(graph_model(tensors, nodes, ["twice", "fives"]))
    a, b = np.ones((2, 3), np.float32), np.ones((5, 4), np.float32)
    twice, fives = run(proto, [a, b])
    assert (twice.shape, fives.shape) == ((2, 3), (5,))
