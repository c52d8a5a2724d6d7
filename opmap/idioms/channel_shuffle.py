"""The channel shuffle of ShuffleNet, which exchanges channels between groups.

It is a RESHAPE that splits the last dimension, a TRANSPOSE of the two parts, and a RESHAPE that
joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.schema.values.sizes import is_known

_SPLIT = "tflite_ort.splits_channels"
_SPLIT_PLANES = "tflite_ort.splits_planes"


def splits_channels(input: TensorView, output: TensorView) -> bool:
    """Whether a RESHAPE splits the last dimension in two and keeps the others."""
    known = is_known(*input.shape, *output.shape)
    return known and input.rank >= 3 and output.shape[:-2] == input.shape[:-1]


def mark_split(value: ir.Value, source: ir.Value, input: TensorView, output: TensorView) -> None:
    """Mark `value`, a RESHAPE of channels-last elements `source`, if it splits channels in two.

    Of two in a row one Reshape is made, which reads what has other channels: it is not marked.
    """
    node = value.producer()
    if node is None or node.inputs[0] is not source:
        return
    if splits_channels(input, output):
        value.marks |= {_SPLIT}
    if splits_planes(input, output):
        value.marks |= {_SPLIT_PLANES}


def joined_channels_first(op: OperatorView[Any], g: Graph) -> bool:
    """Translate the last RESHAPE of a channel shuffle channels-first; returns whether `op` is one.

    Channels-first, whole planes are moved in place of single elements. Codes are excluded, since
    ONNX Runtime keeps them channels-last, and so are complex numbers, which are pairs.
    """
    input, output = op["input"], op.output
    if input.is_quantized or is_complex(input) or not splits_channels(output, input):
        return False
    domain = moved_domain(input, output)
    image = _split_image(g.read(input, domain=domain), output.rank)
    if image is None:
        return False
    batch, *plane, second, first = input.shape
    parts = g.reshape(image, (batch, first, second, *plane))
    moved = g.op("Transpose", parts, perm=[0, 2, 1, *range(3, input.rank)])
    joined = g.reshape(moved, Layout.FIRST.shape(output.shape))
    g.write(output, joined, layout=Layout.FIRST, domain=domain)
    return True


def splits_planes(input: TensorView, output: TensorView) -> bool:
    """Whether a RESHAPE of codes splits the channels of planes in two: [N, C, H, W] to five."""
    if not (input.is_quantized and is_known(*input.shape, *output.shape)):
        return False
    if (input.rank, output.rank) != (4, 5):
        return False
    return (input.shape[0], *input.shape[2:]) == (output.shape[0], *output.shape[3:])


def joined_channels_last(op: OperatorView[Any], g: Graph) -> bool:
    """Translate the last RESHAPE of a channel shuffle of planes of codes channels-last; returns
    whether `op` is one. ONNX Runtime keeps codes channels-last, where nothing is moved but
    the channels of a cell."""
    input, output = op["input"], op.output
    if not g.target.cpu_kernels or not splits_planes(output, input):
        return False
    domain = moved_domain(input, output)
    split = _transposed(g.read(input, domain=domain), (0, 2, 1, 3, 4))
    reshape = None if split is None or _SPLIT_PLANES not in split.marks else split.producer()
    if reshape is None or reshape.inputs[0] is None:
        return False
    batch, second, first, *plane = input.shape
    cells = g.op("Transpose", reshape.inputs[0], perm=[0, 2, 3, 1])
    parts = g.reshape(cells, (batch, *plane, first, second))
    moved = g.op("Transpose", parts, perm=[0, 1, 2, 4, 3])
    joined = g.reshape(moved, (batch, *plane, first * second))
    g.write(output, g.op("Transpose", joined, perm=[0, 3, 1, 2]), domain=domain)
    return True


def _split_image(value: ir.Value, rank: int) -> ir.Value | None:
    """The channels-first image of `rank` dimensions whose channels were split and transposed to
    `value`; None if `value` is anything else."""
    split = _transposed(value, (*range(rank - 1), rank, rank - 1))
    reshape = None if split is None or _SPLIT not in split.marks else split.producer()
    if reshape is None or reshape.inputs[0] is None:
        return None
    return _transposed(reshape.inputs[0], (0, *range(2, rank), 1))


def _transposed(value: ir.Value, permutation: tuple[int, ...]) -> ir.Value | None:
    """The input of the Transpose by `permutation` that computes `value`, if one does."""
    node = value.producer()
    if node is None or node.op_type != "Transpose":
        return None
    order = node.attributes["perm"]
    same = isinstance(order, Sequence) and tuple(order) == permutation
    return node.inputs[0] if same else None
