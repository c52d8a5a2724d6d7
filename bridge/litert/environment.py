"""What environment variables say of `install_as`, for programs whose code nobody touches.

They are read when a program imports the package that this library stands for.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from tflite_ort.litert.install import Installed, check_installable, install_as
from tflite_ort.providers.provider_choices import provider_choices

# Each is called as the option of ``tflite-ort as``. The interpreter itself reads
# ``TFLITE_ORT_CACHE``.
PROVIDER, PROVIDER_OPTION = "TFLITE_ORT_PROVIDER", "TFLITE_ORT_PROVIDER_OPTION"
THREADS, HYBRID, PRECISION = "TFLITE_ORT_THREADS", "TFLITE_ORT_HYBRID", "TFLITE_ORT_PRECISION"


def install_as_told(name: str) -> Installed:
    """`install_as` with the arguments that the environment says.

    Raises:
        ValueError: a variable says what no argument can be; it is named.
        DelegateError: the installed onnxruntime has no such provider.
    """
    return install_as(name, **told(os.environ))


def check_told(name: str, said: Mapping[str, str]) -> None:
    """Refuse now what `install_as_told` would refuse in an environment with these variables.

    Raises:
        ValueError: a variable says what no argument can be, or there is no such package.
        DelegateError: the installed onnxruntime has no such provider.
    """
    check_installable(name, told(said))


def told(said: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of `install_as` that variables say.

    Raises:
        ValueError: one says what no argument can be.
    """
    threads = said.get(THREADS, "")
    if threads and not threads.isdecimal():
        raise ValueError(f"{THREADS}={threads!r} is no number")
    try:
        providers = provider_choices(_words(said, PROVIDER), _words(said, PROVIDER_OPTION))
    except ValueError as error:
        raise ValueError(f"{PROVIDER}, {PROVIDER_OPTION}: {error}") from error
    found = {
        "providers": providers,
        "num_threads": int(threads) if threads else None,
        "hybrid": said.get(HYBRID) or None,
        "precision": said.get(PRECISION) or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _words(said: Mapping[str, str], variable: str) -> list[str]:
    """What stands in a variable, as in a command line: blanks separate, quotes hold together."""
    return shlex.split(said.get(variable, ""))
