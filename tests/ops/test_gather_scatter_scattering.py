"""SCATTER_ND to TOPK_V2: LiteRT, ONNX Runtime and numpy agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, check, one_op_model, ours
from tests.ops.moved import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, ints, tensor
from tests.ops.versions import check_versions, one_per_operator
from tflite_ort import Interpreter
from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import translator
from tflite_ort.schema import (
    BridgeError,
    OneHotOptions,
    Op,
    SparseToDenseOptions,
    TensorType,
    UniqueOptions,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

DENSE = (FLOAT32, INT32, INT64, UINT8, INT8)
SCATTERED = (*DENSE, BOOL)
SEGMENTED = (FLOAT32, INT32)
UNSORTED = (
    Op.UNSORTED_SEGMENT_SUM,
    Op.UNSORTED_SEGMENT_PROD,
    Op.UNSORTED_SEGMENT_MAX,
    Op.UNSORTED_SEGMENT_MIN,
)


def like(type: TensorType, values: Any) -> T:
    """A constant that is quantised as `tensor` quantises its type."""
    return replace(tensor(np.shape(values), type), data=np.array(values, NUMPY_DTYPE[type]))


def scatter(type: TensorType, indices: Any, shape: Shape, computed: bool = False) -> Case:
    """Two updates meet in one place in most rows."""
    index = np.array(indices, np.int32)
    updates = (*index.shape[:-1], *shape[index.shape[-1] :])
    first = T(index.shape, INT32) if computed else ints(*indices)
    case = Case(
        f"scatter_nd-{type.name}-{len(shape)}d{'-computed' * computed}",
        Op.SCATTER_ND,
        [first, tensor(updates, type), ints(*shape)],
        [tensor(shape, type)],
        quanta=0,
    )
    values = tensor(updates, type).random(np.random.default_rng(1))
    return replace(case, feeds=[index, values]) if computed else case


def dense(
    type: TensorType, indices: Any, shape: Shape, count: int | None, computed: bool = False
) -> Case:
    """One value (`count` None) or several; the last of those at one place stays."""
    index = np.array(indices, np.int64 if computed else np.int32)
    first = T(index.shape, INT64) if computed else T.constant(index)
    values = tensor(() if count is None else (count,), type)
    case = Case(
        f"sparse_to_dense-{type.name}-{len(shape)}d-{count}{'-computed' * computed}",
        Op.SPARSE_TO_DENSE,
        [first, ints(*shape), values, like(type, 3 * (type is not BOOL))],
        [tensor(shape, type)],
        SparseToDenseOptions(),
        quanta=0,
    )
    given = values.random(np.random.default_rng(1))
    return replace(case, feeds=[index, given]) if computed else case


def one_hot(
    type: TensorType, indices: Any, axis: int, dtype: Any = np.int32, depth: int = 4
) -> Case:
    index = np.array(indices, dtype)
    place = index.ndim if axis == -1 else axis
    shape = (*index.shape[:place], depth, *index.shape[place:])
    return Case(
        f"one_hot-{type.name}-{index.ndim}d-{axis}",
        Op.ONE_HOT,
        [
            T(index.shape, INT32 if dtype is np.int32 else INT64),
            T.constant(np.array(depth, np.int32)),
            like(type, 1),
            like(type, 0 if type is BOOL else 5),
        ],
        [tensor(shape, type)],
        OneHotOptions(axis=axis),
        quanta=0,
        feeds=[index],
    )


def segments(
    op: Op, type: TensorType, data: Shape, ids: Any, count: int, computed: bool = False
) -> Case:
    id_array = np.array(ids, np.int32)
    values = T(data, type)
    case = Case(
        f"{op.name.lower()}-{type.name}-{id_array.ndim}d{'-computed' * computed}",
        op,
        [
            values,
            T(id_array.shape, INT32) if computed else T.constant(id_array),
            T.constant(np.array(count, np.int32)),
        ],
        [T((count, *data[id_array.ndim :]), type)],
    )
    given = values.random(np.random.default_rng(1))
    return replace(case, feeds=[given, id_array]) if computed else case


def top(
    type: TensorType,
    shape: Shape,
    k: int,
    k_dtype: Any = np.int32,
    index: TensorType = INT32,
    **more: Any,
) -> Case:
    result = (*shape[:-1], max(k, 0))
    results = [tensor(result, type), T(result, index)]
    return Case(
        f"topk_v2-{type.name}-{len(shape)}d-{k}",
        Op.TOPK_V2,
        [tensor(shape, type), T.constant(np.array(k, k_dtype))],
        results,
        quanta=0,
        rtol=0,
        **more,
    )


CASES = [
    *[scatter(type, [[1], [3], [1]], (4, 2)) for type in SCATTERED],
    *[scatter(type, [[[1, 0], [0, 2]], [[1, 0], [1, 1]]], (2, 3)) for type in SCATTERED],
    *[scatter(type, [[1, 0], [0, 2], [1, 0]], (2, 3, 2), True) for type in SCATTERED],
    scatter(FLOAT32, [[0], [0]], (1,)),
    Case("scatter_nd-no-index", Op.SCATTER_ND, [T((2, 0), INT32), T((2, 3)), ints(3)], [T((3,))]),
    *[dense(type, [1, 3, 1], (5,), 3) for type in DENSE],
    *[dense(type, [[1, 2], [0, 0]], (2, 3), None) for type in DENSE],
    *[dense(type, [[1, 2], [0, 0], [1, 2]], (2, 3), 3, True) for type in DENSE],
    dense(FLOAT32, [[0, 1, 0, 2]], (1, 2, 1, 3), 1),
    dense(FLOAT32, 2, (4,), None),
    *[one_hot(type, [0, 3, -1, 4, 2], -1) for type in SCATTERED],
    *[one_hot(type, [[0, 1], [-4, 3]], axis) for type in (FLOAT32, INT8) for axis in (0, 1, 2)],
    one_hot(FLOAT32, 2, -1),
    one_hot(INT32, [1, 2**32 + 1, -(2**40)], 0, np.int64),
    *[
        segments(op, type, (5, 2), [2, 0, -1, 2, 0], 4, computed)
        for op in UNSORTED
        for type in SEGMENTED
        for computed in (False, True)
    ],
    *[segments(op, FLOAT32, (2, 3, 2), [[1, 0, 1], [-3, 4, 4]], 5) for op in UNSORTED],
    *[
        Case(
            f"{op.name.lower()}-nan",
            op,
            [T((4, 1)), ints(0, 0, 1, 1), T.constant(np.array(3, np.int32))],
            [T((3, 1))],
            feeds=[np.array([[np.nan], [2], [-5], [np.nan]], np.float32)],
        )
        for op in UNSORTED
    ],
    *[
        Case(
            f"segment_sum-{type.name}",
            Op.SEGMENT_SUM,
            [T((5, 2), type), ints(0, 0, 1, 2, 2)],
            [T((3, 2), type)],
            reference="optimized",
        )
        for type in SEGMENTED
    ],
    *[
        top(type, shape, k)
        for type in (*DENSE, INT16)
        for shape, k in (((2, 6), 3), ((40,), 40), ((2, 2, 3), 1))
    ],
    top(FLOAT32, (3, 4), 2, np.int16, INT16, version=3),
    top(FLOAT32, (3, 4), 0),
    top(FLOAT32, (3, 4), -2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


def test_equal_values_come_in_their_order() -> None:
    row = np.array([[1, 3, 2, 3, 1, 3, 2, 0] * 40], np.float32)
    for type in (FLOAT32, INT32, INT64, UINT8):
        check(top(type, row.shape, 200, feeds=[row.astype(NUMPY_DTYPE[type])]))


def test_nan_is_the_smallest() -> None:
    """ONNX Runtime's TopK alone puts it before smaller numbers. (Beside -inf it still does.)"""
    row = np.array([[1, 3, np.nan, -9, 3, np.nan, 0]], np.float32)
    check(top(FLOAT32, row.shape, 5, feeds=[row]))


