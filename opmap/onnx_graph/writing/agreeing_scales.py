"""One scale for a tensor of codes, wherever it is made and read.

Means of codes are computed in steps of one unit, which keeps halves exact in ONNX Runtime. A
runtime that has one scale for each tensor reads the scale of the nodes beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.code_moves import alike, moved_values

# They give a multiple of the result for the same multiple of their input.
_MEANS = frozenset({"AveragePool", "GlobalAveragePool", "ReduceMean"})
# The step of a mean is larger by up to 2.5e-4, so that halves are rounded up. Over 255 codes that
# is less than a tenth of a quantum.
_SAME = 3e-4
_NEAR = 0.1


def agree_scales(graph: ir.Graph) -> None:
    """Let means read the codes of a tensor with its scale and zero point, and make codes with the
    scale with which they are read. Halves are then rounded to even."""
    readers = graph.readers()
    for node in graph.nodes:
        mean = _mean_before(node)
        given = None if mean is None else mean.inputs[0]
        before = None if given is None else given.producer()
        if mean is None or before is None or before.op_type != "DequantizeLinear":
            continue
        if before.inputs[0] is None or len(readers.get(id(given), ())) != 1:
            continue
        maker = before.inputs[0].producer()
        after = _read_by(node.outputs[0], readers)
        if maker is None or maker.op_type != "QuantizeLinear" or after is None:
            continue
        if _means_the_same((maker, before), (node, after)):
            before.inputs = (before.inputs[0], *maker.inputs[1:])
            node.inputs = (mean.outputs[0], *after.inputs[1:])
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    graph.drop_unread()


def _mean_before(node: ir.Node) -> ir.Node | None:
    """The mean whose result `node` quantizes, rounded up at halves before or not."""
    if node.op_type != "QuantizeLinear" or node.inputs[0] is None:
        return None
    found = node.inputs[0].producer()
    if found is not None and found.op_type == "Floor" and found.inputs[0] is not None:
        found = found.inputs[0].producer()
        is_half = found is not None and found.op_type == "Add" and _number(found.inputs[1]) == 0.5
        given = found.inputs[0] if found is not None and is_half else None
        found = None if given is None else given.producer()
    return found if found is not None and found.op_type in _MEANS else None


def _read_by(codes: ir.Value, readers: Mapping[int, Sequence[ir.Node]]) -> ir.Node | None:
    """A node that dequantizes codes, moved or as they are, if all do it alike."""
    found, waiting = list[ir.Node](), [codes]
    while waiting:
        value = waiting.pop()
        for node in readers.get(id(value), ()):
            if node.op_type == "DequantizeLinear":
                found.append(node)
            elif value in moved_values(node):
                waiting += node.outputs
            else:
                return None
    same = all(alike(found[0].inputs[1:], node.inputs[1:]) for node in found)
    return found[0] if found and same else None


def _means_the_same(given: Sequence[ir.Node], made: Sequence[ir.Node]) -> bool:
    """Whether codes of a mean are the same with other scales and zero points.

    Args:
        given: the nodes that make the codes and that read them before the mean.
        made: the nodes that make the codes of the mean and that read them.
    """
    own, step, unit, read = (_number(each.inputs[1]) for each in (*given, *made))
    if 0 in (own, step, unit, read):
        return False
    first, second, third, last = (
        _number(each.inputs[2]) if len(each.inputs) > 2 else 0.0 for each in (*given, *made)
    )
    ratio = step / unit
    moved = (third - second * ratio) - (last - first * own / read)
    return abs(own / read - ratio) <= _SAME * ratio and abs(moved) < _NEAR


def _number(value: ir.Value | None) -> float:
    """A constant of one number; 0 for anything else, which no scale is."""
    constant = None if value is None else value.const_value
    if constant is None or constant.array.size != 1:
        return 0.0
    return float(constant.array.reshape(()))
