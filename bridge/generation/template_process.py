"""A chat template, made to text in a process of its own: a template of a few bytes can ask for
more memory than there is, and an allocation that fails ends the process.

It reads a request as JSON from its input and writes the answer, ``{"text": ...}`` or
``{"error": ...}``. It imports nothing of the package, so that it starts in a moment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

minijinja: Any = import_module("minijinja")

# Steps that a template may take; those of real ones take a few thousand.
_FUEL = 10_000_000
# Bytes of memory beyond what the process starts with, and characters of the text.
_SPACE = 1 << 30
_MOST = 1 << 24


def rendered(request: Mapping[str, Any]) -> dict[str, str]:
    """The text of a request's template, or what is wrong."""
    environment = minijinja.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.keep_trailing_newline = True
    environment.fuel = _FUEL
    environment.add_function("raise_exception", _refused)
    environment.add_function("strftime_now", lambda form: datetime.now(UTC).strftime(form))
    try:
        text = environment.render_str(
            request["template"],
            messages=request["messages"],
            add_generation_prompt=True,
            bos_token=request["start"],
            tools=None,
        )
    except (minijinja.TemplateError, RuntimeError, ValueError) as error:
        return {"error": str(error).partition("\n")[0]}
    if len(text) > _MOST:
        return {"error": f"{len(text)} characters, more than {_MOST}"}
    return {"text": text}


def _refused(reason: str) -> None:
    raise RuntimeError(reason)


def _bound() -> None:
    """Keeps the process within its memory."""
    if resource is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = _SPACE if hard == resource.RLIM_INFINITY else min(_SPACE, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def main() -> None:
    """Answers one request."""
    request = json.loads(sys.stdin.buffer.read())
    _bound()
    sys.stdout.buffer.write(json.dumps(rendered(request)).encode())


if __name__ == "__main__":
    main()
