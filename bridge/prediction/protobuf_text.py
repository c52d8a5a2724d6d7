"""Messages in protobuf's text format, from dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class Name(str):
    """A value of an enumeration, which is written without quotes."""


def message_text(fields: Mapping[str, Any]) -> str:
    """The text of a message.

    Args:
        fields: by name, in order: text, numbers, truth values, a `Name`, a dictionary for a
            message; a list for a field that is repeated. None is left out.
    """
    return "".join(f"{line}\n" for line in _lines(fields))


def _lines(fields: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in fields.items():
        several = isinstance(value, Sequence) and not isinstance(value, str)
        if several and value and not isinstance(value[0], Mapping):
            yield f"{indent}{name}: [ {', '.join(map(_scalar, value))} ]"
            continue
        for each in value if several else (value,):
            if isinstance(each, Mapping):
                yield f"{indent}{name} {{"
                yield from _lines(each, f"{indent}  ")
                yield f"{indent}}}"
            elif each is not None:
                yield f"{indent}{name}: {_scalar(each)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Name) or not isinstance(value, str):
        return str(value)
    return '"' + "".join(map(_escaped, value.encode())) + '"'


def _escaped(byte: int) -> str:
    """A byte of a text: printable ASCII as it is, all others as octal numbers."""
    character = chr(byte)
    plain = 32 <= byte < 127 and character not in '"\\'
    return character if plain else f"\\{byte:03o}"
