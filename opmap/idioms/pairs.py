"""Complex tensors that are moved, as the pairs of reals for which they stand in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import type_of
from tflite_ort.schema.values.complex_pairs import is_complex, paired, paired_shape, part_dtype


def as_pairs(op: OperatorView[Any], **last: npt.ArrayLike) -> OperatorView[Any]:
    """`op` over real tensors with one more dimension, of 2; `op` itself if none is complex.

    Args:
        last: by the name of an input that lists something for each dimension, what it has for the
            new one. Such a list is read from `data`: the graph knows it as the file has it.
    """
    if not any(map(is_complex, (*op.present_inputs(), *op.outputs))):
        return op
    inputs = [None if tensor is None else _paired(tensor) for tensor in op.inputs]
    for name, value in last.items():
        inputs[op.names.index(name)] = _longer(op[name], value)
    return replace(op, inputs=tuple(inputs), outputs=tuple(map(_paired, op.outputs)))


def as_channels(op: OperatorView[Any]) -> OperatorView[Any]:
    """`op` over real tensors with twice as many channels, the last dimension, where its tensors
    are complex: both parts of a number lie beside each other."""
    inputs = tuple(None if tensor is None else _doubled(tensor) for tensor in op.inputs)
    return replace(op, inputs=inputs, outputs=tuple(map(_doubled, op.outputs)))


def _doubled(tensor: TensorView) -> TensorView:
    if not is_complex(tensor):
        return tensor
    *shape, channels, parts = paired_shape(tensor, tensor.shape)
    return replace(_paired(tensor), shape=(*shape, channels * parts))


def _paired(tensor: TensorView) -> TensorView:
    if not is_complex(tensor):
        return tensor
    type, data = type_of(part_dtype(tensor.dtype)), tensor.data
    assert type is not None
    shape, constant = paired_shape(tensor, tensor.shape), None if data is None else paired(data)
    return replace(tensor, type=type, shape=shape, constant=constant)


def _longer(listed: TensorView, value: npt.ArrayLike) -> TensorView:
    if listed.data is None:
        raise Untranslatable(f"complex numbers are not moved by a computed {listed.name!r} in ONNX")
    entry = np.asarray(value, listed.data.dtype)[np.newaxis]
    data = np.concatenate([listed.data, entry])
    return replace(listed, shape=data.shape, constant=data)
