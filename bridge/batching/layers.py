"""Batch rules of layers: operators that treat what lies along their first axes alike."""

from __future__ import annotations

from typing import Any

from tflite_ort.batching.elementwise import one_input
from tflite_ort.batching.graph import BatchedGraph, leads
from tflite_ort.batching.registry import rule
from tflite_ort.schema import (
    Op,
    OperatorView,
    TensorView,
    Unbatchable,
)

View = OperatorView[Any]

# How many of the last axes these work along; those before are any.
ALONG_LAST: dict[Op | str, int] = {
    **dict.fromkeys((Op.CONV_2D, Op.DEPTHWISE_CONV_2D), 3),
    **dict.fromkeys((Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D, Op.L2_POOL_2D), 3),
    **dict.fromkeys((Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR), 3),
    **dict.fromkeys((Op.SPACE_TO_DEPTH, Op.DEPTH_TO_SPACE), 3),
    "Convolution2DTransposeBias": 3,
    Op.CONV_3D: 4,
    Op.LOCAL_RESPONSE_NORMALIZATION: 3,
    **dict.fromkeys((Op.SOFTMAX, Op.LOG_SOFTMAX, Op.L2_NORMALIZATION, Op.TOPK_V2), 1),
    Op.MATRIX_DIAG: 1,
    Op.RFFT2D: 2,
}
# Their kernels take one more axis before those: a stack would be one too many.
_OF_ONE_RANK = {op for op, count in ALONG_LAST.items() if count > 2}


@rule(*ALONG_LAST)
def along_last(op: View, g: BatchedGraph) -> None:
    """In rows if an axis is left for these, else stacked; all other inputs are the same for all
    samples."""
    source, *others = op.inputs
    if source is None or not g.is_batched(source) or any(map(g.is_batched, others)):
        raise Unbatchable("more than its data differs between the samples")
    key = op.op if op.custom_code is None else op.custom_code
    rest = g.all_same(others)
    if source.rank <= ALONG_LAST[key]:
        g.copy(op, [g.stacked(source), *rest], [g.result_stacked(out) for out in op.outputs])
    elif key in _OF_ONE_RANK or g.has_rows(source):
        g.copy(op, [g.rows(source), *rest], [g.result_rows(out) for out in op.outputs])
    else:
        one_input(op, source, [g.stacked(source), *rest], g)


@rule(Op.FULLY_CONNECTED)
def fully_connected(op: View, g: BatchedGraph) -> None:
    """Rows of the filter's depth, of which a sample has a whole number.

    Without keep_num_dims the rows of the result are those of all samples, one after the other.
    """
    source, filter = op["input"], op["filter"]
    if len(op.outputs) != 1:
        raise Unbatchable("it gives its shuffled input too")
    if any(map(g.is_batched, op.inputs[1:])):
        raise Unbatchable("its weights differ between the samples")
    rest = g.all_same(op.inputs[1:])
    if op.options.keep_num_dims and source.rank < 2:
        g.copy(op, [g.stacked(source), *rest], [g.result_stacked(op.output)])
        return
    if op.options.keep_num_dims or 0 in filter.shape:
        g.copy(op, [g.rows(source), *rest], [g.result_rows(op.output)])
        return
    place = g.rows(source) if g.has_rows(source) else g.stacked(source)
    g.copy(op, [place, *rest], [g.result_rows(op.output)])


@rule(Op.BATCH_MATMUL)
def batch_matmul(op: View, g: BatchedGraph) -> None:
    """Products of the last two axes; those before broadcast."""
    x, y, rank = op["x"], op["y"], op.output.rank
    if rank > 2 and all(_leads_or_is_same(t, rank, g) for t in (x, y)):
        places = [g.rows(t) if g.is_batched(t) else g.same(t) for t in (x, y)]
        g.copy(op, places, [g.result_rows(op.output)])
    else:
        places = [g.stacked(t, rank) if g.is_batched(t) else g.same(t) for t in (x, y)]
        g.copy(op, places, [g.result_stacked(op.output)])


def _leads_or_is_same(tensor: TensorView, rank: int, g: BatchedGraph) -> bool:
    """Whether a batch of `tensor` takes the place of a leading 1, or it has no part in the first
    axis of a product of this rank."""
    if g.is_batched(tensor):
        return tensor.rank == rank and leads(tensor)
    return tensor.rank < rank or leads(tensor)


@rule(Op.TRANSPOSE_CONV, Op.CONV_3D_TRANSPOSE)
def transpose_conv(op: View, g: BatchedGraph) -> None:
    """Rows; the size of the result says how many there are."""
    sizes, filter, source, *bias = op.inputs
    if source is None or any(map(g.is_batched, (sizes, filter, *bias))):
        raise Unbatchable("more than its data differs between the samples")
    places = [g.same(filter), g.rows(source), *g.all_same(bias)]
    wanted = g.row_dims(op.output.shape)
    g.copy(op, [wanted, *places], [g.result_rows(op.output)])
