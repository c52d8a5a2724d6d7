"""Models whose operators see only the rows that a mask chooses, which may be none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.one_op import Array, Node, T, graph_model, ours
from tests.oracle import litert
from tflite_ort.schema import Op, TensorType

MASKS = ([False, False, False], [True, False, True], [True, True, True])
ROWS = len(MASKS[0])


def of_found(
    row: T, tensors: Mapping[str, T], nodes: Sequence[Node], outputs: Sequence[str]
) -> bytes:
    """`nodes` read "found", the chosen ones of three tensors such as `row`. The inputs are these
    and the mask."""
    shape = (ROWS, *row.shape)
    rows = T(shape, row.type, row.scale, row.zero_point)
    given = {
        "rows": rows,
        "mask": T((ROWS,), TensorType.BOOL),
        "places": T((ROWS, 1), TensorType.INT64),
        "found": rows,
    }
    finding = [
        Node(Op.WHERE, ["mask"], ["places"]),
        Node(Op.GATHER_ND, ["rows", "places"], ["found"]),
    ]
    return graph_model({**given, **tensors}, [*finding, *nodes], outputs)


def check_found(model: bytes, rows: Array) -> None:
    """Compare both paths with LiteRT for every mask; all operators run in ONNX Runtime."""
    for mask in MASKS:
        feeds = [rows, np.array(mask)]
        (by_ort,), places = ours(model, feeds)
        (by_numpy,), _ = ours(model, feeds, providers=[])
        assert places == {"ort"}
        if not by_ort.size:  # LiteRT's interface gives no arrays without elements
            assert by_ort.shape == by_numpy.shape
            continue
        (wanted,) = litert(model, feeds)
        for got in (by_ort, by_numpy):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
