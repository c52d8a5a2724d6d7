"""Operators that run only where TFLite's own can take their place."""

from __future__ import annotations

from typing import Any, NoReturn

from tflite_ort.fallback_kernels.registry import (
    Inputs,
    Outputs,
    State,
    custom_kernel,
    flex_kernel,
)
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.flex.rewriting import rewritten_names
from tflite_ort.schema.values.operators import FLEX


def refuse_rest(family: str) -> None:
    """Registers a kernel that refuses for every operator of a family that is rewritten and has none
    of its own. The last line of a family's file."""
    names = [name for name in rewritten_names(family) if FLEX + name not in custom_kernel.names()]
    flex_kernel(*names, state=_refusal)(_refused)


def _refusal(op: OperatorView[Any]) -> NoReturn:
    types = ", ".join(tensor.type.name for tensor in op.present_inputs())
    raise ModelError(
        f"{op.label}: TensorFlow's {op.name.removeprefix(FLEX)} is computed only where TFLite's "
        f"own operators take its place, which they do not for inputs of {types} with these "
        "attributes; see docs/flex.md"
    )


def _refused(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    raise KernelError("it is not computed here")
