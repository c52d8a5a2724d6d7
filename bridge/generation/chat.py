"""The prompt of messages: a bundle's template, or what stands before and behind each message."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tflite_ort.generation.errors import GenerationError, needed
from tflite_ort.generation.metadata import LanguageMetadata

Message = Mapping[str, Any]

_COMMAND = [sys.executable, "-P", str(Path(__file__).with_name("template_process.py"))]
_SECONDS = 20
_MODEL_ROLES = {"assistant": "model"}


def prompt_of(messages: Sequence[Message], metadata: LanguageMetadata, start: str) -> str:
    """The text that a model is given for `messages`.

    Args:
        messages: dictionaries with ``role`` and ``content``, as templates expect them.
        start: the text of the start token, which templates may write.

    Raises:
        GenerationError: the template fails, or `minijinja` is not installed.
    """
    for message in messages:
        if not {"role", "content"} <= message.keys():
            raise GenerationError(f"a message has role and content, got {sorted(message)}")
    if metadata.template:
        return _rendered(metadata.template, messages, start)
    parts = []
    for message in messages:
        role = str(message["role"])
        before, behind = metadata.affixes.get(_MODEL_ROLES.get(role, role), ("", ""))
        parts.append(f"{before}{message['content']}{behind}")
    return "".join((*parts, metadata.affixes.get("model", ("", ""))[0]))


def _rendered(template: str, messages: Sequence[Message], start: str) -> str:
    """The text of a template, made by another process: see `template_process`."""
    needed("minijinja", "the template of this bundle")
    try:
        request = json.dumps(
            {"template": template, "messages": [dict(each) for each in messages], "start": start}
        )
        done = subprocess.run(
            _COMMAND,
            input=request.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GenerationError(f"the template failed: it takes more than {_SECONDS} s") from None
    except (OSError, TypeError, ValueError) as error:
        raise GenerationError(f"the template failed: {error}") from error
    if done.returncode:
        raise GenerationError("the template failed: it takes more memory than a template may")
    answer: dict[str, str] = json.loads(done.stdout)
    if "error" in answer:
        raise GenerationError(f"the template failed: {answer['error']}")
    return answer["text"]
