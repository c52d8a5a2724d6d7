"""JSON: what somebody else wrote, and what a file's numbers become in it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflite_ort.schema import BridgeError


def parsed(
    text: str | bytes,
    error: type[BridgeError],
    what: str,
    parse_float: Callable[[str], float] | None = None,
) -> Any:
    """What a text of JSON says.

    Args:
        error: raised where it is none, or is nested too deep, with the name of `what` it is.
        parse_float: makes numbers that are no integers; None makes those beyond floats infinite.
    """
    try:
        return json.loads(text, parse_float=parse_float)
    except (ValueError, RecursionError) as reason:
        raise error(f"{what} is no JSON: {reason}") from reason


def written(value: Any, indent: int | None = None) -> str:
    """A value as JSON in ASCII; numbers that JSON lacks are the texts nan, inf and -inf."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return value
