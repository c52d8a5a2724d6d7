"""Activations in the forms that a runtime computes.

- Clip of Relu and Clip of Clip, as graphs of dequantized models have them, are one node.
- OpenCV's Tanh divides powers of e, which is NaN from 44.2 on, and its Softplus is infinite from
  88.8 on. As 32-bit floats, tanh is 1 from 9.1 on, and softplus the number itself from 17 on.
- One runtime makes one node of x * tanh(log(1 + exp(x))), and then fails between two products. It
  does not where a Clip is before the Tanh.
- Some runtimes take PRelu only with one slope for each channel.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# What makes the number whose tanh Mish multiplies by.
SOFTPLUS = frozenset({"Log", "Softplus"})
# What a bound that is not said allows.
_OPEN = (-np.inf, np.inf)
Bounds = tuple[float, float]
_MOST = np.float32(20)
_OF_CHANNELS = 3  # the rank of a slope for each channel of pictures [N, C, H, W]


def join_clips(graph: ir.Graph) -> None:
    """Make one Clip of two nodes in a row that clip floats, where nothing else reads between."""
    reads, names = graph.read_counts(), Names(graph)
    for node in graph.nodes:
        bounds, value = _bounds(node), node.inputs[0] if node.inputs else None
        before = None if value is None else value.producer()
        if bounds is None or before is None or reads[id(value)] != 1:
            continue
        inner, source = _bounds(before), before.inputs[0]
        if inner is None or source is None:
            continue
        low = min(max(inner[0], bounds[0]), bounds[1])
        high = max(min(inner[1], bounds[1]), bounds[0])
        ends_of = [
            None
            if np.isinf(bound)
            else graph.add_initializer(
                names.free(f"{node.name}/{what}"), np.array(bound, np.float32)
            )
            for bound, what in ((low, "low"), (high, "high"))
        ]
        node.op_type, node.inputs = "Clip", (source, *ends_of)
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    graph.drop_unread()


def _bounds(node: ir.Node) -> Bounds | None:
    """What `node` clips floats to; None for any other node."""
    if node.op_type == "Relu" and not node.domain:
        return 0.0, np.inf
    if node.op_type != "Clip" or node.domain:
        return None
    found = list(_OPEN)
    for place, value in enumerate(node.inputs[1:]):
        if value is None:
            continue
        constant = value.const_value
        if constant is None or constant.dtype is not ir.DataType.FLOAT or constant.array.size != 1:
            return None
        found[place] = float(constant.array.reshape(()))
    return found[0], found[1]


def bound_tanhs(graph: ir.Graph, of: frozenset[str] = frozenset()) -> None:
    """Put a Clip before each Tanh and Softplus, which changes no result.

    Args:
        of: only where what they read comes from such a node; empty: everywhere.
    """
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        before = node.inputs[0].producer() if node.inputs and node.inputs[0] else None
        is_meant = not of or (before is not None and before.op_type in of)
        if node.op_type not in ("Tanh", "Softplus") or node.domain or not is_meant:
            nodes.append(node)
            continue
        is_tanh, (x,) = node.op_type == "Tanh", node.inputs
        ends = [
            graph.add_initializer(names.free(f"{node.name}/{name}"), np.array(end, np.float32))
            for name, end in (("least", -_MOST if is_tanh else -np.inf), ("most", _MOST))
        ]
        near = ir.Value(names.free(f"{node.name}/near"))
        label = names.free(f"{node.name}/Clip")
        nodes.append(ir.Node("Clip", [x, *ends], [near], name=label))
        node.inputs = (near,)
        nodes.append(node)
        if not is_tanh:
            (made,) = node.outputs
            small = ir.Value(names.free(f"{node.name}/small"))
            node.give(0, small)
            label = names.free(f"{node.name}/Max")
            nodes.append(ir.Node("Max", [small, x], [made], name=label))
    graph.nodes = nodes


def part_prelus(graph: ir.Graph) -> None:
    """Write PRelu as Relu(x) + slope * Min(x, 0), of which one is 0, so that the sum is exact; but
    not where there is a slope for each channel of a picture, [C, 1, 1]."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        slope = node.inputs[1] if node.op_type == "PRelu" and not node.domain else None
        if slope is None or _is_of_channels(slope):
            nodes.append(node)
            continue
        x, zero = node.inputs[0], f"{node.name}/zero"
        nothing = graph.add_initializer(names.free(zero), np.zeros((), np.float32))
        above, below, scaled = (
            ir.Value(names.free(f"{node.name}/{op}_out")) for op in ("Relu", "Min", "Mul")
        )
        for op, inputs, made in (
            ("Relu", [x], above),
            ("Min", [x, nothing], below),
            ("Mul", [slope, below], scaled),
        ):
            nodes.append(ir.Node(op, inputs, [made], name=names.free(f"{node.name}/{op}")))
        label = names.free(f"{node.name}/Add")
        nodes.append(ir.Node("Add", [above, scaled], node.outputs, name=label))
    graph.nodes = nodes


def _is_of_channels(slope: ir.Value) -> bool:
    sizes = list(slope.shape or ())
    while len(sizes) > _OF_CHANNELS and sizes[0] == 1:
        del sizes[0]
    return len(sizes) == _OF_CHANNELS and all(size == 1 for size in sizes[1:])