DEPENDENT = [
    *[
        Case(
            f"where-{type.name}",
            Op.WHERE,
            [T((3, 4, 2), type)],
            [T((1, 3), INT64)],
            low=-1,
            high=1,
            reference="default",
        )
        for type in (BOOL, INT32, INT64)
    ],
    Case(
        "where-float",
        Op.WHERE,
        [T((6,))],
        [T((1, 1), INT64)],
        feeds=[np.array([0, 1, -0.0, np.nan, np.inf, 1e-40], np.float32)],
    ),
    *[
        Case(
            f"unique-{type.name}-{index.name}",
            Op.UNIQUE,
            [T((12,), type)],
            [T((1,), type), T((12,), index)],
            UniqueOptions(idx_out_type=index),
            feeds=[np.array([3, 1, 3, 2, 1, 9, 9, 9, 0, 2, 3, 4], NUMPY_DTYPE[type])],
        )
        for type in (FLOAT32, INT8, INT16, INT32, INT64, UINT8)
        for index in (INT32, INT64)
    ],
    Case(
        "segment_sum-computed",
        Op.SEGMENT_SUM,
        [T((4, 2)), T((4,), INT32)],
        [T((1, 2))],
        reference="optimized",
        feeds=[np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 1, 2], np.int32)],
    ),
    Case(
        "topk-computed",
        Op.TOPK_V2,
        [T((2, 5)), T((), INT32)],
        [T((2, 1)), T((2, 1), INT32)],
        feeds=[np.arange(10, dtype=np.float32).reshape(2, 5), np.array(3, np.int32)],
    ),
    Case(
        "one_hot-computed",
        Op.ONE_HOT,
        [T((3,), INT32), T((), INT32), like(FLOAT32, 1), like(FLOAT32, 0)],
        [T((3, 1))],
        OneHotOptions(axis=-1),
        feeds=[np.array([2, 0, 1], np.int32), np.array(3, np.int32)],
    ),
    Case(
        "scatter_nd-computed-shape",
        Op.SCATTER_ND,
        [ints([1], [3]), T((2,)), T((1,), INT32)],
        [T((1,))],
        feeds=[np.array([1, 2], np.float32), np.array([5], np.int32)],
    ),
]


