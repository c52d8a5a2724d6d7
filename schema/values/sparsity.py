"""Sparse constants made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.model import SparsityParameters
from tflite_ort.schema.file.sparse_levels import sparse_levels

Shape = tuple[int, ...]
Array = npt.NDArray[Any]


def densify(values: Array, shape: Shape, sparsity: SparsityParameters) -> Array:
    """The dense tensor of `shape` that `values` (flat) and `sparsity` hold.

    Levels are walked outermost first; `offsets` are where each place of a level starts in the
    dense tensor. A dense level has the same places under every one above, a compressed level those
    that its segments and indices list.

    Raises:
        MalformedModel: the levels do not fit each other, the shape or the values.
    """
    levels = sparse_levels(shape, sparsity, values.size)
    dense = np.zeros(shape, values.dtype)
    if not dense.size:
        return dense
    offsets = np.zeros(1, np.int64)
    for level in levels:
        if level.counts is None or level.indices is None:
            offsets = (offsets[:, None] + np.arange(level.size) * level.stride).reshape(-1)
        else:
            offsets = np.repeat(offsets, level.counts) + level.indices * level.stride
    dense.reshape(-1)[offsets] = values.reshape(-1)[: offsets.size]
    return dense
