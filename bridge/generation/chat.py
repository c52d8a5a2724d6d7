"""The prompt of messages: a bundle's template, or what stands before and behind each message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.generation.apart import Apart
from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.metadata import LanguageMetadata

Message = Mapping[str, Any]

_MODEL_ROLES = {"assistant": "model"}


def prompt_of(messages: Sequence[Message], metadata: LanguageMetadata, start: str) -> str:
    """The text that a model is given for `messages`.

    Args:
        messages: dictionaries with ``role`` and ``content``, as templates expect them.
        start: the text of the start token, which templates may write.

    Raises:
        GenerationError: the template fails, or `minijinja` is not installed.
    """
    if isinstance(messages, Mapping):
        raise GenerationError("a prompt is a text, or a list of messages; this is one message")
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
    """The text of a template, made by another process: see `text_process`."""
    request = {"template": template, "messages": [dict(each) for each in messages], "start": start}
    library = Apart("minijinja", "the template")
    try:
        text: str = library.ask(b"r", request)
    finally:
        library.close()
    return text
