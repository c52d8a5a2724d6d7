"""Inputs of decoders in the shapes that nodes want, instead of a Reshape for each.

- A cache [1, tokens, ...] to which a node writes the row of one token, and which products read as
  [tokens, ...], has this shape.
- The position of a token, by which tables are looked up, is a number.

Whoever runs the graph has its inputs and outputs in these shapes.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tflite_ort.opmap.onnx_graph import ir

Shape = tuple[int, ...]
Readers = dict[int, list[ir.Node]]
_PLACE = "sizes/of_a_place"


def write_rows(
    graph: ir.Graph, inputs: Collection[int], outputs: Collection[int]
) -> list[tuple[int, int, Shape]]:
    """Let ScatterND write a row where TensorScatter makes an output of an input.

    Args:
        inputs, outputs: the places of those that may get another shape.

    Returns:
        The places of an input and of an output, and the shape that both have from now on.
    """
    written, readers = [], graph.readers()
    for number in outputs:
        result = graph.outputs[number]
        node = result.producer()
        if node is None or node.op_type != "TensorScatter" or node.attributes.get("axis") != 1:
            continue
        cache, row, index = node.inputs
        source = next((place for place in inputs if graph.inputs[place] is cache), None)
        if source is None or cache is None or row is None or index is None:
            continue
        shape, row = _sizes(cache.shape), ir.before_reshapes(row)
        if not shape or shape[0] != 1 or _sizes(row.shape) != (1, *shape[2:]):
            continue
        read = readers.get(id(result), [])
        whole = read and all(ir.reshaped_to(reader) == shape[1:] for reader in read)
        if not whole or len(readers[id(cache)]) > 1 or graph.outputs.count(result) > 1:
            continue
        cache.shape = result.shape = shape[1:]
        at = graph.nodes.index(node)
        place = _as_place(graph, index, f"{node.name}/place")
        rows = ir.Node("ScatterND", [cache, place.outputs[0], row], [result], name=node.name)
        graph.nodes[at : at + 1] = [place, rows]
        _replace(graph, {id(reader.outputs[0]): result for reader in read})
        written.append((source, number, shape[1:]))
    return written


def as_numbers(graph: ir.Graph, inputs: Collection[int]) -> list[int]:
    """Make inputs of one element numbers, where a Reshape does so, and nothing else reads them but
    Gather of constant tables.

    Args:
        inputs: the places of those that may get another shape.

    Returns:
        The places of those that did.
    """
    made, readers = [], graph.readers()
    for place in inputs:
        value = graph.inputs[place]
        read = readers.get(id(value), [])
        numbers = [node for node in read if ir.reshaped_to(node) == ()]
        lookups = [node for node in read if _is_lookup(node, value)]
        if not numbers or len(numbers) + len(lookups) < len(read) or value.shape != (1,):
            continue
        value.shape = ()
        _replace(graph, {id(node.outputs[0]): value for node in numbers})
        for node in lookups:
            _look_up(graph, node, readers)
        made.append(place)
    return made


def _look_up(graph: ir.Graph, node: ir.Node, readers: Readers) -> None:
    """Let a Gather give by a number what it gave by a list of one: in the shape that it is read in,
    if that is one."""
    table, array, result = node.inputs[0], node.constant(0), node.outputs[0]
    assert table is not None
    assert array is not None
    wanted: Shape = (1, *array.shape[1:])
    read = readers.get(id(result), [])
    targets = {ir.reshaped_to(reader) for reader in read}
    if result in graph.outputs:
        targets.add(None)
    if len(targets) == 1 and (target := targets.pop()) is not None:
        wanted = target
        _replace(graph, {id(reader.outputs[0]): result for reader in read})
    name = f"{table.name}/{'x'.join(map(str, wanted))}"
    found = graph.initializers.get(name)
    if found is None:
        found = graph.add_initializer(name, array.reshape(len(array), *wanted))
    node.inputs = found, *node.inputs[1:]


def _is_lookup(node: ir.Node, index: ir.Value) -> bool:
    """Whether a node looks up a row of a constant table."""
    is_gather = node.op_type == "Gather" and not node.attributes.get("axis", 0)
    return is_gather and node.inputs[1] is index and node.constant(0) is not None


def _as_place(graph: ir.Graph, index: ir.Value, name: str) -> ir.Node:
    """A Reshape of the place of a row, as ScatterND has it."""
    sizes = graph.initializers.get(_PLACE) or graph.add_initializer(_PLACE, np.ones(2, np.int64))
    return ir.Node("Reshape", [index, sizes], [ir.Value(name)], name=name)


def _replace(graph: ir.Graph, values: dict[int, ir.Value]) -> None:
    """Read others in the place of the values with these ids."""
    for node in graph.all_nodes():
        if any(id(each) in values for each in node.inputs):
            node.inputs = tuple(values.get(id(each), each) for each in node.inputs)


def _sizes(shape: ir.Shape | None) -> Shape | None:
    """A shape all of whose sizes are numbers."""
    sizes = tuple(size for size in shape or () if isinstance(size, int))
    return sizes if shape is not None and len(sizes) == len(shape) else None
