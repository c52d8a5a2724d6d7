"""What the changes for blocks of channels ask of nodes, see `keep_blocks`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir

Array = npt.NDArray[Any]

# Nodes that compute each element from the same elements of maps, and may have scalar constants.
BY_ELEMENT = frozenset({"Add", "Clip", "Exp", "HardSwish", "Mul", "Neg", "Reciprocal", "Relu"})
BY_ELEMENT |= {"HardSigmoid", "Sigmoid", "Sub", "Tanh"}


def is_convolution(node: ir.Node) -> bool:
    """Whether it is a two-dimensional convolution of floats by constants."""
    if node.op_type != "Conv" or node.domain:
        return False
    weights = node.constant(1)
    bias_is_known = len(node.inputs) < 3 or node.inputs[2] is None or node.constant(2) is not None
    return weights is not None and weights.ndim == 4 and weights.dtype == "f4" and bias_is_known


def weights_of(node: ir.Node) -> Array:
    """The filters of a convolution."""
    weights = node.constant(1)
    assert weights is not None
    return weights


def is_dense(node: ir.Node) -> bool:
    """Whether each of its outputs is made of all inputs."""
    return node.attributes.get("group", 1) == 1


def is_depthwise(node: ir.Node) -> bool:
    """Whether each of its outputs is made of the input channel of its number."""
    count, each, *_ = weights_of(node).shape
    return bool(each == 1 and node.attributes.get("group", 1) == count > 1)


def replace_constant(graph: ir.Graph, node: ir.Node, place: int, array: Array) -> None:
    """Give `node` a constant of its own."""
    made = graph.add_initializer(f"{node.name}/wide/{place}", array)
    node.inputs = (*node.inputs[:place], made, *node.inputs[place + 1 :])
