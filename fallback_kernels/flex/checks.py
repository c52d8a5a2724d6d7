"""TensorFlow's operators that check, print or do nothing."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.shapes.registry import shown
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


def _not_constant(op: View) -> None:
    """The state of what happens anew at each run."""


@flex_kernel("Assert", state=_not_constant)
def assertion(op: View, inputs: Inputs, state: State) -> Outputs:
    """Refuses where the condition is false."""
    condition, *data = inputs
    if condition.size != 1 or not condition.all():
        told = "; ".join(shown(array) for array in data)
        raise KernelError(f"assertion failed: {told}")
    return ()


@flex_kernel("CheckNumerics", "CheckNumericsV2")
def check_numerics(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensor; a NaN or an infinite number is refused with the message."""
    (x,) = inputs
    if not np.isfinite(x).all():
        kind = "NaN" if np.isnan(x).any() else "Inf"
        raise KernelError(f"{_text(node_of(op)['message'])}: the tensor has {kind} values")
    return (x,)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@flex_kernel("EnsureShape")
def ensure_shape(op: View, inputs: Inputs, state: State) -> Outputs:
    """The tensor, whose shape is as the node tells."""
    (x,), told = inputs, node_of(op)["shape"]
    wrong = told is not None and (
        len(told) != x.ndim or any(a not in (-1, b) for a, b in zip(told, x.shape, strict=True))
    )
    if wrong:
        raise KernelError(f"shape {x.shape}, expected {told}")
    return (x,)


@flex_kernel("NoOp")
def no_op(op: View, inputs: Inputs, state: State) -> Outputs:
    """Nothing."""
    return ()


@flex_kernel("Print", state=_not_constant)
def printed(op: View, inputs: Inputs, state: State) -> Outputs:
    """The first tensor; the message and all others go to the standard error."""
    first, *data = inputs
    node = node_of(op)
    parts = "".join(f"[{_summary(array, node['summarize'])}]" for array in data)
    print(_text(node["message"]) + parts, file=sys.stderr)
    return (first,)


def _summary(array: Array, most: int) -> str:
    flat = array.reshape(-1)
    count = flat.size if most < 0 else most
    more = "..." if flat.size > count else ""
    return " ".join(map(str, flat[:count].tolist())) + more


@flex_kernel("PrintV2", state=_not_constant)
def printed_text(op: View, inputs: Inputs, state: State) -> Outputs:
    """The text goes to the standard output or the standard error."""
    node = node_of(op)
    where = _text(node["output_stream"])
    streams = {"stdout": sys.stdout, "stderr": sys.stderr}
    if where not in streams and not where.startswith("log("):
        raise ModelError(f"{op.label}: prints to {where!r}, expected stdout, stderr or a log")
    text = _text(inputs[0].reshape(-1)[0]) if inputs[0].size else ""
    print(text, end=_text(node["end"]), file=streams.get(where, sys.stderr))
    return ()


@flex_kernel("Timestamp", state=_not_constant)
def timestamp(op: View, inputs: Inputs, state: State) -> Outputs:
    """Seconds since 1970."""
    return (np.array(time.time(), np.float64),)


refuse_rest("checks")
