"""The budgets that are given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.schema import Budgets


def budgets_of(texts: Sequence[str]) -> Budgets:
    """What ``NAME=NUMBER`` say; the others are the defaults.

    Raises:
        ValueError: there is no such budget, or no such number.
    """
    given = dict[str, Any]()
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals or name not in Budgets.names():
            raise ValueError(
                f"{text!r} is not NAME=NUMBER with one of {', '.join(Budgets.names())}"
            )
        if not number.isdecimal():
            raise ValueError(f"{number!r} is no number from 0 on")
        if given.setdefault(name, int(number)) != int(number):
            raise ValueError(f"{name} is given two numbers")
    return Budgets(**given)
