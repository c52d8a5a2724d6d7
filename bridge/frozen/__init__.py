"""What PyInstaller asks a package: how programs with it are frozen."""

from __future__ import annotations

import os


def hook_dirs() -> list[str]:
    """The folders of hooks, by the entry point ``pyinstaller40``."""
    return [os.path.dirname(os.path.abspath(__file__))]
