"""The lowerings that were the fastest when they were timed, kept in a file.

The file is JSON: by machine, by layer, the name of a lowering. A machine is the processor, the
build of ONNX Runtime and the number of threads.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from tflite_ort.base.files import write_text
from tflite_ort.base.warned import warn_caller
from tflite_ort.providers.processor import processor
from tflite_ort.providers.session import ORT_BUILD
from tflite_ort.schema import CacheWarning, OperatorView, TensorView, UnreadableModel
from tflite_ort.schema.file.plain_files import open_plain

FORMAT = 1
_MOST_BYTES = 1 << 24

Layers = dict[str, str]


class TuningTable:
    """The layers of one machine in a file.

    Args:
        path: it need not exist.

    A file that cannot be read is no table, with a CacheWarning.
    """

    def __init__(self, path: Path, num_threads: int) -> None:
        self.path, self._machine = path, machine_key(num_threads)
        self._layers = _machines(path).get(self._machine, {})
        self._new: Layers = {}

    def get(self, layer: str) -> str | None:
        """The lowering of a layer, as it was found or read."""
        return self._new.get(layer, self._layers.get(layer))

    def set(self, layer: str, lowering: str) -> None:
        """Note what was found."""
        self._new[layer] = lowering

    def digest(self) -> str:
        """Changes when a lowering does."""
        text = json.dumps(self._layers | self._new, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self) -> None:
        """Add to the file what was found since it was read.

        Raises:
            OSError: it cannot be written.
        """
        if not self._new:
            return
        machines = _machines(self.path)
        self._layers = machines.setdefault(self._machine, {})
        self._layers |= self._new
        os.makedirs(self.path.parent, exist_ok=True)
        text = json.dumps({"format": FORMAT, "machines": machines}, indent=1, sort_keys=True)
        write_text(self.path, text + "\n", again=True)
        self._new = {}

    @property
    def is_saved(self) -> bool:
        """Whether the file has all that was found."""
        return not self._new


def is_other_file(path: Path) -> bool:
    """Whether something is there that is no table of tuned layers, of whatever format."""
    try:
        with open_plain(path) as file:
            text = file.read(_MOST_BYTES)
        content = json.loads(text) if text else {"format": FORMAT}
    except FileNotFoundError:
        return False
    except (OSError, ValueError, RecursionError, UnreadableModel):
        return True
    return not isinstance(content, dict) or "format" not in content


def _machines(path: Path) -> dict[str, Layers]:
    """All that a file says; nothing where it is not there or not of this format."""
    try:
        with open_plain(path) as file:
            content = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, UnreadableModel) as error:
        warn_caller(f"{path} is not read: {error}", CacheWarning)
        return {}
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        warn_caller(f"{path} is no table of tuned layers", CacheWarning)
        return {}
    machines = content.get("machines")
    return {
        str(machine): {str(layer): str(name) for layer, name in layers.items()}
        for machine, layers in (machines.items() if isinstance(machines, dict) else ())
        if isinstance(layers, dict)
    }


def machine_key(num_threads: int) -> str:
    """What the times depend on besides the layer."""
    facts = [ORT_BUILD, platform.machine(), processor(), num_threads]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]


def layer_key(op: OperatorView[Any]) -> str:
    """What the times of a layer depend on: operator, options, types and shapes, in readable form.

    The values of constants and of scales do not matter.
    """
    inputs = ["-" if tensor is None else _tensor_text(tensor) for tensor in op.inputs]
    outputs = map(_tensor_text, op.outputs)
    options = ", ".join(f"{key}={value}" for key, value in _facts(op.options).items())
    return f"{op.name} {' '.join(inputs)} -> {' '.join(outputs)} {{{options}}}"


def _tensor_text(tensor: TensorView) -> str:
    kind = "const " if tensor.is_constant else ""
    scales = "" if tensor.quantization is None or not tensor.quantization.per_channel else "*"
    sizes = "x".join(map(str, tensor.shape))
    return f"{kind}{tensor.type.name}{scales}[{sizes}]"


def _facts(options: Any) -> Mapping[str, Any]:
    if not is_dataclass(options):
        return {}
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    return {key: v.name if isinstance(v, Enum) else v for key, v in values.items()}
