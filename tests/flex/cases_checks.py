"""Cases of operators that check, print or do nothing."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case

X = np.float32([[1, -2, 3], [0.5, 4, -1.5]])

CASES = [
    *(Case("CheckNumerics", [X.astype(t)], {"message": "odd"}) for t in (np.float32, np.float64)),
    Case("CheckNumerics", [X.astype(np.float16)], {"message": "odd"}),
    Case("CheckNumericsV2", [X], {"message": "odd"}),
    Case("CheckNumerics", [np.float32([1, np.inf])], {"message": "odd"}, refused=True),
    Case("EnsureShape", [X], {"shape": [2, 3]}),
    Case("EnsureShape", [X.astype(np.int64)], {"shape": [-1, 3]}, note="open"),
    Case("EnsureShape", [X], {"shape": None}, note="any"),
    Case("EnsureShape", [X], {"shape": [2, 2]}, refused=True),
    Case("DeepCopy", [X]),
    Case("Print", [X, X[0]], {"message": "see", "U": ["float"]}, by_numpy=True),
]
