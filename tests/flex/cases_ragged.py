"""Cases of ragged tensors."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case

CASES = [
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
