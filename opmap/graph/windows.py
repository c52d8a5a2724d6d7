"""The window of steps that a streaming layer keeps, as rows of a graph's input and output.

A variable holds W numbers of M steps each, [1, W * M], with the steps of a number side by side. A
graph that joins the newest step to the others wants rows of W numbers, one a step, often in another
type. `with_newest` adds the nodes between the two. `take_window` takes them out again where whoever
runs the graph keeps rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy.typing as npt

from tflite_ort.opmap.graph.forms import Domain
from tflite_ort.opmap.graph.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

_STEPS = frozenset({"steps of a window"})


def has_window(tensor: TensorView, memory: int) -> bool:
    """Whether a variable can be rows of steps: of one sequence, of more steps than one, and of a
    type that graphs carry as it is."""
    carried = tensor.type is not TensorType.INT8
    return carried and is_known(*tensor.shape) and tensor.shape[0] == 1 and memory > 1


def with_newest(
    g: Graph, tensor: TensorView, newest: ir.Value, memory: int, dtype: ir.DataType
) -> ir.Value:
    """The steps [M, W] of the variable `tensor` after the step `newest` [1, W], which is of
    `dtype`; the variable is written too."""
    own = g.boundary_type(tensor)
    kept = g.reshape(g.read(tensor, domain=Domain.STORED), (-1, memory))
    kept = g.op("Transpose", kept, perm=[1, 0])
    kept = g.op("Slice", kept, *(g.ints([bound]) for bound in (1, memory, 0)))
    kept = kept if own is dtype else g.cast(kept, dtype)
    steps = g.op("Concat", kept, newest, axis=0)
    steps.dtype, steps.marks = dtype, _STEPS
    made = steps if own is dtype else g.cast(steps, own)
    made = g.reshape(g.op("Transpose", made, perm=[1, 0]), (1, -1))
    g.write(tensor, made, domain=Domain.STORED)
    return steps


def take_window(
    graph: ir.Graph, source: int, result: int
) -> tuple[tuple[int, int], npt.DTypeLike] | None:
    """Make the input `source` of `graph` all steps of a window but the newest, [M - 1, W], and the
    output `result` all of them, [M, W].

    Returns:
        The shape and the type of the output; None where the graph has no nodes of `with_newest`
        there, and stays as it is.
    """
    given, reads = graph.inputs[source], graph.read_counts()
    written = _chain_of(graph.outputs[result], ("Reshape", "Transpose", "Cast"), reads)
    steps = written[-1]
    join = steps.producer()
    if steps.marks != _STEPS or join is None or join.inputs[0] is None:
        return None
    kept = _chain_of(join.inputs[0], ("Cast", "Slice", "Transpose", "Reshape"), reads)
    if kept[-1] is not given or reads[id(given)] != 1 or len(kept) < 4:
        return None
    assert steps.dtype is not None
    memory, width = steps.shape = _sizes(kept, given)
    given.dtype, given.shape = steps.dtype, (memory - 1, width)
    join.inputs = (given, *join.inputs[1:])
    graph.outputs[result] = steps
    gone = {id(value) for value in (*written[:-1], *kept[:-1])}
    graph.nodes = [node for node in graph.nodes if id(node.outputs[0]) not in gone]
    return steps.shape, steps.dtype.numpy()


def _chain_of(value: ir.Value, op_types: Sequence[str], reads: Counter[int]) -> list[ir.Value]:
    """`value` and the values before it, through nodes of these types in turn. Each value is read
    once. A Cast may be missing."""
    found = [value]
    for op_type in op_types:
        node = found[-1].producer()
        if node is None or node.op_type != op_type or reads[id(found[-1])] != 1:
            if op_type == "Cast":
                continue
            break
        assert node.inputs[0] is not None
        found.append(node.inputs[0])
    return found


def _sizes(kept: Sequence[ir.Value], given: ir.Value) -> tuple[int, int]:
    """The number of steps, where the Slice ends, and the count of numbers in a step."""
    nodes = (value.producer() for value in kept)
    (end,) = (node.inputs[2] for node in nodes if node is not None and node.op_type == "Slice")
    assert end is not None
    assert end.const_value is not None
    assert given.shape is not None
    memory, size = int(end.const_value.array.item()), given.shape[1]
    assert isinstance(size, int)
    return memory, size // memory
