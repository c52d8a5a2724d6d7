"""LiteRT, asked in a process of its own, which a model may end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import numpy.typing as npt

from tflite_ort.base.files import write_bytes
from tflite_ort.base.own_process import own_process
from tflite_ort.schema import BridgeError, Model, write_model
from tflite_ort.verification import litert_worker
from tflite_ort.verification.litert_worker import receive, send

Array = npt.NDArray[Any]

# Of one message: a model that takes longer hangs.
_SECONDS = 600.0


class LitertError(BridgeError, RuntimeError):
    """LiteRT refused a model, died of it, or is not installed."""


def litert_installed() -> bool:
    return importlib.util.find_spec("ai_edge_litert") is not None


class LitertProcess:
    """A process with LiteRT, started at once where it is installed, and again after a model ended
    it."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        if litert_installed():
            self._started()
        self._folder = TemporaryDirectory()

    def load(self, model: Model, kernels: str) -> None:
        """Make `model` the one that `invoke` runs, with fresh state.

        Raises:
            LitertError: LiteRT cannot read it.
        """
        path = Path(self._folder.name) / "model.tflite"
        write_bytes(path, write_model(model), again=True)
        self._ask({"do": "load", "path": str(path), "kernels": kernels, "threads": self._threads})

    def invoke(self, inputs: Sequence[Array]) -> None:
        """One inference.

        Raises:
            LitertError: it fails.
        """
        self._ask({"do": "invoke"}, {f"i{at}": array for at, array in enumerate(inputs)})

    def outputs(self) -> list[Array]:
        """The outputs of the last inference, by position."""
        found = self._ask({"do": "outputs"})
        return [found[f"o{at}"] for at in range(len(found))]

    def read(self, tensors: Sequence[int]) -> dict[int, Array]:
        """Tensors by index; outputs and variables can be read.

        Raises:
            LitertError: it has no value.
        """
        found = self._ask({"do": "read", "read": list(tensors)})
        return {index: found[f"t{index}"] for index in tensors}

    def close(self) -> None:
        self._stop()
        self._folder.cleanup()

    def _ask(
        self, message: dict[str, Any], arrays: dict[str, Array] | None = None
    ) -> dict[str, Array]:
        process = self._process or self._started()
        assert process.stdin is not None and process.stdout is not None
        timer = Timer(_SECONDS, process.kill)
        timer.start()
        try:
            send(process.stdin, message, arrays or {})
            answer, found = receive(process.stdout)
        except (EOFError, OSError) as error:
            raise LitertError(f"LiteRT ended with {self._stop()}") from error
        finally:
            timer.cancel()
        if "error" in answer:
            raise LitertError(f"LiteRT: {answer['error'].partition(chr(10))[0]}")
        return found

    def _started(self) -> subprocess.Popen[bytes]:
        if not litert_installed():
            raise LitertError("LiteRT is not installed: pip install ai-edge-litert")
        try:
            self._process = subprocess.Popen(
                own_process(litert_worker.__name__, litert_worker.__file__),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=os.name == "posix",  # an interrupt of the terminal is ours
            )
        except OSError as error:
            raise LitertError(f"LiteRT cannot be asked: {error}") from error
        return self._process

    def _stop(self) -> str:
        """End the process; how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "nothing"
        assert process.stdin is not None and process.stdout is not None
        code = process.poll()
        if code is None:
            process.kill()
            code = process.wait()
        with suppress(OSError):  # what was not sent any more
            process.stdin.close()
        process.stdout.close()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
