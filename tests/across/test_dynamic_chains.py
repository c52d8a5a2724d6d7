"""Models in which the shape of one result depends on another: LiteRT, ONNX Runtime and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Array, Node, T, assert_close, graph_model, one_op_model, ours
from tests.oracle import litert
from tflite_ort import Interpreter
from tflite_ort.schema import (
    AddNOptions,
    BatchMatMulOptions,
    BridgeError,
    ConcatenationOptions,
    FullyConnectedOptions,
    GatherOptions,
    MirrorPadMode,
    MirrorPadOptions,
    ModelError,
    MulOptions,
    Op,
    PackOptions,
    ReducerOptions,
    ShapeOptions,
    SplitOptions,
    StridedSliceOptions,
    TensorType,
    TransposeConvOptions,
    UnpackOptions,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import strided_slice

BOOL, INT32, INT64 = TensorType.BOOL, TensorType.INT32, TensorType.INT64
SHAPE = ShapeOptions(out_type=INT32)


def ints(*values: Any) -> T:
    return T.constant(np.array(values, np.int32))


def agree(model: bytes, feeds: list[Array], kernels: str = "reference") -> list[Array]:
    """All three give the same; nothing is left to numpy by default."""
    by_numpy, _ = ours(model, feeds, providers=[])
    by_ort, runners = ours(model, feeds)
    assert runners <= {"ort", "constant"}
    empty = any(result.size == 0 for result in by_numpy)  # of which LiteRT has no array
    expected = by_numpy if empty else litert(model, feeds, kernels)
    for got in (by_ort, by_numpy):
        for want, result in zip(expected, got, strict=True):
            assert_close(result, want, 0, 1e-5, "")
    return expected


def of_any_shape(rank: int, type: TensorType = TensorType.FLOAT32) -> T:
    return T((1,) * rank, type, shape_signature=(-1,) * rank)


def refused(model: bytes, feeds: list[Array], operator: str, kernels: str = "reference") -> None:
    """LiteRT fails, and so do we, naming the operator."""
    with pytest.raises((RuntimeError, ValueError)):
        litert(model, feeds, kernels)
    for providers in (None, []):
        with pytest.raises(BridgeError, match=operator):
            ours(model, feeds, providers)


def picked() -> bytes:
    """Rows of [6, 3] where a condition holds; the rows doubled, their mean, and how many."""
    tensors = {
        "x": T((6, 3)),
        "condition": T((6,), BOOL),
        "two": T.constant(np.array(2, np.float32)),
        "first": ints(0),
        "places": T((1, 1), INT64),
        "rows": T((1, 3)),
        "doubled": T((1, 3)),
        "sum": T((3,)),
        "shape": T((2,), INT32),
    }
    nodes = [
        Node(Op.WHERE, ["condition"], ["places"]),
        Node(Op.GATHER_ND, ["x", "places"], ["rows"]),
        Node(Op.MUL, ["rows", "two"], ["doubled"], MulOptions()),
        Node(Op.SUM, ["doubled", "first"], ["sum"], ReducerOptions()),
        Node(Op.SHAPE, ["doubled"], ["shape"], SHAPE),
    ]
    return graph_model(tensors, nodes, ["doubled", "sum", "shape"])


def test_rows_that_a_condition_picks() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    for count in (0, 1, 4, 6):
        condition = np.arange(6) < count
        assert agree(picked(), [x, condition])[0].shape == (count, 3)


def test_each_invoke_makes_the_shape_anew() -> None:
    interpreter = Interpreter(model_content=picked(), num_threads=1)
    interpreter.allocate_tensors()
    condition = interpreter.get_input_details()[1]["index"]
    doubled = interpreter.get_output_details()[0]
    assert doubled["shape"].tolist() == [1, 3], "as the file has it"
    for count in (2, 5, 0):
        interpreter.set_tensor(condition, np.arange(6) < count)
        interpreter.invoke()
        assert interpreter.get_output_details()[0]["shape"].tolist() == [count, 3]
        assert interpreter.get_tensor(doubled["index"]).shape == (count, 3)


FIRST_OF_SHAPE = {
    "slice": Node(
        Op.STRIDED_SLICE,
        ["shape", "zero", "one", "one"],
        ["batch"],
        StridedSliceOptions(shrink_axis_mask=1),
    ),
    "gather": Node(Op.GATHER, ["shape", "nought"], ["batch"], GatherOptions()),
    "unpack": Node(Op.UNPACK, ["shape"], ["batch", "h", "w", "c"], UnpackOptions(num=4)),
}


def flattened(by: str = "slice") -> bytes:
    """[N, 2, 2, 3] by way of its own SHAPE to [N, 12], and through a matrix."""
    tensors = {
        "x": T((1, 2, 2, 3), shape_signature=(-1, 2, 2, 3)),
        "shape": T((4,), INT32),
        "zero": ints(0),
        "one": ints(1),
        "nought": T.constant(np.array(0, np.int32)),
        **{name: T((), INT32) for name in ("batch", "h", "w", "c")[: 4 if by == "unpack" else 1]},
        "twelve": T.constant(np.array(12, np.int32)),
        "wanted": T((2,), INT32),
        "rows": T((1, 12), shape_signature=(-1, 12)),
        "matrix": T.constant(np.arange(60, dtype=np.float32).reshape(5, 12)),
        "y": T((1, 5), shape_signature=(-1, 5)),
    }
    nodes = [
        Node(Op.SHAPE, ["x"], ["shape"], SHAPE),
        FIRST_OF_SHAPE[by],
        Node(Op.PACK, ["batch", "twelve"], ["wanted"], PackOptions(values_count=2)),
        Node(Op.RESHAPE, ["x", "wanted"], ["rows"]),
        Node(Op.FULLY_CONNECTED, ["rows", "matrix", None], ["y"], FullyConnectedOptions()),
    ]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("by", FIRST_OF_SHAPE)
def test_a_shape_made_of_the_inputs_own(by: str) -> None:
    x = np.random.default_rng(0).normal(size=(3, 2, 2, 3)).astype(np.float32)
    assert agree(flattened(by), [x])[0].shape == (3, 5)


def test_computed_bounds_of_a_range_that_is_filled_and_picked_from() -> None:
    tensors = {
        "limit": T((), INT32),
        "start": T.constant(np.array(0, np.int32)),
        "step": T.constant(np.array(2, np.int32)),
        "counted": T((1,), INT32),
        "shape": T((1,), INT32),
        "value": T(()),
        "filled": T((1,)),
        "x": T((9, 2)),
        "rows": T((1, 2)),
    }
    nodes = [
        Node(Op.RANGE, ["start", "limit", "step"], ["counted"]),
        Node(Op.SHAPE, ["counted"], ["shape"], SHAPE),
        Node(Op.FILL, ["shape", "value"], ["filled"]),
        Node(Op.GATHER, ["x", "counted"], ["rows"]),
    ]
    model = graph_model(tensors, nodes, ["filled", "rows"])
    x = np.arange(18, dtype=np.float32).reshape(9, 2)
    for limit in (9, 4, 0):
        agree(model, [np.array(limit, np.int32), np.array(1.5, np.float32), x])
    refused(model, [np.array(11, np.int32), np.array(1.5, np.float32), x], "GATHER_3")


@given(
    begin=st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    end=st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    strides=st.lists(st.sampled_from((-2, -1, 1, 2)), min_size=3, max_size=3),
    masks=st.lists(st.integers(0, 7), min_size=2, max_size=2),
    new=st.sampled_from((0, 1, 2, 4)),
    dropped=st.sampled_from((0, 1, 2, 4)),
)
def test_drawn_slices_between_computed_bounds(
    begin: list[int], end: list[int], strides: list[int], masks: list[int], new: int, dropped: int
) -> None:
    """And outside them, which is refused."""
    for entry in range(3):
        if dropped >> entry & 1:
            strides[entry] = 1
    options = StridedSliceOptions(
        begin_mask=masks[0], end_mask=masks[1], new_axis_mask=new, shrink_axis_mask=dropped
    )
    shape = (4, 5, 3)
    inputs = [T(shape), T((3,), INT32), T((3,), INT32), ints(*strides)]
    rank = 3 + (new > 0) - (dropped > 0 and dropped != new)
    model = one_op_model(Op.STRIDED_SLICE, inputs, [of_any_shape(rank)], options)
    x = np.arange(60, dtype=np.float32).reshape(shape)
    feeds = [x, np.array(begin, np.int32), np.array(end, np.int32)]
    try:
        strided_slice(shape, begin, end, strides, options)
    except ModelError:  # LiteRT lets some of these pass
        for providers in (None, []):
            with pytest.raises(BridgeError, match="STRIDED_SLICE_0"):
                ours(model, feeds, providers)
    else:
        agree(model, feeds)


@given(
    begin=st.lists(st.integers(-1, 5), min_size=2, max_size=2),
    size=st.lists(st.integers(-1, 5), min_size=2, max_size=2),
)
def test_drawn_slices_of_computed_size(begin: list[int], size: list[int]) -> None:
    model = one_op_model(Op.SLICE, [T((4, 5)), T((2,), INT32), T((2,), INT32)], [of_any_shape(2)])
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    feeds = [x, np.array(begin, np.int32), np.array(size, np.int32)]
    ends = np.where(np.array(size) == -1, (4, 5), np.add(begin, size))
    if min(begin) < 0 or (ends > (4, 5)).any() or (ends < begin).any():
        refused(model, feeds, "SLICE_0")
    else:
        agree(model, feeds)


def computed(*shape: int) -> T:
    return T(shape, INT32)


WRONG: list[tuple[Op, Any, list[T], T, list[list[int]]]] = [
    (Op.RESHAPE, None, [T((2, 3)), computed(2)], T((1, 1)), [[4, 2]]),
    (Op.BROADCAST_TO, None, [T((2, 3)), computed(2)], T((1, 1)), [[1, 3]]),
    (Op.FILL, None, [computed(2), T(())], T((1, 1)), [[2, -1]]),
    (Op.TILE, None, [T((2, 3)), computed(2)], T((1, 1)), [[-1, 2]]),
    (Op.PAD, None, [T((2, 3)), computed(2, 2)], T((1, 1)), [[0, 1], [-1, 0]]),
    (Op.TOPK_V2, None, [T((2, 3)), computed()], T((1, 1)), [[4]]),
]


@pytest.mark.parametrize(("op", "options", "inputs", "output", "listed"), WRONG)
def test_lists_that_do_not_fit_are_refused(
    op: Op, options: Any, inputs: list[T], output: T, listed: list[list[int]]
) -> None:
    outputs = [output, T(output.shape, INT32)] if op is Op.TOPK_V2 else [output]
    model = one_op_model(op, inputs, outputs, options, 2 if op is Op.BROADCAST_TO else 1)
    rng = np.random.default_rng(0)
    lists = iter([np.array(listed, np.int32)])
    feeds = [next(lists).reshape(t.shape) if t.type is INT32 else t.random(rng) for t in inputs]
    refused(model, feeds, f"{op.name}_0")


def hidden(*shapes: tuple[int, ...]) -> tuple[dict[str, T], list[Node], list[Array]]:
    """Tensors h0, h1, ... whose sizes are computed, with values of the given shapes."""
    tensors: dict[str, T] = {}
    nodes: list[Node] = []
    feeds: list[Array] = []
    for i, shape in enumerate(shapes):
        tensors |= {f"x{i}": T(shape), f"s{i}": computed(len(shape)), f"h{i}": T(shape)}
        nodes.append(Node(Op.RESHAPE, [f"x{i}", f"s{i}"], [f"h{i}"]))
        feeds.append(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
        feeds.append(np.array(shape, np.int32))
    return tensors, nodes, feeds


@pytest.mark.parametrize(
    ("op", "options", "shapes"),
    [
        (Op.ADD_N, AddNOptions(), ((2, 3), (3, 2))),
        (Op.CONCATENATION, ConcatenationOptions(), ((2, 3), (2, 2))),
        (Op.BATCH_MATMUL, BatchMatMulOptions(), ((2, 3), (2, 3))),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    op: Op, options: Any, shapes: tuple[tuple[int, ...], ...]
) -> None:
    tensors, nodes, feeds = hidden(*shapes)
    tensors["y"] = T((1, 1))
    names = [f"h{i}" for i in range(len(shapes))]
    model = graph_model(tensors, [*nodes, Node(op, names, ["y"], options)], ["y"])
    refused(model, feeds, f"{op.name}_{len(shapes)}")


def test_a_computed_batch_that_does_not_fit_is_refused() -> None:
    tensors, nodes, feeds = hidden((2, 3))
    tensors |= {"n": computed(), "three": T.constant(np.array(3, np.int32)), "to": computed(2)}
    tensors["y"] = of_any_shape(2)
    pack = Node(Op.PACK, ["n", "three"], ["to"], PackOptions(values_count=2))
    model = graph_model(tensors, [*nodes, pack, Node(Op.RESHAPE, ["h0", "to"], ["y"])], ["y"])
    agree(model, [*feeds, np.array(2, np.int32)])
    refused(model, [*feeds, np.array(4, np.int32)], "RESHAPE_2")


def test_an_uneven_split_is_refused() -> None:
    tensors, nodes, feeds = hidden((5, 2))
    tensors |= {"axis": T.constant(np.array(0, np.int32)), "a": T((1, 1)), "b": T((1, 1))}
    split = Node(Op.SPLIT, ["axis", "h0"], ["a", "b"], SplitOptions(num_splits=2))
    refused(graph_model(tensors, [*nodes, split], ["a", "b"]), feeds, "SPLIT_1")


def test_transpose_conv_to_a_computed_size() -> None:
    filter = np.random.default_rng(0).normal(size=(2, 3, 3, 4)).astype(np.float32)
    inputs = [computed(4), T.constant(filter), T((1, 5, 6, 4))]
    options = TransposeConvOptions(stride_h=2, stride_w=2)
    model = one_op_model(Op.TRANSPOSE_CONV, inputs, [T((1, 1, 1, 2))], options)
    image = np.random.default_rng(1).normal(size=(1, 5, 6, 4)).astype(np.float32)
    for height, width in ((10, 12), (9, 11)):
        agree(model, [np.array([1, height, width, 2], np.int32), image])
    with pytest.raises(BridgeError, match="TRANSPOSE_CONV_0"):
        ours(model, [np.array([2, 10, 12, 2], np.int32), image])


@pytest.mark.parametrize("op", [Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR])
def test_resize_to_sizes_that_a_condition_picks(op: Op) -> None:
    """How many there are is only known when the model runs."""
    tensors = {
        "image": T((1, 3, 4, 2)),
        "listed": ints(6, 9, 7),
        "condition": T((3,), BOOL),
        "places": T((1, 1), INT64),
        "sizes": T((1,), INT32, shape_signature=(-1,)),
        "resized": of_any_shape(4),
    }
    nodes = [
        Node(Op.WHERE, ["condition"], ["places"]),
        Node(Op.GATHER_ND, ["listed", "places"], ["sizes"]),
        Node(op, ["image", "sizes"], ["resized"]),
    ]
    model = graph_model(tensors, nodes, ["resized"])
    image = np.random.default_rng(0).normal(size=(1, 3, 4, 2)).astype(np.float32)
    for picked in ([1, 0, 1], [0, 1, 1]):
        agree(model, [image, np.array(picked, bool)])
    refused(model, [image, np.array([1, 1, 1], bool)], op.name)


@pytest.mark.parametrize("axes", [[0], [1, 2], [-1]], ids=str)
@pytest.mark.parametrize("type", [INT32, INT64], ids=lambda type: type.name)
@pytest.mark.parametrize("op", [Op.SUM, Op.MEAN, Op.REDUCE_PROD], ids=lambda op: op.name)
def test_integers_over_computed_axes_keep_their_last_bits(
    op: Op, type: TensorType, axes: list[int]
) -> None:
    limits, dtype = np.iinfo(NUMPY_DTYPE[type]), NUMPY_DTYPE[type]
    x = np.random.default_rng(0).integers(limits.min, limits.max, (3, 4, 5)).astype(dtype)
    inputs, result = [T((3, 4, 5), type), computed(len(axes))], of_any_shape(3 - len(axes), type)
    model = one_op_model(op, inputs, [result], ReducerOptions())
    agree(model, [x, np.array(axes, np.int32)])


@pytest.mark.parametrize("type", [TensorType.FLOAT32, INT32, INT64], ids=lambda type: type.name)
@pytest.mark.parametrize("op", [Op.SUM, Op.MEAN, Op.REDUCE_PROD], ids=lambda op: op.name)
def test_a_scalar_has_no_axes(op: Op, type: TensorType) -> None:
    model = one_op_model(op, [T((), type), computed(1)], [T((), type)], ReducerOptions())
    agree(model, [np.array(5, NUMPY_DTYPE[type]), np.array([0], np.int32)])


@given(axes=st.lists(st.integers(-4, 3), min_size=1, max_size=2), keep=st.booleans())
def test_drawn_axes(axes: list[int], keep: bool) -> None:
    """ONNX Runtime takes each only once: else there would be another rank."""
    options = ReducerOptions(keep_dims=keep)
    inputs, result = [T((4, 5, 3)), computed(len(axes))], of_any_shape(3 if keep else 3 - len(axes))
    model = one_op_model(Op.REDUCE_MAX, inputs, [result], options)
    x = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    feeds = [x, np.array(axes, np.int32)]
    if min(axes) < -3 or max(axes) > 2:
        refused(model, feeds, "REDUCE_MAX_0")
    elif len({axis % 3 for axis in axes}) < len(axes):
        with pytest.raises(BridgeError, match="REDUCE_MAX_0"):
            ours(model, feeds)
    else:
        agree(model, feeds)


@given(st.permutations(range(4)), st.booleans())
def test_drawn_permutations(perm: list[int], backwards: bool) -> None:
    model = one_op_model(Op.TRANSPOSE, [T((2, 3, 4, 5)), computed(4)], [of_any_shape(4)])
    x = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    agree(model, [x, np.array([axis - 4 * backwards for axis in perm], np.int32)])


def test_what_is_no_permutation_is_refused() -> None:
    model = one_op_model(Op.TRANSPOSE, [T((2, 3)), computed(2)], [of_any_shape(2)])
    x = np.zeros((2, 3), np.float32)
    for perm in ([0, 0], [0, 2]):
        with pytest.raises(BridgeError, match="TRANSPOSE_0"):
            ours(model, [x, np.array(perm, np.int32)])


def test_updates_scattered_into_a_computed_shape() -> None:
    inputs = [T((3, 2), INT32), T((3, 4)), computed(3)]
    model = one_op_model(Op.SCATTER_ND, inputs, [of_any_shape(3)])
    indices = np.array([[0, 1], [1, 0], [0, 1]], np.int32)
    updates = np.arange(12, dtype=np.float32).reshape(3, 4)
    for shape in ([2, 2, 4], [5, 3, 4]):
        agree(model, [indices, updates, np.array(shape, np.int32)])
    for shape in ([1, 2, 4], [2, 2, 3]):
        refused(model, [indices, updates, np.array(shape, np.int32)], "SCATTER_ND_0")


def test_segments_that_ids_count() -> None:
    model = one_op_model(Op.SEGMENT_SUM, [T((4, 2)), computed(4)], [of_any_shape(2)])
    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    for ids in ([0, 0, 1, 2], [0, 0, 0, 0]):
        agree(model, [data, np.array(ids, np.int32)], "optimized")
    for ids in ([1, 1, 2, 2], [0, 2, 2, 3], [0, 1, 0, 1], [-1, 0, 1, 2]):
        refused(model, [data, np.array(ids, np.int32)], "SEGMENT_SUM_0", "optimized")


@pytest.mark.parametrize("mode", [MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC])
def test_computed_mirrors(mode: MirrorPadMode) -> None:
    inputs = [T((3, 4)), computed(2, 2)]
    model = one_op_model(Op.MIRROR_PAD, inputs, [of_any_shape(2)], MirrorPadOptions(mode=mode))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    reflect = mode is MirrorPadMode.REFLECT
    for pads in (
        [[0, 0], [1, 2]],
        [[2, 1], [0, 3]],
        [[3 - reflect, 3 - reflect], [4 - reflect, 0]],
    ):
        agree(model, [x, np.array(pads, np.int32)])
    for pads in ([[4 - reflect, 0], [0, 0]], [[0, -1], [0, 0]]):
        refused(model, [x, np.array(pads, np.int32)], "MIRROR_PAD_0")
