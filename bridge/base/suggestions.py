"""Suggestions: the name that somebody may have meant by one that does not exist."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from tflite_ort.base.optional import late

with late:
    from tflite_ort.schema.file import other_formats

# By ``difflib``'s measure CONV2D is like CONV_2D to 0.92, ADD like ADD_N to 0.67.
_ALIKE = 0.6
# Of a part of a name.
_FEWEST_LETTERS = 3
# So many names of a folder are looked at.
_MOST_FILES = 10_000


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


def unopened(error: OSError) -> str:
    """``; ...``: what is in the place of a file that cannot be opened; empty where nothing tells.

    A file that is not there may have another name, and a folder may be a model in another format.
    """
    if not error.filename:
        return ""
    path = Path(os.fsdecode(error.filename))
    try:
        if isinstance(error, IsADirectoryError):
            return _of_folder(path)
        return _near_file(path) if isinstance(error, FileNotFoundError) else ""
    except OSError:  # a folder that may not be read
        return ""


def _of_folder(path: Path) -> str:
    names = _names(path)
    models = sorted(name for name in names if name.endswith(".tflite"))
    return f"; it has {models[0]!r}" if models else other_formats.archive_format(names)


def _near_file(path: Path) -> str:
    if path.parts[:1] == ("~",):
        return "; Python opens no name with ~: os.path.expanduser says what it stands for"
    if not path.parent.is_dir():
        return f"; there is no folder {str(path.parent)!r}"
    names = _names(path.parent)
    same = [name for name in names if Path(name).stem == path.stem]  # but for the suffix
    if same:
        return f"; did you mean {nearest(path.name, same) or same[0]!r}?"
    alike = {Path(n).stem: n for n in names if Path(n).suffix == path.suffix}
    near = nearest(path.stem, alike)  # the suffix alone is not alike
    return "" if near is None else f"; did you mean {alike[near]!r}?"


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as files:
        return [each.name for each in islice(files, _MOST_FILES)]
