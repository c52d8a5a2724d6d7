"""How outputs differ from LiteRT's: the kind of a difference, and its size in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

RTOL = 1e-5


def difference(got: Sequence[Array], want: Sequence[Array], quantised: Sequence[bool]) -> str:
    """The worst difference between two lists of outputs; "" where they agree.

    Args:
        quantised: of each output, whether one quantum is allowed.
    """
    if len(got) != len(want):
        return f"{len(got)} outputs for {len(want)}"
    allowed = quantised if len(quantised) == len(got) else [False] * len(got)
    found = [_one(a, b, c) for a, b, c in zip(got, want, allowed, strict=True)]
    return max(found, key=severity) if found else ""


def severity(kind: str) -> int:
    """The order of kinds: a larger one is worse."""
    order = ("", "1e-5", "1e-4", "1e-3", "1e-2", "2 quanta", "4 quanta", "quanta")
    return order.index(kind) if kind in order else len(order)


def _one(got: Array, want: Array, quantised: bool) -> str:
    if got.shape != want.shape:
        return "shape" if got.ndim == want.ndim else "rank"
    if got.dtype.kind in "OSU" and want.dtype.kind in "OSU":
        return "" if got.astype(object).tolist() == want.astype(object).tolist() else "strings"
    if got.dtype != want.dtype:
        return f"type {got.dtype} for {want.dtype}"
    if not got.size:
        return ""
    if got.dtype.kind in "iu":
        return _integers(got, want, quantised)
    if got.dtype.kind in "fcV":
        return _floats(got, want)
    return "" if np.array_equal(got, want) else "values"


def _integers(got: Array, want: Array, quantised: bool) -> str:
    if np.array_equal(got, want):
        return ""
    if not quantised or got.dtype.itemsize > 2:
        return "integers"
    worst = np.max(np.abs(got.astype(np.int64) - want.astype(np.int64)))
    if worst <= 1:
        return ""
    return "2 quanta" if worst == 2 else "4 quanta" if worst <= 4 else "quanta"


def _floats(got: Array, want: Array) -> str:
    rtol = RTOL if got.dtype.itemsize >= 4 else float(ml_dtypes.finfo(got.dtype).eps)
    if got.dtype.kind == "V":
        got, want = got.astype(np.float32), want.astype(np.float32)
    a, b = (np.ravel(each).view(each.real.dtype) for each in (got, want))
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "nan"
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "infinity"
    if not np.isfinite(a[finite]).all():
        return "infinity"
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    worst = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0))
    share = worst / max(largest, 1e-30)
    for limit, name in ((rtol, ""), (1e-4, "1e-5"), (1e-3, "1e-4"), (1e-2, "1e-3"), (0.1, "1e-2")):
        if share <= limit or worst == 0:
            return name
    return "numbers"
