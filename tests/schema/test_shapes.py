"""Shape rules: what they infer, what they leave to run time, what they refuse.

The operators' own tests hold every rule against LiteRT's shapes; here are the corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tflite_ort.schema import (
    ConcatenationOptions,
    DepthToSpaceOptions,
    FullyConnectedOptions,
    GatherOptions,
    ModelError,
    Op,
    OperatorView,
    PackOptions,
    ReducerOptions,
    ReshapeOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SqueezeOptions,
    StridedSliceOptions,
    TensorType,
    TensorView,
    UnpackOptions,
)
from tflite_ort.schema.shapes import output_shapes
from tflite_ort.schema.shapes.registry import rule, rule_of
from tflite_ort.schema.values.sizes import is_known, unknown_size

Sizes = tuple[int | str | None, ...]
A, B = unknown_size("a"), unknown_size("b")


def computed(*shape: int, type: TensorType = TensorType.INT32) -> TensorView:
    """A tensor whose values are known only at run time."""
    return TensorView(0, "computed", type, shape)


def sizes(*values: int | None) -> TensorView:
    """A list of sizes of which as much is known as `values` say."""
    array = np.array(values, np.object_)
    return TensorView(0, "sizes", TensorType.INT32, array.shape, sizes=array)


def constant(data: npt.ArrayLike) -> TensorView:
    array = np.asarray(data, np.int32)
    return TensorView(0, "constant", TensorType.INT32, array.shape, array)


def shapes(op: Op, options: Any, *inputs: TensorView | None) -> tuple[Sizes, ...] | None:
    """What the rule says; an unknown size is None, or a letter where it is one of the inputs'."""
    outputs = (computed(0), computed(0))
    found = output_shapes(OperatorView(op, 1, 0, inputs, outputs, options))
    return None if found is None else tuple(tuple(map(_described, shape)) for shape in found)


def _described(size: int) -> Any:
    return size if is_known(size) else str(size).strip("?") or None


ANY_1, ANY_2 = (None,), (None, None)
ALL_RANGES = StridedSliceOptions()
SECOND_DROPPED = StridedSliceOptions(begin_mask=1, end_mask=1, shrink_axis_mask=2)


@pytest.mark.parametrize(
    ("op", "options", "inputs", "expected"),
    [
        (Op.RESHAPE, None, (computed(2, 3), constant([-1, 2])), ((3, 2),)),
        (Op.RESHAPE, None, (computed(0, 3), constant([-1, 3])), ((0, 3),)),
        (Op.RESHAPE, None, (computed(1, 4, 0), constant([2, 0, -1])), ((2, 0, 2),)),
        (Op.RESHAPE, None, (computed(1, 4, 0), constant([2, -1])), ((2, 0),)),
        (Op.RESHAPE, ReshapeOptions(new_shape=(3, 2)), (computed(2, 3),), ((3, 2),)),
        (Op.RESHAPE, ReshapeOptions(), (computed(2, 3), computed(1)), ((6,),)),
        (
            Op.RESHAPE,
            ReshapeOptions((6,)),
            (computed(2, 3), computed(1, type=TensorType.INT64)),
            ((6,),),
        ),
        (Op.SQUEEZE, SqueezeOptions(), (computed(1, 2, 1),), ((2,),)),
        (Op.EXPAND_DIMS, None, (computed(2), computed()), (ANY_2,)),
        (Op.TRANSPOSE, None, (computed(2, 3), computed(2)), (ANY_2,)),
        (Op.PAD, None, (computed(2, 3), computed(2, 2)), (ANY_2,)),
        (Op.SPLIT, SplitOptions(2), (computed(), computed(2, 3)), (ANY_2, ANY_2)),
        (Op.SPLIT_V, None, (computed(4), computed(2), constant(0)), (ANY_1, ANY_1)),
        (Op.UNPACK, UnpackOptions(num=2), (computed(2, 3),), ((3,), (3,))),
        (Op.SHAPE, None, (computed(2, 3),), ((2,),)),
        (Op.SLICE, None, (computed(4, 5), computed(2), constant([2, 3])), ((2, 3),)),
        (Op.SLICE, None, (computed(4, 5), computed(2), constant([2, -1])), ((2, None),)),
        (Op.SLICE, None, (computed(4), constant([1]), computed(1)), (ANY_1,)),
        (Op.STRIDED_SLICE, ALL_RANGES, (computed(4), *[computed(1)] * 2, constant([1])), (ANY_1,)),
        (
            Op.STRIDED_SLICE,
            SECOND_DROPPED,
            (computed(4, 5, 6), computed(2), computed(2), constant([1, 1])),
            ((4, 6),),
        ),
        (Op.GATHER, GatherOptions(axis=1), (computed(4, 5, 6), computed(2, 3)), ((4, 2, 3, 6),)),
        (Op.GATHER_ND, None, (computed(4, 5, 6), computed(3, 2)), ((3, 6),)),
        (Op.MEAN, ReducerOptions(), (computed(4, 5), computed(1)), (ANY_1,)),
        (Op.MEAN, ReducerOptions(), (computed(4, 5), computed(2)), ((),)),
        (Op.MEAN, ReducerOptions(), (computed(4, 5), computed(A)), None),
        (Op.MEAN, ReducerOptions(keep_dims=True), (computed(4, 5), computed(2)), (ANY_2,)),
        (Op.SUM, ReducerOptions(keep_dims=True), (computed(4, 5), constant([-1])), ((4, 1),)),
        (Op.ARG_MAX, None, (computed(4, 5), computed()), (ANY_1,)),
        (Op.RESIZE_BILINEAR, None, (computed(1, 4, 5, 3), computed(2)), ((1, None, None, 3),)),
        (Op.CUSTOM, None, (computed(4),), None),
    ],
)
def test_shapes(
    op: Op, options: Any, inputs: tuple[TensorView, ...], expected: tuple[Sizes, ...] | None
) -> None:
    assert shapes(op, options, *inputs) == expected


