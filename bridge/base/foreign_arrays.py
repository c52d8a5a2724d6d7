"""Arrays of other libraries, such as torch and cupy, as numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np

# From numpy 2.1 on a device can be named.
_NAMED = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
_WHERE: dict[str, Any] = {"device": "cpu"} if _NAMED else {}
# What a library raises whose array cannot be given away, or is on a device that it does not leave.
_REFUSED = (AssertionError, BufferError, RuntimeError, TypeError, ValueError)


def host_array(value: Any) -> Any:
    """`value`, or its numbers in numpy's array where it is another library's array (DLPack). What
    lies on a device is copied if the library does that.

    Raises:
        ValueError: the library does not give it away.
    """
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
        return value
    try:
        return np.from_dlpack(value, **_WHERE)
    except _REFUSED as error:
        try:
            array = np.asarray(value)
        except _REFUSED:
            array = None
        if array is None or array.dtype.kind == "O":
            raise ValueError(f"{type(value).__name__} cannot be read: {error}") from error
        return array
