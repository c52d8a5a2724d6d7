"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, ARG_MAX, ARG_MIN against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, assert_close, check, one_op_model, ours
from tests.ops.moved import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, ints, tensor
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import ArgMaxOptions, ArgMinOptions, Op, ReducerOptions, TensorType

Shape = tuple[int, ...]


def reduced(shape: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    return (
        np.empty(shape, bool).any(axis=tuple({a % len(shape) for a in axes}), keepdims=keep).shape
    )


def reduction(
    op: Op,
    type: TensorType,
    shape: Shape,
    axes: tuple[int, ...],
    keep: bool,
    *,
    rescaled: bool = False,
    **more: Any,
) -> Case:
    """A row; `rescaled` gives a quantised output a scale and zero point of its own."""
    result = tensor(reduced(shape, axes, keep), type)
    if rescaled and result.scale is not None:
        scale = 0.043 * (4 if op == Op.SUM else 0.7)
        result = T(result.shape, type, scale=scale, zero_point=0 if type == INT16 else 11)
    label = "-".join(map(str, axes))
    return Case(
        f"{op.name.lower()}-{type.name}-{shape}-{label}-keep{keep:d}-rescaled{rescaled:d}",
        op,
        [tensor(shape, type), ints(*axes)],
        [result],
        ReducerOptions(keep_dims=keep),
        **more,
    )


SHAPES: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((2, 5, 7, 3), (1, 2)),
    ((2, 5, 7, 3), (-1,)),
    ((2, 5, 7, 3), (2, 0, 2)),
    ((4, 6), (0, 1)),
    ((6,), (0,)),
    ((2, 3, 2, 2, 3), (3, 1)),
)
SUMMED = (FLOAT32, INT32, INT64)
QUANTIZED = (UINT8, INT8, INT16)

CASES = [
    *[
        reduction(op, type, shape, axes, keep, rescaled=type in QUANTIZED)
        for op, types in ((Op.MEAN, SUMMED + QUANTIZED), (Op.SUM, (*SUMMED, UINT8)))
        for type in types
        for shape, axes in SHAPES
        for keep in (False, True)
    ],
    # The reference SUM reads int8 and int16 codes as uint8.
    *[
        reduction(Op.SUM, type, shape, axes, False, rescaled=True, reference="optimized")
        for type in (INT8, INT16)
        for shape, axes in SHAPES
    ],
    *[
        reduction(op, type, shape, axes, keep, quanta=0, rtol=0)
        for op in (Op.REDUCE_MAX, Op.REDUCE_MIN)
        for type in SUMMED + QUANTIZED
        for shape, axes in SHAPES[:4]
        for keep in (False, True)
    ],
    *[
        Case(
            f"{op.name.lower()}-{type.name}-{shape}-{axis}-{result.name}",
            op,
            [tensor(shape, type), T.constant(np.array(axis, dtype))],
            [T(reduced(shape, (axis,), False), result)],
            options(output_type=result),
            low=-2,
            high=2,
        )
        for op, options in ((Op.ARG_MAX, ArgMaxOptions), (Op.ARG_MIN, ArgMinOptions))
        for type in (FLOAT32, UINT8, INT8, INT32, BOOL)
        for shape, axis, dtype in (
            ((2, 3, 4, 5), -1, np.int32),
            ((2, 3, 4, 5), 1, np.int64),
            ((6,), 0, np.int32),
        )
        for result in (INT32, INT64)
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


@st.composite
def _reduction(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=4))
    op = draw(st.sampled_from([Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_MIN]))
    type = draw(st.sampled_from([FLOAT32, INT32, UINT8, INT8]))
    rescaled = op == Op.MEAN and draw(st.booleans())
    return reduction(op, type, shape, tuple(axes), draw(st.booleans()), rescaled=rescaled)


@given(_reduction(), st.integers(0, 1000))
def test_drawn_reduction(case: Case, seed: int) -> None:
    check(case, seed)


@pytest.mark.parametrize("op", [Op.ARG_MAX, Op.ARG_MIN])
def test_numpy_kernel_skips_nan_as_litert_does(op: Op) -> None:
    rows = np.array(
        [[1, np.nan, 2], [np.nan, 5, -5], [np.nan, np.nan, np.nan], [3, 1, np.nan]], np.float32
    )
    options = ArgMaxOptions if op == Op.ARG_MAX else ArgMinOptions
    inputs = [tensor((4, 3)), T.constant(np.array(1, np.int32))]
    case = Case("nan", op, inputs, [T((4,), INT32)], options(output_type=INT32))
    by_numpy, _ = ours(case.model(), [rows], providers=[])
    assert by_numpy[0].tolist() == litert(case.model(), [rows], "reference")[0].tolist()


@pytest.mark.parametrize(
    ("op", "type"),
    [
        (Op.MEAN, FLOAT32),
        (Op.SUM, FLOAT32),
        (Op.SUM, INT32),
        (Op.REDUCE_MAX, FLOAT32),
        (Op.REDUCE_MIN, INT32),
    ],
)
def test_numpy_kernel_reduces_nothing_as_litert_does(op: Op, type: TensorType) -> None:
    case = reduction(op, type, (2, 0), (1,), False)
    feeds = case.arrays(np.random.default_rng(0))
    by_numpy, _ = ours(case.model(), feeds, providers=[])
    assert_close(by_numpy[0], litert(case.model(), feeds, "reference")[0], 0, 0, case.name)


@pytest.mark.usefixtures("unmeasured")  # the largest arrays are left to numpy
@pytest.mark.parametrize("codes", [(-128, 128), (126, 128)], ids=["all", "highest"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 300, 300, 2), (1, 2)),
        ((2, 70_000), (1,)),
        ((9_000_000, 1), (0,)),
        ((1, 4300, 4300, 1), (1, 2)),
        ((3, 1, 6_000_000), (0, 2)),
    ],
)
@pytest.mark.parametrize("op", [Op.MEAN, Op.SUM], ids=lambda op: op.name)
def test_more_codes_than_float32_sums(
    op: Op, shape: Shape, axes: tuple[int, ...], codes: tuple[int, int]
) -> None:
    """LiteRT's sums wrap at 32 bits, or its kernels differ. Here it is the true result."""
    count = int(np.prod([shape[axis] for axis in axes]))
    unit = 0.05 * (1 if op is Op.MEAN else count)
    x = T(shape, INT8, 0.1, -100)
    made = T(reduced(shape, axes, False), INT8, unit, -128)
    model = one_op_model(op, [x, ints(axes)], [made], ReducerOptions(), 2)
    fed = np.random.default_rng(0).integers(*codes, shape, np.int8)
    want = np.clip((fed.mean(axis=axes, dtype=np.float64) + 100) * 2 - 128, -128, 127)
    results = [ours(model, [fed], providers)[0][0] for providers in (None, [])]
    for got in (*results, *exported(model, [fed])):
        assert np.abs(got - want).max() < (0.51 if count > 2**20 else 1.01)
