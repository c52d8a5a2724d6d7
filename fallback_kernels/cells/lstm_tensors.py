"""The arrays of one LSTM cell by name, the gates stacked: G gates, C cells, I input, O outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.registry import Inputs
from tflite_ort.schema import KernelError, OperatorView, Quantization, TensorView
from tflite_ort.schema.values.lstm import GATES

Array = npt.NDArray[Any]
States = tuple[Array, Array]  # output [B, O], cell [B, C]
Step = Callable[[Any, Array, Array], States]


@record
class CellTensors:
    """Inputs of an operator that belong to one of its cells.

    Args:
        prefix: of the names of the cell's inputs: empty, or that of a direction.
    """

    op: OperatorView[Any]
    inputs: Inputs
    prefix: str = ""

    @property
    def gates(self) -> Sequence[str]:
        """The gates in order; without the input gate, which is then one less the forget gate."""
        coupled = self.tensor("input_to_input_weights") is None
        return GATES[1:] if coupled else GATES

    @property
    def constant(self) -> bool:
        """Whether only its states change from one invoke to the next."""
        named = zip(self.op.names, self.op.inputs, strict=False)
        found = [t for name, t in named if t is not None and name.startswith(self.prefix)]
        return all(t.is_constant or t.is_variable for t in found if t is not self.op.inputs[0])

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of output and cell state, (O, C)."""
        recurrent = self.required("recurrent_to_output_weights")
        return recurrent.shape[-1], recurrent.shape[0]

    def tensor(self, name: str) -> TensorView | None:
        """The input `name` of the cell; None where the model leaves it out."""
        full = self.prefix + name
        return self.op.get(full) if full in self.op.names else None

    def array(self, name: str) -> Array | None:
        """The value of an input; None where the model leaves it out."""
        if self.tensor(name) is None:
            return None
        return np.asarray(self.inputs[self.place(name)])

    def place(self, name: str) -> int:
        """The position of an input among those of the operator."""
        return self.op.names.index(self.prefix + name)

    def required(self, name: str) -> Array:
        """The value of an input.

        Raises:
            KernelError: the model leaves it out.
        """
        array = self.array(name)
        if array is None:
            raise KernelError(f"{self.prefix}{name} is absent")
        return array

    def scale(self, name: str) -> np.float32:
        """The scale of an input; KernelError without one."""
        return np.float32(self._quantization(name).scalar_scale)

    def zero_point(self, name: str) -> int:
        """The zero point of an input; KernelError without one."""
        return self._quantization(name).scalar_zero_point

    def _quantization(self, name: str) -> Quantization:
        return quantization(self.tensor(name), self.prefix + name)

    def stacked(self, pattern: str) -> Array:
        """The inputs of all gates, ``[G, ...]``."""
        return np.stack([self.required(pattern.format(gate)) for gate in self.gates])

    def scales(self, pattern: str) -> npt.NDArray[np.float32]:
        """The scales of the inputs of all gates, ``[G, 1]``."""
        found = [self.scale(pattern.format(gate)) for gate in self.gates]
        return np.array(found, np.float32)[:, np.newaxis]


def variables(op: OperatorView[Any], inputs: Inputs, new: Mapping[int, Array]) -> list[Array]:
    """The values of an operator's variable inputs after it ran.

    Args:
        new: the values that changed, by position among the inputs.
    """
    places = (i for i, t in enumerate(op.inputs) if t is not None and t.is_variable)
    return [new[i] if i in new else np.asarray(inputs[i]) for i in places]


def run_steps(step: Step, inputs: Sequence[Any] | Array, states: States) -> tuple[Array, States]:
    """The outputs of all steps, [T, B, O], and the states after the last one."""
    outputs = np.empty((len(inputs), *states[0].shape), states[0].dtype)
    for time, x in enumerate(inputs):
        states = step(x, *states)
        outputs[time] = states[0]
    return outputs, states


def quantization(tensor: TensorView | None, name: str) -> Quantization:
    """The quantization of `tensor`; KernelError, which calls it `name`, without one."""
    if tensor is None or tensor.quantization is None:
        raise KernelError(f"{name} has no scale")
    return tensor.quantization


def joined(stack: Array, dtype: npt.DTypeLike) -> Array:
    """A stack [G, rows, columns] as one matrix [columns, G * rows], for one product with all."""
    return np.ascontiguousarray(np.concatenate(stack).T, dtype)


def time_first(op: OperatorView[Any], sequence: Array) -> Array:
    """A sequence of the operator as [T, B, ...], or back."""
    return sequence if op.options.time_major else np.swapaxes(sequence, 0, 1)


def as_input(op: OperatorView[Any], sequence: Array) -> Array:
    """A sequence [T, B, ...] with the axes in the order of the operator's input."""
    return np.ascontiguousarray(time_first(op, sequence))
