"""Cases of reductions and scans."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case

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


CASES = [
    *reductions(),
    Case("All", [TEST, AXES], constants=[1]),
    Case("Any", [TEST, AXES], {"keep_dims": True}, [1]),
    Case("Cumsum", [X, np.array(1, np.int32)], {"exclusive": True}, [1]),
    Case("Cumsum", [X.astype(np.int64), np.array(0, np.int32)], {"reverse": True}, [1]),
    Case("ArgMax", [X, np.array(1, np.int32)], constants=[1]),
    Case("ArgMin", [X, np.array(0, np.int32)], {"output_type": "int32"}, [1]),
]