@pytest.mark.parametrize("case", DEPENDENT, ids=lambda case: case.name)
def test_a_shape_that_depends_on_data(case: Case) -> None:
    check(case)


@st.composite
def _scattered(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    depth, count = draw(st.integers(1, len(shape))), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    indices = rng.integers(0, shape[:depth], (count, depth)).tolist()
    computed, type = draw(st.booleans()), draw(st.sampled_from(SCATTERED))
    if draw(st.booleans()) or type is BOOL:
        return scatter(type, indices, shape, computed)
    whole = rng.integers(0, shape, (count, len(shape))).tolist()
    return dense(type, whole, shape, draw(st.sampled_from([None, count])), computed)


@st.composite
def _combined(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    type, rank = draw(st.sampled_from(SEGMENTED)), draw(st.integers(1, len(shape)))
    rng, count = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(1, 4))
    ids = rng.integers(-1, count, shape[:rank])
    op = draw(st.sampled_from(UNSORTED))
    return segments(op, type, shape, ids, count, draw(st.booleans()))


@st.composite
def _selected(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    if draw(st.booleans()):
        types = st.sampled_from((*DENSE, INT16))
        return top(draw(types), shape, draw(st.integers(0, shape[-1])), low=-1, high=1)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    type, axis = draw(st.sampled_from(SCATTERED)), draw(st.integers(-1, len(shape)))
    dtype = draw(st.sampled_from((np.int32, np.int64)))
    return one_hot(type, rng.integers(-2, 5, shape), axis, dtype, draw(st.integers(1, 4)))


@given(_scattered())
def test_drawn_scatter(case: Case) -> None:
    check(case)


@given(_combined())
def test_drawn_segments(case: Case) -> None:
    check(case)


@given(_selected())
def test_drawn_selection(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@pytest.mark.parametrize(("op", "last"), [(Op.WHERE, 2), (Op.UNIQUE, 1)])
def test_versions_of_what_depends_on_data(op: Op, last: int) -> None:
    known = list(range(1, last + 1))
    assert (kernel.versions(op), translator.versions(op)) == (known, known)


EMPTY = [
    Case(
        "scatter_nd-no-update",
        Op.SCATTER_ND,
        [T((0, 1), INT32), T((0, 2)), ints(3, 2)],
        [T((3, 2))],
    ),
    Case(
        "sparse_to_dense-no-value",
        Op.SPARSE_TO_DENSE,
        [T((0, 2), INT32), ints(2, 2), T((0,)), like(FLOAT32, 4)],
        [T((2, 2))],
        SparseToDenseOptions(),
    ),
    *[
        Case(
            f"{op.name.lower()}-no-row",
            op,
            [T((0, 2)), T((0,), INT32), T.constant(np.array(2, np.int32))],
            [T((2, 2))],
        )
        for op in UNSORTED
    ],
]


@pytest.mark.parametrize("case", EMPTY, ids=lambda case: case.name)
def test_without_elements(case: Case) -> None:
    check(replace(case, runs_on="constant"))


def test_where_finds_nothing() -> None:
    """LiteRT's Python interface cannot hand out the empty result."""
    case = Case("where-none", Op.WHERE, [T((2, 2))], [T((0, 2), INT64)])
    (got,), _ = ours(case.model(), [np.zeros((2, 2), np.float32)])
    assert (got.shape, got.dtype) == ((0, 2), np.int64)


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_equal_indices_add_up_on_several_threads(shape: Shape) -> None:
    """ONNX Runtime's ScatterND loses some of them."""
    count = 200_000
    inputs = [T((count, 1), INT32), T((count, *shape[1:])), ints(*shape)]
    model = one_op_model(Op.SCATTER_ND, inputs, [T(shape)])
    interpreter = Interpreter(model_content=model, num_threads=2)
    interpreter.allocate_tensors()
    feeds = [np.zeros((count, 1), np.int32), np.ones(inputs[1].shape, np.float32)]
    for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    sums = interpreter.get_tensor(output["index"])
    assert (sums[0] == count).all()
    assert (sums[1] == 0).all()


OUT_OF_BOUNDS = [
    (Op.SCATTER_ND, [ints([-1]), tensor((1,)), ints(3)], (3,), None),
    (Op.SCATTER_ND, [ints([0, 3]), tensor((1,)), ints(2, 3)], (2, 3), None),
    (Op.SCATTER_ND, [T((1, 2), INT32), tensor((1,)), ints(2, 3)], (2, 3), None),
    (Op.SPARSE_TO_DENSE, [ints([0, 3]), ints(2, 3), tensor((1,)), like(FLOAT32, 0)], (2, 3), None),
    (Op.SPARSE_TO_DENSE, [T((2,), INT32), ints(3), tensor(()), like(FLOAT32, 0)], (3,), None),
    (Op.SEGMENT_SUM, [tensor((3,)), ints(0, 2, 3)], (3,), None),
    (Op.SEGMENT_SUM, [tensor((3,)), ints(0, 1)], (3,), None),
    *[(op, [tensor((3,)), ints(0, 2, 1), ints(2)], (2,), None) for op in UNSORTED],
    *[(op, [tensor((3,)), T((3,), INT32), ints(2)], (2,), None) for op in UNSORTED],
    (Op.TOPK_V2, [tensor((3,)), ints(4)], (4,), None),
    (Op.TOPK_V2, [tensor((3,)), ints(1, 2)], (1,), None),
    (
        Op.SPARSE_TO_DENSE,
        [ints([0, 1]), ints(2, 3), tensor((1,)), like(FLOAT32, [0, 1])],
        (2, 3),
        None,
    ),
    (Op.WHERE, [tensor(())], (0, 0), None),
    (Op.ONE_HOT, [ints(1), ints(3), like(FLOAT32, 1), like(FLOAT32, 0)], (1, 3), 2),
    (Op.ONE_HOT, [ints(1), ints(3), like(INT16, 1), like(INT16, 0)], (1, 3), -1),
]


@pytest.mark.parametrize("providers", [None, []])
@pytest.mark.parametrize(
    ("op", "inputs", "shape", "axis"), OUT_OF_BOUNDS, ids=lambda value: str(value)[:20]
)
def test_what_is_out_of_bounds_is_refused(
    op: Op, inputs: list[T], shape: Shape, axis: int | None, providers: Sequence[Any] | None
) -> None:
    second = [T(shape, INT32)] if op is Op.TOPK_V2 else []
    options = OneHotOptions(axis=axis) if axis is not None else None
    result = tensor(shape, INT64 if op is Op.WHERE else inputs[0].type)
    if op in (Op.SCATTER_ND, Op.SPARSE_TO_DENSE, Op.ONE_HOT):
        result = tensor(shape, inputs[1 if op is Op.SCATTER_ND else 2].type)
    case = Case("refused", op, inputs, [result, *second], options)
    # Computed indices: the last one is too large.
    feeds = [
        np.arange(1, np.prod(t.shape) + 1).reshape(t.shape).astype(NUMPY_DTYPE[t.type]) + 1
        for t in inputs
        if t.data is None
    ]
    with pytest.raises(BridgeError):
        ours(case.model(), feeds, providers)
