"""RESHAPE to MIRROR_PAD: LiteRT, ONNX Runtime and numpy agree exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.across.channels_first import check_channels_first
from tests.one_op import Case, Node, T, check, graph_model, ours
from tests.ops.moved import (
    BOOL,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    TYPES,
    UINT8,
    ints,
    moves,
    tensor,
)
from tests.oracle import litert
from tflite_ort.schema import (
    ConcatenationOptions,
    DelegateError,
    DepthToSpaceOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    PackOptions,
    ReshapeOptions,
    ShapeOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SplitVOptions,
    SqueezeOptions,
    UnpackOptions,
)

NOT64 = tuple(type for type in TYPES if type is not INT64)
NO_BOOL = tuple(type for type in TYPES if type is not BOOL)
BYTES4 = (FLOAT32, INT32, INT64, UINT8, INT8)

CASES = [
    *moves("reshape", Op.RESHAPE, [(2, 3, 4)], [(4, 6)], after=[ints(4, 6)]),
    *moves("reshape-unknown", Op.RESHAPE, [(2, 3, 4)], [(3, 8)], after=[ints(3, -1)], types=BYTES4),
    *moves("reshape-option", Op.RESHAPE, [(2, 3, 4)], [(6, 4)], ReshapeOptions(new_shape=(6, -1))),
    *moves("reshape-scalar", Op.RESHAPE, [(1, 1)], [()], ReshapeOptions(new_shape=(0,))),
    *moves("reshape-same", Op.RESHAPE, [(2, 3)], [(2, 3)], after=[ints(2, 3)], types=BYTES4),
    *moves("squeeze-all", Op.SQUEEZE, [(1, 3, 1, 2)], [(3, 2)], SqueezeOptions(squeeze_dims=())),
    *moves("squeeze", Op.SQUEEZE, [(1, 3, 1)], [(1, 3)], SqueezeOptions(squeeze_dims=(-1,))),
    *moves("expand_dims", Op.EXPAND_DIMS, [(2, 3)], [(2, 1, 3)], after=[ints(1)]),
    *moves("expand_dims-last", Op.EXPAND_DIMS, [(2, 3)], [(2, 3, 1)], after=[ints(-1)]),
    *moves(
        "expand_dims-int64",
        Op.EXPAND_DIMS,
        [(2, 3)],
        [(1, 2, 3)],
        after=[T.constant(np.array(0, np.int64))],
        types=[FLOAT32],
    ),
    *moves("transpose", Op.TRANSPOSE, [(2, 3, 4)], [(4, 2, 3)], after=[ints(2, 0, 1)]),
    *moves("transpose-4d", Op.TRANSPOSE, [(2, 3, 4, 5)], [(2, 5, 3, 4)], after=[ints(0, 3, 1, 2)]),
    *moves("transpose-1d", Op.TRANSPOSE, [(5,)], [(5,)], after=[ints(0)], types=BYTES4),
    *moves(
        "transpose-6d",
        Op.TRANSPOSE,
        [(2, 1, 3, 2, 1, 4)],
        [(4, 1, 2, 3, 1, 2)],
        after=[ints(5, 4, 3, 2, 1, 0)],
        types=BYTES4,
    ),
    *moves("concat", Op.CONCATENATION, [(2, 3), (2, 1)], [(2, 4)], ConcatenationOptions(axis=-1)),
    *moves(
        "concat-4d",
        Op.CONCATENATION,
        [(1, 2, 3, 2), (1, 2, 3, 4), (1, 2, 3, 1)],
        [(1, 2, 3, 7)],
        ConcatenationOptions(axis=3),
    ),
    *moves("concat-one", Op.CONCATENATION, [(2, 3)], [(2, 3)], ConcatenationOptions(axis=0)),
    *moves(
        "split",
        Op.SPLIT,
        [(2, 6)],
        [(2, 2)] * 3,
        SplitOptions(num_splits=3),
        before=[T.constant(np.array(-1, np.int32))],
        types=NO_BOOL,
    ),
    *moves(
        "split-4d",
        Op.SPLIT,
        [(1, 4, 2, 3)],
        [(1, 2, 2, 3)] * 2,
        SplitOptions(num_splits=2),
        before=[T.constant(np.array([1], np.int32))],
        types=NO_BOOL,
    ),
    *moves(
        "split_v",
        Op.SPLIT_V,
        [(2, 7)],
        [(2, 2), (2, 4), (2, 1)],
        SplitVOptions(num_splits=3),
        after=[ints(2, -1, 1), T.constant(np.array(1, np.int32))],
        types=NO_BOOL,
    ),
    *moves(
        "split_v-int64",
        Op.SPLIT_V,
        [(4, 3)],
        [(1, 3), (3, 3)],
        SplitVOptions(num_splits=2),
        after=[ints(1, 3, dtype=np.int64), T.constant(np.array(-2, np.int32))],
        types=BYTES4,
    ),
    *moves(
        "pack",
        Op.PACK,
        [(2, 3)] * 3,
        [(2, 3, 3)],
        PackOptions(values_count=3, axis=1),
        types=NO_BOOL,
    ),
    *moves(
        "pack-last",
        Op.PACK,
        [(2,)] * 2,
        [(2, 2)],
        PackOptions(values_count=2, axis=-1),
        types=NO_BOOL,
    ),
    *moves("pack-scalars", Op.PACK, [()] * 2, [(2,)], PackOptions(values_count=2), types=BYTES4),
    *moves("unpack", Op.UNPACK, [(3, 2)], [(2,)] * 3, UnpackOptions(num=3), types=NOT64),
    *moves(
        "unpack-last",
        Op.UNPACK,
        [(1, 2, 3)],
        [(1, 2)] * 3,
        UnpackOptions(num=3, axis=-1),
        types=NOT64,
    ),
    *moves(
        "space_to_depth",
        Op.SPACE_TO_DEPTH,
        [(2, 4, 6, 3)],
        [(2, 2, 3, 12)],
        SpaceToDepthOptions(block_size=2),
        types=BYTES4,
    ),
    *moves(
        "depth_to_space",
        Op.DEPTH_TO_SPACE,
        [(2, 2, 3, 12)],
        [(2, 4, 6, 3)],
        DepthToSpaceOptions(block_size=2),
        types=BYTES4,
    ),
    *moves("pad", Op.PAD, [(2, 3)], [(5, 4)], after=[ints([1, 2], [0, 1])]),
    *moves(
        "pad-4d",
        Op.PAD,
        [(1, 2, 3, 2)],
        [(1, 4, 4, 2)],
        after=[ints([0, 0], [1, 1], [1, 0], [0, 0])],
    ),
    *moves(
        "pad-5d",
        Op.PAD,
        [(1, 2, 1, 2, 1)],
        [(2, 2, 2, 2, 2)],
        after=[ints([1, 0], [0, 0], [0, 1], [0, 0], [1, 0], dtype=np.int64)],
        types=BYTES4,
    ),
    *moves(
        "reflect",
        Op.MIRROR_PAD,
        [(3, 4)],
        [(6, 8)],
        MirrorPadOptions(),
        after=[ints([2, 1], [1, 3])],
    ),
    *moves(
        "symmetric",
        Op.MIRROR_PAD,
        [(1, 3, 4, 2)],
        [(1, 6, 8, 2)],
        MirrorPadOptions(mode=MirrorPadMode.SYMMETRIC),
        after=[ints([0, 0], [2, 1], [0, 4], [0, 0], dtype=np.int64)],
    ),
    *[
        Case(
            f"padv2-{type.name}",
            Op.PADV2,
            [tensor((2, 3), type), ints([1, 0], [2, 1]), value],
            [tensor((3, 6), type)],
            quanta=0,
            rtol=0,
        )
        for type, value in (
            (FLOAT32, T.constant(np.float32(1.5))),
            (INT32, T.constant(np.array([-3], np.int32))),
            (INT64, T.constant(np.int64(9))),
            (BOOL, T.constant(np.bool_(True))),
            (UINT8, T.constant(np.uint8(77), scale=0.043, zero_point=121)),
            (INT8, T.constant(np.int8(-77), scale=0.043, zero_point=-7)),
            (INT16, T.constant(np.int16(-7700), scale=0.043)),
        )
    ],
    # The codes are moved as they are, whatever the scales say.
    *[
        Case(f"{name}-of-quantised", op, [tensor((2, 3, 4), INT8), *more], [T(shape, INT8)])
        for name, op, more, shape in (
            ("reshape", Op.RESHAPE, [ints(4, 6)], (4, 6)),
            ("slice", Op.SLICE, [ints(0, 1, 1), ints(2, 2, 2)], (2, 2, 2)),
        )
    ],
    Case(
        "concat-constant",
        Op.CONCATENATION,
        [
            tensor((1, 2, 2, 3), INT8),
            T.constant(
                np.arange(-8, 8, dtype=np.int8).reshape(1, 2, 2, 4), scale=0.043, zero_point=-7
            ),
        ],
        [tensor((1, 2, 2, 7), INT8)],
        ConcatenationOptions(axis=3),
        quanta=0,
    ),
    Case(
        "padv2-computed",
        Op.PADV2,
        [tensor((2, 3)), ints([1, 0], [2, 1]), tensor((1,))],
        [tensor((3, 6))],
        rtol=0,
    ),
    # uint8 is the one type whose inputs may differ in scale; they are rescaled.
    Case(
        "concat-rescaled",
        Op.CONCATENATION,
        [
            T((4, 50), UINT8, scale=0.05, zero_point=3),
            T((4, 60), UINT8, scale=0.021, zero_point=128),
            T((4, 30), UINT8, scale=0.04, zero_point=100),
        ],
        [T((4, 140), UINT8, scale=0.04, zero_point=100)],
        ConcatenationOptions(axis=1),
    ),
    Case(
        "shape",
        Op.SHAPE,
        [tensor((2, 3, 4))],
        [T((3,), INT32)],
        ShapeOptions(INT32),
        runs_on="constant",
    ),
    Case(
        "shape-int64",
        Op.SHAPE,
        [tensor((2,))],
        [T((1,), INT64)],
        ShapeOptions(INT64),
        runs_on="constant",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


@st.composite
def _reshaping(draw: st.DrawFn) -> Case:
    """TRANSPOSE, PAD, MIRROR_PAD, CONCATENATION or SPLIT_V of a drawn shape and type."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axis, type = draw(st.integers(0, len(shape) - 1)), draw(st.sampled_from(BYTES4))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    pads = [(draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))) for n in shape]
    padded = tuple(n + sum(pair) for n, pair in zip(shape, pads, strict=True))
    perm = draw(st.permutations(range(len(shape))))
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    whole = (*shape[:axis], sum(sizes), *shape[axis + 1 :])
    mirror = MirrorPadOptions(mode=draw(st.sampled_from(MirrorPadMode)))
    axis_ = T.constant(np.array(axis - draw(st.sampled_from([0, len(shape)])), np.int32))
    rows = (
        (Op.TRANSPOSE, [shape], [tuple(shape[i] for i in perm)], None, [ints(*perm)]),
        (Op.PAD, [shape], [padded], None, [ints(*pads)]),
        (Op.MIRROR_PAD, [shape], [padded], mirror, [ints(*pads)]),
        (Op.CONCATENATION, parts, [whole], ConcatenationOptions(axis=axis), []),
        (Op.SPLIT_V, [whole], parts, SplitVOptions(len(parts)), [ints(*sizes), axis_]),
    )
    op, shapes, results, options, after = draw(st.sampled_from(rows))
    return moves("drawn", op, shapes, results, options, after=after, types=[type])[0]


