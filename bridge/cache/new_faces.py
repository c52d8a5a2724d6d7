"""What is to be stored of a model with one of its plans; `faces` reads it."""

from __future__ import annotations

from typing import Any

from tflite_ort.model.opened_model import Signature
from tflite_ort.schema import Model, Tensor
from tflite_ort.schema.file.model import stored_data


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
