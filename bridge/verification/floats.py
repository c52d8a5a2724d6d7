"""A model whose hybrid layers multiply floats: LiteRT that does not round their activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.comparison.differences import real_values
from tflite_ort.schema import Buffer, Model, OperatorView, Tensor, TensorType, TensorView
from tflite_ort.verification.known import is_hybrid


def in_floats(model: Model, operators: Sequence[OperatorView[Any]]) -> Model | None:
    """`model` with float weights in the hybrid layers among `operators`, which are those of its
    primary subgraph; None where there are none."""
    hybrid = [op for op in operators if is_hybrid(op)]
    if not hybrid:
        return None
    graph = model.subgraphs[0]
    tensors, buffers, made = list(graph.tensors), list(model.buffers), list(graph.operators)
    new: dict[int, int] = {}
    for op in hybrid:
        for view in op.present_inputs():
            if view.index not in new and view.is_quantized and view.data is not None:
                new[view.index] = len(tensors)
                tensors.append(_as_floats(graph.tensors[view.index], view, len(buffers)))
                buffers.append(_reals(view))
        inputs = made[op.index].inputs
        made[op.index] = replace(
            made[op.index], inputs=tuple(i if i is None else new.get(i, i) for i in inputs)
        )
    first = replace(graph, tensors=tuple(tensors), operators=tuple(made))
    return replace(model, subgraphs=(first, *model.subgraphs[1:]), buffers=tuple(buffers))


def _as_floats(tensor: Tensor, view: TensorView, buffer: int) -> Tensor:
    return replace(
        tensor,
        type=TensorType.FLOAT32,
        buffer=buffer,
        quantization=None,
        sparsity=None,
        external_buffer=0,
    )


def _reals(view: TensorView) -> Buffer:
    assert view.data is not None and view.quantization is not None
    reals = real_values(view.data, view.quantization).astype("<f4")
    return Buffer(data=np.frombuffer(reals.tobytes(), np.uint8))
