"""The budgets that are given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tflite_ort.schema import Budgets


def budgets_of(texts: Sequence[str]) -> Budgets:
    """What ``NAME=NUMBER`` say; the others are the defaults.

    Raises:
        ValueError: there is no such budget, or no such number.
    """
    given = Budgets()
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals or name not in Budgets.names():
            raise ValueError(
                f"{text!r} is not NAME=NUMBER with one of {', '.join(Budgets.names())}"
            )
        if not number.isdecimal():
            raise ValueError(f"{number!r} is no number from 0 on")
        numbers: dict[str, Any] = {name: int(number)}
        given = replace(given, **numbers)
    return given
