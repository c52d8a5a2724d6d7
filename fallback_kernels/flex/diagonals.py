"""TensorFlow's operators on diagonals: elements that are taken by their places."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.diagonals import (
    alignment,
    band_of,
    matrix_sizes,
    part_shape,
    sources,
)
from tflite_ort.schema.shapes.registry import single

View = OperatorView[Any]


def _given(op: View, inputs: Inputs) -> dict[str, Array]:
    return dict(zip(op.names, inputs, strict=True))


@flex_kernel("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diag_part(op: View, inputs: Inputs, state: State) -> Outputs:
    """Diagonals of matrices; beside shorter ones there is padding."""
    given = _given(op, inputs)
    band = band_of(given.get("k", np.zeros(1)).astype(np.int64))
    *batch, rows, columns = given["input"].shape
    shape = (*batch, *part_shape(rows, columns, band))
    taken = sources(op.name, ((rows, columns), ()), band, alignment(op))
    flat = given["input"].reshape(prod(batch), rows * columns)
    return (_taken(flat, taken, given.get("padding_value")).reshape(shape),)


def _taken(flat: Array, taken: Array, padding: Array | None) -> Array:
    """[batch, places] of [batch, elements]."""
    zero = np.zeros((), flat.dtype) if padding is None else padding.reshape(())
    outside = np.broadcast_to(zero, (len(flat), 1))
    return np.concatenate([flat, outside], axis=1)[:, taken]


@flex_kernel("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag")
def matrix_diag(op: View, inputs: Inputs, state: State) -> Outputs:
    """Matrices with these diagonals and padding elsewhere."""
    given = _given(op, inputs)
    band = band_of(given.get("k", np.zeros(1)).astype(np.int64))
    diagonal, axes = given["diagonal"], 1 if band[0] == band[1] else 2
    if diagonal.ndim < axes:
        raise KernelError(f"diagonals {band} of shape {diagonal.shape}")
    wanted = [single(given[name]) if name in given else -1 for name in ("num_rows", "num_cols")]
    sizes = matrix_sizes(diagonal.shape, band, *wanted)
    batch, last = diagonal.shape[:-axes], diagonal.shape[-axes:]
    taken = sources(op.name, (sizes, last), band, alignment(op))
    flat = diagonal.reshape(prod(batch), prod(last))
    return (_taken(flat, taken, given.get("padding_value")).reshape(*batch, *sizes),)


@flex_kernel("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(op: View, inputs: Inputs, state: State) -> Outputs:
    """Matrices with other diagonals."""
    given = _given(op, inputs)
    band = band_of(given.get("k", np.zeros(1)).astype(np.int64))
    whole, diagonal = given["input"], given["diagonal"]
    *batch, rows, columns = whole.shape
    last = part_shape(rows, columns, band)
    if diagonal.shape != (*batch, *last):
        raise KernelError(f"diagonals of {diagonal.shape}, expected {(*batch, *last)}")
    taken = sources(op.name, ((rows, columns), last), band, alignment(op))
    count = prod(batch)
    flat = np.concatenate(
        [whole.reshape(count, rows * columns), diagonal.reshape(count, prod(last))], axis=1
    )
    return (flat[:, taken].reshape(whole.shape),)


@flex_kernel("Diag", "DiagPart")
def diag(op: View, inputs: Inputs, state: State) -> Outputs:
    """A tensor as the diagonal of one with its sizes twice, or the other way around."""
    shape = inputs[0].shape
    if op.name == "FlexDiag":
        return (np.diag(inputs[0].reshape(-1)).reshape(shape * 2),)
    half = shape[: len(shape) // 2]
    return (np.diagonal(inputs[0].reshape(prod(half), prod(half))).reshape(half).copy(),)
