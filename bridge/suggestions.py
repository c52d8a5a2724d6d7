"""Near misses: what somebody may have meant by a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Of names alike, ``difflib``'s measure: CONV2D is 0.92 like CONV_2D, ADD 0.67 like ADD_N.
_ALIKE = 0.6
# Of a part of a name.
_FEWEST_LETTERS = 3


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'NAME'?`` with the nearest of the names `known`; empty where none is near.

    >>> suggestion("conv2d", ["ADD", "CONV_2D"])
    "; did you mean 'CONV_2D'?"
    """
    near = nearest(name, known)
    return "" if near is None else f"; did you mean {near!r}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name among `known` that is most like `name`, else the shortest one of which `name` is a
    part; None where there is none."""
    by_lower = {each.lower(): each for each in known}
    lower = name.lower()
    near = get_close_matches(lower, by_lower, 1, _ALIKE)
    if not near and len(lower) >= _FEWEST_LETTERS:
        near = sorted((each for each in by_lower if lower in each), key=len)
    return by_lower[near[0]] if near else None
