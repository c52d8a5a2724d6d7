"""Arrays as TensorFlow's texts of them: `[[1 2 ... 8 9] ... [3 4 ... 5 6]]`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# By the bytes of a float: how many digits are tried first, and how many tell it from all others.
_DIGITS = {4: (6, 9), 8: (15, 17)}
_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}


def summary(array: Array | np.generic | bytes, most: int, depth: int = 1) -> str:
    """The text of an array; of a longer dimension only so many elements at both ends, all of them
    if `most` is negative.

    Args:
        depth: how many dimensions there are up to the first of `array`.
    """
    if not isinstance(array, np.ndarray) or not array.ndim:
        return _element(array[()] if isinstance(array, np.ndarray) else array)
    size = len(array)
    ends = min(size if most < 0 else most, size, array.size)
    parts = [summary(array[place], most, depth + 1) for place in range(ends)]
    parts += ["..."] if size > 2 * ends else []
    parts += [
        summary(array[place], most, depth + 1) for place in range(max(size - ends, ends), size)
    ]
    inner = array.ndim - 1
    between = "\n" * inner + " " * depth if inner else " "
    first = between if size and not ends else ""  # before the dots, whatever comes before them
    return f"[{first}{between.join(parts)}]"


def _element(value: Any) -> str:
    if isinstance(value, bytes):
        return f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, np.bool_):
        return str(int(value))
    if isinstance(value, np.floating):
        return _float(value)
    if isinstance(value, np.complexfloating):
        return "?"  # as TensorFlow has it
    return str(int(value))


def _float(value: Any) -> str:
    value = np.float32(value) if value.dtype.itemsize == 2 else value
    few, many = _DIGITS[value.dtype.itemsize]
    short = f"{float(value):.{few}g}"
    return (
        short if value.dtype.type(short) == value or np.isnan(value) else f"{float(value):.{many}g}"
    )


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return f"\\{byte:03o}" if byte < 0x20 or byte == 0x7F else chr(byte)
