"""TensorFlow's fake quantization: the nearest of 2**num_bits numbers, of which one is 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.arithmetic.fake_quantization import nudged
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


@flex_kernel("FakeQuantWithMinMaxArgs")
def by_attributes(op: View, inputs: Inputs, state: State) -> Outputs:
    """Bounds of the file."""
    node = node_of(op)
    low, high = (np.float32(node[name]) for name in ("min", "max"))
    if not low < high:
        raise KernelError(f"bounds of {low} and {high}")
    return (_quantized(op, inputs[0], np.asarray(low), np.asarray(high)),)


@flex_kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def by_bounds(op: View, inputs: Inputs, state: State) -> Outputs:
    """Bounds that are inputs; between two zeros all is zero."""
    x, low, high = inputs
    made = _quantized(op, x, low, high)
    return (np.where((low == 0) & (high == 0), np.float32(0), made),)


def _quantized(op: View, x: Array, low: Array, high: Array) -> Array:
    """The floor of places among the steps. TensorFlow divides by the step where the bounds are two
    numbers that are inputs, and multiplies by the number of steps in 1 otherwise."""
    node = node_of(op)
    with np.errstate(all="ignore"):
        step, factor, bottom, top = nudged(low, high, node["num_bits"], node["narrow_range"])
        zero = np.floor(-bottom * factor + np.float32(0.5))
        shifted = np.maximum(np.minimum(x, top), bottom) - bottom
        divides = op.name == "FlexFakeQuantWithMinMaxVars"
        place = shifted / step if divides else shifted * factor
        return np.asarray(np.floor(place - zero + np.float32(0.5)) * step)


refuse_rest("quantization")
