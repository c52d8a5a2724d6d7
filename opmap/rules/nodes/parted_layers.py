"""What some accelerators join and then compute wrongly is parted by a LeakyRelu of slope 1.

It costs less than a node that keeps the two apart.

- A convolution of codes and an Add of codes behind it are one step. The rounding between the two is
  left out, if it is the first thing behind the convolution.
- An attention whose query, key and value are one tensor is one step with an Add behind it. It ends
  the process where the sum is multiplied by what is computed of it.
- Dense layers of codes one behind the other are one step for up to 15 rows. If one of them has no
  bias, the results are what happens to be in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

_PRODUCTS = ("Gemm", "MatMul")
_MOVES = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")


def part_layers(graph: ir.Graph, around: NodesAround) -> None:
    """Do so in `graph` and in bodies."""
    reads = graph.read_counts()
    adds = [node for node in graph.nodes if node.op_type == "Add"]
    layers = {id(layer) for add in adds for layer in _added_layers(add, reads)}
    layers |= {id(node) for node in graph.nodes if _lacks_a_bias(node)}
    nodes = list[ir.Node]()
    for node in graph.nodes:
        nodes.append(node)
        for body in node.bodies:
            part_layers(body, around)
        if id(node) not in layers:
            continue
        (made,) = node.outputs
        sums = ir.Value(f"{made.name}/sums", dtype=made.dtype, shape=made.shape)
        node.give(0, sums)
        same = {"alpha": 1.0}
        nodes.append(
            ir.Node("LeakyRelu", [sums], [made], attributes=same, name=f"{node.name}/LeakyRelu")
        )
    graph.nodes = nodes


def _added_layers(add: ir.Node, reads: Counter[int]) -> Iterator[ir.Node]:
    """The convolutions whose codes an Add alone reads, and the attentions that it reads."""
    for term in add.inputs:
        value, product = term, None if term is None else term.producer()
        if product is not None and product.op_type == "MatMul" and _is_attention(product):
            yield product
        for kinds in (("DequantizeLinear",), ("QuantizeLinear",)):
            value = _behind(value, kinds, reads)
        limited = _behind(value, ("Clip", "Relu"), reads)
        layer = None if value is None else (limited or value).producer()
        if layer is not None and layer.op_type == "Conv" and reads[id(layer.outputs[0])] == 1:
            yield layer


def _lacks_a_bias(node: ir.Node) -> bool:
    """Whether a node is a dense layer of codes that adds nothing."""
    if node.op_type not in _PRODUCTS or node.domain:
        return False
    data, weights, *biases = node.inputs
    if not (_are_codes(data) and _are_codes(weights)):
        return False
    return all(bias is None or _is_zero(bias) for bias in biases)


def _are_codes(value: ir.Value | None) -> bool:
    """Whether a value is what codes stand for, in whatever order."""
    node = None if value is None else value.producer()
    while node is not None and node.op_type in _MOVES:
        node = None if node.inputs[0] is None else node.inputs[0].producer()
    return node is not None and node.op_type == "DequantizeLinear"


def _is_zero(bias: ir.Value) -> bool:
    """Whether a constant is 0, as codes or as floats."""
    node = bias.producer()
    if node is not None and node.op_type == "DequantizeLinear" and node.inputs[0] is not None:
        bias = node.inputs[0]
    return bias.const_value is not None and not bias.const_value.array.any()


def _is_attention(product: ir.Node) -> bool:
    """Whether a MatMul multiplies what a Softmax makes."""
    weights = None if product.inputs[0] is None else product.inputs[0].producer()
    return weights is not None and weights.op_type == "Softmax"


def _behind(value: ir.Value | None, kinds: tuple[str, ...], reads: Counter[int]) -> ir.Value | None:
    """What a node of these kinds makes `value` of; None where another node does, or where several
    read it."""
    node = None if value is None or reads[id(value)] != 1 else value.producer()
    return node.inputs[0] if node is not None and node.op_type in kinds else None
