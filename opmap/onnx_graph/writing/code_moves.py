"""Nodes that move quantized codes or compare them, and compute with none.

They give the same for codes, for codes that are moved by 128, and for the real numbers that codes
stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflite_ort.opmap.onnx_graph import ir

_FIRST = (0,)
# By node, the inputs that are codes; None: all of them.
_MOVED: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"), _FIRST),
    **dict.fromkeys(("Slice", "Split", "Gather", "GatherND", "GatherElements"), _FIRST),
    **dict.fromkeys(("Expand", "Tile", "Identity", "DepthToSpace", "SpaceToDepth"), _FIRST),
    **dict.fromkeys(("MaxPool", "Resize", "ReduceMax", "ReduceMin"), _FIRST),
    **dict.fromkeys(("Concat", "Max", "Min"), None),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (0, 2)),
    "Clip": (0, 1, 2),
    "Pad": (0, 2),
    "Where": (1, 2),
}
# These give places, and compare codes.
COMPARING = frozenset({"ArgMax", "ArgMin"})


def moved_inputs(node: ir.Node) -> tuple[int, ...]:
    """The numbers of the inputs whose elements `node` moves to its outputs; none where it computes
    something else of them."""
    if node.domain or node.op_type not in _MOVED:
        return ()
    if node.op_type == "Resize" and node.attributes.get("mode", "nearest") != "nearest":
        return ()
    if node.attributes.get("reduction", "none") != "none":
        return ()
    if node.op_type == "Pad" and not _pads_a_value(node):
        return ()
    if node.op_type == "MaxPool" and len(node.outputs) > 1:
        return ()
    places = _MOVED[node.op_type]
    given = range(len(node.inputs)) if places is None else places
    return tuple(i for i in given if i < len(node.inputs) and node.inputs[i] is not None)


def moved_values(node: ir.Node) -> Iterator[ir.Value]:
    """The inputs that `moved_inputs` names."""
    for place in moved_inputs(node):
        value = node.inputs[place]
        assert value is not None
        yield value


def _pads_a_value(node: ir.Node) -> bool:
    """Whether Pad says what it fills with, or copies; a 0 that is not said is another number as
    another code."""
    said = len(node.inputs) > 2 and node.inputs[2] is not None
    return said or node.attributes.get("mode", "constant") != "constant"


Parameters = tuple[ir.Value, ir.Value]


def parameters_of(graph: ir.Graph) -> dict[int, Parameters]:
    """The scale and the zero point of values of codes, by `id`, where nodes tell them."""
    found = dict[int, Parameters]()
    for node in graph.nodes:
        if node.op_type == "QuantizeLinear" and len(node.inputs) > 2:
            _, scale, zero = node.inputs
            if scale is not None and zero is not None:
                found[id(node.outputs[0])] = scale, zero
        elif node.op_type == "DequantizeLinear" and len(node.inputs) > 2:
            codes, scale, zero = node.inputs
            if scale is not None and zero is not None:
                found.setdefault(id(codes), (scale, zero))
        else:
            told = next((found[id(v)] for v in moved_values(node) if id(v) in found), None)
            if told is not None:
                found.update((id(value), told) for value in node.outputs)
    for node in reversed(graph.nodes):
        told = found.get(id(node.outputs[0])) if node.outputs else None
        if told is not None:
            for value in moved_values(node):
                found.setdefault(id(value), told)
    return found


def alike(first: Sequence[ir.Value | None], second: Sequence[ir.Value | None]) -> bool:
    """Whether scales and zero points are the same constants, of one number each."""
    for one, other in zip(first, second, strict=False):
        if one is None or other is None or one.const_value is None or other.const_value is None:
            return False
        a, b = one.const_value.array, other.const_value.array
        if a.size != 1 or a.dtype != b.dtype or a.tobytes() != b.tobytes():
            return False
    return len(first) == len(second) > 1
