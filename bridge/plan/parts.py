"""Tensors that a session has in another shape than the interpreter, or as a part of a larger one.

Where such a tensor crosses a session on the CPU, it needs no node:

- a Reshape of an input or an output is another shape of the array that is bound,
- a streaming layer joins the cells that it has kept and new ones, and keeps the last ones of them:
  Concat, then Slice. The session gives the joined tensor, of which the variable is then a view,
- a layer that keeps a window of steps has them as rows, see `opmap.graph.windows`,
- a decoder has its caches and its position as its nodes want them, see
  `opmap.rules.nodes.token_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record, replace
from tflite_ort.opmap.graph.windows import take_window
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.partition import Partition
from tflite_ort.schema import Op, OperatorView, TensorView
from tflite_ort.schema.values.sizes import is_known, known_product
from tflite_ort.state import Whole, Window

with late:
    from tflite_ort.opmap.rules.nodes import token_heads, token_rows

# Operators that become a single Slice of their input.
_SLICES = (Op.SLICE, Op.STRIDED_SLICE)
# Nodes that decoders have.
_OF_TOKENS = frozenset({"RotaryEmbedding", "TensorScatter"})


@record
class Wholes:
    """The tensors that a session has in place of the interpreter's, by tensor index."""

    inputs: dict[int, Whole] = field(default_factory=dict)
    outputs: dict[int, Whole] = field(default_factory=dict)
    windows: dict[int, Window] = field(default_factory=dict)

    def of(self, crossing: BoundaryTensor, wholes: Mapping[int, Whole]) -> BoundaryTensor:
        """`crossing` with the tensors that the session has in their place.

        Args:
            wholes: `inputs` or `outputs`.
        """
        index = crossing.tensor.index
        if index in self.windows:
            return crossing.as_rows(self.windows[index])
        whole = wholes.get(index)
        return crossing if whole is None else replace(crossing, whole=whole)


def take_wholes(part: Partition, graph: ir.Graph, variables: Mapping[int, Any]) -> Wholes:
    """Take nodes out of `graph` that only give an input or an output another shape, or take a
    variable's next value out of a larger tensor.

    Args:
        part: without what `graph` has no inputs and outputs for.
        variables: the tensors that are variables, by index.
    """
    found, results = Wholes(), [*part.outputs, *part.copies]
    if not variables and "Reshape" not in [node.op_type for node in graph.nodes]:
        return found
    if part.places or any(tensor.dynamic for tensor in (*part.inputs, *results)):
        return found
    found.windows.update(_windows(part.inputs, results, graph, variables))
    _take_token(found, part.inputs, results, graph, variables)
    reads = graph.read_counts()
    nodes = {id(node.inputs[0]): node for node in graph.nodes if node.op_type == "Reshape"}
    for place, tensor in enumerate(part.inputs):
        node = nodes.get(id(graph.inputs[place]))
        if node is not None and reads[id(graph.inputs[place])] == 1:
            whole = _reshaped(node, tensor, graph)
            if whole is not None:
                found.inputs[tensor.index] = whole
    slices = {op.label: op for op in part.operators if op.op in _SLICES}
    for place, tensor in enumerate(results):
        if reads[id(graph.outputs[place])] == 1:
            if tensor.index in variables:
                whole = _sliced(graph, place, tensor, slices)
            else:
                whole = _before_reshape(graph, place, tensor)
            if whole is not None:
                found.outputs[tensor.index] = whole
    graph.drop_unread()
    return found


def _take_token(
    found: Wholes,
    inputs: Sequence[TensorView],
    results: Sequence[TensorView],
    graph: ir.Graph,
    variables: Mapping[int, Any],
) -> None:
    """Let a decoder have its position and its caches in the shapes that its nodes want."""
    if _OF_TOKENS.isdisjoint([node.op_type for node in graph.nodes]):
        return
    token_heads.join_turned_heads(graph)
    sources, targets = (
        [place for place, tensor in enumerate(tensors) if tensor.index not in variables]
        for tensors in (inputs, results)
    )
    for source, target, shape in token_rows.write_rows(graph, sources, targets):
        found.inputs[inputs[source].index] = Whole(shape, 0)
        found.outputs[results[target].index] = Whole(shape, 0)
    for source in token_rows.as_numbers(graph, sources):
        found.inputs[inputs[source].index] = Whole((), 0)
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)


