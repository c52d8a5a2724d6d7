"""Outputs that are scores of classes: whether the best ones agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.verification.report import Scores

Array = npt.NDArray[Any]

_TOP = 5


def agreement(pairs: Sequence[tuple[Array, Array]]) -> Scores | None:
    """Of pairs of what a runtime gave and the reference; None if they are not vectors of scores."""
    if not pairs or not all(_are_scores(got) and _are_scores(want) for got, want in pairs):
        return None
    flat = [(_flat(got), _flat(want)) for got, want in pairs if got.size == want.size]
    best = sum(_agree(got, want, 1) for got, want in flat)
    return Scores(len(pairs), best, sum(_agree(got, want, _TOP) for got, want in flat))


def _are_scores(array: Array) -> bool:
    vector = array.ndim > 0 and array.size == array.shape[-1] and array.size > _TOP
    return vector and array.dtype.kind in "fiu"


def _flat(array: Array) -> npt.NDArray[np.float64]:
    return array.reshape(-1).astype(np.float64)


def _agree(got: npt.NDArray[np.float64], want: npt.NDArray[np.float64], count: int) -> bool:
    """Whether the `count` best of one are best in the other; equal scores may change places."""
    chosen = np.argsort(-got, kind="stable")[:count]
    least = np.sort(want)[-count]
    return bool((want[chosen] >= least).all())
