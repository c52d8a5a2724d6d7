"""TensorFlow's layers of neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.elementwise import computed
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import OperatorView

_UNARY: dict[str, Callable[[Array], Array]] = {
    "Softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
}


@flex_kernel(*_UNARY)
def activation(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The function of `_UNARY`, element by element."""
    return (computed(_UNARY[op.name.removeprefix("Flex")], inputs[0]),)
