"""TensorFlow's operators: ``Flex<name>``, or their own name where a converter left them custom."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import (
    Array,
    Inputs,
    Outputs,
    State,
    custom_kernel,
    kernel,
)
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.node_def import SAME_AS_BUILTIN, as_builtin

_erf = np.frompyfunc(math.erf, 1, 1)

UNARY: dict[str, Callable[[Array], Array]] = {
    "Atan": np.arctan,
    "ATAN": np.arctan,
    "Sinh": np.sinh,
    "FlexErf": lambda x: np.asarray(_erf(x), x.dtype),
    "FlexSoftplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
}


def unary(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The function of `UNARY`, element by element; floats."""
    (x,) = inputs
    if x.dtype.kind != "f":
        raise KernelError(f"{x.dtype} input, expected floats")
    with np.errstate(over="ignore"):
        return (UNARY[op.name](x),)


def same_as_builtin(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """What the kernel of TFLite's own operator makes."""
    builtin = as_builtin(op)
    entry = kernel.find(builtin.op, builtin.version)
    if entry is None:
        raise KernelError(f"no kernel for {builtin.name}")
    return entry.function(entry.inputs.bind(builtin), inputs, state)


for _name in UNARY:
    custom_kernel(_name, versions=(1, 1))(unary)
for _name in SAME_AS_BUILTIN:
    custom_kernel(f"Flex{_name}", versions=(1, 1))(same_as_builtin)