@pytest.mark.parametrize(
    ("op", "options", "inputs", "expected"),
    [
        (Op.ADD, None, (computed(A, 3), computed(A, 1)), (("a", 3),)),
        (Op.ADD, None, (computed(A, 3), computed(3)), (("a", 3),)),
        (Op.ADD, None, (computed(A, 3), computed(4, 1)), ((4, 3),)),
        (Op.ADD, None, (computed(A), computed(B)), (ANY_1,)),
        (Op.SELECT_V2, None, (computed(A, 1), computed(A, 3), computed()), (("a", 3),)),
        (Op.RESHAPE, None, (computed(A, 4), constant([-1, 4])), (("a", 4),)),
        (Op.RESHAPE, None, (computed(A, 4), constant([-1, 2])), ((None, 2),)),
        (Op.RESHAPE, None, (computed(A, 4), constant([2, -1])), ((2, None),)),
        (Op.RESHAPE, None, (computed(A, 2, 3), sizes(A, 6)), (("a", 6),)),
        (Op.RESHAPE, None, (computed(A, 2, 3), sizes(A, -1)), (("a", 6),)),
        (Op.RESHAPE, None, (computed(A, 2, 3), sizes(None, 6)), (("a", 6),)),
        (Op.RESHAPE, None, (computed(A, 2, 3), sizes(None, None)), (ANY_2,)),
        (Op.RESHAPE, None, (computed(8), sizes(None, 4)), ((2, 4),)),
        (Op.RESHAPE, None, (computed(8), computed(A)), None),
        (Op.SQUEEZE, SqueezeOptions(), (computed(A, 1),), None),
        (Op.SQUEEZE, SqueezeOptions(squeeze_dims=(0,)), (computed(A, 1),), ((1,),)),
        (Op.CONCATENATION, ConcatenationOptions(0), (computed(A, B), computed(2, 3)), ((None, 3),)),
        (Op.CONCATENATION, ConcatenationOptions(1), (computed(A, 2), computed(A, 3)), (("a", 5),)),
        (Op.PACK, PackOptions(2), (computed(A), computed(3)), ((2, 3),)),
        (Op.UNPACK, UnpackOptions(num=2, axis=0), (computed(A, B),), (("b",), ("b",))),
        (Op.SPLIT_V, None, (computed(A), constant([2, -1]), constant(0)), ((2,), ANY_1)),
        (Op.PAD, None, (computed(A, B), constant([[0, 0], [1, 0]])), (("a", None),)),
        (Op.TILE, None, (computed(A, B, 1), sizes(1, 2, A)), (("a", None, "a"),)),
        (Op.BROADCAST_TO, None, (computed(3), sizes(A, 3)), (("a", 3),)),
        (Op.SLICE, None, (computed(A, B), constant([0, 1]), constant([-1, -1])), (("a", None),)),
        (
            Op.STRIDED_SLICE,
            SECOND_DROPPED,
            (computed(A, B, 6), computed(2), computed(2), constant([1, 1])),
            (("a", 6),),
        ),
        (Op.GATHER, GatherOptions(axis=0), (computed(A, B), computed(A)), (("a", "b"),)),
        (Op.GATHER_ND, None, (computed(A, B), computed(3, A)), None),
        (Op.SUM, ReducerOptions(), (computed(A, B), constant([1])), (("a",),)),
        (Op.WHERE, None, (computed(A, B),), ((None, 2),)),
        (Op.UNIQUE, None, (computed(A),), (ANY_1, ("a",))),
        (Op.FILL, None, (sizes(A, 3), computed()), (("a", 3),)),
        (Op.FILL, None, (computed(A), computed()), None),
        (Op.SPACE_TO_DEPTH, SpaceToDepthOptions(2), (computed(A, B, 4, 1),), (("a", None, 2, 4),)),
        (Op.DEPTH_TO_SPACE, DepthToSpaceOptions(2), (computed(A, B, 4, 4),), (("a", None, 8, 1),)),
    ],
)
def test_unknown_sizes_are_passed_on(
    op: Op, options: Any, inputs: tuple[TensorView, ...], expected: tuple[Sizes, ...] | None
) -> None:
    assert shapes(op, options, *inputs) == expected


