"""Cases of operators on diagonals."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Array, Case

X = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
ALIGN = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def scalar(value: int) -> Array:
    return np.array(value, np.int32)


def bands() -> list[Case]:
    found = []
    pad = np.array(-1, np.float32)
    for align in ALIGN:
        for low, high in ((-1, 2), (0, 3), (-2, 0)):
            k = ints(low, high)
            count = high - low + 1
            length = min(3 + min(high, 0), 4 - max(low, 0))
            band = np.arange(1, 1 + 2 * count * length, dtype=np.float32)
            band = band.reshape(2, count, length)
            note = f"{align}{low}{high}"
            attributes = {"align": align}
            found += [
                Case("MatrixDiagPartV3", [X, k, pad], attributes, [1], note=note),
                Case("MatrixSetDiagV3", [X, band, k], attributes, [2], note=note),
                Case(
                    "MatrixDiagV3",
                    [band, k, scalar(3), scalar(4), pad],
                    attributes,
                    [1, 2, 3],
                    note=note,
                ),
            ]
    return found


def of_types() -> list[Case]:
    found = []
    for dtype in (np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8, np.bool_):
        x, pad = X.astype(dtype), np.array(1, dtype)
        found += [
            Case("MatrixDiagPart", [x]),
            Case("MatrixDiag", [x[0]]),
            Case("MatrixSetDiag", [x, x[:, 0, :3]]),
            Case("MatrixDiagPartV3", [x, ints(-1, 0), pad], {}, [1]),
        ]
    return found


CASES = [
    *bands(),
    *of_types(),
    *(Case("Diag", [X[0].astype(t)]) for t in (np.float32, np.float64, np.int32, np.int64)),
    *(
        Case("DiagPart", [np.arange(36).reshape(2, 3, 2, 3).astype(t)])
        for t in (np.float32, np.float64, np.int32, np.int64)
    ),
    Case("MatrixDiagPartV2", [X, ints(-1, 1), np.array(7, np.float32)], {}, [1]),
    Case("MatrixDiagPartV3", [X, scalar(1), np.array(7, np.float32)], {}, [1, 2]),
    Case(
        "MatrixDiagV2",
        [X[0], scalar(1), scalar(-1), scalar(-1), np.array(0, np.float32)],
        {},
        [1, 2, 3],
    ),
    Case(
        "MatrixDiagV3",
        [X[0], scalar(-2), scalar(-1), scalar(4), np.array(0, np.float32)],
        {},
        [1, 2, 3],
    ),
    Case("MatrixSetDiagV2", [X, X[:, :2, :3], ints(0, 1)], {}, [2]),
]
