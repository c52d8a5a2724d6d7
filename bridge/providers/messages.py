"""What ONNX Runtime says, in a line."""

from __future__ import annotations

import re

from tflite_ort.schema import DelegateError

# The place in its source, in the forms that it and its providers have for it.
_PLACES = "|".join(
    (
        r"\S+\.(cc|h):\d+ .*?(\) (?=[A-Z])|\[with [^]]*\] |\[[\w-]+-EP\] | : FAIL : \S+ \w+ )",
        r" ; GPU=.*",  # with the name of the machine
    )
)


def error_text(error: Exception) -> str:
    """The message of one of ONNX Runtime's errors in a line, without the place in its source."""
    message = str(error)
    if isinstance(error, UnicodeDecodeError):
        message = error.object.decode(errors="backslashreplace")
    return re.sub(_PLACES, "", " ".join(message.split()))


def failure(what: str, error: Exception) -> DelegateError:
    """An error that says what ONNX Runtime did not do, and why.

    Args:
        what: the end of a sentence about ONNX Runtime.
        error: what it raised.
    """
    return DelegateError(f"ONNX Runtime {what}: {error_text(error)}")
