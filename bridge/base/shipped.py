"""Data files of the library, from wherever it was imported: a folder, a zip archive, or a program
that a freezer made.

As `importlib.resources`, whose import would take longer than all else that a load needs.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def shipped(package: str, name: str) -> bytes:
    """The content of a file of a package of ours, which has been imported.

    Raises:
        OSError: it is not there, as in a program that was frozen without it.
    """
    module = sys.modules[package]
    loader: Any = module.__loader__
    content: bytes = loader.get_data(os.path.join(os.path.dirname(str(module.__file__)), name))
    return content
