"""Sessions on the CPU as ONNX Runtime has them below its Python classes.

`onnxruntime.InferenceSession` looks at the providers, devices and metadata of a session, and its
bindings look after graphs that a GPU has captured. That takes 20 microseconds a
session, half as long as the session of a small network itself. `PlainSession` has the methods that
`Session` calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
from onnxruntime.capi import onnxruntime_pybind11_state as _ort

_CPU = _ort.OrtDevice(_ort.OrtDevice.cpu(), _ort.OrtDevice.default_memory(), 0)


def value_over(array: npt.NDArray[Any]) -> Any:
    """ONNX Runtime's value in the memory of a contiguous array."""
    return _ort.OrtValue.ortvalue_from_numpy(array, _CPU)


class PlainSession(_ort.InferenceSession):  # type: ignore[misc]
    """A session on the CPU.

    Args:
        source: the path of a graph, or its bytes.
        provider: the name and the options.
        left_out: names of optimisers that find nothing in the graph.
    """

    def __init__(
        self,
        source: str | bytes,
        options: Any,
        provider: tuple[str, Mapping[str, str]],
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(options, source, isinstance(source, str), False)
        name, own = provider
        self.initialize_session([name], [dict(own)], left_out)

    def get_inputs(self) -> Any:
        """Name, type and shape of the inputs, in graph order."""
        return self.inputs_meta

    def get_outputs(self) -> Any:
        """As `get_inputs`."""
        return self.outputs_meta

    def get_input_memory_infos(self) -> Any:
        """The memory of each input."""
        return self.input_meminfos

    def get_output_memory_infos(self) -> Any:
        """The memory of each output."""
        return self.output_meminfos

    def io_binding(self) -> Any:
        """A binding to nothing yet."""
        return _ort.SessionIOBinding(self)
