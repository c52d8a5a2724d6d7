"""TensorFlow's optional values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.maps import variant
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView

View = OperatorView[Any]


@record(eq=False)
class _Optional:
    """Some tensors; None where there are none."""

    components: tuple[Array, ...] | None


def _of(tensor: Array) -> _Optional:
    value: Any = tensor[()] if not tensor.ndim else None
    if not isinstance(value, _Optional):
        raise KernelError("a variant that is no optional value")
    return value


@flex_kernel("OptionalFromValue", "OptionalNone")
def made(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensors as one value, or none."""
    given = tuple(array.copy() for array in inputs)
    return (variant(_Optional(None if op.name == "FlexOptionalNone" else given)),)


@flex_kernel("OptionalHasValue")
def has_value(op: View, inputs: Inputs, state: State) -> Outputs:
    """Whether there are tensors."""
    return (np.array(_of(inputs[0]).components is not None),)


@flex_kernel("OptionalGetValue")
def value(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensors."""
    found, types = _of(inputs[0]).components, [tensor.dtype for tensor in op.outputs]
    if found is None:
        raise KernelError("the optional value has none")
    if [array.dtype for array in found] != types:
        raise KernelError(f"{len(found)} tensors of other types than {types}")
    return tuple(array.copy() for array in found)


refuse_rest("datasets")
