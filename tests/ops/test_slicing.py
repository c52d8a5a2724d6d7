"""SLICE and STRIDED_SLICE: LiteRT, ONNX Runtime and numpy agree exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.across.veiled import check_model, with_computed_lists
from tests.one_op import Case, Node, T, check, graph_model, ours
from tests.ops.moved import FLOAT32, INT8, INT32, INT64, TYPES, UINT8, ints, moves, tensor
from tests.ops.versions import check_versions
from tests.oracle import litert
from tflite_ort.schema import BridgeError, CastOptions, Op, StridedSliceOptions, TensorType
from tflite_ort.schema.values.semantics import strided_slice

Shape = tuple[int, ...]


def strided(
    name: str,
    shape: Shape,
    entries: list[tuple[int, int, int]],
    **masks: int | bool,
) -> Case:
    """A float row; the result's shape follows from `entries` (begin, end, stride) and masks."""
    options = StridedSliceOptions(**masks)
    bounds = [np.array(values, np.int32) for values in zip(*entries, strict=True)]
    result = strided_slice(shape, *bounds, options).shape
    inputs = [tensor(shape), *(T.constant(values) for values in bounds)]
    return Case(f"strided-{name}", Op.STRIDED_SLICE, inputs, [tensor(result)], options, rtol=0)


