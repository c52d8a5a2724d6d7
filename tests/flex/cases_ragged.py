"""Cases of ragged tensors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Array, Case, texts


def longs(*values: int) -> Array:
    return np.array(values, np.int64)


def scalar(value: float, dtype: npt.DTypeLike = np.int64) -> Array:
    return np.array(value, dtype)


NONE = scalar(-1)
SPLITS = {"row_partition_types": ["ROW_SPLITS"]}
TWICE = {"row_partition_types": ["ROW_SPLITS", "ROW_SPLITS"]}
IDS = {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]}


def dense() -> list[Case]:
    found = []
    name = "RaggedTensorToTensor"
    splits, outer = longs(0, 2, 2, 5), longs(0, 1, 3)
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8):
        values, zero = np.arange(1, 6).astype(dtype), scalar(9, dtype)
        rows = np.arange(10).reshape(5, 2).astype(dtype)
        found += [
            Case(name, [longs(-1, -1), values, zero, splits], SPLITS, [0]),
            Case(name, [longs(-1, 2), values, zero, splits], SPLITS, [0], note="less"),
            Case(name, [longs(-1, 4, 2), rows, zero, splits], SPLITS, [0], note="rows"),
            Case(name, [NONE, rows, rows[0], splits], SPLITS, [0], note="any"),
            Case(name, [longs(4, 2), values, zero, splits], SPLITS, [0], exports=False, note="4"),
            Case(name, [NONE, values, zero, outer, splits], TWICE, [0], exports=False),
            Case(
                name,
                [NONE, values, zero, scalar(4, np.int64), longs(0, 0, 2, 2, 3)],
                IDS,
                [0],
                note="ids",
            ),
        ]
    words = texts(b"a", b"b", b"c", b"d").reshape(2, 2)
    found.append(
        Case(name, [NONE, words, texts(b"-", b"+"), longs(0, 0, 2)], SPLITS, [0], by_numpy=True)
    )
    given = [NONE, texts(b"a", b"b", b"\xc3\xa9"), texts(b"[P]").reshape(()), scalar(3, np.int64)]
    for ids in (longs(0, 0, 2), longs(1, 1, 2)):
        found.append(Case(name, [*given, ids], IDS, [0, 2], by_numpy=True, note=f"ids {ids}"))
    return found


def others() -> list[Case]:
    found = []
    splits, outer = longs(0, 2, 2, 5), longs(0, 1, 3)
    for dtype, name in ((np.float32, "float"), (np.int64, "int64")):
        values = np.arange(1, 6).astype(dtype)
        rows = np.arange(10).reshape(5, 2).astype(dtype)
        one = {"RAGGED_RANK": 1}
        two = {"RAGGED_RANK": 2}
        found += [
            Case("RaggedTensorToSparse", [splits, values], one),
            Case("RaggedTensorToSparse", [splits, rows], one, exports=False, note="rows"),
            Case("RaggedTensorToSparse", [outer, splits, values], two, exports=False),
        ]
        for ranks, given in ((1, [splits, rows]), (2, [outer, splits, values])):
            for indices in (np.int32([1, 0, 1]), np.int32([[1, 0], [0, 0]])):
                attributes = {
                    "PARAMS_RAGGED_RANK": ranks,
                    "OUTPUT_RAGGED_RANK": ranks + indices.ndim - 1,
                    "Tvalues": name,
                    "Tindices": "int32",
                    "Tsplits": "int64",
                }
                found.append(
                    Case(
                        "RaggedGather",
                        [*given, indices],
                        attributes,
                        exports=ranks == indices.ndim == 1,
                        note=f"{ranks}{indices.ndim}",
                    )
                )
        for binary in (False, True):
            weights = np.empty(0, np.float32) if binary else np.arange(5).astype(np.float32)
            found.append(
                Case(
                    "RaggedBincount",
                    [splits, np.int32([3, 3, 0, 0, 9]), scalar(4, np.int32), weights],
                    {"binary_output": binary},
                    [2, 3],
                    exports=not weights.size,
                    note=f"{name}{binary}",
                )
            )
        bare = [splits, np.int32([3, 3, 0, 0, 9]), scalar(4, np.int32), np.empty(0, np.float32)]
        found.append(Case("RaggedBincount", bare, {}, [2, 3], note=f"{name} bare"))
    return found


CASES = [
    *dense(),
    *others(),
    Case(
        "RaggedRange",
        [np.int32([0, 5, 3]), np.int32([3, 5, -3]), np.int32([1, 2, -2])],
        exports=False,
    ),
    Case(
        "RaggedRange",
        [np.array(0.0, np.float32), np.float32([1, 2.5]), np.array(0.5, np.float32)],
        exports=False,
    ),
]