@pytest.mark.parametrize(
    ("op", "options", "inputs", "message"),
    [
        (Op.RESHAPE, None, (computed(2, 3), constant([4])), "6 elements do not fill"),
        (Op.RESHAPE, None, (computed(2, 3), constant([-1, -1])), "more than one unknown"),
        (Op.RESHAPE, None, (computed(2, 3), constant([-1, 4])), "6 elements do not fill"),
        (Op.SQUEEZE, SqueezeOptions(squeeze_dims=(0,)), (computed(2, 1),), "not all of size 1"),
        (Op.EXPAND_DIMS, None, (computed(2), constant(2)), "Axis 2"),
        (Op.TRANSPOSE, None, (computed(2, 3), constant([0, 0])), "not a permutation"),
        (Op.CONCATENATION, ConcatenationOptions(0), (computed(2, 3), computed(2, 2)), "differ"),
        (Op.PACK, PackOptions(2), (computed(2), computed(3)), "differ"),
        (Op.UNPACK, UnpackOptions(num=3), (computed(2),), "unpack into 3"),
        (Op.SPLIT, SplitOptions(num_splits=2), (constant(0), computed(3)), "2 equal parts"),
        (Op.SPLIT_V, None, (computed(3), constant([1, 1]), constant(0)), "do not sum to 3"),
        (Op.SPLIT_V, None, (computed(3), constant([-1, -1]), constant(0)), "more than one"),
        (Op.SPACE_TO_DEPTH, SpaceToDepthOptions(2), (computed(1, 3, 4, 1),), "do not tile 3 x 4"),
        (Op.DEPTH_TO_SPACE, DepthToSpaceOptions(2), (computed(1, 3, 4, 6),), "6 channels"),
        (Op.DEPTH_TO_SPACE, DepthToSpaceOptions(2), (computed(3, 4, 4),), "rank 3, expected 4"),
        (Op.PAD, None, (computed(2), constant([[-1, 0]])), "do not pad"),
        (Op.SLICE, None, (computed(4), constant([2]), constant([3])), "leaves shape"),
        (
            Op.GATHER,
            GatherOptions(axis=0, batch_dims=1),
            (computed(4), computed(4)),
            "batch_dims 1",
        ),
        (Op.GATHER_ND, None, (computed(4), computed(1, 2)), "do not index"),
        (Op.ARG_MIN, None, (computed(4), constant(1)), "Axis 1"),
        (Op.RESIZE_BILINEAR, None, (computed(1, 4, 5, 3), constant([0, 1])), "does not resize"),
        (
            Op.STRIDED_SLICE,
            ALL_RANGES,
            (computed(4, 5), constant([0, 0]), constant([1, 1]), constant([1])),
            "not as many",
        ),
        (
            Op.REDUCE_WINDOW,
            None,
            (computed(4), computed(), *[constant([1])] * 2, constant(1)),
            "to be lists",
        ),
        (
            Op.FULLY_CONNECTED,
            FullyConnectedOptions(),
            (computed(2, 4), computed(3, 4), computed(1)),
            "a bias of",
        ),
        (Op.SQUEEZE, SqueezeOptions(), (None,), "lacks input 'input'"),
        (Op.ADD, None, (computed(A, 3), computed(A, 2)), "do not broadcast"),
        (Op.CONCATENATION, ConcatenationOptions(0), (computed(A, 3), computed(A, 2)), "differ"),
        (Op.PACK, PackOptions(2), (computed(A, 3), computed(A, 2)), "differ"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    op: Op, options: Any, inputs: tuple[TensorView | None, ...], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        shapes(op, options, *inputs)


def test_a_second_rule_of_an_operator_is_refused() -> None:
    known = rule_of(Op.RESHAPE)
    assert known is not None
    with pytest.raises(ValueError, match="RESHAPE has a shape rule already"):
        rule(Op.RESHAPE)(known)
