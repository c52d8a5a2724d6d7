"""Inputs whose next value is an output, such as caches: their arrays stay where they are between
the calls of signatures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import StateError

Array = npt.NDArray[Any]


class KeptTensors:
    """What is kept of one interpreter, which its signatures share by name.

    Attributes:
        arrays: by name, the present values.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._inputs: dict[int, dict[int, str]] = {}
        self._outputs: dict[int, dict[int, int]] = {}

    def add(self, subgraph: int, names: Mapping[str, tuple[int, int]]) -> bool:
        """Keep tensors of a subgraph from now on.

        Args:
            names: by name, the input and the output that is its next value.

        Returns:
            Whether any of them was not kept before.

        Raises:
            StateError: one of the inputs is kept as another output already.
        """
        inputs = self._inputs.setdefault(subgraph, {})
        outputs = self._outputs.setdefault(subgraph, {})
        new = {
            name: (source, target)
            for name, (source, target) in names.items()
            if inputs.get(source) != name or outputs.get(target) != source
        }
        for name, (source, target) in new.items():
            if source in inputs and outputs.get(target) != source:
                raise StateError(f"{name!r} is kept as another output by another runner")
        inputs.update({source: name for name, (source, _) in new.items()})
        outputs.update({target: source for source, target in new.values()})
        return bool(new)

    def place(self, subgraph: int, arrays: dict[int, Array]) -> Mapping[int, int]:
        """Put the kept arrays in place of those that were made for a subgraph's inputs.

        Returns:
            By output, the input that it is the next value of.

        Raises:
            StateError: another signature keeps one of another shape or type.
        """
        for index, name in self._inputs.get(subgraph, {}).items():
            own = arrays.get(index)
            if own is None:
                continue
            kept = self.arrays.setdefault(name, own)
            if (kept.shape, kept.dtype) != (own.shape, own.dtype):
                raise StateError(
                    f"{name!r} is kept as {kept.dtype}{list(kept.shape)}, this signature has "
                    f"{own.dtype}{list(own.shape)}"
                )
            arrays[index] = kept
        return self._outputs.get(subgraph, {})

    def carry(self, subgraph: int, arrays: Mapping[int, Array]) -> None:
        """Copy the next values that did not come into being in place.

        Raises:
            StateError: one has another shape than the input.
        """
        for target, source in self._outputs.get(subgraph, {}).items():
            made, kept = arrays.get(target), arrays.get(source)
            if made is None or kept is None or made is kept:
                continue
            if made.shape != kept.shape:
                name = self._inputs[subgraph][source]
                raise StateError(
                    f"{name!r} has become {list(made.shape)}, it is kept as {list(kept.shape)}"
                )
            np.copyto(kept, made)

    def reset(self) -> None:
        """Make all of them zero again."""
        for array in self.arrays.values():
            array[...] = np.zeros((), array.dtype)