@given(_reshaping(), st.booleans())
def test_drawn_reshaping(case: Case, channels_first: bool) -> None:
    check(case)
    if channels_first:
        check_channels_first(case)


@pytest.mark.parametrize(
    ("op", "last"), [(Op.RESHAPE, 1), (Op.SQUEEZE, 2), (Op.TRANSPOSE, 9), (Op.PAD, 6), (Op.PACK, 5)]
)
def test_versions_mean_the_same(op: Op, last: int) -> None:
    case = next(case for case in CASES if case.op == op)
    feeds = case.arrays(np.random.default_rng(0))
    results = [
        ours(Case(case.name, op, case.inputs, case.outputs, case.options, v).model(), feeds)[0][0]
        for v in (1, last)
    ]
    assert np.array_equal(*results)


def test_a_size_of_another_tensor_has_to_fit() -> None:
    """Places in two lists, the first [n, 1] in the shape of the second [m, 1]: n is m, or LiteRT
    refuses it too."""
    flags, rows = T((4,), BOOL), T((4, 1), INT64)
    tensors = {"a": flags, "b": flags, "n": rows, "m": rows, "s": T((2,), INT32)}
    nodes = [
        Node(Op.WHERE, ["a"], ["n"]),
        Node(Op.WHERE, ["b"], ["m"]),
        Node(Op.SHAPE, ["m"], ["s"], ShapeOptions(out_type=INT32)),
        Node(Op.RESHAPE, ["n", "s"], ["y"], ReshapeOptions()),
    ]
    model = graph_model({**tensors, "y": rows}, nodes, ["y"])
    two, three = np.array([1, 0, 1, 0], np.bool_), np.array([0, 1, 1, 1], np.bool_)
    ((got,), runners), (want,) = ours(model, [two, two[::-1]]), litert(model, [two, two[::-1]])
    assert np.array_equal(got, want)
    assert runners == {"ort"}
    for feeds in ([two, three], [three, two]):
        with pytest.raises(RuntimeError, match="num_input_elements != num_output_elements"):
            litert(model, feeds)
        with pytest.raises(DelegateError, match="elements do not fill shape"):
            ours(model, feeds)