CASES = [
    *moves("slice", Op.SLICE, [(3, 4, 5)], [(2, 3, 5)], after=[ints(1, 0, 0), ints(2, 3, -1)]),
    *moves(
        "slice-4d",
        Op.SLICE,
        [(1, 4, 4, 3)],
        [(1, 2, 3, 1)],
        after=[ints(0, 1, 0, 2, dtype=np.int64), ints(1, 2, 3, 1, dtype=np.int64)],
    ),
    *moves("slice-whole", Op.SLICE, [(3, 2)], [(3, 2)], after=[ints(0, 0), ints(-1, 2)]),
    *moves(
        "strided",
        Op.STRIDED_SLICE,
        [(4, 6)],
        [(2, 2)],
        StridedSliceOptions(),
        after=[ints(0, 1), ints(4, 6), ints(2, 3)],
    ),
    strided("negative", (5, 6), [(-1, -6, -2), (4, 0, -1)]),
    strided("reversed", (5,), [(0, 0, -1)], begin_mask=1, end_mask=1),
    strided("past-the-first", (5,), [(3, -9, -1)]),
    strided("clamped", (5, 4), [(-9, 99, 1), (1, 99, 2)]),
    strided("masks", (5, 4), [(3, 1, 2), (2, 3, 1)], begin_mask=1, end_mask=2),
    strided("shrink", (3, 4, 5), [(1, 2, 1), (0, 4, 1), (-1, 0, 1)], shrink_axis_mask=5),
    strided("shrink-all", (3, 4), [(1, 2, 1), (-2, 0, 1)], shrink_axis_mask=3),
    strided("new-axis", (3, 4), [(0, 0, 1), (1, 3, 1), (0, 0, 1), (0, 4, 2)], new_axis_mask=5),
    strided("ellipsis", (2, 3, 4, 5), [(0, 0, 1), (1, 3, 1)], ellipsis_mask=1),
    strided("ellipsis-middle", (2, 3, 4, 5), [(1, 2, 1), (0, 0, 1), (0, 5, 2)], ellipsis_mask=2),
    strided(
        "ellipsis-new-shrink",
        (2, 3, 4),
        [(1, 2, 1), (0, 0, 1), (0, 0, 1), (2, 3, 1)],
        shrink_axis_mask=9,
        ellipsis_mask=2,
        new_axis_mask=4,
    ),
    strided("short", (3, 4, 5), [(1, 3, 1)]),
    strided("offset", (6, 8), [(1, 3, 1), (2, 4, 1)], offset=True),
    strided("offset-negative", (6,), [(-4, 3, 2)], offset=True),
    Case(
        "strided-at-computed",
        Op.STRIDED_SLICE,
        [tensor((3, 4, 5)), T((3,), INT32), T((3,), INT32), ints(1, 1, 1)],
        [tensor((4,))],
        StridedSliceOptions(begin_mask=2, end_mask=2, shrink_axis_mask=5),
        rtol=0,
        feeds=[
            np.arange(60, dtype=np.float32).reshape(3, 4, 5),
            np.array([2, 0, -2], np.int32),
            np.array([3, 0, -1], np.int32),
        ],
    ),
    Case(
        "slice-from-computed",
        Op.SLICE,
        [tensor((4, 5)), T((2,), INT32), ints(2, 3)],
        [tensor((2, 3))],
        rtol=0,
        feeds=[np.arange(20, dtype=np.float32).reshape(4, 5), np.array([2, 1], np.int32)],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


@st.composite
def _strided(draw: st.DrawFn) -> Case:
    """Entries for every axis with any masks; LiteRT does not bound-check dropped axes, so those
    are in range."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    entries, shrink = [], 0
    for axis, size in enumerate(shape):
        stride = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        begin, end = draw(st.integers(-size - 2, size + 2)), draw(st.integers(-size - 2, size + 2))
        if draw(st.booleans()) and draw(st.booleans()):
            shrink, begin, stride = shrink | 1 << axis, draw(st.integers(-size, size - 1)), 1
        entries.append((begin, end, stride))
    masks = st.integers(0, 15)
    return strided(
        "drawn",
        shape,
        entries,
        begin_mask=draw(masks) & ~shrink,
        end_mask=draw(masks) & ~shrink,
        shrink_axis_mask=shrink,
    )


@given(_strided())
def test_drawn_strided_slice(case: Case) -> None:
    check(case)


@given(_strided())
def test_drawn_strided_slice_of_computed_lists(case: Case) -> None:
    assume(0 not in case.outputs[0].shape)  # LiteRT does not hand it out
    assert check_model(case, *with_computed_lists(case)) == "ort"


@pytest.mark.parametrize("type", [UINT8, INT8, FLOAT32])
def test_versions_mean_the_same(type: int) -> None:
    case = next(c for c in CASES if c.name == f"strided-{type.name}")
    for version in (2, 4):
        check(replace(case, version=version))


def update(
    name: str, type: TensorType, shape: Shape, part: Shape, start: list[int], dtype: type = np.int32
) -> Case:
    """DYNAMIC_UPDATE_SLICE at a start that is computed."""
    position = np.array(start, dtype)
    tensors = [tensor(shape, type), tensor(part, type)]
    rng = np.random.default_rng(0)
    where = T(position.shape, INT32 if dtype is np.int32 else INT64)
    return Case(
        f"update-{name}-{type.name}",
        Op.DYNAMIC_UPDATE_SLICE,
        [*tensors, where],
        [tensor(shape, type)],
        quanta=0,
        rtol=0,
        feeds=[*(t.random(rng) for t in tensors), position],
    )


UPDATES = [
    *[update("rows", type, (4, 3, 2), (2, 3, 2), [1, 0, 0]) for type in TYPES],
    *[update("cache", type, (1, 5, 2, 3), (1, 1, 2, 3), [0, 9, 0, 0]) for type in TYPES],
    *[update("inner", type, (3, 4), (2, 2), [-4, 1], np.int64) for type in TYPES],
    *[update("whole", type, (3, 4), (3, 4), [1, 1]) for type in TYPES],
    update("nothing", FLOAT32, (3, 4), (0, 4), [1, 1]),
]


@pytest.mark.parametrize("case", UPDATES, ids=lambda case: case.name)
def test_update(case: Case) -> None:
    check(case)


@st.composite
def _update(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    part = tuple(draw(st.integers(1, size)) for size in shape)
    start = [draw(st.integers(-2, 5)) for _ in shape]
    return update("drawn", draw(st.sampled_from(TYPES)), shape, part, start)


@given(_update())
def test_drawn_update(case: Case) -> None:
    check(case)


def test_update_versions() -> None:
    check_versions(UPDATES[0])


def test_an_update_that_is_too_large_is_refused() -> None:
    inputs = [tensor((2, 3)), tensor((2, 4)), ints(0, 0)]
    case = Case("refused", Op.DYNAMIC_UPDATE_SLICE, inputs, [tensor((2, 3))])
    with pytest.raises(BridgeError, match=r"\(2, 4\) is larger than \(2, 3\)"):
        ours(case.model(), case.arrays(np.random.default_rng(0)))


def test_update_of_4_bit_values() -> None:
    """Rows begin and end within bytes."""
    int4 = TensorType.INT4
    model = graph_model(
        {
            "operand": T((3, 7), int4, raw=bytes(range(90, 101))),
            "update": T((2, 3), int4, raw=bytes(range(3))),
            "start": T((2,), INT32),
            "updated": T((3, 7), int4),
            "whole": T((3, 7)),
        },
        [
            Node(Op.DYNAMIC_UPDATE_SLICE, ["operand", "update", "start"], ["updated"], None, 4),
            Node(Op.CAST, ["updated"], ["whole"], CastOptions(int4, FLOAT32), 6),
        ],
        ["whole"],
    )
    feeds = [np.array([1, 3], np.int32)]
    (want,) = litert(model, feeds, "reference")
    for providers, place in ((None, "ort"), ([], "numpy")):
        (got,), runners = ours(model, feeds, providers)
        assert runners == {place}
        assert np.array_equal(got, want)
