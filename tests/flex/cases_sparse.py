"""Cases of operators on sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Array, Case, texts

WIDE: tuple[npt.DTypeLike, ...] = (np.float32, np.float64, np.int32, np.int64)
FLOATS = WIDE[:2]
AT = np.int64([[0, 1], [2, 0], [2, 3]])
SIZES = np.int64([4, 5])


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def longs(*values: int) -> Array:
    return np.array(values, np.int64)


def scalar(value: float, dtype: npt.DTypeLike = np.int32) -> Array:
    return np.array(value, dtype)


def of_types() -> list[Case]:
    found = []
    for dtype in WIDE:
        values = np.array([3, 1, 2], dtype)
        b = np.arange(15).reshape(5, 3).astype(dtype)
        found += [
            Case("SparseToDense", [AT, SIZES, values, scalar(9, dtype)], {}, [1]),
            Case("SparseToDense", [ints(1, 3, 4), ints(6), values, scalar(9, dtype)], {}, [1]),
            Case("SparseSegmentSum", [b, ints(0, 4, 1, 1), ints(0, 0, 1, 3)]),
            Case(
                "SparseSegmentSumWithNumSegments",
                [b, ints(0, 4, 1, 1), ints(0, 0, 1, 3), scalar(6)],
                {},
                [3],
            ),
            Case("SparseReorder", [AT[::-1].copy(), values, SIZES]),
            Case("SparseFillEmptyRows", [AT, values, SIZES, scalar(7, dtype)]),
            Case(
                "SparseAdd",
                [AT, values, SIZES, AT[1:], -values[1:], SIZES, scalar(2, dtype)],
                exports=False,
            ),
            Case(
                "SparseAdd",
                [AT, values, SIZES, AT[1:], values[1:], SIZES, scalar(0, dtype)],
                exports=False,
                note="all",
            ),
            Case("SparseSlice", [AT, values, SIZES, longs(1, 0), longs(9, 2)]),
            Case(
                "SparseBincount",
                [AT, ints(1, 3, 1), SIZES, scalar(4), values],
                {},
                [2, 3],
                exports=False,
            ),
            Case(
                "SparseBincount",
                [AT[:, :1], ints(1, 3, 1), longs(5), scalar(4), np.empty(0, dtype)],
                {"binary_output": True},
                [2, 3],
                exports=False,
            ),
        ]
    return found


def products() -> list[Case]:
    found = []
    for dtype in FLOATS:
        values = np.array([3, 1, 2], dtype)
        b = np.arange(20).reshape(5, 4).astype(dtype)
        for first in (False, True):
            for second in (False, True):
                other = b if not first else b[:4]
                other = other.T.copy() if second else other
                found.append(
                    Case(
                        "SparseTensorDenseMatMul",
                        [AT, values, SIZES, other],
                        {"adjoint_a": first, "adjoint_b": second},
                        [2],
                        note=f"{first}{second}",
                    )
                )
        for name in ("Mean", "SqrtN"):
            found += [
                Case(f"SparseSegment{name}", [b, ints(0, 4, 1, 1), ints(0, 0, 1, 3)]),
                Case(
                    f"SparseSegment{name}WithNumSegments",
                    [b, longs(0, 4, 1, 1), ints(0, 0, 1, 3), scalar(6)],
                    {},
                    [3],
                ),
            ]
        logits = np.array([[1, 2, 3], [-50, 0, 60]], dtype)
        for labels in (ints(0, 2), longs(2, 1)):
            found.append(Case("SparseSoftmaxCrossEntropyWithLogits", [logits, labels]))
    return found


def sets() -> list[Case]:
    found = []
    for dtype in (np.int32, np.int64, np.int8):
        one = np.array([[1, 2, 2, 9], [4, 5, 6, 4]], dtype)
        other = np.array([[2, 3, 9], [7, 7, 7]], dtype)
        at = longs(0, 0, 0, 1, 1, 0).reshape(3, 2)
        values = np.array([2, 8, 4], dtype)
        for name in ("a-b", "b-a", "intersection", "union"):
            attributes = {"set_operation": name}
            found += [
                Case(
                    "DenseToDenseSetOperation", [one, other], attributes, exports=False, note=name
                ),
                Case(
                    "DenseToSparseSetOperation",
                    [one, at, values, longs(2, 4)],
                    attributes,
                    exports=False,
                    note=name,
                ),
                Case(
                    "SparseToSparseSetOperation",
                    [at, values, longs(2, 4), at[1:], np.array([8, 7], dtype), longs(2, 4)],
                    attributes,
                    exports=False,
                    note=name,
                ),
            ]
    words = texts(b"a", b"b", b"b").reshape(1, 3)
    found.append(
        Case(
            "DenseToDenseSetOperation",
            [words, texts(b"b", b"c").reshape(1, 2)],
            {"set_operation": "union"},
            exports=False,
        )
    )
    return found


def sums() -> list[Case]:
    found = []
    for type in (np.float32, np.float64, np.int32, np.int64, np.complex64):
        values = (np.arange(len(AT)) * 3 - 2).astype(type)
        for axes, keeps in (((0,), False), ((-1,), True), ((0, 1), False), ((), True), ((), False)):
            inputs = [AT, values, SIZES, ints(*axes)]
            note = f"{axes}-{keeps}"
            given: dict[str, Any] = {"exports": type is not np.complex64, "note": note}
            case = Case("SparseReduceSum", inputs, {"keep_dims": keeps}, [3], **given)
            found.append(case)
    wrong = [AT, np.ones(len(AT), np.float32), SIZES, ints(2)]
    return [*found, Case("SparseReduceSum", wrong, exports=False, refused=True)]


def crosses() -> list[Case]:
    one, two = longs(0, 0, 0, 1, 2, 0).reshape(3, 2), longs(0, 0, 1, 0, 1, 1, 2, 0).reshape(4, 2)
    words, numbers = texts(b"a", b"bc", b"d"), longs(3, -4, 5, 6)
    dense = [texts(b"x", b"y", b"z").reshape(3, 1), longs(7, 8, 9, 10, 11, 12).reshape(3, 2)]
    both = {"N": 2, "sparse_types": ["string", "int64"], "dense_types": []}
    all_four = {**both, "dense_types": ["string", "int64"]}
    sparse = [one, two, words, numbers, longs(3, 2), longs(3, 2)]
    none = {"N": 0, "sparse_types": [], "dense_types": ["string", "int64"]}
    found = []
    for inputs, types in ((sparse, both), ([*sparse, *dense], all_four), (dense, none)):
        note = str(len(inputs))
        for buckets, key in ((10, 956888297470), (0, 3), (1000, -5)):
            hashed = {"hashed_output": True, "num_buckets": buckets, "hash_key": key}
            given = {**types, **hashed, "out_type": "int64", "internal_type": "int64"}
            case = Case("SparseCross", inputs, given, exports=False, note=f"{note}-{buckets}")
            found.append(case)
        found += [
            Case(
                "SparseCrossV2",
                [*inputs, texts(b"-").reshape(())],
                types,
                [len(inputs)],
                exports=False,
                note=note,
            ),
        ]
    pairs, more = [longs(7, 8, 9).reshape(3, 1), dense[1]], [np.array(False), longs(3, -8)]
    ints_only = {"N": 0, "sparse_types": [], "dense_types": ["int64", "int64"]}
    for buckets in (10, 0):
        whole = [*pairs, np.array(buckets, np.int64), *more]
        name = f"hashed {buckets}"
        found.append(Case("SparseCrossHashed", whole, ints_only, exports=False, note=name))
    plain = {"hashed_output": False, "num_buckets": 0, "hash_key": 1}
    plain |= {"out_type": "string", "internal_type": "string"}
    alone = [one, words, longs(3, 2), dense[0]]
    types = {"N": 1, "sparse_types": ["string"], "dense_types": ["string"]}
    return [
        *found,
        Case("SparseCross", alone, {**types, **plain}, exports=False, note="texts"),
        Case("SparseCross", sparse, {**both, **plain}, exports=False, refused=True),
    ]


CASES = [
    *crosses(),
    *sums(),
    *of_types(),
    *products(),
    *sets(),
    Case("SparseReshape", [AT, SIZES, longs(2, -1)]),
    Case("SparseReshape", [AT, SIZES, longs(2, 5, 2)], {}, [1, 2]),
    Case("SparseReshape", [AT, SIZES, longs(3, 5)], refused=True),
    Case("SparseSegmentSum", [np.ones((2, 2), np.float32), ints(0, 2), ints(0, 0)], refused=True),
]
