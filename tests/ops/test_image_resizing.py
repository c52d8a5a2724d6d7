"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR against LiteRT."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, assert_close, check, graph_model, ours
from tests.ops.moved import FLOAT32, INT8, INT16, INT32, UINT8, ints, tensor
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import (
    MulOptions,
    Op,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    ShapeOptions,
    StridedSliceOptions,
    TensorType,
    TransposeOptions,
)

Size = tuple[int, int]

# (align_corners, half_pixel_centers); RESIZE_BILINEAR takes no pair of both.
FLAGS = ((False, False), (True, False), (False, True), (True, True))
SIZES: tuple[tuple[Size, Size], ...] = (
    ((4, 5), (8, 10)),
    ((3, 7), (10, 9)),
    ((9, 8), (4, 3)),
    ((1, 6), (5, 1)),
    ((5, 4), (5, 4)),
)


def resize(
    op: Op, old: Size, new: Size, flags: tuple[bool, bool], type: TensorType, channels: int = 3
) -> Case:
    table = ResizeBilinearOptions if op == Op.RESIZE_BILINEAR else ResizeNearestNeighborOptions
    options = table(align_corners=flags[0], half_pixel_centers=flags[1])
    exact = op == Op.RESIZE_NEAREST_NEIGHBOR or type == INT16
    return Case(
        f"{op.name.lower()}-{type.name}-{old}-{new}-align{flags[0]:d}-half{flags[1]:d}",
        op,
        [tensor((2, *old, channels), type), ints(*new)],
        [tensor((2, *new, channels), type)],
        options,
        quanta=0 if exact else 1,
        rtol=0 if exact else 1e-5,
    )


CASES = [
    resize(op, old, new, flags, type)
    for op, types in (
        (Op.RESIZE_BILINEAR, (FLOAT32, UINT8, INT8, INT16)),
        (Op.RESIZE_NEAREST_NEIGHBOR, (FLOAT32, UINT8, INT8, INT16)),
    )
    for type in types
    for flags in (FLAGS[:3] if op == Op.RESIZE_BILINEAR else FLAGS)
    for old, new in SIZES
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


@st.composite
def _resize(draw: st.DrawFn) -> Case:
    op = draw(st.sampled_from([Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR]))
    sizes = st.tuples(st.integers(1, 17), st.integers(1, 17))
    flags = draw(st.sampled_from(FLAGS[:3] if op == Op.RESIZE_BILINEAR else FLAGS))
    type = draw(st.sampled_from([FLOAT32, UINT8, INT8, INT16]))
    return resize(op, draw(sizes), draw(sizes), flags, type, draw(st.integers(1, 4)))


@given(_resize(), st.integers(0, 1000))
def test_drawn_resize(case: Case, seed: int) -> None:
    check(case, seed)


def test_nearest_by_41_follows_float32() -> None:
    """41 * (2 / 82) is a little less than 1 in float32: TFLite takes pixel 0 there."""
    check(resize(Op.RESIZE_NEAREST_NEIGHBOR, (2, 2), (82, 98), (False, False), FLOAT32))


@pytest.mark.parametrize("flags", FLAGS[:3])
@pytest.mark.parametrize(
    ("old", "new"),
    [((5, 1000), (5, 4)), ((1000, 2), (333, 3)), ((2, 1023), (300, 700)), ((1000, 1), (1, 1500))],
)
def test_places_are_those_of_tflite(old: Size, new: Size, flags: tuple[bool, bool]) -> None:
    """ONNX Runtime rounds the places of more than 256 rows otherwise: weights were wrong by
    6e-5."""
    check(resize(Op.RESIZE_BILINEAR, old, new, flags, FLOAT32))


def test_the_axis_that_shrinks_is_resized_first() -> None:
    """An image of 30,000 by 30,000 would be between."""
    for type in (FLOAT32, INT16):
        check(resize(Op.RESIZE_BILINEAR, (1, 30_000), (29_999, 1), (False, False), type, 1))


def multiplied(type: TensorType, flags: tuple[bool, bool], old: Size, factors: Size) -> bytes:
    """An image with so many times as many rows and columns: the file does not state how many."""
    made = (1, old[0] * factors[0], old[1] * factors[1], 2)
    tensors = {
        "x": tensor((1, *old, 2), type),
        "shape": T((4,), INT32),
        "one": ints(1),
        "three": ints(3),
        "sides": T((2,), INT32),
        "factors": ints(*factors),
        "size": T((2,), INT32),
        "y": tensor(made, type),
    }
    nodes = [
        Node(Op.SHAPE, ["x"], ["shape"], ShapeOptions(INT32)),
        Node(Op.STRIDED_SLICE, ["shape", "one", "three", "one"], ["sides"], StridedSliceOptions()),
        Node(Op.MUL, ["sides", "factors"], ["size"], MulOptions()),
        Node(Op.RESIZE_BILINEAR, ["x", "size"], ["y"], ResizeBilinearOptions(0, 0, *flags)),
    ]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("flags", FLAGS[:3])
@pytest.mark.parametrize("type", [INT8, UINT8])
def test_codes_to_a_computed_size(type: TensorType, flags: tuple[bool, bool]) -> None:
    """XNNPACK does not take it: all kernels of LiteRT have weights of 10 bits for int8, with which
    codes are up to three quanta from those of XNNPACK."""
    rng, factors = np.random.default_rng(0), (3, 7)
    model = multiplied(type, flags, (4, 5), factors)
    session = OnnxSession(export_onnx(model, input_shapes={"x": (1, "h", "w", 2)}), precise=True)
    for old in ((4, 5), (8, 29), (1, 1), (17, 2)):
        image = tensor((1, *old, 2), type).random(rng)
        (wanted,) = litert(model, [image])
        found = [*ours(model, [image])[0], *session.run({"x": image})]
        for got in found:
            assert_close(got, wanted, int(type is UINT8), 0, f"{old}")


@pytest.mark.parametrize("type", [FLOAT32, INT8])
@pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
def test_transposed_images(type: TensorType, order: tuple[int, ...]) -> None:
    """ONNX Runtime would resize before it transposes, along axes of which it cannot."""
    shape = (2, 6, 4, 3)
    made = [shape[i] for i in order]
    sizes, rows = (made[1] * 3, made[2] * 2), (0, 1, 3, 2)
    resized = (made[0], *sizes, made[3])
    tensors = {
        "x": tensor(shape, type),
        "order": ints(*order),
        "moved": tensor(tuple(made), type),
        "relu": tensor(tuple(made), type),
        "sizes": ints(*sizes),
        "resized": tensor(resized, type),
        "back": ints(*rows),
        "y": tensor(tuple(resized[i] for i in rows), type),
    }
    nodes = [
        Node(Op.TRANSPOSE, ["x", "order"], ["moved"], TransposeOptions()),
        Node(Op.RELU, ["moved"], ["relu"]),
        Node(Op.RESIZE_BILINEAR, ["relu", "sizes"], ["resized"], ResizeBilinearOptions()),
        Node(Op.TRANSPOSE, ["resized", "back"], ["y"], TransposeOptions()),
    ]
    model = graph_model(tensors, nodes, ["y"])
    feeds = [tensors["x"].random(np.random.default_rng(0))]
    expected = litert(model, feeds)[0]
    assert_close(ours(model, feeds)[0][0], expected, 1, 1e-5, "session")
    assert_close(exported(model, feeds)[0], expected, 1, 1e-5, "file")
    if order[0] == 0:
        shapes = {"x": (None, *shape[1:])}
        opened = exported(model, feeds, input_shapes=shapes)[0]
        assert_close(opened, expected, 1, 1e-5, "open batch")
