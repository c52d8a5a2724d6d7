"""Codes between QuantizeLinear and DequantizeLinear alone, for files that others read.

ONNX Runtime's CPU moves codes by any node. Other runtimes take a quantized tensor as real numbers
with a scale: each node that is not of real numbers is one that they do not find. ONNX Runtime takes
the DequantizeLinear and the QuantizeLinear around such a node out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.value_types import value_types
from tflite_ort.opmap.onnx_graph.writing.code_moves import (
    Parameters,
    alike,
    moved_inputs,
    parameters_of,
)
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# Their constants among the moved inputs are plain numbers, not tensors.
_PLAIN = frozenset({"Clip", "Pad"})
_CODES = frozenset({ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16})
# Real numbers of smaller scales are not exact: they have fewer bits.
_LEAST = float(np.finfo(np.float32).tiny) * 2**24


def move_reals(graph: ir.Graph) -> None:
    """Let nodes that move codes move real numbers: DequantizeLinear before them, QuantizeLinear
    behind. The codes stay the same."""
    types, parameters, names = value_types(graph), parameters_of(graph), Names(graph)
    nodes: list[ir.Node] = []
    for node in graph.nodes:
        told = parameters.get(id(node.outputs[0])) if node.outputs else None
        places = moved_inputs(node) if told and types[id(node.outputs[0])] in _CODES else ()
        if told is None or not places or not _keeps_codes(told):
            nodes.append(node)
            continue
        inputs = list(node.inputs)
        for place in places:
            value = inputs[place]
            assert value is not None
            if value.const_value is not None and node.op_type in _PLAIN:
                name = names.free(f"{node.name}/{place}")
                inputs[place] = graph.add_initializer(name, _reals(value.const_value, told))
            else:
                real = ir.Value(names.free(f"{node.name}/{place}"), dtype=ir.DataType.FLOAT)
                label = f"{node.name}/dequantized{place}"
                read = told if value.const_value is None else _own(told, graph, names)
                nodes.append(ir.Node("DequantizeLinear", [value, *read], [real], name=label))
                inputs[place] = real
        node.inputs = tuple(inputs)
        nodes.append(node)
        for place, value in enumerate(node.outputs):
            real = ir.Value(names.free(f"{node.name}/made{place}"), dtype=ir.DataType.FLOAT)
            node.give(place, real)
            label = f"{node.name}/quantized{place}"
            nodes.append(ir.Node("QuantizeLinear", [real, *told], [value], name=label))
    graph.nodes = nodes
    graph.drop_unread()


def end_moves_in_codes(graph: ir.Graph) -> None:
    """Behind nodes that move the real numbers of codes, which something else than these codes are
    made of, make the codes and the numbers again. Runtimes that fuse nodes look for that; ONNX
    Runtime itself makes the pair there, and since opset 21 with a zero point of another type."""
    names, replaced = Names(graph), dict[int, ir.Value]()
    readers, outputs = graph.readers(), {id(value) for value in graph.outputs}
    nodes: list[ir.Node] = []
    for node in graph.nodes:
        node.inputs = tuple(v if v is None else replaced.get(id(v), v) for v in node.inputs)
        nodes.append(node)
        told = _moved_parameters(node)
        if told is None or not _keeps_codes(told):
            continue
        for place, value in enumerate(node.outputs):
            known = [reader.op_type for reader in readers.get(id(value), ())]
            ends = id(value) in outputs
            if not ends and set(known) <= {"QuantizeLinear"}:
                continue
            codes = ir.Value(names.free(f"{value.name}/codes"), dtype=told[1].dtype)
            other = ir.Value(names.free(f"{value.name}/again"), dtype=ir.DataType.FLOAT)
            moved, again = (other, value) if ends else (value, other)
            node.give(place, moved)
            label = names.free(f"{node.name}/codes")
            nodes.append(ir.Node("QuantizeLinear", [moved, *told], [codes], name=f"{label}/to"))
            nodes.append(ir.Node("DequantizeLinear", [codes, *told], [again], name=f"{label}/from"))
            replaced[id(value)] = again
    graph.nodes = nodes


def _moved_parameters(node: ir.Node) -> Parameters | None:
    """The scale and zero point of the codes whose real numbers `node` moves; None where it moves
    something else, or numbers of several."""
    found = list[Sequence[ir.Value | None]]()
    for place in moved_inputs(node):
        value = node.inputs[place]
        before = None if value is None else value.producer()
        if before is None or before.op_type != "DequantizeLinear" or len(before.inputs) < 3:
            return None
        found.append(before.inputs[1:])
    if not found or not all(alike(found[0], each) for each in found):
        return None
    scale, zero = found[0]
    return None if scale is None or zero is None else (scale, zero)


def _keeps_codes(parameters: Parameters) -> bool:
    """Whether real numbers of codes lead to the same codes again."""
    scale, zero = (each.const_value for each in parameters)
    if scale is None or zero is None:
        return False
    return scale.array.size == 1 and bool(abs(scale.array.reshape(())) >= _LEAST)


def _own(parameters: Parameters, graph: ir.Graph, names: Names) -> Parameters:
    """A scale and a zero point for constant codes alone: see `_dequantized_constant`."""
    made = [
        graph.add_initializer(names.free(f"{value.name}/own"), value.const_value.array)
        for value in parameters
        if value.const_value is not None
    ]
    return made[0], made[1]


def _reals(codes: ir.Tensor, parameters: Sequence[ir.Value]) -> npt.NDArray[np.float32]:
    """The real numbers that constant codes stand for."""
    scale, zero = (each.const_value for each in parameters)
    assert scale is not None
    assert zero is not None
    steps = codes.array.astype(np.int64) - zero.array.astype(np.int64)
    real: npt.NDArray[np.float32] = steps.astype(np.float32) * scale.array.reshape(zero.shape)
    return real


def say_zero_points(graph: ir.Graph) -> None:
    """Give each DequantizeLinear of 32-bit codes, which biases are, the zero point 0: ONNX
    Runtime's converter for phones, and others, look for one."""
    names, made = Names(graph), dict[tuple[int, ...], ir.Value]()
    for node, _, scale in _dequantized_biases(graph):
        if scale.shape not in made:
            name = names.free(f"zero_{'_'.join(map(str, scale.shape))}")
            made[scale.shape] = graph.add_initializer(name, np.zeros(scale.shape, np.int32))
        node.inputs = *node.inputs[:2], made[scale.shape]


def fold_biases(graph: ir.Graph) -> None:
    """Make floats of 32-bit codes, for runtimes that dequantize 8 bits alone."""
    gone, names = dict[int, ir.Value](), Names(graph)
    for node, codes, scale in _dequantized_biases(graph):
        real = codes.array.astype(np.float32) * scale.array
        (made,) = node.outputs
        gone[id(made)] = graph.add_initializer(names.free(f"{made.name}/folded"), real)
    for node in graph.all_nodes():
        node.inputs = tuple(v if v is None else gone.get(id(v), v) for v in node.inputs)
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    graph.drop_unread()


def _dequantized_biases(graph: ir.Graph) -> Iterator[tuple[ir.Node, ir.Tensor, ir.Tensor]]:
    """Each DequantizeLinear of constant 32-bit codes without a zero point, with its constants."""
    for node in graph.all_nodes():
        if node.op_type != "DequantizeLinear" or len(node.inputs) > 2:
            continue
        codes, scale = (None if each is None else each.const_value for each in node.inputs)
        if codes is not None and scale is not None and codes.dtype is ir.DataType.INT32:
            yield node, codes, scale
