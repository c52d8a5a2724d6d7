"""Products whose sums run over as many rows as a mask finds, which may be none, against LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.found import ROWS, check_found, of_found
from tests.one_op import Node, T
from tests.ops.moved import INT8, INT32, ints
from tflite_ort.schema import BatchMatMulOptions, FullyConnectedOptions, Op

ROW = T((4,), INT8, 0.05, -3)


def check_product(tensors: Mapping[str, T], nodes: Sequence[Node]) -> None:
    rows = T((ROWS, 4), ROW.type, ROW.scale, ROW.zero_point).random(np.random.default_rng(0))
    check_found(of_found(ROW, tensors, nodes, ["result"]), rows)


@pytest.mark.parametrize("result", [T((4, 4), INT8, 0.2, 3), T((4, 4), INT32, 0.0025)])
def test_batch_matmul_of_found_rows(result: T) -> None:
    """Of no rows, QLinearMatMul and MatMulInteger leave memory as it was."""
    options = BatchMatMulOptions(adj_x=True)
    node = Node(Op.BATCH_MATMUL, ["found", "found"], ["result"], options, 2)
    check_product({"result": result}, [node])


def test_fully_connected_of_found_rows_as_columns() -> None:
    tensors = {
        "order": ints(1, 0),
        "columns": T((4, ROWS), INT8, ROW.scale, ROW.zero_point),
        "result": T((4, 4), INT8, 0.2),
    }
    nodes = [
        Node(Op.TRANSPOSE, ["found", "order"], ["columns"], version=2),
        Node(
            Op.FULLY_CONNECTED,
            ["columns", "columns", None],
            ["result"],
            FullyConnectedOptions(),
            4,
        ),
    ]
    check_product(tensors, nodes)
