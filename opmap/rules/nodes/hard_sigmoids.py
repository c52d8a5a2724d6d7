"""Numbers cut to [0, 6] times one number, as converters write a hard sigmoid.

A sixth of them is a HardSigmoid, of which ONNX Runtime makes a part of the convolution before it.
Another factor, as float16 has for a sixth, goes into the weights of that convolution. So the
factors of squeeze-and-excitation stay in blocks, which a product with one number would leave.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.opmap.rules.nodes.block_nodes import is_convolution
from tflite_ort.opmap.rules.rule import NodesAround

_MOST = np.float32(6)
# A factor below takes weights to where float32 has fewer bits.
_LEAST = np.float32(2.0**-20)


def join_hard_sigmoids(graph: ir.Graph, around: NodesAround) -> None:
    """Change `graph` as above."""
    reads = graph.read_counts()
    made: dict[int, ir.Node] = {}
    gone = set[int]()
    own = {id(node) for node in graph.nodes}
    for node in graph.nodes:
        clip, factor = _cut_before(node, reads), _factor(node)
        if clip is None or factor is None or id(clip) not in own:
            continue
        if factor * _MOST == 1:
            made[id(node)] = _hard_sigmoid(clip, node, factor)
        elif (layer := _layer(clip, reads)) is not None and id(layer) in own:
            made[id(node)] = _scaled_cut(layer, clip, node, factor, around.constants)
        else:
            continue
        gone.add(id(clip))
    if made:
        graph.nodes = [made.get(id(node), node) for node in graph.nodes if id(node) not in gone]


def _cut_before(node: ir.Node, reads: Counter[int]) -> ir.Node | None:
    """The Clip to [0, 6] of which nothing but `node` reads the result, and makes products."""
    if node.op_type != "Mul" or node.domain:
        return None
    for value in node.inputs:
        clip = None if value is None else value.producer()
        if clip is None or clip.op_type != "Clip" or reads[id(value)] != 1:
            continue
        low, high = clip.constant(1), clip.constant(2)
        if low is not None and high is not None and high.dtype == np.float32:
            return clip if low == 0 and high == _MOST else None
    return None


def _factor(node: ir.Node) -> np.float32 | None:
    """The one number above 0 that `node` multiplies by; it adds no dimension to the result."""
    found = next((each for each in map(node.constant, (0, 1)) if each is not None), None)
    if found is None or found.size != 1 or found.dtype != np.float32:
        return None
    shape = node.outputs[0].shape
    if found.ndim > 1 and (shape is None or len(shape) != found.ndim):
        return None
    factor = np.float32(found.reshape(()))
    return factor if _LEAST <= factor <= 1 else None


def _hard_sigmoid(clip: ir.Node, node: ir.Node, factor: np.float32) -> ir.Node:
    attributes = {"alpha": float(factor), "beta": 0.0}
    made = clip.inputs[:1], node.outputs
    return ir.Node("HardSigmoid", *made, attributes=attributes, name=node.name)


def _layer(clip: ir.Node, reads: Counter[int]) -> ir.Node | None:
    """The convolution of which nothing but `clip` reads the result."""
    source = clip.inputs[0]
    layer = None if source is None or reads[id(source)] != 1 else source.producer()
    return layer if layer is not None and is_convolution(layer) else None


def _scaled_cut(
    layer: ir.Node, clip: ir.Node, node: ir.Node, factor: np.float32, constants: Constants
) -> ir.Node:
    """The Clip of what `layer` makes by weights that have the factor in them."""
    scaled = [_scaled(each, factor, constants) for each in layer.inputs[1:]]
    layer.inputs = (layer.inputs[0], *scaled)
    most = constants.add(np.asarray(_MOST * factor), "most")
    return ir.Node("Clip", [*clip.inputs[:2], most], node.outputs, name=node.name)


def _scaled(value: ir.Value | None, factor: np.float32, constants: Constants) -> ir.Value | None:
    if value is None or value.const_value is None:
        return value
    array: npt.NDArray[np.float32] = value.const_value.array * factor
    return constants.add(array, "scaled")
