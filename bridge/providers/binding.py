"""What a session is bound to: arrays, and tensors that stay in the memory of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from tflite_ort.providers.provider import DeviceMemory
from tflite_ort.schema.values.complex_pairs import paired

Array = npt.NDArray[Any]


class DeviceTensor:
    """A tensor that stays in the memory of a device, for other sessions of the same provider.

    Its shape and type are always the same.

    Attributes:
        value: what the first run of the session that makes it has put there, as ONNX Runtime holds
            it; None before.
        maker: that session, whose memory it is.
    """

    __slots__ = ("maker", "memory", "value")

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self.value: Any = None
        self.maker: object = None

    def __del__(self) -> None:
        self.value = None  # before the memory it is in


# What a session is bound to.
Tensor = Array | DeviceTensor


class Binding:
    """What a run of a session reads from and writes to; arrays must outlive it.

    Args:
        session: the session, whose memory the bound tensors may be in.
        bound: ONNX Runtime's binding.
        sources, targets: in graph order, as the graph holds them.
        copied: ONNX Runtime copies an input to a device at once when it is bound, so that each run
            has to bind anew what may have changed.
        unmade: some targets are device tensors that have no value yet.
    """

    __slots__ = ("bound", "copied", "session", "sources", "targets", "unmade")

    def __init__(
        self,
        session: object,
        bound: Any,
        sources: Sequence[Tensor],
        targets: Sequence[Tensor],
        *,
        copied: bool = False,
        unmade: bool = False,
    ) -> None:
        self.session, self.bound = session, bound
        self.sources, self.targets = list(sources), targets
        self.copied, self.unmade = copied, unmade

    def __del__(self) -> None:
        self.bound = None  # before the sessions whose memory it refers to


def in_graph(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors as the graph holds them."""
    return [x if isinstance(x, DeviceTensor) else paired(x) for x in tensors]


def place_of(array: Array) -> tuple[Any, ...]:
    """Where an array is, as ONNX Runtime's Python classes bind it."""
    return "cpu", 0, array.dtype.type, array.shape, array.ctypes.data
