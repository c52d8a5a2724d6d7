"""Outputs that are scores of classes: whether the best ones agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.verification.results import Scores

Array = npt.NDArray[Any]

_TOP = 5


def agreement(got: Array, want: Array) -> Scores | None:
    """Of what a runtime gave and the reference; None if they are not vectors of scores."""
    if not (_are_scores(got) and _are_scores(want)):
        return None
    if got.size != want.size:
        return Scores(1, 0, 0)
    pair = _flat(got), _flat(want)
    return Scores(1, int(_agree(*pair, 1)), int(_agree(*pair, _TOP)))


def total(found: Sequence[Scores | None]) -> Scores | None:
    """Of several samples; None if one is not a vector of scores, or there is none."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    top1, top5 = sum(each.top1 for each in known), sum(each.top5 for each in known)
    return Scores(sum(each.samples for each in known), top1, top5)


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
