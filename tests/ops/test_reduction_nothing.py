"""Reductions of as many rows as a mask finds, which may be none, against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.ops.moved import BOOL, FLOAT32, INT8, INT32, INT64, UINT8, ints
from tests.ops.test_reduction import reduced
from tests.oracle import litert
from tflite_ort.schema import Op, ReducerOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

SHAPE = (3, 4, 2)
CASES = [
    *((op, type) for op in (Op.REDUCE_MAX, Op.REDUCE_MIN) for type in (INT8, UINT8, INT32, INT64)),
    *((op, type) for op in (Op.SUM, Op.MEAN) for type in (FLOAT32, INT32, INT64)),
    (Op.REDUCE_PROD, FLOAT32),
    *((op, BOOL) for op in (Op.REDUCE_ANY, Op.REDUCE_ALL)),
]


def of_found(op: Op, type: TensorType, axes: tuple[int, ...], keep: bool) -> bytes:
    """A reduction of the rows of `rows` that `mask` chooses."""
    tensors = {
        "rows": T(SHAPE, type),
        "mask": T(SHAPE[:1], BOOL),
        "places": T((SHAPE[0], 1), INT64),
        "found": T(SHAPE, type),
        "axes": ints(*axes),
        "result": T(reduced(SHAPE, axes, keep), type),
    }
    version = 1 if type is BOOL else 2
    nodes = [
        Node(Op.WHERE, ["mask"], ["places"]),
        Node(Op.GATHER_ND, ["rows", "places"], ["found"]),
        Node(op, ["found", "axes"], ["result"], ReducerOptions(keep_dims=keep), version),
    ]
    return graph_model(tensors, nodes, ["result"])


@pytest.mark.parametrize("axes", [(0,), (0, 1, 2), (2, 0)], ids=str)
@pytest.mark.parametrize(("op", "type"), CASES, ids=lambda part: part.name)
def test_no_row(op: Op, type: TensorType, axes: tuple[int, ...]) -> None:
    rows = T(SHAPE, type).random(np.random.default_rng(0), -9, 9).astype(NUMPY_DTYPE[type])
    for keep in (False, True):
        model = of_found(op, type, axes, keep)
        for mask in ([False] * 3, [True, False, True]):
            feeds = [rows, np.array(mask)]
            (wanted,) = litert(model, feeds)
            (by_ort,), places = ours(model, feeds)
            (by_numpy,), _ = ours(model, feeds, providers=[])
            assert places == {"ort"}
            for got in (by_ort, by_numpy):
                assert got.dtype == wanted.dtype
                np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
