"""Parts of nodes that say what holds without them: zeros that are added, first states of zeros, and
lists of attributes that are the default."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.opmap.onnx_graph import ir

# By node, the inputs that may be left out where they are zeros: biases and first states.
_ZEROS = {
    "Conv": (2,),
    "ConvTranspose": (2,),
    "Gemm": (2,),
    "GRU": (3, 5),
    "LSTM": (3, 5, 6),
    "RNN": (3, 5),
}
_LAYERS = frozenset({"GRU", "LSTM", "RNN"})
# By attribute, the nodes that have these numbers where nothing is told. Strides of pools are told:
# some frameworks have others.
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_WINDOWS = _CONVOLUTIONS | {"AveragePool", "MaxPool"}
_USUAL = {
    "pads": (_WINDOWS, 0),
    "dilations": (_WINDOWS, 1),
    "strides": (_CONVOLUTIONS, 1),
    "output_padding": (_CONVOLUTIONS, 0),
}


def leave_out_usual_parts(graph: ir.Graph) -> None:
    """Leave out such parts, and the states of layers that nothing reads."""
    given = set(map(id, graph.inputs))  # they have first values, and others when the graph runs
    read = graph.read_ids() | {id(value) for value in graph.outputs}
    read |= {id(v) for node in graph.all_nodes() for body in node.bodies for v in body.outputs}
    for node in graph.all_nodes():
        if node.domain:
            continue
        for place in _ZEROS.get(node.op_type, ()):
            numbers = node.constant(place)
            if numbers is not None and not numbers.any() and id(node.inputs[place]) not in given:
                node.inputs = (*node.inputs[:place], None, *node.inputs[place + 1 :])
        while node.op_type in _ZEROS and node.inputs[-1] is None:
            node.inputs = node.inputs[:-1]
        while node.op_type in _LAYERS and id(node.outputs[-1]) not in read:
            node.outputs = node.outputs[:-1]
        _leave_out_attributes(node)
    graph.drop_unread()


def _leave_out_attributes(node: ir.Node) -> None:
    for name, (kinds, usual) in _USUAL.items():
        numbers = node.attributes.get(name)
        if node.op_type in kinds and isinstance(numbers, Sequence) and set(numbers) == {usual}:
            del node.attributes[name]
    axes = node.constant(1)
    if axes is not None and axes.size:
        node.attributes.pop("noop_with_empty_axes", None)
