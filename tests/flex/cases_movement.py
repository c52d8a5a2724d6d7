"""Cases of operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]

X = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
TYPES = (np.float64, np.float16, np.uint16, np.int8, np.uint8, np.uint32, np.int64, np.bool_)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def scalar(value: int, dtype: npt.DTypeLike = np.int32) -> Array:
    return np.array(value, dtype)


def of_types() -> list[Case]:
    """Operators that take every type, on many."""
    found = []
    for dtype in TYPES:
        x = X.astype(dtype)
        found += [
            Case("Transpose", [x, ints(2, 0, 1)], constants=[1]),
            Case("ConcatV2", [x, x[:, :1], scalar(1)], constants=[2]),
            Case("Reshape", [x, ints(4, -1)], constants=[1]),
            Case("StridedSlice", [x, ints(0, 2), ints(2, 0), ints(1, -1)], constants=[1, 2, 3]),
            Case("Slice", [x, ints(0, 1, 1), ints(2, -1, 2)], constants=[1, 2]),
            Case("GatherV2", [x, ints(2, 0), scalar(1)], constants=[2]),
            Case("Pack", [x[0], x[1]], {"axis": 1}),
            Case("ExpandDims", [x, scalar(-1)], constants=[1]),
            Case("BroadcastTo", [x[:, :1], ints(2, 3, 4)], constants=[1]),
            Case("Identity", [x]),
        ]
        if dtype not in (np.uint16, np.uint32):  # TensorFlow has no kernel
            found.append(Case("Tile", [x, ints(1, 2, 1)], constants=[1]))
    return found


CASES = [
    *of_types(),
    Case("Concat", [scalar(0), X, X], constants=[0]),
    Case("Unpack", [X], {"num": 3, "axis": 1}),
    Case("Split", [scalar(2), X], {"num_split": 2}, constants=[0]),
    Case("SplitV", [X, ints(1, 2), scalar(1)], {"num_split": 2}, constants=[1, 2]),
    Case("Squeeze", [X[:1, :, None]], {"squeeze_dims": [0, 2]}),
    Case("Squeeze", [X[:1, :, None]], note="all"),
    Case("Gather", [X, np.int64([[1, 0]])]),
    Case("GatherV2", [X, ints(1, 0)[:, None], scalar(1)], {"batch_dims": 1}, constants=[2]),
    Case("GatherNd", [X, ints(1, 2, 0, 0).reshape(2, 2)]),
    Case("ScatterNd", [ints(1, 3)[:, None], np.float64([1, 2]), ints(5)], constants=[2]),
    Case("Fill", [ints(2, 3), scalar(7, np.float64)], constants=[0]),
    Case("Range", [scalar(1), scalar(9), scalar(3)]),
    Case("Pad", [X[0], ints(1, 0, 2, 1).reshape(2, 2)], constants=[1]),
    Case("PadV2", [X[0], ints(1, 0, 2, 1).reshape(2, 2), scalar(-1, np.float64)], constants=[1]),
    Case("MirrorPad", [X[0], ints(1, 0, 2, 1).reshape(2, 2)], {"mode": "REFLECT"}, constants=[1]),
    Case("MirrorPad", [X[0], ints(1, 0, 2, 1).reshape(2, 2)], {"mode": "SYMMETRIC"}, [1]),
    Case("ReverseV2", [X, ints(0, -1)], constants=[1]),
    Case("SpaceToBatchND", [X[..., None], ints(3, 2), ints(0, 0, 0, 0).reshape(2, 2)], {}, [1, 2]),
    Case("BatchToSpaceND", [X[..., None], ints(2, 1), ints(1, 0, 0, 2).reshape(2, 2)], {}, [1, 2]),
    Case("ReverseSequence", [X, np.int64([2, 3])], {"seq_dim": 1}),
    Case(
        "OneHot", [ints(0, 2, -1), scalar(3), scalar(5, np.float32), scalar(0, np.float32)], {}, [1]
    ),
    Case("ZerosLike", [X]),
    Case("Rank", [X]),
    Case("Shape", [X]),
    Case("Shape", [X], {"out_type": "int64"}),
    Case("Size", [X]),
    Case("Size", [X], {"out_type": "int64"}),
    Case("BroadcastArgs", [ints(2, 1), ints(3)]),
]
