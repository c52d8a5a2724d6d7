"""Execution providers with options, as the command line names them."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.providers.delegates import AUTO, ProviderChoices


def provider_choices(
    names: Sequence[str] | None, options: Sequence[str] | None
) -> ProviderChoices | None:
    """The providers with what ``[PROVIDER:]KEY=VALUE`` says of them, or of the first; AUTO if that
    is named; None where none is named.

    Raises:
        ValueError: an option reads otherwise, or is of no provider named; AUTO is not alone.
    """
    if names and AUTO in names:
        if len(names) > 1 or options:
            raise ValueError(f"{AUTO!r} chooses the provider: it takes no other and no option")
        return AUTO
    found: dict[str, dict[str, str]] = {name: {} for name in names or ()}
    for text in options or ():
        left, equals, value = text.partition("=")
        name, _, key = left.rpartition(":")
        if not (equals and key):
            raise ValueError(f"{text!r} is not [PROVIDER:]KEY=VALUE")
        if not found:
            raise ValueError(f"{text!r} is of no --provider")
        if name and name not in found:
            raise ValueError(f"{name!r} is no --provider here, these are {', '.join(found)}")
        if found[name or next(iter(found))].setdefault(key, value) != value:
            raise ValueError(f"{key} is given two values")
    return list(found.items()) or None
