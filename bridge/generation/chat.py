"""The prompt of messages: a bundle's template, or what stands before and behind each message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tflite_ort.generation.errors import GenerationError, needed
from tflite_ort.generation.metadata import LanguageMetadata

Message = Mapping[str, Any]

# Steps that a template may take; those of real ones take a few thousand.
_FUEL = 10_000_000
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
    jinja: Any = needed("minijinja", "the template of this bundle")
    environment = jinja.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.keep_trailing_newline = True
    environment.fuel = _FUEL
    environment.add_function("raise_exception", _refused)
    environment.add_function("strftime_now", lambda form: datetime.now(UTC).strftime(form))
    given = [dict(message) for message in messages]
    try:
        text: str = environment.render_str(
            template, messages=given, add_generation_prompt=True, bos_token=start, tools=None
        )
    except (jinja.TemplateError, GenerationError) as error:
        first = str(error).partition("\n")[0]
        raise GenerationError(f"the template failed: {first}") from error
    return text


def _refused(reason: str) -> None:
    raise GenerationError(reason)
