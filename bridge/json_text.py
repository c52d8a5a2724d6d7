"""JSON that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any

from tflite_ort.schema import BridgeError


def parsed(text: str | bytes, error: type[BridgeError], what: str) -> Any:
    """What a text of JSON says.

    Args:
        error: raised where it is none, or is nested too deep, with the name of `what` it is.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise error(f"{what} is no JSON: {reason}") from reason
