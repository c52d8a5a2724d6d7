"""Exports without what a simplifier would take out; what they compute stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.graph_checks import inconsistencies
from tests.models import model_path
from tests.one_op import Node, T, graph_model
from tflite_ort import export_onnx
from tflite_ort.export.finishing import clean
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.narrowing import narrow_constants
from tflite_ort.schema import (
    Conv2DOptions,
    MulOptions,
    Op,
    PackOptions,
    ReducerOptions,
    ReshapeOptions,
    ResizeNearestNeighborOptions,
    ShapeOptions,
    StridedSliceOptions,
    TensorType,
)

F, I32, I64 = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64


class Build:
    """A model of nodes over `x`."""

    def __init__(self, *shape: int | str, dtype: ir.DataType = F) -> None:
        self.x = ir.Value("x", dtype=dtype, shape=shape)
        self.graph = ir.Graph([self.x], [], [], name="main")

    def constant(self, array: Any) -> ir.Value:
        return self.graph.add_initializer(f"c{len(self.graph.initializers)}", np.asarray(array))

    def op(self, op_type: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        made = ir.Value(f"v{len(self.graph.nodes)}")
        name = f"n{len(self.graph.nodes)}"
        self.graph.nodes.append(ir.Node(op_type, inputs, [made], attributes=attributes, name=name))
        return made

    def ints(self, *numbers: int) -> ir.Value:
        return self.constant(np.array(numbers, np.int64))

    def model(self, *outputs: ir.Value) -> ir.Model:
        self.graph.outputs = list(outputs)
        return ir.Model(self.graph, opset_imports={"": 21})

    def check(self, *outputs: ir.Value, x: Any) -> list[str]:
        """Clean the model; returns its node types after it gives the same."""
        model = self.model(*outputs)
        before = run(model, x)
        clean(model)
        assert not list(inconsistencies(model.graph))
        for one, other in zip(before, run(model, x), strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
        return [node.op_type for node in model.graph.nodes]


def run(model: ir.Model, x: Any) -> Sequence[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(serialized(model), options)
    return session.run(None, {"x": x})


X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def test_what_changes_nothing_goes() -> None:
    b = Build(2, 3, 4)
    value = b.op("Identity", b.x)
    value = b.op("Transpose", b.op("Transpose", value, perm=[1, 2, 0]), perm=[2, 0, 1])
    value = b.op("Reshape", value, b.ints(2, 3, 4))
    value = b.op("Cast", b.op("Cast", value, to=int(ir.DataType.DOUBLE)), to=int(F))
    assert b.check(b.op("Relu", value), x=X) == ["Relu"]


def test_one_part_and_the_same_open_shape() -> None:
    b = Build("n", 3, 4)
    whole = b.op("Split", b.op("Reshape", b.x, b.ints(-1, 3, 4)), axis=1, num_outputs=1)
    other = b.op("Reshape", b.op("Reshape", whole, b.ints(-1, 4, 3)), b.ints(-1, 3, 4))
    assert b.check(b.op("Relu", whole), b.op("Neg", other), x=X) == ["Relu", "Neg"]
    stays = Build("n", 3, 4)
    assert stays.check(stays.op("Reshape", stays.x, stays.ints(-1, 4, 3)), x=X) == ["Reshape"]


@pytest.mark.parametrize("sizes", [(6, 4), (-1, 4), (0, 12)])
def test_a_target_says_nothing_of_no_size(sizes: tuple[int, ...]) -> None:
    b = Build(2, 3, 4)
    if 0 in sizes:
        b = Build(0, 3, 4)
    made = b.op("Reshape", b.x, b.ints(*sizes), allowzero=1)
    model = b.model(made)
    clean(model)
    (node,) = model.graph.nodes
    assert ("allowzero" in node.attributes) == (0 in sizes)
    assert run(model, X[:0] if 0 in sizes else X)[0].size == (0 if 0 in sizes else X.size)


def test_two_that_one_can_do() -> None:
    b = Build(2, 3, 4)
    turned = b.op("Transpose", b.op("Transpose", b.x, perm=[1, 0, 2]), perm=[0, 2, 1])
    flat = b.op("Squeeze", b.op("Unsqueeze", b.op("Reshape", b.x, b.ints(6, 4)), b.ints(0)))
    assert b.check(turned, flat, x=X) == ["Transpose", "Reshape"]


@pytest.mark.parametrize(
    ("axes", "shape", "kinds"),
    [
        ((1, 2), (2,), ["ReduceMean"]),
        ((-1,), (2, 3), ["ReduceMean"]),
        ((0,), (12,), ["ReduceMean", "Reshape"]),
        ((), (), ["ReduceMean", "Reshape"]),
    ],
)
def test_a_reduction_leaves_its_axes_out(
    axes: tuple[int, ...], shape: tuple[int, ...], kinds: list[str]
) -> None:
    b = Build(2, 3, 4)
    given = [b.ints(*axes)] if axes else []
    mean = b.op("ReduceMean", b.x, *given, keepdims=1)
    assert b.check(b.op("Reshape", mean, b.ints(*shape)), x=X) == kinds


def test_a_reduction_that_others_read_keeps_its_axes() -> None:
    b = Build(2, 3, 4)
    mean = b.op("ReduceMean", b.x, b.ints(2), keepdims=1)
    flat = b.op("Reshape", mean, b.ints(2, 3))
    assert len(b.check(flat, b.op("Sub", b.x, mean), x=X)) == 3


@pytest.mark.parametrize("kept", [False, True])
def test_equal_reductions_of_two_shapes_have_names_of_their_own(kept: bool) -> None:
    b = Build(2, 3, 4)
    one, other = (b.op("ReduceMean", b.x, b.ints(2), keepdims=1) for _ in range(2))
    first = b.op("Sub", b.x, one) if kept else b.op("Reshape", one, b.ints(2, 3))
    b.check(first, b.op("Reshape", other, b.ints(2, 3)), x=X)
    assert len({node.name for node in b.graph.nodes}) == len(b.graph.nodes)


def test_joins_in_a_row_are_one() -> None:
    b = Build(2, 3, 4)
    once = b.op("Concat", b.x, b.op("Neg", b.x), axis=1)
    twice = b.op("Concat", b.x, b.op("Exp", b.x), axis=1)
    whole = b.op("Concat", once, twice, b.op("Concat", b.x, b.x, axis=1), axis=1)
    kinds = b.check(whole, b.op("Relu", twice), x=X)
    assert kinds == ["Neg", "Exp", "Concat", "Concat", "Relu"]


@pytest.mark.parametrize(("first", "second"), [(I32, I64), (ir.DataType.UINT8, I64), (I32, F)])
def test_a_cast_that_may_wrap_or_round_stays(first: ir.DataType, second: ir.DataType) -> None:
    b = Build(4, dtype=I64)
    value = b.op("Cast", b.op("Cast", b.x, to=int(first)), to=int(second))
    x = np.array([1, -1, 2**40 + 5, 300], np.int64)
    assert b.check(value, x=x) == ["Cast", "Cast"]


def test_equal_nodes_are_one() -> None:
    b = Build(2, 3, 4)
    one, other = (b.op("Mul", b.x, b.constant(np.float32(2))) for _ in range(2))
    deep = [b.op("Add", b.op("Exp", each), b.constant(np.float32(1))) for each in (one, other)]
    apart = b.op("Mul", b.x, b.constant(np.float32(3)))
    total = b.op("Add", b.op("Sub", *deep), apart)
    kinds = Counter(b.check(total, x=X))
    assert kinds == {"Mul": 2, "Exp": 1, "Add": 2, "Sub": 1}


def test_states_of_equal_first_values_are_two() -> None:
    b = Build(2, 3, 4)
    states = [b.constant(np.zeros(4, np.float32)) for _ in range(2)]
    model = b.model(b.op("Sub", *[b.op("Add", b.x, each) for each in states]))
    model.graph.inputs += states
    clean(model)
    assert [node.op_type for node in model.graph.nodes] == ["Add", "Add", "Sub"]
    assert set(model.graph.initializers) >= {"c0", "c1"}


def test_outputs_keep_their_nodes_and_draws_are_apart() -> None:
    b = Build(2, 3, 4)
    one, other = (b.op("Relu", b.x) for _ in range(2))
    drawn = [b.op("RandomNormalLike", b.x) for _ in range(2)]
    model = b.model(one, other, b.op("Sub", *drawn))
    clean(model)
    assert Counter(node.op_type for node in model.graph.nodes)["RandomNormalLike"] == 2
    assert [value.name for value in model.graph.outputs] == ["v0", "v1", "v4"]


def test_constants_are_computed_where_they_are_no_larger() -> None:
    b = Build(2, 3, 4)
    row = b.op("Range", *(b.constant(np.float32(n)) for n in (0, 4, 1)))
    large = b.op("Expand", b.constant(np.float32(0.5)), b.ints(5000))
    start = b.op("Slice", large, b.ints(0), b.ints(4))
    total = b.op("Add", b.op("Add", b.x, b.op("Exp", row)), start)
    assert b.check(total, x=X) == ["Expand", "Slice", "Add", "Add"]


def test_a_constant_that_fails_fails_in_the_file() -> None:
    b = Build(2, 3, 4)
    wrong = b.op("Gather", b.constant(np.ones(2, np.float32)), b.ints(5))
    model = b.model(b.op("Add", b.x, wrong))
    clean(model)
    assert [node.op_type for node in model.graph.nodes] == ["Gather", "Add"]
    with pytest.raises(Exception, match="indices"):
        run(model, X)


def test_a_body_computes_itself_what_the_graph_around_it_does() -> None:
    b = Build(2, 3, 4)
    outside = b.op("Relu", b.x)
    test = b.op("Greater", b.op("ReduceMax", b.x, keepdims=0), b.constant(np.float32(0)))
    bodies = []
    for name in ("then", "else"):
        inner = [ir.Value(f"{name}{i}") for i in range(3)]
        kinds = zip(["Relu", "Identity", "Neg"], [b.x, *inner], inner, strict=False)
        nodes = [ir.Node(kind, [given], [made]) for kind, given, made in kinds]
        bodies.append(ir.Graph([], inner[2:], nodes, name=name))
    chosen = b.op("If", test, then_branch=bodies[0], else_branch=bodies[1])
    b.check(b.op("Add", outside, chosen), x=X)
    assert [node.op_type for node in bodies[0].nodes] == ["Relu", "Neg"]


# Sizes --------------------------------------------------------------------------------------------


def sizes(b: Build) -> ir.Value:
    """The shape of x in 32 bits, as TFLite has it."""
    return b.op("Cast", b.op("Shape", b.x), to=int(I32))


def part(b: Build, value: ir.Value, first: int) -> ir.Value:
    return b.op("Slice", value, b.ints(first), b.ints(first + 1), b.ints(0))


@pytest.mark.parametrize("batch", [2, 0])
def test_a_shape_that_inputs_tell_is_constant(batch: int) -> None:
    b = Build("n", "t", 4)
    n, t = (part(b, sizes(b), axis) for axis in (0, 1))
    rows = b.op("Concat", b.op("Mul", n, t), b.constant(np.array([4], np.int32)), axis=0)
    flat = b.op("Reshape", b.x, b.op("Cast", rows, to=int(I64)), allowzero=1)
    back = b.op("Concat", n, t, b.constant(np.array([2, 2], np.int32)), axis=0)
    split = b.op("Reshape", b.op("Relu", flat), b.op("Cast", back, to=int(I64)), allowzero=1)
    kinds = b.check(b.op("Neg", split), x=X[:batch])
    assert sorted(kinds) == ["Concat", "Neg", "Relu", "Reshape", "Reshape", "Shape"]


def test_checks_of_sizes_that_cannot_fail_go() -> None:
    """As FILL writes them."""
    b = Build("n", 4)
    shape = b.op("Cast", part(b, sizes(b), 0), to=int(I64))
    negative = b.op("Cast", b.op("Less", shape, b.constant(np.int64(0))), to=int(I64))
    checked = b.op("Add", shape, b.op("Gather", b.ints(0), negative))
    made = b.op("Expand", b.constant(np.float32(0.5)), checked)
    assert b.check(made, x=X[0]) == ["Shape", "Expand"]


def test_a_computed_target_of_other_sizes_stays() -> None:
    """It fails where it does not fit."""
    b = Build("n", "t")
    twice = b.op("Concat", *[part(b, b.op("Shape", b.x), 0)] * 2, axis=0)
    model = b.model(b.op("Reshape", b.x, twice))
    clean(model)
    assert run(model, np.ones((3, 3), np.float32))[0].shape == (3, 3)
    with pytest.raises(Exception, match="Reshape"):
        run(model, np.ones((3, 4), np.float32))


def test_open_sizes_of_a_dense_layer_take_no_nodes() -> None:
    """A product of the first sizes, as Keras writes it."""
    tensors = {
        "x": T((2, 3, 4)),
        "sizes": T((3,), TensorType.INT32),
        "first": T((2,), TensorType.INT32),
        "count": T((), TensorType.INT32),
        "target": T((2,), TensorType.INT32),
        "flat": T((6, 4)),
        "from": T.constant(np.array([0], np.int32)),
        "to": T.constant(np.array([2], np.int32)),
        "by": T.constant(np.array([1], np.int32)),
        "axis": T.constant(np.array([0], np.int32)),
        "four": T.constant(np.int32(4)),
    }
    nodes = [
        Node(Op.SHAPE, ["x"], ["sizes"], ShapeOptions(out_type=TensorType.INT32)),
        Node(Op.STRIDED_SLICE, ["sizes", "from", "to", "by"], ["first"], StridedSliceOptions()),
        Node(Op.REDUCE_PROD, ["first", "axis"], ["count"], ReducerOptions()),
        Node(Op.PACK, ["count", "four"], ["target"], PackOptions(values_count=2)),
        Node(Op.RESHAPE, ["x", "target"], ["flat"], ReshapeOptions()),
    ]
    content = graph_model(tensors, nodes, ["flat"])
    for opened in (("n", "t", 4), ("n", 3, 4)):
        proto = export_onnx(content, input_shapes={"x": opened})
        assert [node.op_type for node in proto.graph.node] == ["Reshape"]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("factor", "nodes"), [(2, 1), (4, 1), (3, 20)])
def test_nearest_pixels_of_a_computed_size(factor: int, nodes: int, half: bool) -> None:
    """Positions are exact in floats where each pixel is repeated a power of 2 times."""
    tensors = {
        "x": T((1, 3, 5, 2)),
        "sizes": T((4,), TensorType.INT32),
        "plane": T((2,), TensorType.INT32),
        "new": T((2,), TensorType.INT32),
        "y": T((1, 3 * factor, 5 * factor, 2)),
        "from": T.constant(np.array([1], np.int32)),
        "to": T.constant(np.array([3], np.int32)),
        "by": T.constant(np.array([1], np.int32)),
        "factor": T.constant(np.int32(factor)),
    }
    options = ResizeNearestNeighborOptions(half_pixel_centers=half)
    steps = [
        Node(Op.SHAPE, ["x"], ["sizes"], ShapeOptions(out_type=TensorType.INT32)),
        Node(Op.STRIDED_SLICE, ["sizes", "from", "to", "by"], ["plane"], StridedSliceOptions()),
        Node(Op.MUL, ["plane", "factor"], ["new"], MulOptions()),
        Node(Op.RESIZE_NEAREST_NEIGHBOR, ["x", "new"], ["y"], options, 3),
    ]
    content = graph_model(tensors, steps, ["y"])
    proto = export_onnx(content, input_shapes={"x": (1, "h", "w", 2)})
    assert (len(proto.graph.node) == nodes) if nodes == 1 else (len(proto.graph.node) >= nodes)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for rows, columns in ((3, 5), (7, 4)):
        x = np.random.default_rng(1).normal(size=(1, rows, columns, 2)).astype(np.float32)
        want = x.repeat(factor, axis=1).repeat(factor, axis=2)
        assert np.array_equal(session.run(None, {"x": x})[0], want)


@pytest.mark.parametrize("factor", [2, 3])
def test_nearest_pixels_of_an_open_batch(factor: int) -> None:
    tensors = {
        "x": T((1, 3, 5, 2)),
        "size": T.constant(np.array([3 * factor, 5 * factor], np.int32)),
        "y": T((1, 3 * factor, 5 * factor, 2)),
        "filter": T.constant(np.ones((2, 1, 1, 2), np.float32)),
        "z": T((1, 3 * factor, 5 * factor, 2)),
    }
    nodes = [
        Node(Op.CONV_2D, ["x", "filter", None], ["y0"], Conv2DOptions(stride_w=1, stride_h=1)),
        Node(Op.RESIZE_NEAREST_NEIGHBOR, ["y0", "size"], ["y"], ResizeNearestNeighborOptions()),
        Node(Op.CONV_2D, ["y", "filter", None], ["z"], Conv2DOptions(stride_w=1, stride_h=1)),
    ]
    tensors = {**tensors, "y0": T((1, 3, 5, 2))}
    content = graph_model(tensors, nodes, ["z"])
    proto = export_onnx(content, batch="N")
    kinds = [node.op_type for node in proto.graph.node]
    assert kinds == ["Transpose", "Conv", "Resize", "Conv", "Transpose"]
    x = np.random.default_rng(1).normal(size=(4, 3, 5, 2)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    total = x.repeat(factor, axis=1).repeat(factor, axis=2).sum(axis=3, keepdims=True) * 2
    np.testing.assert_allclose(session.run(None, {"x": x})[0], total.repeat(2, axis=3), rtol=1e-5)


# Files --------------------------------------------------------------------------------------------


def test_constants_are_narrow_where_the_file_would_be_larger() -> None:
    rng = np.random.default_rng(0)
    b = Build(4)
    large, small = (rng.normal(size=n).astype(np.float16).astype(np.float32) for n in (4000, 400))
    parts = [b.op("Slice", b.constant(each), b.ints(0), b.ints(4)) for each in (large, small)]
    model = b.model(b.op("Add", b.op("Add", *parts), b.x))
    narrow_constants(model, large.nbytes + small.nbytes + 1000)
    assert not any(node.op_type == "Cast" for node in model.graph.nodes)
    narrow_constants(model, large.nbytes)
    assert [node.op_type for node in model.graph.nodes].count("Cast") == 1
    narrow_constants(model)
    assert [node.op_type for node in model.graph.nodes].count("Cast") == 2
    (got,) = run(model, np.zeros(4, np.float32))
    assert np.array_equal(got, large[:4] + small[:4])


# By network, the most nodes and the most Casts of its export. Constants may take 1.06 times the
# room that they have in the model, and those of rows of one shape share a Cast.
MOST = {
    "pypi-mediapipe__face_landmark": (104, 3),
    "pypi-mediapipe__hand_landmark_lite": (121, 8),
    "npm-mediapipe-holistic__pose_landmark_lite": (216, 9),
    "mlperf-tiny__kws_ref_model": (62, 0),
    "tf__gru_f32": (4, 0),
}


@pytest.mark.parametrize("name", MOST)
def test_networks_have_few_nodes_and_say_all_shapes(name: str) -> None:
    proto = export_onnx(model_path(f"{name}.tflite"))
    kinds = Counter(node.op_type for node in proto.graph.node)
    assert (kinds.total(), kinds["Cast"]) <= MOST[name]
    assert kinds["Cast"] <= MOST[name][1]
    onnx.checker.check_model(proto, full_check=True)
    told = {each.name for each in (*proto.graph.value_info, *proto.graph.output)}
    made = {name for node in proto.graph.node for name in node.output if name}
    assert made <= told
