"""The registries of numpy kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from tflite_ort.schema import OperatorView
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]
Inputs = Sequence[Any]  # arrays in operator order, None for an absent optional input
Outputs = tuple[Array, ...]
State = Any
Kernel = Callable[[OperatorView[Any], Inputs, State], Outputs]

kernel: Registry[Kernel] = Registry("kernel", "tflite_ort.fallback_kernels")
# The kernels of well-known custom operators, by name.
custom_kernel: Registry[Kernel] = Registry("kernel", "tflite_ort.fallback_kernels")
