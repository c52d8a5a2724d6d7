"""What a stored plan says of its model, as JSON: enough for the calls that most programs make.

`face_row` writes it, `face_of` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.model.opened_model import Face, KnownQuantization, KnownTensor, Signature
from tflite_ort.schema import TensorType

with late:  # what is stored is read more often than written
    from tflite_ort.schema.file import model as model_tables

if TYPE_CHECKING:
    from tflite_ort.schema import Model, Tensor

Row = Sequence[Any]

_MOST = 1 << 31  # subgraphs or tensors of a file


def face_of(row: Row) -> Face:
    """What a row says.

    Raises:
        ValueError: something else stands where a number or a place of a tensor has to; TypeError
            or IndexError where it is no row at all.
    """
    subgraphs, signatures, subgraph, count, inputs, outputs, tensors = row
    sizes = [size for _, _, _, shape, *_ in tensors for size in shape]
    places = [*inputs, *outputs, *(each[0] for each in tensors)]
    numbers = (subgraphs, subgraph, count, *places, *sizes)
    if not all(type(each) is int for each in numbers):
        raise ValueError("numbers are expected")
    few = max(subgraphs, count) <= _MOST
    if not (few and _are_below([subgraph], subgraphs) and _are_below(places, count)):
        raise ValueError("there are not so many")
    named = {key: Signature(ins, outs, number) for key, ins, outs, number in signatures}
    known = _Tensors({each[0]: each for each in tensors})
    return Face(subgraphs, named, subgraph, count, tuple(inputs), tuple(outputs), known)


def _are_below(places: Sequence[int], count: int) -> bool:
    return not places or (min(places) >= 0 and max(places) < count)


class _Tensors:
    """Tensors by index. Each is built from its stored row at the first access."""

    def __init__(self, rows: Mapping[int, Row]) -> None:
        self._rows = rows

    def get(self, index: int) -> KnownTensor | None:
        """The tensor; None of one that is not known."""
        row = self._rows.get(index)
        return None if row is None else _tensor(row[1:])


def _tensor(row: Row) -> KnownTensor:
    name, kind, shape, signature, is_variable, has_rank, codes = row
    return KnownTensor(
        shape=tuple(shape),
        type=TensorType(kind),
        name=name,
        quantization=None if codes is None else _quantization(codes),
        is_variable=is_variable,
        shape_signature=None if signature is None else tuple(signature),
        has_rank=has_rank,
    )


def _quantization(codes: Row) -> KnownQuantization:
    scale, point, axis = codes
    return KnownQuantization(
        scale=None if scale is None else np.array(scale, np.float32),
        zero_point=None if point is None else np.array(point, np.int64),
        quantized_dimension=axis,
    )


def face_row(model: Model, subgraph: int) -> list[Any]:
    """What is stored of a model with a plan of one of its subgraphs."""
    graph = model.subgraphs[subgraph]
    signatures = [
        [each.signature_key, signature.inputs, signature.outputs, signature.subgraph]
        for each in model.signature_defs
        for signature in [Signature.of(each)]
    ]
    shown = dict.fromkeys((*graph.inputs, *graph.outputs))
    tensors = [
        [index, *_row_of(graph.tensors[index])]
        for index in shown
        if _is_plain(model, graph.tensors[index])
    ]
    return [
        *(len(model.subgraphs), signatures, subgraph),
        *(len(graph.tensors), list(graph.inputs), list(graph.outputs), tensors),
    ]


def _is_plain(model: Model, tensor: Tensor) -> bool:
    """Whether a row says everything of a tensor."""
    quantization = tensor.quantization
    if quantization is not None and quantization.details is not None:
        return False
    special = tensor.sparsity or tensor.variant_tensors or tensor.external_buffer
    return not special and model_tables.stored_data(model, tensor) is None


def _row_of(tensor: Tensor) -> list[Any]:
    signature = None if tensor.shape_signature is None else list(tensor.shape_signature)
    quantization = tensor.quantization
    codes = None
    if quantization is not None:
        scale, point = quantization.scale, quantization.zero_point
        codes = [
            None if scale is None else scale.tolist(),
            None if point is None else point.tolist(),
            quantization.quantized_dimension,
        ]
    row = [tensor.name, int(tensor.type), list(tensor.shape), signature]
    return [*row, tensor.is_variable, tensor.has_rank, codes]
