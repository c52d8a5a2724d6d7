"""Cases of operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case, texts

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


NAMES = {np.float32: "float", np.float64: "double", np.int32: "int32", np.int64: "int64"}
WIDE = tuple(NAMES)
ANY: tuple[npt.DTypeLike, ...] = (
    *WIDE,
    np.float16,
    np.uint8,
    np.int8,
    np.int16,
    np.uint16,
    np.bool_,
)


def scatters() -> list[Case]:
    found = []
    for dtype in WIDE:
        x = np.arange(12).reshape(4, 3).astype(dtype)
        rows = np.array([[9, -9, 9], [1, 2, 3], [5, 5, 5]]).astype(dtype)
        for name in ("Add", "Max", "Min", "Sub", "Update"):
            found += [
                Case(f"TensorScatter{name}", [x, ints(2, 0, 2)[:, None], rows]),
                Case(
                    f"TensorScatter{name}",
                    [x, np.int64([[3, 1], [0, 0]]), rows[0, :2]],
                    {},
                    [1],
                    note="tuples",
                ),
            ]
        for name in ("Add", "Sub", "Update"):
            found.append(Case(f"Inplace{name}", [x, ints(3, 1, 0), rows]))
        found.append(
            Case(
                "TensorStridedSliceUpdate",
                [x, ints(3, 0), ints(0, 3), ints(-2, 2), rows[:2, :2]],
                {},
                [1, 2, 3],
            )
        )
    x = X[0]
    far = ints(4)[:, None]
    found += [
        Case("TensorScatterUpdate", [x > 3, ints(1)[:, None], x[:1] > 1]),
        Case("TensorScatterUpdate", [x, far, x[:1]], refused=True),
        Case("TensorStridedSliceUpdate", [x, ints(1), ints(9), ints(1), x[1:]], {}, [1, 2, 3]),
        Case(
            "TensorStridedSliceUpdate",
            [x, ints(0, 1), ints(9, 2), ints(1, 1), x[:, 0]],
            {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2},
            [1, 2, 3],
        ),
    ]
    return found


def lists() -> list[Case]:
    found = []
    for dtype in WIDE:
        x = np.array([4, 2, 4, 1, 2, 9], dtype)
        rows = np.array([[1, 2], [3, 4], [1, 2], [0, 4]], dtype)
        found += [
            Case(
                "Unique",
                [x],
            ),
            Case("UniqueWithCounts", [x], {"out_idx": "int64"}),
            Case("UniqueV2", [rows, ints(0)], {}, [1]),
            Case("UniqueV2", [rows.T.copy(), np.int64([1])], {}, [1], note="last"),
            Case("UniqueV2", [x, np.int64([])], {}, [1], note="list"),
            Case("UniqueWithCountsV2", [rows, ints(0)], {}, [1]),
            Case("ListDiff", [x, np.array([2, 7, 9], dtype)]),
            Case(
                "DynamicStitch",
                [ints(3, 0), ints(1, 2, 3), rows[:2], rows[1:]],
                {"N": 2, "T": NAMES[dtype]},
            ),
            Case(
                "ParallelDynamicStitch",
                [ints(2, 0), ints(1), x[:2], x[2:3]],
                {"N": 2, "T": NAMES[dtype]},
                [0, 1],
            ),
        ]
    for dtype in ANY:
        x = X[0].astype(dtype)
        found += [
            Case("DynamicPartition", [x, ints(1, 0, 1)], {"num_partitions": 2}),
            *([] if dtype == np.float16 else [Case("Where", [x])]),
            Case("Roll", [x, ints(1, -3), ints(0, 1)], {}, [2]),
            Case("Reverse", [X.astype(dtype), np.array([True, False, True])], {}, [1]),
            Case("OnesLike", [x]),
        ]
    parts = ints(0, 1, 2, 0, 1, 1).reshape(2, 3)
    found += [
        Case("DynamicPartition", [X, parts], {"num_partitions": 3}),
        Case("DynamicPartition", [X, parts], {"num_partitions": 2}, refused=True),
        Case("Unique", [texts(b"b", b"a", b"b")], exports=False),
        Case("ListDiff", [texts(b"b", b"a", b"b"), texts(b"a")], exports=False),
    ]
    return found


def blocks() -> list[Case]:
    found = []
    none = np.zeros((2, 2), np.int32)
    for dtype in (np.float32, np.float16, np.int32, np.uint8):
        x = np.arange(64).reshape(4, 2, 2, 4).astype(dtype)
        found += [
            Case("BatchToSpace", [x, ints(1, 0, 0, 1).reshape(2, 2)], {"block_size": 2}, [1]),
            Case("SpaceToBatch", [x, none], {"block_size": 2}, [1]),
            Case("DepthToSpace", [x], {"block_size": 2}),
            Case("SpaceToDepth", [x], {"block_size": 2}),
        ]
    return found


def rows_of_texts() -> list[Case]:
    """Operators that pick rows of texts."""
    words = texts(*(bytes([97 + i]) for i in range(6))).reshape(3, 2)
    told = {"num_partitions": 2}
    return [
        Case("GatherV2", [words, ints(2, 0), scalar(0)], {}, [2], by_numpy=True),
        Case("GatherV2", [words, ints(1, 0, 1)[None], scalar(1)], {}, [2], by_numpy=True),
        Case("GatherV2", [words.reshape(1, 3, 2), ints(2, 0), scalar(1)], {}, [2], by_numpy=True),
        Case("DynamicPartition", [words, ints(1, 0, 1)], told, by_numpy=True, note="texts"),
    ]


CASES = [
    *of_types(),
    *rows_of_texts(),
    *scatters(),
    *lists(),
    *blocks(),
    *(Case("InvertPermutation", [np.array([3, 0, 2, 1], t)]) for t in (np.int32, np.int64)),
    Case("Where", [np.float32([[0.25, np.nan, 0], [-0.0, np.inf, 1e-40]])], note="odd"),
    Case("InvertPermutation", [ints(3, 0, 0, 1)], refused=True),
    *(
        Case("LinSpace", [np.array(-1, t), np.array(2, t), scalar(n)], {}, [2], note=str(n))
        for t in (np.float32, np.float64)
        for n in (1, 2, 7)
    ),
    Case("LinSpace", [scalar(-1, np.float32), scalar(5, np.float32), scalar(4)]),
    Case("LinSpace", [scalar(-1, np.float32), scalar(5, np.float32), scalar(0)], refused=True),
    Case("Roll", [X, np.array(2, np.int64), scalar(-1)], {}, [2]),
    Case("ReverseV2", [X, np.empty(0, np.int32)], constants=[1]),
    Case("IdentityN", [X, ints(3)], {"T": ["double", "int32"]}),
    Case("ShapeN", [X, X[0]], {"N": 2}),
    Case("Empty", [ints(2, 3)], {"dtype": "float", "init": True}, [0]),
    Case("PlaceholderWithDefault", [X], {"shape": [2, 3, 4]}),
    Case("ConcatOffset", [scalar(1), ints(2, 3, 4), ints(2, 5, 4)], {"N": 2}, [0]),
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
    Case("Pad", [np.complex64([1 + 2j, -3j]), ints(1, 2)[None]], constants=[1]),
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
