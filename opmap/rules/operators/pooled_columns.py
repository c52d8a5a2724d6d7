"""Convolutions of 8-bit codes over few channels, and the maximum behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.convolution_operands import check_operands, image_windows
from tflite_ort.opmap.rules.lowerings.column_groups import pooled_lowerings
from tflite_ort.opmap.rules.operators.absorbed_pad import without_pad
from tflite_ort.opmap.rules.operators.groups import Group, GroupsAround
from tflite_ort.opmap.rules.operators.pattern import View
from tflite_ort.schema import Op, Untranslatable
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.sizes import is_known


def pooled(around: GroupsAround) -> Iterator[Group]:
    """The convolutions that only a maximum reads, whose windows lie side by side.

    The nodes are those of both where the chosen lowering begins with ``pooled``.
    """
    producers = around.producers
    for pool in around.operators:
        if pool.op is not Op.MAX_POOL_2D or len(pool.present_inputs()) != 1:
            continue
        conv = producers.maker(pool.present_inputs()[0])
        if conv is None or conv.op is not Op.CONV_2D or len(conv.outputs) != 1:
            continue
        tensors = (*conv.present_inputs(), *conv.outputs)
        if len(producers.readers(conv.output)) != 1 or producers.is_result(conv.output):
            continue
        if around.own((conv, pool)) and not any(tensor.is_variable for tensor in tensors):
            yield Group((conv, pool), partial(_emit, conv), pool)


def _lies_side_by_side(conv: View, pool: View) -> bool:
    """Whether the windows along a row are neighbours, none reaches over the edges, and the codes
    are those of the convolution."""
    made, kept, options = conv.output, pool.output, pool.options
    if made.rank != 4 or not is_known(*made.shape[1:], *kept.shape[1:]):
        return False
    height, width = options.filter_height, options.filter_width
    if options.fused_activation_function or not 1 < width == options.stride_w:
        return False
    if not 0 < height <= made.shape[1] or options.stride_h < 1:
        return False
    rows, columns = (made.shape[1] - height) // options.stride_h + 1, made.shape[2] // width
    codes = made.quantization
    if codes is None or made.type is not kept.type or not codes.equals(kept.quantization):
        return False
    return tuple(kept.shape[1:]) == (rows, columns, made.shape[3])


def _emit(conv: View, g: Graph, pool: View) -> None:
    try:
        build = _chosen(conv, pool, g)
        if build is not None:
            build()
            return
    except MALFORMED_OPERATOR as error:  # which of the two has it, their translators say
        raise Untranslatable(said_of_file(error)) from error
    raise Untranslatable("the convolution and the maximum are translated one by one")


def _chosen(conv: View, pool: View, g: Graph) -> Callable[[], None] | None:
    """What adds the nodes of both; None where the target prefers others."""
    check_operands(conv)
    if not _lies_side_by_side(conv, pool):
        return None
    op = without_pad(conv, g)
    windows = image_windows(op, op["filter"].shape[1:3])
    lowerings = pooled_lowerings(op, pool, g, windows, alone=op is conv)
    chosen = g.target.choose(op, lowerings) if lowerings else ""
    found = (each.build for each in lowerings if each.name == chosen)
    return next(found, None) if chosen.startswith("pooled") else None
