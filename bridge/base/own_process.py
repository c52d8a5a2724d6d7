"""Processes that run a module of this library, in a frozen program too, which has no Python."""

from __future__ import annotations

import os
import sys

# The first word that such a process of a frozen program gets; its second one is the module.
MARK = "--tflite-ort-process"
_NO_PYTHON = (
    "this program cannot start a process of tflite_ort: of frozen programs only those of "
    "PyInstaller can"
)


def own_process(module: str, file: str | None = None) -> list[str]:
    """The words that start a process with a module of ours; its arguments follow.

    Args:
        file: that of the module, where it imports nothing of the library and the process is to
            start without it.

    Raises:
        OSError: this program is no Python, and does not know how to be one.
    """
    if hasattr(sys, "_MEIPASS"):  # of PyInstaller: `frozen/rthooks` reads the words
        return [sys.executable, MARK, module]
    if hasattr(sys, "frozen") or "__compiled__" in globals():  # of others, and of Nuitka
        raise OSError(_NO_PYTHON)
    # -P: what lies in the working directory, or beside the file, has no part in it.
    python = [sys.executable, "-P"]
    if not os.path.isfile(__file__):  # but in a zip archive, which only this process knows of
        places = [place for place in sys.path if place]
        code = f"import sys; sys.path[:] = {places}; from {module} import main; main()"
        return [*python, "-c", code]
    return [*python, *([file] if file else ["-m", module])]
