"""The registries of numpy kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from tflite_ort.schema import OperatorView
from tflite_ort.schema.values.operators import FLEX
from tflite_ort.versioning.registry import Registry, StateFactory

Array = npt.NDArray[Any]
Inputs = Sequence[Any]  # arrays in operator order, None for an absent optional input
Outputs = tuple[Array, ...]
State = Any
Kernel = Callable[[OperatorView[Any], Inputs, State], Outputs]

kernel: Registry[Kernel] = Registry("kernel", "tflite_ort.fallback_kernels")
# The kernels of well-known custom operators, by name.
custom_kernel: Registry[Kernel] = Registry("kernel", "tflite_ort.fallback_kernels")


def flex_kernel(*names: str, state: StateFactory | None = None) -> Callable[[Kernel], Kernel]:
    """Registers a function as the kernel of TensorFlow's operators of these names."""

    def register(function: Kernel) -> Kernel:
        for name in names:
            custom_kernel(FLEX + name, versions=(1, 1), state=state)(function)
        return function

    return register
