"""How precisely providers compute floats: the options that say so, and what they amount to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tflite_ort.providers.provider_traits import ProviderTraits
from tflite_ort.providers.traits import FULL_PRECISION, traits_of
from tflite_ort.schema import MissingDelegate

PRECISIONS = (FULL_PRECISION, "bf16", "fp16")
# What is said of a provider whose own options are those of no precision.
OWN_OPTIONS = "own options"


def check_precision(precision: str) -> None:
    """Refuse a name that is none.

    Raises:
        ValueError: `precision` is none of `PRECISIONS`.
    """
    if precision not in PRECISIONS:
        names = ", ".join(map(repr, PRECISIONS))
        raise ValueError(f"precision must be {names}, got {precision!r}")


def has_precision(provider: str, precision: str) -> bool:
    """Whether a provider has a precision on some device."""
    return precision == FULL_PRECISION or precision in traits_of(provider).precisions


def refused_precision(provider: str, precision: str, device: str = "") -> MissingDelegate:
    """The error of a precision that a provider does not have, with those that it has."""
    traits = traits_of(provider)
    place = f"{provider} on {device}" if device in traits.precisions_on else provider
    has = ", ".join(map(repr, traits.precisions_on.get(device, traits.precisions)))
    known = f"it has {has}" if has else "it is not known how it is asked for another than 'full'"
    return MissingDelegate(f"{place} has no precision {precision!r}; {known}")


def options_in(
    provider: str, precision: str, given: Mapping[str, Any], device: str = ""
) -> dict[str, str]:
    """The options that a provider gets: those that are given, and beside them what `precision`
    means.

    Args:
        device: the kind of hardware, where it is known.

    Raises:
        MissingDelegate: the device does not compute so, and no option that is given says how.
    """
    traits = traits_of(provider)
    device = device or _device(traits, given)
    texts = {str(key): str(value) for key, value in given.items()}
    if precision not in traits.precisions_on.get(device, (precision,)):
        raise refused_precision(provider, precision, device)
    return joined(texts, traits.precisions.get(precision, {}))


def joined(given: Mapping[str, str], wanted: Mapping[str, Any]) -> dict[str, str]:
    """Options, and beside them what is wanted: the value of one that is JSON is a mapping there."""
    return {**given, **{name: _joined(given.get(name), value) for name, value in wanted.items()}}


def set_environment(provider: str, precision: str) -> None:
    """Set the variables of the environment by which a provider computes in full precision, where it
    has no option for that; those that are set stay."""
    if precision == FULL_PRECISION:
        for name, value in traits_of(provider).environment.items():
            os.environ.setdefault(name, value)


def precision_of(provider: str, precision: str, given: Mapping[str, Any], device: str = "") -> str:
    """What the options of a provider amount to: one of `PRECISIONS`, or `OWN_OPTIONS`; empty where
    nothing is known of it."""
    rows = traits_of(provider).precisions
    if not rows:
        return ""
    texts = options_in(provider, precision, given, device)
    for name in sorted(rows, key=lambda each: each != precision):
        if all(_says(texts.get(option), wanted) for option, wanted in rows[name].items()):
            return name
    return OWN_OPTIONS


def _device(traits: ProviderTraits, given: Mapping[str, Any]) -> str:
    """The kind of hardware that an option names; empty where none does."""
    return str(given.get(traits.device_option, "")).partition(".")[0]


def _joined(given: str | None, wanted: Any) -> str:
    """The value of an option: what was given comes before what is wanted."""
    if not isinstance(wanted, Mapping):
        return str(wanted) if given is None else given
    if given is None:
        return json.dumps(wanted)
    document = _document(given)
    return given if document is None else json.dumps(_merged(document, wanted))


def _document(given: str) -> Mapping[str, Any] | None:
    """The JSON of an option, which is it or names its file; None where it is no object: the
    provider says so."""
    with suppress(ValueError, OSError):
        text = given if given.lstrip().startswith("{") else Path(given).read_text("utf-8")
        document = json.loads(text)
        return document if isinstance(document, dict) else None
    return None


def _merged(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """`given` with what it says nothing of."""
    merged = dict(given)
    for name, value in wanted.items():
        own = given.get(name, value)
        merged[name] = _merged(own, value) if isinstance(own, Mapping) else own
    return merged


def _says(given: str | None, wanted: Any) -> bool:
    """Whether the value of an option is the one that is wanted, or says it among others."""
    if given is None or not isinstance(wanted, Mapping):
        return bool(given == wanted)
    document = _document(given)
    return document is not None and _merged(wanted, document) == _merged(document, wanted)
