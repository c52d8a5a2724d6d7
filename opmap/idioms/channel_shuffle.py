"""The channel shuffle of ShuffleNet, which exchanges channels between groups.

It is a RESHAPE that splits the last dimension, a TRANSPOSE of the two parts, and a RESHAPE that
joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.opmap.graph import Graph, Layout, ir
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.schema.values.sizes import is_known

_SPLIT = "tflite_ort.splits_channels"


def splits_channels(input: TensorView, output: TensorView) -> bool:
    """Whether a RESHAPE splits the last dimension in two and keeps the others."""
    known = is_known(*input.shape, *output.shape)
    return known and input.rank >= 3 and output.shape[:-2] == input.shape[:-1]


def mark_split(value: ir.Value) -> None:
    """Mark `value` as the result of a RESHAPE that splits channels of channels-last elements."""
    value.marks |= {_SPLIT}


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
