"""Messages between two processes: JSON and arrays, nothing that could run."""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
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
