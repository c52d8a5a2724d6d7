"""SOFTMAX along as many numbers as a mask finds, which may be none, against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tests.found import ROWS, check_found, of_found
from tests.one_op import Node, T
from tests.ops.moved import FLOAT32, INT16, ints
from tflite_ort.schema import Op, SoftmaxOptions

CASES = [
    (T((4,), FLOAT32), T((4, ROWS), FLOAT32), 1),
    (T((4,), INT16, 0.0005), T((4, ROWS), INT16, 1 / 32768), 3),
]


@pytest.mark.parametrize(("row", "result", "version"), CASES, ids=lambda part: "")
def test_softmax_along_found_rows(row: T, result: T, version: int) -> None:
    column = T((4, ROWS), row.type, row.scale, row.zero_point)
    tensors = {"order": ints(1, 0), "columns": column, "result": result}
    nodes = [
        Node(Op.TRANSPOSE, ["found", "order"], ["columns"], version=5),
        Node(Op.SOFTMAX, ["columns"], ["result"], SoftmaxOptions(beta=1.0), version),
    ]
    rows = T((ROWS, 4), row.type, row.scale, row.zero_point).random(np.random.default_rng(0))
    check_found(of_found(row, tensors, nodes, ["result"]), rows)
