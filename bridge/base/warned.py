"""Warnings that name the line which called the library, however deep in it they arise.

The logger ``tflite_ort`` gets them too: what a provider refused, what is not cached, and so on.
"""

from __future__ import annotations

import warnings
from inspect import currentframe

from tflite_ort.base.optional import late

with late:
    import logging
    import traceback

LOGGER = "tflite_ort"


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line that called this library."""
    modules = [
        frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_stack(currentframe())
    ]
    ours = [level for level, name in enumerate(modules, 1) if name.startswith("tflite_ort.")]
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:  # nothing is printed twice where no program listens
        logger.addHandler(logging.NullHandler())
    logger.warning("%s: %s", category.__name__, text)
    warnings.warn(text, category, stacklevel=ours[-1] + 1)
