"""What people call execution providers, and what installs one."""

from __future__ import annotations

from collections.abc import Iterable

from tflite_ort.providers.traits import SUFFIX, TRAITS, traits_of

# Kinds of devices that people ask for.
KINDS = ("GPU", "NPU")


def short_name(provider: str) -> str:
    """A provider's name as people type it: ``CUDAExecutionProvider`` is ``cuda``."""
    return "".join(filter(str.isalnum, provider.lower())).removesuffix(SUFFIX)


_ALSO = {short_name(row.also): name for name, row in TRAITS.items() if row.also}
# The providers that can be had, whether they are installed or not.
TO_BE_HAD = tuple(name for name, row in TRAITS.items() if row.install)


def named_provider(name: str, providers: Iterable[str]) -> str | None:
    """Which of `providers` a name means, in full or in short, in any case; None if none."""
    short = short_name(name)
    meant = short_name(_ALSO.get(short, short))
    return next((each for each in providers if short_name(each) == meant), None)


def canonical(name: str) -> str:
    """The full name of the provider that a name means; the name itself where no row has it."""
    return named_provider(name, TRAITS) or name


def said_name(provider: str) -> str:
    """What people call a provider best."""
    return traits_of(provider).also or short_name(provider)


def known_short_names() -> list[str]:
    """The short names of all known providers, installed or not."""
    return [short_name(each) for each in TO_BE_HAD] + [TRAITS[each].also for each in _ALSO.values()]


def brought_by(name: str) -> str:
    """``; ...``: what has the provider that a name means; empty where that is not known."""
    found = named_provider(name, TO_BE_HAD)
    return "" if found is None else f"; to install it: {TRAITS[found].install}"


def providers_of_kind(kind: str) -> list[str]:
    """The providers that can be had and that have devices of a kind."""
    rows = {name: TRAITS[name] for name in TO_BE_HAD}
    return [name for name, row in rows.items() if kind in (*row.kinds, *row.precisions_on)]
