"""Cases of the decoders of connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]

RNG = np.random.default_rng(17)


def logits(steps: int, batch: int, classes: int, dtype: Any = np.float32) -> Array:
    return (RNG.standard_normal((steps, batch, classes)) * 2).astype(dtype)


LENGTHS = np.array([12, 0, 7], np.int32)


def greedy() -> list[Case]:
    found = []
    for dtype in (np.float32, np.float64):
        x = logits(12, 3, 4, dtype)
        for merge in (True, False):
            for blank in (-1, 0, 2):
                given = {"merge_repeated": merge, "blank_index": blank}
                note = f"{merge}-{blank}"
                exports = dtype is np.float32
                found.append(
                    Case("CTCGreedyDecoder", [x, LENGTHS], given, exports=exports, note=note)
                )
    return found


def beams() -> list[Case]:
    found = []
    for dtype in (np.float32, np.float64):
        for width, paths, merge in ((1, 1, True), (4, 2, False), (4, 3, True), (20, 5, False)):
            lengths = np.array([9, 5, 7], np.int32)
            given = {"beam_width": width, "top_paths": paths, "merge_repeated": merge}
            inputs = [logits(9, 3, 5, dtype), lengths]
            note = f"{width}-{paths}-{merge}"
            found.append(Case("CTCBeamSearchDecoder", inputs, given, exports=False, note=note))
    x = [logits(3, 2, 3), np.array([3, 0], np.int32)]
    given = {"beam_width": 4, "top_paths": 2}
    return [*found, Case("CTCBeamSearchDecoder", x, given, exports=False, refused=True)]


CASES = [*greedy(), *beams()]
