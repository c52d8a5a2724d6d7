"""Cases of reductions and scans."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Array, Case

X = np.float32([[1, -2, 3], [0.5, 4, -1.5]])
AXES = np.int32([1])
TEST = np.array([[True, False], [True, True]])


def reductions() -> list[Case]:
    found = []
    for name in ("Max", "Mean", "Min", "Prod", "Sum"):
        found += [
            Case(name, [X, AXES], constants=[1]),
            Case(name, [X, np.int32([0, 1])], {"keep_dims": True}, [1], note="keep"),
        ]
        if name != "Mean":
            found.append(Case(name, [X.astype(np.int64), AXES], constants=[1]))
            found.append(Case(name, [X.astype(np.int32), np.array(-1, np.int32)], {}, [1]))
    return found


def scalar(value: int, dtype: npt.DTypeLike = np.int32) -> Array:
    return np.array(value, dtype)


INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64)
WIDE = (np.float32, np.float64)


def other_types() -> list[Case]:
    found = []
    for dtype in (np.float64, *INTEGERS):
        x = np.array([[[7, 2, 3], [4, 5, 9]], [[1, 100, 2], [100, 3, 5]]], dtype)
        for name in ("Max", "Min", "Prod", "Sum"):
            found += [
                Case(name, [x, np.int32([-1, 0])], {}, [1], note="two"),
                Case(name, [x, np.int64([1])], {"keep_dims": True}, [1], note="keep"),
                Case(name, [x, np.empty(0, np.int32)], {}, [1], note="none"),
            ]
    half = np.random.default_rng(5).normal(size=(3, 70)).astype(np.float16)
    for name in ("Max", "Mean", "Min", "Prod", "Sum"):
        # TensorFlow rounds partial sums to 16 bits; here they are rounded once.
        near = 1e-6 if name in ("Max", "Min") else 1e-3
        found.append(Case(name, [half, AXES], {}, [1], rtol=near, note="half"))
        found.append(Case(name, [half, np.int32([0])], {}, [1], rtol=near, note="first"))
        found.append(Case(name, [half, np.int32([0, 1])], {}, [1], rtol=near, note="all"))
    wide = np.float64([[1, -2, 3], [0.5, 4, -1.5]])
    found.append(Case("Mean", [wide, AXES], {}, [1]))
    found.append(Case("Mean", [wide, np.int32([0, 1])], {"keep_dims": True}, [1], note="keep"))
    for dtype in (np.float64, np.float16, np.int64, np.int16, np.uint8, np.int8):
        x = np.array([[1, 7, 7], [0, 0, 5]], dtype)
        found.append(Case("ArgMax", [x, np.array(1, np.int32)], {}, [1]))
        found.append(Case("ArgMin", [x, np.array(-1, np.int32)], {"output_type": "int32"}, [1]))
    return found


def scans() -> list[Case]:
    found = []
    for dtype in (*WIDE, *INTEGERS):
        x = np.array([[[7, 2, 3], [4, 5, 9]], [[1, 1, 2], [100, 3, 5]]], dtype)
        for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
            attributes = {"exclusive": exclusive, "reverse": reverse}
            note = f"{exclusive}{reverse}"
            axis = scalar(-1 if reverse else 1)
            found.append(Case("Cumprod", [x, axis], attributes, [1], note=note))
            if dtype in WIDE:
                case = Case("CumulativeLogsumexp", [x, axis], attributes, [1], note=note)
                found.append(case)
        found.append(Case("Cumsum", [x, scalar(0, np.int64)], {"reverse": True}, [1]))
    z = np.array([1 + 2j, 3 - 1j, 2j], np.complex64)
    found.append(Case("Cumprod", [z, scalar(0)], {}, [1], exports=False))
    found.append(Case("Cumsum", [z, scalar(0)], {}, [1], exports=False))
    return found


def counts() -> list[Case]:
    found = []
    values = np.array([3, 1, 1, 9, 0], np.int32)
    rows = np.array([[3, 1, 1], [0, 2, 7]], np.int32)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        none, weights = np.empty(0, dtype), np.array([1, 2, 3, 4, 5], dtype)
        found += [
            Case("Bincount", [values, scalar(5), none], {}, [1, 2], note="none"),
            Case("Bincount", [values, scalar(5), weights], {}, [1]),
            Case("DenseBincount", [values, scalar(5), weights], {}, [1]),
            Case("DenseBincount", [values, scalar(5), none], {}, [1, 2], note="none"),
            Case("DenseBincount", [rows, scalar(4), rows.astype(dtype)], {}, [1], note="rows"),
            Case("DenseBincount", [rows, scalar(4), none], {"binary_output": True}, [1, 2]),
        ]
    wide = rows.astype(np.int64)
    found.append(
        Case("DenseBincount", [wide, scalar(8, np.int64), np.empty(0, np.float32)], {}, [1, 2])
    )
    found.append(Case("Bincount", [values, scalar(5), np.empty(0, np.int32)], {}, [2], note="size"))
    less = np.array([-1, 2], np.int32)
    found.append(
        Case("Bincount", [less, scalar(5), np.empty(0, np.int32)], {}, [1, 2], refused=True)
    )
    return found


def segments() -> list[Case]:
    found = []
    ids = np.array([0, 0, 1, 3, 3], np.int32)
    any_order = np.array([2, 0, -1, 2, 0], np.int32)
    falling = np.array([0, 1, 0, 3, 3], np.int32)
    for dtype in (*WIDE, *INTEGERS):
        x = np.arange(1, 11).reshape(5, 2).astype(dtype)
        for name in ("Max", "Min", "Prod", "Sum"):
            found += [
                Case(f"Segment{name}", [x, ids]),
                Case(f"Segment{name}", [x[:, 0], ids.astype(np.int64)], {}, [1], note="known"),
                Case(f"UnsortedSegment{name}", [x, any_order, scalar(4)], {}, [2]),
            ]
    for dtype in WIDE:
        x = np.arange(1, 11).reshape(5, 2).astype(dtype)
        found.append(Case("SegmentMean", [x, ids]))
    found += [
        Case("UnsortedSegmentSum", [X, np.array([[1, 0, 1], [2, 2, 0]], np.int64), scalar(3)]),
        Case("SegmentSum", [x, falling], refused=True),
        Case("UnsortedSegmentSum", [x, any_order, scalar(2)], {}, [2], refused=True),
    ]
    return found


def others() -> list[Case]:
    found = []
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        x = np.array([[-5, 0, 3], [4, 10, 100]], dtype)
        found.append(Case("Bucketize", [x], {"boundaries": [0.0, 3.5, 10.0]}))
        found.append(Case("UpperBound", [x, np.array([[0, 3], [3, 200]], dtype)]))
    x = np.array([[1, 2, 2, 9]], np.int32)
    found.append(Case("UpperBound", [x, np.array([[2, 3]], np.int32)], {"out_type": "int64"}))
    return found


CASES = [
    *reductions(),
    *other_types(),
    *scans(),
    *counts(),
    *segments(),
    *others(),
    Case("All", [TEST, AXES], constants=[1]),
    Case("Any", [TEST, AXES], {"keep_dims": True}, [1]),
    Case("Cumsum", [X, np.array(1, np.int32)], {"exclusive": True}, [1]),
    Case("Cumsum", [X.astype(np.int64), np.array(0, np.int32)], {"reverse": True}, [1]),
    Case("ArgMax", [X, np.array(1, np.int32)], constants=[1]),
    Case("ArgMin", [X, np.array(0, np.int32)], {"output_type": "int32"}, [1]),
]
