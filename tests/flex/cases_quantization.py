"""Cases of fake quantization: bounds around 0, beside it, and of nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

RNG = np.random.default_rng(9)
X = np.concatenate([RNG.normal(size=60) * 4, np.linspace(-3, 3, 36)]).astype(np.float32)
X = X.reshape(32, 3)
# Halfway between two numbers of `_BOUNDS`, and beside that.
HALVES = (np.arange(-40, 40, dtype=np.float32) + 0.5) * np.float32(4 / 14)
HALVES = np.concatenate([HALVES, np.nextafter(HALVES, np.float32(9))])
_BOUNDS = ((-2.0, 3.0), (0.0, 6.0), (1.0, 5.0), (-4.0, -1.5), (-1e-3, 7.25), (-6.0, 0.0))


def bounds(low: float, high: float) -> list[npt.NDArray[np.float32]]:
    return [np.array(low, np.float32), np.array(high, np.float32)]


def around() -> list[Case]:
    found = []
    for low, high in _BOUNDS:
        for bits, narrow in ((8, False), (4, True), (2, False)):
            given = {"num_bits": bits, "narrow_range": narrow}
            note = f"{low}-{high}-{bits}-{narrow}"
            ends = {"min": low, "max": high}
            found.append(Case("FakeQuantWithMinMaxArgs", [X], {**given, **ends}, note=note))
            found.append(Case("FakeQuantWithMinMaxVars", [X, *bounds(low, high)], given, note=note))
    return found


LOW, HIGH = (np.float32(row) for row in zip(*_BOUNDS[:3], strict=True))

ENDS = {"min": 1.0, "max": 5.0}
FEW = {"num_bits": 4, "narrow_range": True}

CASES = [
    *around(),
    Case("FakeQuantWithMinMaxArgs", [X]),
    Case("FakeQuantWithMinMaxArgs", [HALVES], {**ENDS, **FEW}, note="halves"),
    Case("FakeQuantWithMinMaxVars", [HALVES, *bounds(1, 5)], FEW, note="halves"),
    Case("FakeQuantWithMinMaxVarsPerChannel", [HALVES[:, None], LOW[2:], HIGH[2:]], FEW),
    Case("FakeQuantWithMinMaxVars", [X, *bounds(0, 0)], note="none"),
    Case("FakeQuantWithMinMaxVarsPerChannel", [X, LOW, HIGH]),
    Case("FakeQuantWithMinMaxVarsPerChannel", [X[0], LOW, HIGH], {"num_bits": 4}),
    Case("FakeQuantWithMinMaxVarsPerChannel", [X.reshape(2, 16, 3), LOW * 0, HIGH * 0]),
    Case("FakeQuantWithMinMaxArgs", [X], {"min": 3.0, "max": 1.0}, exports=False, refused=True),
]
