"""Cases of what changes and reads a variable; `test_variables.py` has several in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(46)
GRID = RNG.integers(-9, 9, (4, 3)).astype(np.float32)
ROWS = np.int32([2, 0, 2])
UPDATES = RNG.integers(1, 9, (3, 3)).astype(np.float32)
PLACES = np.int64([[0, 1], [2, 2], [0, 1]])
DTYPES = (np.float32, np.float64, np.int32, np.int64)


def changed(name: str, *inputs: Array, note: str = "", **more: Any) -> Case:
    known = {key: more.pop(key) for key in ("exports", "refused", "rtol") if key in more}
    return Case(name, inputs, more, variables=1, note=note, **known)


BEYOND = np.int32([4, 0, 1])
SUMS = ("AssignAddVariableOp", "AssignSubVariableOp")
SCATTERS = ("Div", "Max", "Min", "Mul", "Update")
BOUNDS = (np.int32([1, 0]), np.int32([3, 3]), np.int32([1, 2]))

CASES = [
    *(changed(n, GRID.astype(d), GRID.astype(d) + 1) for n in SUMS for d in DTYPES),
    *(changed(name, GRID, GRID[:1], refused=True, exports=False) for name in SUMS),
    *(
        changed(f"ResourceScatter{name}", GRID.astype(d), ROWS, UPDATES.astype(d), exports=False)
        for name in SCATTERS
        for d in (np.float32, np.float64, np.int32)
        if name != "Div" or d is not np.int32
    ),
    *(
        changed(f"ResourceScatter{name}", GRID, ROWS, np.float32(2), exports=False, note="one")
        for name in SCATTERS
    ),
    *(
        changed(f"ResourceScatterNd{name}", GRID, PLACES, UPDATES[0], exports=False)
        for name in ("Max", "Min", "Update")
    ),
    changed("ResourceStridedSliceAssign", GRID, *BOUNDS, UPDATES[:2, :2], exports=False),
    *(
        changed(f"ResourceScatter{name}", GRID, BEYOND, UPDATES, refused=True, exports=False)
        for name in SCATTERS
    ),
]
