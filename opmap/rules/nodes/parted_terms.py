"""What convolutions of codes and attentions give to an Add is parted from it.

Some accelerators make one step of a convolution of codes and of an Add of codes behind it. They
leave out the rounding between the two, if it is the first thing behind the convolution. They do so
with an Add behind an attention too, whose query, key and value are one tensor, and end the process
where its results are multiplied by what is computed of them. So a LeakyRelu that changes nothing
comes first. It costs less than a node that keeps the two apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround


def part_terms(graph: ir.Graph, around: NodesAround) -> None:
    """Do so in `graph` and in bodies, where an Add alone reads what a convolution makes."""
    reads = graph.read_counts()
    adds = [node for node in graph.nodes if node.op_type == "Add"]
    layers = {id(layer) for add in adds for layer in _added_layers(add, reads)}
    nodes = list[ir.Node]()
    for node in graph.nodes:
        nodes.append(node)
        for body in node.bodies:
            part_terms(body, around)
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


def _is_attention(product: ir.Node) -> bool:
    """Whether a MatMul multiplies what a Softmax makes."""
    weights = None if product.inputs[0] is None else product.inputs[0].producer()
    return weights is not None and weights.op_type == "Softmax"


def _behind(value: ir.Value | None, kinds: tuple[str, ...], reads: Counter[int]) -> ir.Value | None:
    """What a node of these kinds makes `value` of; None where another node does, or where several
    read it."""
    node = None if value is None or reads[id(value)] != 1 else value.producer()
    return node.inputs[0] if node is not None and node.op_type in kinds else None
