"""What OpenVINO computes otherwise than TFLite goes to the next delegate, see `wrong_results`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.delegated import allocated
from tests.one_op import T, one_op_model, ours
from tests.oracle import litert
from tests.providers.samples import OPENVINO
from tflite_ort.schema import (
    AddOptions,
    BitcastOptions,
    Op,
    ReducerOptions,
    RightShiftOptions,
    TensorType,
)
from tflite_ort.session import CPU

INT8, INT32, INT64, UINT32 = (
    TensorType.INT8,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT32,
)
AXIS = T.constant(np.array([1], np.int32))
WIDE = np.array([[2**24, 2**24 + 1], [-(2**24) - 1, -(2**24)]], np.int32)
EQUAL = np.random.default_rng(0).integers(0, 5, (1, 40)).astype(np.int32)

CASES: dict[str, tuple[Op, list[T], list[T], Any, list[Any]]] = {
    "int64": (
        Op.ADD,
        [T((2,), INT64)] * 2,
        [T((2,), INT64)],
        AddOptions(),
        [np.array([2**40, -(2**40)]), np.array([1, 2**33])],
    ),
    "uint32": (
        Op.RIGHT_SHIFT,
        [T((1,), UINT32)] * 2,
        [T((1,), UINT32)],
        RightShiftOptions(),
        [np.array([2**32 - 1], np.uint32), np.array([1], np.uint32)],
    ),
    "bitcast": (
        Op.BITCAST,
        [T((3,), INT32)],
        [T((3, 4), TensorType.UINT8)],
        BitcastOptions(),
        [np.array([-1, 2**31 - 1, 0x01020304], np.int32)],
    ),
    "negative": (Op.NEG, [T((2,), INT8)], [T((2,), INT8)], None, [np.array([-128, 5], np.int8)]),
    "equal-values": (
        Op.TOPK_V2,
        [T((1, 40), INT32), T.constant(np.array(10, np.int32))],
        [T((1, 10), INT32)] * 2,
        None,
        [EQUAL],
    ),
} | {
    op.name: (op, [T((2, 2), INT32), AXIS], [T((2,), INT32)], ReducerOptions(), [WIDE])
    for op in (Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_MIN)
}


@pytest.mark.openvino
@pytest.mark.parametrize("name", CASES)
def test_result_is_litert_s(name: str) -> None:
    op, inputs, outputs, options, feeds = CASES[name]
    model = one_op_model(op, inputs, outputs, options)
    (row,) = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert row.delegate != OPENVINO
    assert "wrong in" in row.reason
    got, _ = ours(model, feeds, providers=[OPENVINO, CPU])
    for result, want in zip(got, litert(model, feeds), strict=True):
        np.testing.assert_array_equal(result, want)
