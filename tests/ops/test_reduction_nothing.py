"""Reductions of as many rows as a mask finds, which may be none, against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tests.found import ROWS, check_found, of_found
from tests.one_op import Node, T
from tests.ops.moved import BOOL, FLOAT32, INT8, INT32, INT64, UINT8, ints
from tests.ops.test_reduction import reduced
from tflite_ort.schema import Op, ReducerOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

CASES = [
    *((op, type) for op in (Op.REDUCE_MAX, Op.REDUCE_MIN) for type in (INT8, UINT8, INT32, INT64)),
    *((op, type) for op in (Op.SUM, Op.MEAN) for type in (FLOAT32, INT32, INT64)),
    (Op.REDUCE_PROD, FLOAT32),
    *((op, BOOL) for op in (Op.REDUCE_ANY, Op.REDUCE_ALL)),
]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [(0,), (0, 1, 2), (2, 0)], ids=str)
@pytest.mark.parametrize(("op", "type"), CASES, ids=lambda part: part.name)
def test_reduction_of_found_rows(
    op: Op, type: TensorType, axes: tuple[int, ...], keep: bool
) -> None:
    shape, version = (ROWS, 4, 2), 1 if type is BOOL else 2
    tensors = {"axes": ints(*axes), "result": T(reduced(shape, axes, keep), type)}
    node = Node(op, ["found", "axes"], ["result"], ReducerOptions(keep_dims=keep), version)
    model = of_found(T(shape[1:], type), tensors, [node], ["result"])
    rows = T(shape, type).random(np.random.default_rng(0), -9, 9)
    check_found(model, rows.astype(NUMPY_DTYPE[type]))
