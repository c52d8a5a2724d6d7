"""Outputs that a session may write over the inputs that they replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tflite_ort.plan.memory import Memory
from tflite_ort.schema import TensorView

if TYPE_CHECKING:
    from tflite_ort.opmap.onnx_graph import ir

# Nodes that write some places of their first input. Where their output is bound to the memory of
# this input, ONNX Runtime's kernels for the CPU write these places and copy nothing.
_WRITE_PLACES = frozenset({"ScatterND", "TensorScatter"})

Pairs = list[tuple[int, int]]


def in_place_pairs(
    inputs: Sequence[TensorView], outputs: Sequence[TensorView], graph: ir.Graph
) -> Pairs:
    """The inputs and outputs of a session on the CPU that may stand in one array.

    A node that writes some places of the input makes the output, and nothing else reads the input.
    So nothing reads it after the node has begun to write, in whichever order the nodes run.

    Args:
        inputs, outputs: those of `graph`, in its order.
    """
    makers = [value.producer() for value in graph.outputs]
    if not any(node is not None and node.op_type in _WRITE_PLACES for node in makers):
        return []
    reads = graph.read_counts()
    made = [id(value) for value in graph.outputs]
    sources = {id(value): tensor for value, tensor in zip(graph.inputs, inputs, strict=True)}
    pairs = []
    for value, node, target in zip(graph.outputs, makers, outputs, strict=True):
        if node is None or node.op_type not in _WRITE_PLACES or made.count(id(value)) > 1:
            continue
        first = node.inputs[0]
        source = sources.get(id(first))
        if source is None or reads[id(first)] > 1:
            continue
        if (source.shape, source.type) == (target.shape, target.type):
            pairs.append((source.index, target.index))
    return pairs


def share(pairs: Sequence[Sequence[int]], memory: Memory) -> None:
    """Let the pairs that are kept between invokes stand in one array each."""
    for source, target in pairs:
        if memory.kept.get(target) == source and source in memory.arrays:
            memory.arrays[target] = memory.arrays[source]
