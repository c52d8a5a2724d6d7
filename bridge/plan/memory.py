"""Where tensors stand between the steps of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record
from tflite_ort.schema import InsufficientMemory, KernelError, Specialized, StateError, TensorView
from tflite_ort.schema.values.sizes import LARGEST_SIZE, known_product
from tflite_ort.state import State, Variable

with late:
    from tflite_ort.plan import partition

if TYPE_CHECKING:
    from tflite_ort.plan.partition import Partition

Array = npt.NDArray[Any]

# A copy of as many bytes takes as long as binding another array.
_COPIED_BYTES = 1 << 15


@record
class Memory:
    """Where tensors stand between steps, by tensor index.

    Args:
        arrays: of inputs, outputs and what crosses partitions, whose shapes are known; and, while
            an invoke runs, what kernels made.
        variables: what lasts from one invoke to the next.
        constants: those that kernels read, 4- and 2-bit ones unpacked.
        kept: by output, the input that has its value at the next invoke.
    """

    arrays: dict[int, Array]
    variables: Mapping[int, Variable]
    constants: dict[int, Array] = field(default_factory=dict)
    kept: Mapping[int, int] = field(default_factory=dict)

    def value(self, tensor: TensorView) -> Array:
        """The present value of a tensor."""
        if tensor.is_constant:
            return self._constant(tensor)
        if tensor.index not in self.variables:
            return self.arrays[tensor.index]
        value = self.variables[tensor.index].value
        if value is None:
            raise unassigned(tensor)
        return value

    def _constant(self, tensor: TensorView) -> Array:
        """Its values, unpacked once."""
        values = self.constants.get(tensor.index)
        if values is None:
            values = tensor.data
            assert values is not None
            self.constants[tensor.index] = values
        return values

    def hold(self, tensor: TensorView, made: Array) -> None:
        """Take an array that an operator made.

        Raises:
            KernelError: one of its sizes, which only the values of inputs tell, has over 32 bits.
        """
        if max(made.shape, default=0) > LARGEST_SIZE:
            raise KernelError(
                f"{tensor.name!r} is made with sizes {list(made.shape)}: beyond 32 bits"
            )
        self.arrays[tensor.index] = made

    def put(self, tensor: TensorView, array: Array) -> None:
        """Give an input its value; one that is known to be constant has it."""
        if tensor.is_constant:
            return
        kept = None if tensor.dynamic else self.arrays.get(tensor.index)
        if kept is None:
            self.arrays[tensor.index] = array
        elif kept.shape == array.shape:
            kept[...] = array
        else:
            raise KernelError(
                f"{tensor.name!r} is given shape {list(array.shape)}, expected {list(kept.shape)}"
            )


def unassigned(tensor: TensorView) -> StateError:
    """The error of reading a variable that nothing has been assigned to."""
    return StateError(f"variable {tensor.name!r} is read before it has a value")


def allocated(
    graph: Specialized, parts: Sequence[Partition], state: State, *, called: bool
) -> Memory:
    """The memory of a plan: a zeroed array for every tensor that a session makes or the caller
    gives or takes, and the variables of `state`.

    What a kernel makes for a session is copied into such an array where that is less work than
    binding it anew.

    Args:
        called: an operator calls the subgraph, so that nothing is kept for a signature.

    Raises:
        InsufficientMemory: there is not as much memory.
        StateError: another signature keeps an input with another shape.
    """
    variables = {
        index: state.variable(key, graph.tensors[index]) for index, key in graph.variables.items()
    }
    kept = [tensor for tensor in _fixed_tensors(graph, parts) if tensor.index not in variables]
    try:
        arrays = {tensor.index: blank(tensor)() for tensor in kept}
    except (MemoryError, ValueError) as error:  # ValueError: numpy has no such array
        raise InsufficientMemory(f"the model's tensors cannot be allocated: {error}") from error
    if called:
        return Memory(arrays, variables)
    return Memory(arrays, variables, kept=state.kept.place(graph.subgraph, arrays))


def _fixed_tensors(graph: Specialized, parts: Sequence[Partition]) -> list[TensorView]:
    """The tensors that stand in the same array at each invoke."""
    tensors = {index: graph.tensors[index] for index in (*graph.inputs, *graph.outputs)}
    for part in parts:
        if part.backend != partition.NUMPY:
            large = {tensor.index for tensor in part.inputs if _bytes(tensor) > _COPIED_BYTES}
            tensors.update((t.index, t) for t in part.on_host if t.index not in large)
    return [tensor for tensor in tensors.values() if not (tensor.is_constant or tensor.dynamic)]


def _bytes(tensor: TensorView) -> int:
    return known_product(tensor.shape) * tensor.dtype.itemsize


def blank(tensor: TensorView) -> Callable[[], Array]:
    """What makes zeros, or empty strings; numbers take memory only as they are written."""
    dtype = tensor.dtype
    if dtype.hasobject:
        return partial(np.full, tensor.shape, b"", dtype)
    return partial(np.zeros, tensor.shape, dtype)
