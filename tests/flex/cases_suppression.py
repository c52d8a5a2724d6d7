"""Cases of non-maximum suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]

RNG = np.random.default_rng(7)


def boxes(*shape: int) -> Array:
    """Boxes around a few places, some with their corners exchanged."""
    centre = RNG.integers(0, 4, (*shape, 2)) / 4 + RNG.uniform(0, 0.1, (*shape, 2))
    size = RNG.uniform(0.1, 0.4, (*shape, 2))
    corners = np.concatenate([centre - size / 2, centre + size / 2], axis=-1).astype(np.float32)
    if len(shape) == 1:
        corners[::3] = corners[::3, [2, 3, 0, 1]]
    return corners


def scores(*shape: int) -> Array:
    """All different."""
    count = int(np.prod(shape))
    return (RNG.permutation(count).reshape(shape) / count).astype(np.float32)


def number(value: float, dtype: npt.DTypeLike = np.float32) -> Array:
    return np.array(value, dtype)


def most(count: int) -> Array:
    return np.array(count, np.int32)


B, S = boxes(20), scores(20)
COMBINED = [most(3), most(8), number(0.3), number(0.2)]
PLACES = (2, 3, 4, 5)


def combined(given: Array, values: Array, limits: list[Array], **attributes: Any) -> Case:
    exports = given.shape[2] == 1
    note = "-".join([str(given.shape[2]), str(limits[1]), *attributes])
    inputs = [given, values, *limits]
    return Case("CombinedNonMaxSuppression", inputs, attributes, PLACES, exports=exports, note=note)


def single(name: str, inputs: list[Array], note: str = "", **attributes: Any) -> Case:
    places = range(2, len(inputs))
    return Case(name, inputs, attributes, places, by_numpy=True, note=note)


OVERLAPS = RNG.uniform(0, 1, (20, 20)).astype(np.float32)
HARD = [B, S, most(12), number(0.3), number(0.4)]
FEW = [most(2), most(20), *COMBINED[2:]]
CASES = [
    single("NonMaxSuppression", [B, S, most(6)], iou_threshold=0.25),
    single("NonMaxSuppressionV2", [B, S, most(6), number(0.4)]),
    single("NonMaxSuppressionV3", [B, S, most(30), *HARD[3:]]),
    single("NonMaxSuppressionV4", HARD),
    single("NonMaxSuppressionV4", HARD, "padded", pad_to_max_output_size=True),
    single("NonMaxSuppressionV5", [B, S, most(12), number(0.5), number(0.3), number(0)], "hard"),
    single("NonMaxSuppressionV5", [B, S, most(12), number(0.5), number(0.3), number(0.5)], "soft"),
    combined(boxes(2, 15, 1), scores(2, 15, 3), COMBINED),
    combined(boxes(2, 15, 3), scores(2, 15, 3), COMBINED),
    combined(boxes(2, 15, 1) * 2, scores(2, 15, 3), COMBINED, clip_boxes=False),
    combined(boxes(2, 5, 1), scores(2, 5, 2), FEW, pad_per_class=True),
    combined(boxes(2, 5, 1), scores(2, 5, 2), FEW),
    *(
        Case(
            "NonMaxSuppressionWithOverlaps",
            [OVERLAPS, S, most(count), number(limit), number(lowest)],
            exports=False,
            note=f"{count}-{limit}",
        )
        for count, limit, lowest in ((3, 0.8, -1), (20, 0.8, 0.3), (20, 0, 0))
    ),
]
