"""Cases of layers of neural networks."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case

X = np.float32([-100, -20, -2.5, -0.5, 0, 0.25, 3, 20, 100, np.inf, -np.inf])

CASES = [
    Case("Softplus", [X]),
    Case("Softplus", [X.astype(np.float64)], exports=False),
    Case("Softplus", [X.astype(np.float16)], rtol=1e-3),
]
