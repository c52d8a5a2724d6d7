"""Elements picked by index: GATHER, GATHER_ND.

TFLite refuses negative indices where ONNX counts them from the end. Constant ones are refused here
(the numpy kernel then raises as TFLite does); those computed at run time are not looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.movement import moved_domain
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    GatherOptions,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.shapes_slicing import gather_axes


@translator(Op.GATHER, versions=(1, 8), inputs=("input", "positions"))
def gather(op: OperatorView[GatherOptions], g: Graph) -> None:
    """Gather; with batch dimensions GatherND between two Transposes that bring `axis` forward."""
    input, positions, output = op["input"], op["positions"], op.output
    domain = moved_domain(input, output)
    axis, batch = gather_axes(input.rank, positions.rank, op.options.axis, op.options.batch_dims)
    indices = _indices(g, positions)
    if batch:
        value = _batched(g, g.read(input, domain=domain), indices, (input, positions), axis, batch)
        g.write(output, value, domain=domain)
        return
    same_rank = positions.rank == 1 and domain is Domain.STORED
    layout = g.layout(input) if same_rank else Layout.LAST
    value = g.read(input, layout=layout, domain=domain)
    value = g.op("Gather", value, indices, axis=layout.axis(axis, input.rank))
    g.write(output, value, layout=layout, domain=domain)


def _batched(
    g: Graph,
    value: ir.Value,
    indices: ir.Value,
    tensors: tuple[TensorView, TensorView],
    axis: int,
    batch: int,
) -> ir.Value:
    """[B..., axis, P..., Q...] picked by [B..., I...] gives [B..., I..., P..., Q...], which has
    P... moved before I...; P are the dimensions between the batch and `axis`."""
    rank, picked = tensors[0].rank, tensors[1].rank - batch
    if axis > batch:
        between = range(batch, axis)
        value = g.op(
            "Transpose", value, perm=[*range(batch), axis, *between, *range(axis + 1, rank)]
        )
    indices = g.op("Cast", indices, to=ir.DataType.INT64)
    tuples = g.op("Unsqueeze", indices, g.constant([tensors[1].rank], np.int64))
    value = g.op("GatherND", value, tuples, batch_dims=batch)
    if axis > batch and picked:
        first = batch + picked
        last = first + axis - batch
        order = [*range(batch), *range(first, last), *range(batch, first)]
        value = g.op("Transpose", value, perm=[*order, *range(last, rank + picked - 1)])
    return value


@translator(Op.GATHER_ND, versions=(1, 6), inputs=("params", "indices"))
def gather_nd(op: OperatorView[Any], g: Graph) -> None:
    """GatherND."""
    params, indices = op["params"], op["indices"]
    domain = moved_domain(params, op.output)
    if indices.shape[-1] == 0:
        raise Untranslatable("index tuples of length 0")
    tuples = g.op("Cast", _indices(g, indices), to=ir.DataType.INT64)
    g.write(op.output, g.op("GatherND", g.read(params, domain=domain), tuples), domain=domain)


def _indices(g: Graph, indices: TensorView) -> ir.Value:
    if indices.data is not None and (indices.data < 0).any():
        raise Untranslatable("a negative index, which TFLite refuses")
    value = g.read(indices)
    return g.op("Cast", value, to=ir.DataType.INT32) if indices.type is TensorType.INT16 else value
