"""LiteRT in a process of its own: ``python -m tflite_ort.verification.litert_worker``.

It reads messages from its input and answers each on its output. A model that ends LiteRT ends this
process alone.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

import numpy as np

from tflite_ort.optional import optional_module
from tflite_ort.verification.frames import Array, Message, receive, send

_RESOLVERS = {
    "default": "AUTO",
    "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
# What LiteRT raises.
_ERRORS = (ValueError, RuntimeError, TypeError, MemoryError, OSError)


class Worker:
    """The interpreter that was loaded last."""

    def __init__(self) -> None:
        self._interpreter: Any = None

    def answer(self, message: Message, arrays: dict[str, Array]) -> dict[str, Array]:
        if message["do"] == "load":
            self._load(message["path"], message["kernels"], message["threads"])
            return {}
        if message["do"] == "invoke":
            self._invoke(arrays)
            return {}
        if message["do"] == "outputs":
            return self._outputs()
        return {f"t{index}": self._value(index) for index in message["read"]}

    def _load(self, path: str, kernels: str, threads: int) -> None:
        litert = optional_module("ai_edge_litert.interpreter")
        if litert is None:
            raise RuntimeError("LiteRT is not installed: pip install ai-edge-litert")
        self._interpreter = litert.Interpreter(
            path,
            num_threads=threads,
            experimental_op_resolver_type=getattr(litert.OpResolverType, _RESOLVERS[kernels]),
        )

    def _invoke(self, arrays: dict[str, Array]) -> None:
        interpreter = self._interpreter
        details = interpreter.get_input_details()
        for position, detail in enumerate(details):
            if tuple(detail["shape"]) != arrays[f"i{position}"].shape:
                interpreter.resize_tensor_input(detail["index"], arrays[f"i{position}"].shape)
        interpreter.allocate_tensors()
        for position, detail in enumerate(details):
            interpreter.set_tensor(detail["index"], arrays[f"i{position}"])
        interpreter.invoke()

    def _outputs(self) -> dict[str, Array]:
        """By position, as ``o0``."""
        outputs = enumerate(self._interpreter.get_output_details())
        return {f"o{at}": self._value(detail["index"]) for at, detail in outputs}

    def _value(self, index: int) -> Array:
        return np.asarray(self._interpreter.get_tensor(index))


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer until there are no more messages."""
    worker = Worker()
    while True:
        try:
            message, arrays = receive(source)
        except EOFError:
            return
        try:
            found = worker.answer(message, arrays)
        except _ERRORS as error:
            send(target, {"error": str(error).strip()}, {})
        else:
            send(target, {}, found)


def main() -> None:
    # What LiteRT prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
