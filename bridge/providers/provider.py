"""Which execution provider a session is made with, and the hardware and memory that it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tflite_ort.base.records import field, record
from tflite_ort.providers.traits import CPU, FULL_PRECISION


@record
class Provider:
    """An execution provider of a session.

    Args:
        name: as ONNX Runtime has it, such as ``"CPUExecutionProvider"``.
        options: passed on.
        plugin: whether it comes from a library that `register_library` loaded.
        device: the kind of hardware wanted of a plug-in; empty: the first it has.
        precision: of floats, see `Interpreter`.
    """

    name: str = CPU
    options: Mapping[str, Any] = field(default_factory=dict)
    plugin: bool = False
    device: str = ""
    precision: str = FULL_PRECISION

    def __str__(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name} with {given}" if given else self.name


# ONNX Runtime's own kernels.
ON_CPU = Provider()


@record
class Device:
    """Hardware that a provider offers: kind is ``"CPU"``, ``"GPU"`` or ``"NPU"``.

    Args:
        library: where a plug-in was loaded from; empty for a provider that is compiled in.
    """

    provider: str
    kind: str
    vendor: str
    version: str
    library: str


@record
class DeviceMemory:
    """The memory of a device, as ONNX Runtime names it.

    Args:
        kind: such as ``"cuda"``.
        number: of the device among those of its kind.
    """

    kind: str
    number: int
