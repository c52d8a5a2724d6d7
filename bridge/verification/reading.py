"""The model as it is verified: without composites, and with the types that tensors really have."""

from __future__ import annotations

from dataclasses import replace

from tflite_ort.schema import Model, ModelError, with_own_data
from tflite_ort.schema.values.inlining import inlined
from tflite_ort.schema.values.resolve import operator_view, quantization_as, tensor_views
from tflite_ort.schema.values.result_types import result_type


def as_verified(model: Model) -> Model:
    """`model` with composites inlined, with the data of external files, and with tensors of the
    types that operators make, where the file says others: parts of it then fit together.

    Raises:
        ModelError: an external file cannot be read.
    """
    return _with_result_types(inlined(with_own_data(model)))


def _with_result_types(model: Model) -> Model:
    """The model with the result types that TFLite gives, in its primary subgraph."""
    first, *others = model.subgraphs
    tensors, views = list(first.tensors), tensor_views(model, 0)
    for number in range(len(first.operators)):
        op = operator_view(model, 0, number, views)
        try:
            type = result_type(op)
        except ModelError:  # the interpreter refuses it with a better message
            continue
        for view in op.outputs:
            if type is not None and type is not view.type:
                index = view.index
                codes = quantization_as(tensors[index], type)
                tensors[index] = replace(tensors[index], type=type)
                views[index] = replace(view, type=type, quantization=codes)
    return replace(model, subgraphs=(replace(first, tensors=tuple(tensors)), *others))
