"""What sessions and kernels of stored plans have in common: rows of tensors, and what they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.providers.provider import Provider
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.schema.values.view import Quantization, VariableKey
from tflite_ort.state import State

if TYPE_CHECKING:
    from tflite_ort.fallback_kernels import Kernel
    from tflite_ort.schema import Budgets
    from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]
Row = Sequence[Any]

# The budget of what kernels make.
RESULTS = "result_bytes"
_TYPES = {int(kind): kind for kind in TensorType}


class StaleEntry(Exception):
    """What was stored cannot be used; the plan has to be made anew."""


# Rows of tensors --------------------------------------------------------------------------------


def tensor_row(tensor: TensorView) -> list[Any]:
    """A tensor at the boundary of a session as JSON; it is no constant."""
    shape = [int(size) if is_known(size) else None for size in tensor.shape]
    quantization = tensor.quantization
    codes = None
    if quantization is not None:
        scale, zero_point = quantization.scale.tolist(), quantization.zero_point.tolist()
        codes = [scale, zero_point, quantization.axis]
    row = [tensor.index, tensor.name, int(tensor.type), shape, codes]
    return [*row, tensor.is_variable, tensor.ranked]


def tensor_of(row: Row, *, quantized: bool = True) -> TensorView:
    """The tensor that a row stands for.

    Args:
        quantized: with its scales, of which a session needs none.
    """
    index, name, kind, shape, codes, is_variable, ranked = row
    sizes = tuple(shape)
    if None in sizes:
        sizes = tuple(unknown_size() if size is None else size for size in shape)
    quantization = None
    if codes is not None and quantized:
        scale, zero_point, axis = codes
        quantization = Quantization(
            np.array(scale, np.float32), np.array(zero_point, np.int64), axis
        )
    return TensorView(index, name, _TYPES[kind], sizes, None, quantization, is_variable, ranked)


def variable_key(key: Row) -> VariableKey:
    """A variable's key, which JSON has as a list."""
    first, second = key
    return (first, second)


@record
class Surroundings:
    """What stored plans need of the interpreter.

    Args:
        providers: by backend.
        num_threads: within an operator.
        kernels: those of the resolver; asked when the first one runs.
        state: the values that last from one invoke to the next.
        budgets: of the interpreter; None for the default.
    """

    providers: Mapping[str, Provider]
    num_threads: int
    kernels: Callable[[], Registry[Kernel]]
    state: State
    budgets: Budgets | None


@record
class StoredArrays:
    """What rows of constants refer to.

    Args:
        content: the bytes of the model.
        computed: those of arrays that are not in it.
    """

    content: Array
    computed: Array

    def octets(self, row: Row) -> Array:
        """The bytes of an array.

        Raises:
            ValueError: they are beyond the end.
        """
        in_model, start, size = row
        source = self.content if in_model else self.computed
        if not 0 <= start <= start + size <= source.size:
            raise ValueError(f"{size} bytes at {start} of {source.size}")
        return source[start : start + size]
