"""What a stored plan says of its model, as JSON: enough for the calls that most programs make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.opened_model import Face
from tflite_ort.schema import Model, QuantizationParameters, Tensor, TensorType
from tflite_ort.schema.file.model import stored_data
from tflite_ort.signature import Signature

Row = Sequence[Any]


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
        [index, *_row(graph.tensors[index])]
        for index in shown
        if _is_plain(model, graph.tensors[index])
    ]
    return [
        *(len(model.subgraphs), signatures, subgraph),
        *(len(graph.tensors), list(graph.inputs), list(graph.outputs), tensors),
    ]


def face_of(row: Row) -> Face:
    """What a row says."""
    subgraphs, signatures, subgraph, count, inputs, outputs, tensors = row
    named = {key: Signature(ins, outs, number) for key, ins, outs, number in signatures}
    known = {index: _tensor(rest) for index, *rest in tensors}
    return Face(subgraphs, named, subgraph, count, tuple(inputs), tuple(outputs), known)


def _is_plain(model: Model, tensor: Tensor) -> bool:
    """Whether a row says everything of a tensor."""
    quantization = tensor.quantization
    if quantization is not None and quantization.details is not None:
        return False
    special = tensor.sparsity or tensor.variant_tensors or tensor.external_buffer
    return not special and stored_data(model, tensor) is None


def _row(tensor: Tensor) -> list[Any]:
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


def _tensor(row: Row) -> Tensor:
    name, kind, shape, signature, is_variable, has_rank, codes = row
    return Tensor(
        shape=tuple(shape),
        type=TensorType(kind),
        name=name,
        quantization=None if codes is None else _quantization(codes),
        is_variable=is_variable,
        shape_signature=None if signature is None else tuple(signature),
        has_rank=has_rank,
    )


def _quantization(codes: Row) -> QuantizationParameters:
    scale, point, axis = codes
    return QuantizationParameters(
        scale=None if scale is None else np.array(scale, np.float32),
        zero_point=None if point is None else np.array(point, np.int64),
        quantized_dimension=axis,
    )
