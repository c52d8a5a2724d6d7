"""What kernels in TFLite's life cycle see: a node, its tensors, the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import field, record
from tflite_ort.schema import KernelError, Quantization

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@record(eq=False, frozen=False)
class KernelTensor:
    """A tensor of a node.

    Args:
        shape, dtype: as they are now; `Context.resize_tensor` sets those of an output.
        quantization: None when the tensor carries no scale.
        data: its array. Of an input a read-only view, but writable for a variable, which keeps
            what is written; None in `prepare` unless it is a constant. Of an output the array to
            fill in `invoke`, or to replace by another of the same shape and dtype.
        is_dynamic: an output whose shape `invoke` sets.
    """

    name: str
    shape: Shape
    dtype: np.dtype[Any]
    quantization: Quantization | None = None
    data: Array | None = None
    is_variable: bool = False
    is_dynamic: bool = False


@record(eq=False, frozen=False)
class Node:
    """One operator of one interpreter.

    Args:
        name: the operator's, such as ``Atan``.
        index: its position in the subgraph.
        custom_options: the bytes that `init` was given; empty for a builtin operator.
        options: a flexbuffer map as a dictionary, other custom options as bytes, and the options
            dataclass of a builtin operator.
        state: what `init` returned.
        inputs: in the order of the model, None for an optional one that is left out.
        temporaries: the arrays of `Context.add_temporary`, in that order.
    """

    name: str
    index: int
    version: int
    custom_options: bytes
    options: Any
    state: Any
    inputs: Sequence[KernelTensor | None]
    outputs: Sequence[KernelTensor]
    temporaries: list[Array] = field(default_factory=list)


class Context:
    """What a kernel asks of the interpreter.

    Attributes:
        num_threads: the interpreter's; 0 where it was given none.
    """

    def __init__(self, node: Node, num_threads: int) -> None:
        self.num_threads = num_threads
        self._node = node
        self._is_preparing = True

    def resize_tensor(
        self, tensor: KernelTensor, shape: Sequence[int], dtype: npt.DTypeLike | None = None
    ) -> None:
        """Set the shape of an output, and its dtype if one is given.

        In `prepare`; and in `invoke` for an output that is dynamic, which gets its `data` by this.
        """
        self._check_output(tensor)
        if not self._is_preparing and not tensor.is_dynamic:
            raise KernelError(f"{tensor.name!r} is not dynamic: its shape is set in prepare")
        tensor.shape = tuple(int(size) for size in shape)
        tensor.dtype = tensor.dtype if dtype is None else np.dtype(dtype)
        if not self._is_preparing:
            tensor.data = zeros(tensor)

    def set_tensor_to_dynamic(self, tensor: KernelTensor) -> None:
        """Leave the shape of an output to `invoke`."""
        self._check_output(tensor)
        self._check_preparing("an output is made dynamic")
        tensor.is_dynamic = True

    def add_temporary(self, shape: Sequence[int], dtype: npt.DTypeLike = np.float32) -> Array:
        """An array that lasts until the next `prepare`; zeros at first."""
        self._check_preparing("a temporary is added")
        self._node.temporaries.append(np.zeros(tuple(shape), dtype))
        return self._node.temporaries[-1]

    def end_prepare(self) -> None:
        """From now on the node is invoked."""
        self._is_preparing = False

    def _check_output(self, tensor: KernelTensor) -> None:
        if not any(tensor is output for output in self._node.outputs):
            raise KernelError(f"{tensor.name!r} is no output of {self._node.name}")

    def _check_preparing(self, what: str) -> None:
        if not self._is_preparing:
            raise KernelError(f"{what} in prepare alone")


def zeros(tensor: KernelTensor) -> Array:
    """An array of the tensor's shape and dtype: zeros, or empty strings as bytes."""
    empty: Any = b"" if tensor.dtype == np.object_ else 0
    return np.full(tensor.shape, empty, tensor.dtype)
