"""Registered operators that run in ONNX Runtime and in numpy, for comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.runs import Run
from tflite_ort.schema import KernelError, OperatorView, Specialized, TensorView
from tflite_ort.specialize.folding import run_kernel

with late:
    import ml_dtypes

Array = npt.NDArray[Any]

# Of floats, relative to the largest magnitude; or this many units in the last place.
_RELATIVE, _UNITS = 1e-5, 4


def checked_operators(graph: Specialized, resolver: BoundResolver) -> list[OperatorView[Any]]:
    """The operators of `graph` to compare: those that set variables would set them twice."""
    if not resolver.registered:
        return []
    return [op for op in graph.operators if resolver.is_checked(op) and not op.variables()]


def with_checked_results(graph: Specialized, checked: Iterable[OperatorView[Any]]) -> Specialized:
    """`graph` with what `checked` operators take and make as outputs, its own outputs first."""
    kept = [
        tensor.index
        for op in checked
        for tensor in (*op.present_inputs(), *op.outputs)
        if not tensor.is_constant and tensor.index not in graph.inputs
    ]
    outputs = tuple(dict.fromkeys((*graph.outputs, *kept)))
    return graph if outputs == graph.outputs else replace(graph, outputs=outputs)


def check_step(op: OperatorView[Any], resolver: BoundResolver, memory: Memory) -> Run:
    """A run of the kernel of `op` that compares with what ONNX Runtime made.

    Raises:
        KernelError: from the run; they differ.
    """
    entry = resolver.kernels.of(op)
    assert entry is not None
    bound = entry.inputs.bind(op)
    state = None if entry.state is None else entry.state(bound)

    def run() -> None:
        inputs = [None if tensor is None else memory.value(tensor) for tensor in op.inputs]
        with np.errstate(all="ignore"):
            results = run_kernel(bound, entry, inputs, state)
        for tensor, result in zip(op.outputs, results, strict=True):
            _compare(op, tensor, memory.value(tensor), result)

    return run


def _compare(op: OperatorView[Any], tensor: TensorView, translated: Array, made: Array) -> None:
    what = f"{op.label}: output {tensor.name!r} of ONNX Runtime"
    if translated.shape != made.shape:
        raise KernelError(f"{what} has shape {translated.shape}, the kernel's {made.shape}")
    if translated.dtype == np.object_ or translated.dtype.kind == "b":
        difference, limit = float(np.any(translated != made)), 0.0
    else:
        difference, limit = _distance(translated, made), _limit(tensor, made)
    if not difference <= limit:
        raise KernelError(
            f"{what} differs from the kernel's by {difference:.3g}, at most {limit:.3g} is allowed"
        )


def _distance(one: Array, other: Array) -> float:
    one, other = _wide(one), _wide(other)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        return float(np.where(same, 0, np.abs(one - other)).max(initial=0.0))


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _limit(tensor: TensorView, made: Array) -> float:
    """One quantum; nothing for plain integers."""
    if made.dtype.kind in "iu":
        return float(tensor.is_quantized)
    wide = _wide(made)
    magnitude = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    epsilon = float(ml_dtypes.finfo(made.dtype).eps)  # type: ignore[no-untyped-call]
    return max(_RELATIVE, _UNITS * epsilon) * magnitude
