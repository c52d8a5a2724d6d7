"""Tables that are made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

Given = ParamSpec("Given")
Number = TypeVar("Number", bound=np.generic)

# Of how many arguments each function's tables are kept.
_MOST = 16


def kept_table(
    function: Callable[Given, npt.NDArray[Number]],
) -> Callable[Given, npt.NDArray[Number]]:
    """`function` with its results kept. All callers get the same array, so nobody can write it."""

    def made(*arguments: Any) -> npt.NDArray[Number]:
        table = function(*arguments)  # type: ignore[call-arg]
        table.flags.writeable = False
        return table

    return wraps(function)(lru_cache(_MOST)(made))  # type: ignore[return-value]
