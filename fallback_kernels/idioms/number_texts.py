"""Numbers as texts and texts as numbers, as C has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tflite_ort.schema import KernelError

_INTEGER = re.compile(rb"[ \t\n\v\f\r]*(-?\d+)[ \t\n\v\f\r]*")
_FLOAT = re.compile(
    rb"[ \t\n\v\f\r]*([+-]?)(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|(inf|nan))"
    rb"[ \t\n\v\f\r]*",
    re.IGNORECASE,
)
_LONGEST = 1000
_FILLS = ("", " ", "+", "-", "0", "#")


def number_of(text: bytes, dtype: np.dtype[Any]) -> Any:
    """The number that `text` is, rounded once.

    Raises:
        KernelError: it is none, or none of this type.
    """
    match = (_FLOAT if dtype.kind == "f" else _INTEGER).fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise KernelError(f"{text[:100]!r} is no number of {dtype}")
    if dtype.kind != "f":
        value = int(match[1])
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise KernelError(f"{text!r} is no number of {dtype}")
        return value
    number = match[1] + (match[2] or match[3])
    wide = float(number)
    return wide if dtype == np.float64 or not match[2] else _rounded_once(number.decode(), wide)


def _rounded_once(number: str, wide: float) -> np.float32:
    """A number as float32; its float64 is `wide`, which may stand in the middle of two float32."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(wide)
    if not np.isfinite(narrow) or wide == float(narrow):
        return narrow
    other = np.nextafter(narrow, np.float32(np.inf if wide > narrow else -np.inf))
    if (float(narrow) + float(other)) / 2 != wide:
        return narrow
    exact = Fraction(number)
    if exact == Fraction(wide):
        return narrow
    larger = exact > Fraction(wide)
    return np.float32(max(narrow, other) if larger else min(narrow, other))


def text_of(
    dtype: np.dtype[Any], *, fill: str, width: int, precision: int, scientific: bool, shortest: bool
) -> Callable[[Any], bytes]:
    """What makes the text of a number of `dtype`.

    Raises:
        KernelError: the form is none for such numbers.
    """
    floating = dtype.kind in "fcV" or dtype.name == "bfloat16"
    if fill not in _FILLS:
        raise KernelError(f"fill {fill!r} is not implemented")
    if (scientific and shortest) or (not floating and (scientific or shortest or precision >= 0)):
        raise KernelError(f"the form of a float for numbers of {dtype}")
    if dtype.kind == "O":
        raise KernelError("texts as texts are not implemented")
    if dtype.kind == "b":
        return lambda value: b"true" if value else b"false"
    form = f"%{fill}{width if width >= 0 else ''}{f'.{precision}' if precision >= 0 else ''}"
    if not floating:
        return lambda value: (f"{form}d" % int(value)).encode()
    form += "e" if scientific else "g" if shortest else "f"
    plain = "%" + fill.replace("0", "") + (str(width) if width >= 0 else "") + "f"
    if dtype.kind == "c":
        return lambda value: (
            f"({_float(value.real, form, plain)},{_float(value.imag, form, plain)})".encode()
        )
    return lambda value: _float(value, form, plain).encode()


def _float(value: Any, form: str, plain: str) -> str:
    number = float(value)
    if np.isfinite(number):
        return form % number
    if np.isnan(number) and np.signbit(number):
        raise KernelError("a NaN with a sign has no text here")
    return plain % number
