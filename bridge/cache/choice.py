"""Which folder an interpreter caches in, if any."""

from __future__ import annotations

import os
import sys

from tflite_ort.base.optional import late, optional_module
from tflite_ort.base.warned import warn_caller
from tflite_ort.schema import CacheWarning

with late:
    import pathlib

    from tflite_ort.cache import folder as folders

# What stands for a choice: whether to cache in the default folder, or a folder.
CacheChoice = bool | str | os.PathLike[str]

VARIABLE, LIMIT_VARIABLE = "TFLITE_ORT_CACHE", "TFLITE_ORT_CACHE_LIMIT"
DEFAULT_LIMIT = 2 << 30

_OFF, _ON = frozenset({"", "0", "false", "off"}), frozenset({"1", "true", "on"})


def default_folder() -> str:
    """The folder of this user for caches of this library, as the system has it."""
    platformdirs = None if sys.platform == "linux" else optional_module("platformdirs")
    if platformdirs is None:  # as it says on Linux, where its import takes longer than a load
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return os.path.join(base, "tflite-ort")
    folder: str = platformdirs.user_cache_dir("tflite-ort", appauthor=False)
    return folder


def chosen_folder(choice: CacheChoice | None) -> folders.CacheFolder | None:
    """The folder that is meant; None for no cache.

    Args:
        choice: None: what the environment says, which is no cache if it says nothing.

    A folder that others may write to is not used, with a CacheWarning.

    Raises:
        ValueError: an empty text is given, which would be the folder that the process works in.
    """
    if choice is False:
        return None
    if choice is None or choice is True:
        text = os.environ.get(VARIABLE, "")
        if choice is None and text.lower() in _OFF:
            return None
        path = default_folder() if text.lower() in _OFF | _ON else text
    else:
        path = os.fspath(choice)
        if not path:
            raise ValueError("cache='' names no folder; cache=False keeps nothing")
    if not path.startswith(os.sep):
        path = os.path.abspath(path)
    folder = folders.CacheFolder(path, size_limit)
    if reason := folder.distrusted():
        warn_caller(f"nothing is cached: {reason}", CacheWarning)
        return None
    return folder


def tuning_file() -> pathlib.Path:
    """Where tuned layers are kept: in the folder that the environment says, or the default one."""
    text = os.environ.get(VARIABLE, "")
    folder = default_folder() if text.lower() in _OFF | _ON else text
    return pathlib.Path(folder).absolute() / "tuning.json"


def size_limit() -> int:
    """The most bytes of all entries together, as the environment says, such as ``5e9``."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        return int(float(text)) if text else DEFAULT_LIMIT
    except (OverflowError, ValueError):
        warn_caller(f"{LIMIT_VARIABLE}={text!r} is no number", CacheWarning)
        return DEFAULT_LIMIT
