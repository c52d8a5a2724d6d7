"""Quantized convolutions in one node, which is what ONNX Runtime makes of them.

A translator writes a layer as five nodes: DequantizeLinear of the input, the weights and the bias,
Conv and QuantizeLinear. ONNX Runtime's optimiser makes one QLinearConv of them, with the same
numbers. To read five nodes and to find the group takes it longer than all else: a session of
MobileNet V2 takes 14 ms of groups and 7 ms of layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

_CODES, _BIAS = ir.DataType.UINT8, ir.DataType.INT32
_WEIGHTS = frozenset({ir.DataType.INT8, ir.DataType.UINT8})
_ALONG_FIRST = {"axis": 0}


def fuse_layers(graph: ir.Graph, around: NodesAround) -> None:
    """Make one node of each group of which ONNX Runtime's CPU provider makes one."""
    reads = graph.read_counts()
    fused: dict[int, ir.Node] = {}
    absorbed: set[int] = set()
    for end in graph.nodes:
        convolution = _convolution(end, reads)
        inputs = None if convolution is None else _layer_inputs(convolution, end)
        if convolution is not None and inputs is not None:
            absorbed.add(id(convolution))
            attributes, name = convolution.attributes, convolution.name
            layer = ir.Node("QLinearConv", inputs, end.outputs, attributes=attributes, name=name)
            fused[id(end)] = layer
    if fused:
        graph.nodes = [fused.get(id(n), n) for n in graph.nodes if id(n) not in absorbed]
        _drop_unread(graph)


def _convolution(end: ir.Node, reads: Counter[int]) -> ir.Node | None:
    """The Conv whose result is read by this QuantizeLinear and by nothing else."""
    value = end.inputs[0] if end.op_type == "QuantizeLinear" else None
    node = None if value is None or reads[id(value)] != 1 else value.producer()
    return node if node is not None and (node.op_type, node.domain) == ("Conv", "") else None


def _layer_inputs(convolution: ir.Node, end: ir.Node) -> list[ir.Value] | None:
    """The inputs of the layer that both are; None where ONNX Runtime has no such layer."""
    x, weights, *rest = map(_dequantized, convolution.inputs)
    if x is None or weights is None or None in rest or end.attributes:
        return None
    codes, parameters = x[0], _parameters(end.inputs[1:], _CODES)
    if codes.const_value is not None or parameters is None or len(x) != 3:
        return None
    if _parameters(x[1:], _CODES) is None or _type(weights[0]) not in _WEIGHTS or len(weights) != 3:
        return None
    bias = [each[0] for each in rest if each is not None]
    if any(_type(each) is not _BIAS for each in bias):
        return None
    return [*x, *weights, *parameters, *bias]


def _dequantized(value: ir.Value | None) -> Sequence[ir.Value] | None:
    """The codes, scale and zero point of which a DequantizeLinear makes `value`, of weights by
    their first axis."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != "DequantizeLinear":
        return None
    if node.attributes not in ({}, _ALONG_FIRST):
        return None
    inputs = [each for each in node.inputs if each is not None]
    return None if None in [each.const_value for each in inputs[1:]] else inputs


def _parameters(
    values: Sequence[ir.Value | None], kind: ir.DataType
) -> tuple[ir.Value, ir.Value] | None:
    """A scale and a zero point of this type, if they are constant numbers."""
    scale, zero_point = (*values, None, None)[:2]
    if scale is None or zero_point is None or _type(zero_point) is not kind:
        return None
    constants = (scale.const_value, zero_point.const_value)
    single = False not in [each is not None and each.shape == () for each in constants]
    return (scale, zero_point) if single else None


def _type(value: ir.Value) -> ir.DataType | None:
    """The type of a constant."""
    return None if value.const_value is None else value.const_value.dtype


def _drop_unread(graph: ir.Graph) -> None:
    """Leave out what nothing reads any more."""
    read = graph.read_ids() | set(map(id, graph.outputs))
    graph.nodes = [
        node
        for node in graph.nodes
        if node.op_type != "DequantizeLinear" or id(node.outputs[0]) in read
    ]
    read = graph.read_ids() | set(map(id, graph.outputs))
    graph.initializers = {
        name: value for name, value in graph.initializers.items() if id(value) in read
    }
