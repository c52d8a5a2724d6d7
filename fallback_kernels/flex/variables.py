"""TensorFlow's operators on what a variable holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.elementwise import computed
from tflite_ort.fallback_kernels.flex.movement import combined_places
from tflite_ort.fallback_kernels.flex.optimizers import of_values
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.movement import slice_places
from tflite_ort.schema.shapes.registry import shown

View = OperatorView[Any]

_SUMS = {"AssignAddVariableOp": np.add, "AssignSubVariableOp": np.subtract}


@flex_kernel(*_SUMS, state=of_values)
def sums(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sum, or the difference; integers wrap."""
    held, value = inputs
    if held.shape != value.shape:
        raise KernelError(f"a variable of shape {held.shape} and a value of shape {value.shape}")
    return (computed(_SUMS[str(op.name).removeprefix("Flex")], held, value),)


_ROWS = {
    "ResourceScatterDiv": np.divide,
    "ResourceScatterMax": np.maximum,
    "ResourceScatterMin": np.minimum,
    "ResourceScatterMul": np.multiply,
    "ResourceScatterUpdate": None,
}


@flex_kernel(*_ROWS, state=of_values)
def rows(op: View, inputs: Inputs, state: State) -> Outputs:
    """The variable with rows that are combined with others, one after another."""
    held, indices, updates = inputs
    combine = _ROWS[str(op.name).removeprefix("Flex")]
    if combine is np.divide and held.dtype.kind not in "fc":
        raise KernelError("integers are not divided here")
    whole = np.broadcast_to(updates, (*indices.shape, *held.shape[1:]))
    return (combined_places(combine, (held, indices[..., None], whole)),)


_PLACES = {
    "ResourceScatterNdMax": np.maximum,
    "ResourceScatterNdMin": np.minimum,
    "ResourceScatterNdUpdate": None,
}


@flex_kernel(*_PLACES, state=of_values)
def places(op: View, inputs: Inputs, state: State) -> Outputs:
    """The variable with elements that are combined with others, one after another."""
    combine = _PLACES[str(op.name).removeprefix("Flex")]
    return (combined_places(combine, inputs, op),)


@flex_kernel("ResourceStridedSliceAssign", state=of_values)
def slices(op: View, inputs: Inputs, state: State) -> Outputs:
    """The variable with other values in a slice of it."""
    held, *bounds, value = inputs
    targets = slice_places(op, held.shape, bounds)
    if value.shape != targets.shape and value.ndim:
        raise KernelError(f"values of shape {value.shape}, expected {shown(targets)[:40]}")
    result = held.copy()
    result.reshape(-1)[targets] = value
    return (result,)


refuse_rest("variables")
