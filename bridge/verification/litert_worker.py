"""LiteRT in a process of its own, and the messages to it: JSON and arrays, nothing that could run.

The file is run as a script. It imports nothing of this library, so that the process starts at once.
It reads messages from its input and answers each on its output. A model that ends LiteRT ends that
process alone.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from importlib import import_module
from typing import IO, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Message = dict[str, Any]

_LENGTHS = struct.Struct("<QQ")
_EXTENDED = {np.dtype(ml_dtypes.bfloat16).name: np.dtype(ml_dtypes.bfloat16)}


def send(stream: IO[bytes], message: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write one message and its arrays."""
    heads, parts = {}, []
    for name, array in arrays.items():
        head: Message = {"shape": array.shape}
        if array.dtype.kind in "OSU":
            head["words"] = [b64encode(_octets(each)).decode() for each in array.reshape(-1)]
        else:
            parts.append(np.ascontiguousarray(array).tobytes())
            head |= {"dtype": array.dtype.name, "size": len(parts[-1])}
        heads[name] = head
    text = json.dumps({"message": message, "arrays": heads}).encode()
    stream.write(_LENGTHS.pack(len(text), sum(map(len, parts))))
    stream.write(text)
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Message, dict[str, Array]]:
    """Read one message.

    Raises:
        EOFError: the other side has gone.
    """
    length, _ = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    frame = json.loads(_exactly(stream, length))
    return frame["message"], {n: _array(stream, head) for n, head in frame["arrays"].items()}


def _array(stream: IO[bytes], head: Mapping[str, Any]) -> Array:
    if "words" in head:
        words = np.empty(len(head["words"]), object)
        words[:] = [b64decode(word) for word in head["words"]]
        return words.reshape(head["shape"])
    dtype = _EXTENDED.get(head["dtype"]) or np.dtype(head["dtype"])
    return np.frombuffer(_exactly(stream, head["size"]), dtype).reshape(head["shape"])


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _octets(word: Any) -> bytes:
    return word.encode() if isinstance(word, str) else bytes(word)


# The process -------------------------------------------------------------------------------------

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
        litert: Any = import_module("ai_edge_litert.interpreter")
        if not litert.Interpreter.__module__.startswith("ai_edge_litert"):
            raise RuntimeError("install_as has put this library in its place in every process")
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
        """The outputs by position; the first is ``o0``."""
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
