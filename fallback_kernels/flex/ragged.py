"""Ragged tensors: the values of all N rows in a line, and splits [N + 1], their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView


@flex_kernel("RaggedRange")
def ragged_range(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """(splits, values): for every row the numbers from start to limit; a scalar is for all rows."""
    starts, limits, deltas = np.broadcast_arrays(*inputs)
    if (deltas == 0).any() or starts.ndim > 1:
        raise KernelError(f"ranges of shape {starts.shape} in steps of {deltas.reshape(-1)[:4]}")
    numbers = np.stack([starts, limits, deltas], axis=-1).reshape(-1, 3).tolist()
    rows = [np.arange(*row).astype(starts.dtype) for row in numbers]
    splits = np.cumsum([0, *map(len, rows)])
    values = np.concatenate([np.empty(0, starts.dtype), *rows])
    return splits.astype(op.outputs[0].dtype), values
