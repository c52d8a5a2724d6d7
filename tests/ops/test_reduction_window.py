"""REDUCE_WINDOW against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, check, ours
from tests.ops.versions import check_versions
from tflite_ort import KernelError, ModelError
from tflite_ort.schema import Op, ReduceWindowFunction, ReduceWindowOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Shape = tuple[int, ...]

FUNCTIONS = [f for f in ReduceWindowFunction if f != ReduceWindowFunction.UNSUPPORTED]
TYPES = [
    TensorType.FLOAT32,
    TensorType.FLOAT64,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
]
# LiteRT adds bools as 8-bit integers: what comes out is no bool.
TYPED = [
    (function, type)
    for function in FUNCTIONS
    for type in TYPES
    if (function, type) != (ReduceWindowFunction.ADD, TensorType.BOOL)
]


def over_windows(
    shape: Shape = (5, 7, 3),
    window: Shape = (2, 3, 1),
    strides: Shape = (1, 1, 1),
    dilations: Shape = (1, 1, 1),
    function: ReduceWindowFunction = ReduceWindowFunction.ADD,
    type: TensorType = TensorType.FLOAT32,
) -> Case:
    rows = zip(shape, window, strides, dilations, strict=True)
    result = tuple(max(0, (n - (k - 1) * d - 1) // s + 1) for n, k, s, d in rows)
    lists = [T.constant(np.array(sizes, np.int64)) for sizes in (window, strides, dilations)]
    init = T.constant(np.array(1, NUMPY_DTYPE[type]), type)
    return Case(
        f"{function.name}-{type.name}-{shape}-{window}-{strides}-{dilations}",
        Op.REDUCE_WINDOW,
        [T(shape, type), init, *lists],
        [T(result, type)],
        ReduceWindowOptions(reduce_function=function),
        low=-2.0,
        high=2.0,
        quanta=0,
    )


ROWS: dict[str, dict[str, Any]] = {
    "stepwise": {},
    "strided": {"window": (2, 2, 2), "strides": (2, 3, 1)},
    "dilated": {"window": (3, 3, 1), "dilations": (2, 3, 1)},
    "dilated and strided": {"window": (2, 3, 3), "strides": (1, 2, 2), "dilations": (3, 2, 1)},
    "one cell": {"window": (1, 1, 1)},
    "whole": {"window": (5, 7, 3)},
    "picked": {"window": (1, 1, 1), "strides": (2, 3, 2)},
    "line": {"shape": (40,), "window": (23,), "strides": (2,), "dilations": (1,)},
    "four axes": {
        "shape": (2, 5, 6, 3),
        "window": (1, 3, 2, 1),
        "strides": (1, 2, 2, 1),
        "dilations": (1, 1, 1, 1),
    },
    "no window": {"window": (6, 1, 1)},
}


@pytest.mark.parametrize("row", ROWS)
def test_windows(row: str) -> None:
    check(over_windows(**ROWS[row]))


@pytest.mark.parametrize(("function", "type"), TYPED)
def test_function_of_type(function: ReduceWindowFunction, type: TensorType) -> None:
    check(over_windows(strides=(2, 1, 1), function=function, type=type))


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8])
def test_init_computed_at_run_time(type: TensorType) -> None:
    case = over_windows(type=type)
    input, init, *lists = case.inputs
    assert init is not None
    check(replace(case, inputs=[input, replace(init, data=None), *lists]))


def test_version() -> None:
    check_versions(over_windows())


def test_a_function_that_is_none_is_refused() -> None:
    case = over_windows(function=ReduceWindowFunction.UNSUPPORTED)
    with pytest.raises(KernelError, match="UNSUPPORTED over windows of float32"):
        ours(case.model(), case.arrays(np.random.default_rng(0)))


def test_a_stride_of_nothing_is_refused() -> None:
    case = replace(over_windows(), outputs=[T((1, 1, 1))])
    lists = [T.constant(np.array(sizes, np.int64)) for sizes in ((2, 2, 2), (1, 0, 1), (1, 1, 1))]
    model = replace(case, inputs=[*case.inputs[:2], *lists]).model()
    with pytest.raises(ModelError, match="below 1"):
        ours(model, [np.zeros((5, 7, 3), np.float32)])


@given(st.data())
def test_drawn_windows(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    lists = [
        tuple(data.draw(st.lists(st.integers(*ends), min_size=rank, max_size=rank)))
        for ends in ((4, 8), (1, 4), (1, 3), (1, 2))
    ]
    function, type = data.draw(st.sampled_from(TYPED))
    check(over_windows(*lists, function, type), seed=data.draw(st.integers(0, 2**31)))
