"""Channels that change places between groups, as ShuffleNet has them: a RESHAPE that splits the
last dimension, a TRANSPOSE of the two parts, and a RESHAPE that joins them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.pairs import is_complex
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.values.sizes import is_known

_SPLIT = "tflite_ort.splits_channels"


def splits_channels(input: TensorView, output: TensorView) -> bool:
    """Whether a RESHAPE makes two dimensions of the last one and keeps the others."""
    known = is_known(*input.shape, *output.shape)
    return known and input.rank >= 3 and output.shape[:-2] == input.shape[:-1]


def mark_split(value: ir.Value) -> None:
    """Remember that `value` is what such a RESHAPE made of channels-last elements."""
    value.meta[_SPLIT] = True


def joined_channels_first(op: OperatorView[Any], g: Graph) -> bool:
    """Whether `op` joins channels that change places, which is then done channels-first: whole
    planes are moved where channels-last it would be single elements. Codes are left: ONNX Runtime
    has them channels-last; so are complex numbers, which stand in pairs."""
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
    """The channels-first image of `rank` dimensions that `value` is made of, if it is one with the
    channels split in two that then changed places."""
    split = _transposed(value, (*range(rank - 1), rank, rank - 1))
    reshape = None if split is None or _SPLIT not in split.meta else split.producer()
    if reshape is None or reshape.inputs[0] is None:
        return None
    return _transposed(reshape.inputs[0], (0, *range(2, rank), 1))


def _transposed(value: ir.Value, permutation: tuple[int, ...]) -> ir.Value | None:
    """What `value` is the Transpose of, if it is one in this order."""
    node = value.producer()
    if node is None or node.op_type != "Transpose":
        return None
    return node.inputs[0] if tuple(node.attributes["perm"].as_ints()) == permutation else None
