"""Convolutions whose channels are sliced, as one convolution a slice, see `keep_blocks`."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import Uses
from tflite_ort.opmap.rules.nodes.block_nodes import (
    BY_ELEMENT,
    is_convolution,
    is_dense,
    replace_constant,
)


def part_all(graph: ir.Graph, uses: Uses, block: int) -> None:
    for node in list(graph.nodes):
        source = node.inputs[0] if node.op_type == "Slice" else None
        if source is None or uses.of(source)[0] is not node or id(source) in uses.elsewhere:
            continue
        slices = [(each, _bounds(each)) for each in uses.of(source)]
        chain = _chain(source, uses)
        if chain and all(b is not None and (b[1] - b[0]) % block == 0 < b[1] for _, b in slices):
            _part(graph, chain, source, slices)


def _bounds(node: ir.Node) -> tuple[int, int] | None:
    """The channels that a Slice takes: the first, and the one after the last."""
    constants = node.constants()
    if node.op_type != "Slice" or any(each is None or each.size != 1 for each in constants):
        return None
    first, last, *rest = (int(each.item()) for each in constants if each is not None)
    is_whole = rest in ([1], [1, 1]) and 0 <= first < last  # along axis 1, in steps of 1
    return (first, last) if is_whole else None


def _chain(value: ir.Value, uses: Uses) -> list[ir.Node]:
    """A dense convolution and what follows it up to `value`, element by element; nothing where
    something else reads a value between them."""
    nodes, waiting = dict[int, ir.Node](), [value]
    while waiting:
        node = waiting.pop().producer()
        if node is None or (nodes and not set(map(id, uses.of(node.outputs[0]))) <= nodes.keys()):
            return []
        if id(node.outputs[0]) in uses.elsewhere or id(node) in nodes:
            return []
        nodes[id(node)] = node
        if is_convolution(node) and is_dense(node):
            continue
        if node.op_type not in BY_ELEMENT or node.domain:
            return []
        read = {id(each): each for each in node.inputs if each is not None}
        if any(v.const_value is not None and v.const_value.array.size > 1 for v in read.values()):
            return []
        waiting += [v for v in read.values() if v.const_value is None and v not in waiting]
        # A value that several nodes read is looked at behind all of them.
        waiting.sort(key=lambda v: not set(map(id, uses.of(v))) <= nodes.keys(), reverse=True)
    chain = list(nodes.values())[::-1]
    return chain if sum(map(is_convolution, chain)) == 1 and is_convolution(chain[0]) else []


def _part(
    graph: ir.Graph,
    chain: Sequence[ir.Node],
    result: ir.Value,
    slices: Sequence[tuple[ir.Node, tuple[int, int] | None]],
) -> None:
    """Replace `chain` by one chain for each of the slices of its result."""
    made = list[ir.Node]()
    for number, (node, bounds) in enumerate(slices):
        assert bounds is not None
        values = {id(result): node.outputs[0]}
        for each in chain:
            output = values.setdefault(id(each.outputs[0]), _like(each.outputs[0], number))
            inputs = [None if v is None else values.get(id(v), v) for v in each.inputs]
            name = f"{each.name}/part/{number}"
            copy = ir.Node(each.op_type, inputs, [output], attributes=each.attributes, name=name)
            made.append(copy)
            if is_convolution(each):
                for place in (1, 2):
                    array = each.constant(place)
                    if array is not None:
                        replace_constant(graph, copy, place, array[slice(*bounds)])
    gone = {id(node) for node in (*chain, *(node for node, _ in slices))}
    place = next(i for i, node in enumerate(graph.nodes) if node is chain[0])
    graph.nodes[place:place] = made
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]


def _like(value: ir.Value, number: int) -> ir.Value:
    return ir.Value(f"{value.name}/part/{number}", dtype=value.dtype)
