"""LiteRT, the oracle for numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

Array = npt.NDArray[Any]

_RESOLVERS = {
    "default": OpResolverType.AUTO,  # XNNPACK where it takes the operator
    "optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "reference": OpResolverType.BUILTIN_REF,
}


def litert_interpreter(
    model: bytes, kernels: str = "default", keep_all: bool = False
) -> Interpreter:
    """LiteRT's interpreter with one thread. `kernels` is as in `litert`.

    Args:
        keep_all: whether every tensor can be read after an invoke.
    """
    return Interpreter(
        model_content=model,
        experimental_op_resolver_type=_RESOLVERS[kernels],
        experimental_preserve_all_tensors=keep_all,
        num_threads=1,
    )


def litert(model: bytes, inputs: Sequence[Array], kernels: str = "default") -> list[Array]:
    """The outputs of LiteRT. Inputs take the shapes of the arrays.

    Args:
        kernels: ``"default"`` (XNNPACK), ``"optimized"`` or ``"reference"``.
    """
    interpreter = litert_interpreter(model, kernels)
    details = interpreter.get_input_details()
    for detail, array in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [
        np.array(interpreter.get_tensor(detail["index"]))
        for detail in interpreter.get_output_details()
    ]