def _windows(
    inputs: Sequence[TensorView],
    results: Sequence[TensorView],
    graph: ir.Graph,
    variables: Mapping[int, Any],
) -> Iterator[tuple[int, Window]]:
    """The variables that the graph keeps as rows of steps."""
    sources = {tensor.index: place for place, tensor in enumerate(inputs)}
    for place, tensor in enumerate(results):
        if tensor.index in variables and tensor.index in sources:
            taken = take_window(graph, sources[tensor.index], place)
            if taken is not None:
                (steps, width), dtype = taken
                yield tensor.index, Window(width, steps, np.dtype(dtype).str)


def _reshaped(node: ir.Node, tensor: TensorView, graph: ir.Graph) -> Whole | None:
    """Give an input the shape that `node`, the only one that reads it, would give it."""
    value = node.inputs[0]
    (result,) = node.outputs
    shape = node.constant(1)
    if value is None or shape is None or value.shape != tensor.shape:
        return None
    sizes = tuple(int(size) for size in shape)
    if min(sizes, default=0) < 1 or any(result is output for output in graph.outputs):
        return None
    if math.prod(sizes) != known_product(tensor.shape):
        return None
    value.shape = sizes
    for reader in graph.all_nodes():
        if result in reader.inputs:
            reader.inputs = tuple(value if each is result else each for each in reader.inputs)
    graph.nodes.remove(node)
    return Whole(sizes, 0)


def _before_reshape(graph: ir.Graph, place: int, tensor: TensorView) -> Whole | None:
    """Make an output that a Reshape makes what this node reads."""
    value = graph.outputs[place]
    node = value.producer()
    source = None if node is None or node.op_type != "Reshape" else node.inputs[0]
    if node is None or source is None or source.shape is None or source.producer() is None:
        return None
    sizes = tuple(size for size in source.shape if isinstance(size, int) and is_known(size))
    known = len(sizes) == len(source.shape) and min(sizes, default=0) > 0
    if not known or math.prod(sizes) != known_product(tensor.shape):
        return None
    if any(each is source for each in graph.outputs):
        return None
    source.dtype = value.dtype
    graph.outputs[place] = source
    graph.nodes.remove(node)
    return Whole(sizes, 0)


def _sliced(
    graph: ir.Graph, place: int, tensor: TensorView, slices: Mapping[str, OperatorView[Any]]
) -> Whole | None:
    """Make an output that is a part of another tensor this tensor."""
    value = graph.outputs[place]
    node = value.producer()
    op = None if node is None else slices.get(node.name.partition("/")[0])
    if node is None or op is None or node.op_type != "Slice":
        return None
    source = node.inputs[0]
    if source is None or not _is_made(source, op, graph):
        return None
    whole = _whole(op, node, value, tensor)
    if whole is not None:
        source.dtype, source.shape = value.dtype, whole.shape
        graph.outputs[place] = source
        graph.nodes.remove(node)
    return whole


def _is_made(value: ir.Value, op: OperatorView[Any], graph: ir.Graph) -> bool:
    """Whether a node of another operator than `op` makes it, and it is no output of the graph."""
    maker = value.producer()
    is_other = maker is not None and maker.name.partition("/")[0] != op.label
    return is_other and all(value is not output for output in graph.outputs)


def _whole(
    op: OperatorView[Any], node: ir.Node, value: ir.Value, tensor: TensorView
) -> Whole | None:
    """Where `value` is in what `node`, the only one of `op`, slices; None where its elements do not
    follow each other there."""
    source, sizes = op.inputs[0], tensor.shape
    bounds = [_number(each) for each in node.constants()]
    if source is None or len(bounds) < 3 or None in bounds:
        return None
    start, _, axis, step = [*bounds, 1][:4]
    assert start is not None and axis is not None
    if step != 1 or start < 0 or not 0 <= axis < len(sizes) or value.shape != sizes:
        return None
    if not is_known(*sizes, *source.shape) or known_product(sizes[:axis]) != 1:
        return None
    if len(source.shape) != len(sizes) or 0 in sizes:
        return None
    around = (*sizes[:axis], *sizes[axis + 1 :])
    if (*source.shape[:axis], *source.shape[axis + 1 :]) != around:
        return None
    return Whole(source.shape, start * known_product(sizes[axis + 1 :]))


def _number(array: npt.NDArray[Any] | None) -> int | None:
    """The only element of a constant."""
    return int(array.item()) if array is not None and array.size == 1 else None
