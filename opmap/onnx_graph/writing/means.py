"""Means and sums in forms that runtimes compute."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.opsets import spelled
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names


def even_pools(graph: ir.Graph, known: Known) -> None:
    """Where an AveragePool pads one end more than the other, let a Pad add zeros and the pool
    divide by all elements of its window; what is multiplied by then leaves the zeros out."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        pads, sizes = _uneven_pads(node), known.sizes(node.inputs[0]) if node.inputs else None
        if pads is None or sizes is None:
            nodes.append(node)
            continue
        rank, (made,) = len(pads) // 2, node.outputs
        added = AddedNodes(graph, node.name, names)
        begins, ends = pads[:rank], pads[rank:]
        around = added.ints([0, 0, *begins, 0, 0, *ends], "pads")
        counts = _counts(node, sizes[2:], begins, ends)
        window = math.prod(_numbers(node, "kernel_shape", rank))
        del node.attributes["pads"]
        node.inputs = (added.op("Pad", node.inputs[0], around),)
        node.give(0, mean := added.value("mean"))
        factor = (window / counts[np.newaxis, np.newaxis]).astype(np.float32)
        added.nodes.append(node)
        added.emit("Mul", [mean, added.constant(factor, "factor")], [made])
        nodes += added.nodes
    graph.nodes = nodes


def _uneven_pads(node: ir.Node) -> list[int] | None:
    """What an AveragePool adds before and after each side; None for any other node."""
    pads = node.attributes.get("pads", ())
    if node.op_type != "AveragePool" or node.domain or not isinstance(pads, Sequence):
        return None
    plain = not any(node.attributes.get(name) for name in ("ceil_mode", "count_include_pad"))
    half = len(pads) // 2
    is_uneven = list(pads[:half]) != list(pads[half:])
    return (
        list(map(int, pads)) if plain and is_uneven and "dilations" not in node.attributes else None
    )


def _counts(
    node: ir.Node, sizes: Sequence[int], begins: Sequence[int], ends: Sequence[int]
) -> npt.NDArray[np.float64]:
    """How many elements of the picture each window has."""
    rank, counts = len(sizes), np.ones((), np.float64)
    sides = zip(
        sizes,
        begins,
        ends,
        _numbers(node, "kernel_shape", rank),
        _numbers(node, "strides", rank),
        strict=True,
    )
    for size, begin, end, window, stride in sides:
        first = np.arange(0, size + begin + end - window + 1, stride) - begin
        within = np.minimum(first + window, size) - np.maximum(first, 0)
        counts = counts[..., np.newaxis] * within
    return counts


def _numbers(node: ir.Node, name: str, rank: int) -> list[int]:
    found = node.attributes.get(name)
    return list(map(int, found)) if isinstance(found, Sequence) else [1] * rank


def sums_as_means(graph: ir.Graph, known: Known, opset: int) -> None:
    """Write the sums of a graph of codes as means times the number of elements, for a runtime that
    sums up codes and takes their zero point off once."""
    if not any(node.op_type == "DequantizeLinear" for node in graph.nodes):
        return
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        if node.op_type != "ReduceSum" or known.type(node.outputs[0]) is not ir.DataType.FLOAT:
            nodes.append(node)
            continue
        added, (made,) = AddedNodes(graph, node.name, names), node.outputs
        inputs, attributes = spelled(opset, "ReduceMean", node.inputs, node.attributes)
        mean = added.op("ReduceMean", *inputs, **attributes)
        added.emit("Mul", [mean, _count(added, node, known)], [made])
        nodes += added.nodes
    graph.nodes = nodes
    graph.drop_unread()


def _count(added: AddedNodes, node: ir.Node, known: Known) -> ir.Value:
    """How many elements a reduction makes one of."""
    sizes, axes = known.sizes(node.inputs[0]), node.inputs[1] if len(node.inputs) > 1 else None
    constant = None if axes is None else axes.const_value
    if sizes is not None and constant is not None:
        count = math.prod(sizes[axis] for axis in constant.array.tolist())
        return added.constant(np.array(count, np.float32), "count")
    shape = added.op("Shape", node.inputs[0])
    told = shape if axes is None else added.op("Gather", shape, axes)
    reals = added.value("reals")
    added.emit("Cast", [told], [reals], to=ir.DataType.FLOAT)
    return added.op("ReduceProd", reals, keepdims=0)
