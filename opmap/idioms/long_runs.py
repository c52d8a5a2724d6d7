"""Constants that broadcast over the last axes, such as the mean of each colour of an image.

ONNX Runtime goes through both operands in runs in which neither begins anew. A run takes it 10 to
60 ns, however short it is. So such a constant is repeated along the axes before.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.forms import carried_codes, carried_type
from tflite_ort.opmap.graph.rows import RESHAPES, row_shape
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.values.sizes import Shape, is_known

Array = npt.NDArray[Any]

# Longer runs are left: little would be saved.
_SHORT = 64
# Runs of so many elements take no more time for each of them than longer ones.
_ENOUGH = 512
_MOST_ELEMENTS = 1 << 16
# Of what is no image; a network may have many such constants.
_MOST_OF_ROWS = 1 << 14
_TYPES = frozenset(
    {
        *(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        *(TensorType.INT8, TensorType.UINT8, TensorType.BOOL),
    }
)
# Of these, and of inputs, sums and products are images. What layers make is fused with constants
# that are as long as an axis, one after another.
_OF_IMAGES = frozenset(
    {
        *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAXIMUM, Op.MINIMUM),
        *(Op.CAST, Op.DEQUANTIZE, Op.QUANTIZE, Op.RESHAPE, Op.TRANSPOSE, Op.PAD, Op.PADV2),
        *(Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR, Op.CONCATENATION, Op.PACK),
        *(Op.GREATER, Op.GREATER_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.EQUAL, Op.NOT_EQUAL),
        *(Op.SELECT, Op.SELECT_V2, Op.LOGICAL_AND, Op.LOGICAL_OR, Op.LOGICAL_NOT),
        *(Op.SLICE, Op.STRIDED_SLICE, Op.GATHER, Op.REVERSE_V2),
    }
)
_REACH = 6
# ONNX Runtime fuses these with a constant that follows, and sums of them are joined.
_LAYERS = frozenset(
    {
        *(Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.CONV_3D, Op.TRANSPOSE_CONV, Op.CONV_3D_TRANSPOSE),
        *(Op.FULLY_CONNECTED, Op.BATCH_MATMUL),
    }
)


def read_operand(
    g: Graph, tensor: TensorView, other: TensorView, layout: Layout, domain: Domain, rank: int
) -> ir.Value:
    """One of the operands that broadcast, in a form, with `rank` dimensions or fewer.

    Args:
        other: the other operand, or the result.
    """
    if layout is Layout.ROWS:
        return _read_row(g, tensor, other, domain)
    shape = _longer_shape(g, tensor, other, layout, rank)
    if shape is None:
        return g.read(tensor, layout=layout, domain=domain, rank=rank)
    if not g.target.only_runs:
        stored = Domain.STORED if domain is Domain.REAL else domain
        short = g.read(tensor, domain=stored, rank=rank)
        long = g.op("Expand", short, g.ints(shape))
        return g.dequantize(long, tensor) if domain is not stored and tensor.is_quantized else long
    data = _repeated_data(tensor, shape)
    if not tensor.is_quantized or domain is Domain.FILE:
        return g.constants.add(data, tensor.name)
    carried = g.constants.add(carried_codes(data, tensor.type, carried_type(tensor)), tensor.name)
    return carried if domain is Domain.STORED else g.dequantize(carried, tensor)


def _read_row(g: Graph, tensor: TensorView, other: TensorView, domain: Domain) -> ir.Value:
    """An operand of rows; a constant row is repeated for each of them if it is short."""
    data = tensor.data
    rows = (0, 0) if data is None or other.is_constant else row_shape(other)
    is_short = 1 < rows[1] <= _SHORT and rows[0] > 1 and prod(rows) <= _MOST_OF_ROWS
    if data is None or not is_short or data.size != rows[1] or not _is_apart(g, tensor, other):
        return g.read(tensor, layout=Layout.ROWS, domain=domain)
    repeated = np.ascontiguousarray(np.broadcast_to(data.reshape(-1), rows))
    return g.constants.add(repeated, tensor.name)


def with_longer_runs(
    g: Graph, tensor: TensorView, other: TensorView, layout: Layout, rank: int
) -> TensorView:
    """`tensor`, repeated if it is a constant whose runs over `other` are short.

    It has the same index: it is to be read as data, not by `Graph.read`.
    """
    if not g.target.only_runs:
        return tensor
    shape = _longer_shape(g, tensor, other, layout, rank)
    if shape is None:
        return tensor
    return replace(tensor, constant=_repeated_data(tensor, shape), shape=shape)


def _repeated_data(tensor: TensorView, shape: Shape) -> Array:
    assert tensor.data is not None
    return np.ascontiguousarray(np.broadcast_to(tensor.data, shape))


def _longer_shape(
    g: Graph, tensor: TensorView, other: TensorView, layout: Layout, rank: int
) -> Shape | None:
    """To which `tensor` is repeated, or None if it is as it was."""
    quantization = tensor.quantization
    if not g.target.long_runs or layout is not Layout.LAST:
        return None
    if tensor.data is None or tensor.type not in _TYPES:
        return None
    if quantization is not None and quantization.per_channel:
        return None
    if rank < max(tensor.rank, other.rank) or other.is_constant:
        return None
    shapes = [(1,) * (rank - each.rank) + tuple(each.shape) for each in (tensor, other)]
    longer = repeated_shape(*shapes)
    if longer == shapes[0]:
        return None
    is_taken = _is_image(g, other) or (
        prod(longer) <= _MOST_OF_ROWS and _is_apart(g, tensor, other)
    )
    return longer if is_taken else None


def _is_apart(g: Graph, tensor: TensorView, other: TensorView) -> bool:
    """Whether the constant `tensor` is neither fused with the layer that makes `other`, nor joined
    with the constant of another layer."""
    if not (g.target.only_runs and g.target.long_runs) or tensor.type is not TensorType.FLOAT32:
        return False
    source = _before_reshapes(g, other)
    if source is not None and source.op in _LAYERS:
        return False
    both = (
        op for op in g.uses.readers(other) if tensor.index in [x.index for x in op.present_inputs()]
    )
    sums = (op for op in both if op.op in (Op.ADD, Op.SUB))
    return not any(reader.op is Op.ADD for op in sums for reader in g.uses.readers(op.output))


def _before_reshapes(g: Graph, tensor: TensorView) -> OperatorView[Any] | None:
    """What makes the elements of `tensor`."""
    maker = g.uses.maker(tensor)
    while maker is not None and maker.op in RESHAPES and maker.inputs[0] is not None:
        maker = g.uses.maker(maker.inputs[0])
    return maker


def _is_image(g: Graph, tensor: TensorView) -> bool:
    """Whether no layer has had a part in `tensor`."""
    reached, ahead = set[int](), [tensor]
    for _ in range(_REACH):
        makers = [maker for each in ahead if (maker := g.uses.maker(each)) is not None]
        if any(maker.op not in _OF_IMAGES for maker in makers):
            return False
        reached.update(each.index for each in ahead)
        given = (each for maker in makers for each in maker.present_inputs())
        ahead = [each for each in given if not each.is_constant and each.index not in reached]
    return not ahead


def repeated_shape(shape: Shape, other: Shape) -> Shape:
    """The shape to which a constant is repeated over a tensor for the sake of long runs; both have
    as many axes."""
    if _run(shape, other) > _SHORT:
        return shape
    longer = list(shape)
    for axis in reversed(range(len(shape))):
        if not is_known(other[axis]) or prod(longer) * other[axis] > _MOST_ELEMENTS:
            break
        longer[axis] = max(shape[axis], other[axis])
        if prod(longer[axis:]) >= _ENOUGH:
            break
    return tuple(longer) if _run(tuple(longer), other) > _run(shape, other) else shape


def _run(shape: Shape, other: Shape) -> int:
    """How many elements, from the last one on, both have, or one of them has to each of the
    other."""
    run, kind = 1, None
    for pair in zip(reversed(shape), reversed(other), strict=True):
        if not is_known(*pair):
            break
        if pair != (1, 1):
            broadcast = pair[0] == 1, pair[1] == 1
            if kind not in (None, broadcast):
                break
            run, kind = run * max(pair), broadcast
    return run
