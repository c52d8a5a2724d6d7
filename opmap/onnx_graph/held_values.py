"""Values that bodies read, held where ONNX Runtime's optimisers cannot move codes behind them."""

from __future__ import annotations

from tflite_ort.opmap.onnx_graph import ir

# What ONNX Runtime moves a DequantizeLinear behind, of what translators make.
_PASSED = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


def hold_values(graph: ir.Graph) -> None:
    """Put a Max of one value, which is that value, between a body and codes that became floats.

    ONNX Runtime 1.32 moves a DequantizeLinear behind a Reshape and the like. If the body of a Loop
    or an If reads the result, that ends the process: such a reader is none of the node's inputs.
    """
    bodies = [body for node in graph.nodes for body in node.bodies]
    read = set[int]().union(*(body.read_ids() for body in bodies))
    if not read:
        return
    nodes: list[ir.Node] = []
    for node in graph.nodes:
        nodes.append(node)
        value = node.outputs[0]
        if id(value) in read and _is_dequantized(node):
            held = ir.Value(f"{value.name}/held", dtype=value.dtype, shape=value.shape)
            node.give(0, held)
            nodes.append(ir.Node("Max", [held], [value], name=f"{value.name}/Max"))
        for body in node.bodies:
            hold_values(body)
    graph.nodes = nodes


def _is_dequantized(node: ir.Node) -> bool:
    """Whether what nodes such as Reshape give comes from a DequantizeLinear."""
    if node.op_type not in _PASSED:
        return False
    maker: ir.Node | None = node
    while maker is not None and maker.op_type in _PASSED:
        source = maker.inputs[0]
        maker = None if source is None else source.producer()
    return maker is not None and maker.op_type == "DequantizeLinear"
