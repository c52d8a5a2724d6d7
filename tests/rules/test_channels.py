"""Maps whose channels get another order: what is done to one is done to all that are tied to it."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import FREE, Part, Uses, filled, in_channels, tied


def test_free_places_are_zeros_or_the_code_of_zero() -> None:
    weights = np.arange(6, dtype=np.int8).reshape(2, 3) + 1
    order = filled([2, 0, 2], 2)
    assert order == [2, 0, 2, FREE]
    assert in_channels(weights, 1, order).tolist() == [[3, 1, 3, 0], [6, 4, 6, 0]]
    assert in_channels(weights, 0, [FREE, 1], 7).tolist() == [[7, 7, 7], [4, 5, 6]]
    assert in_channels(weights, 0, [FREE, 1]).dtype == np.int8


def _sum_of_two_layers() -> tuple[ir.Graph, list[ir.Value]]:
    """Two layers, a sum of both, and a layer that reads the sum."""
    x, a, b, total, y = (ir.Value(name) for name in ("x", "a", "b", "total", "y"))
    nodes = [
        ir.Node("Conv", [x], [a]),
        ir.Node("Conv", [x], [b]),
        ir.Node("Add", [a, b], [total]),
        ir.Node("Conv", [total], [y]),
    ]
    return ir.Graph([x], [y], nodes), [a, b, total]


def _beside(node: ir.Node, part: Part) -> list[Part]:
    """A sum ties its maps."""
    maps = [*node.inputs, *node.outputs] if node.op_type == "Add" else []
    return [Part(each, part.first, part.count) for each in maps if each is not None]


def test_a_sum_ties_its_maps() -> None:
    graph, maps = _sum_of_two_layers()
    parts = tied(Uses(graph), Part(maps[0], 0, 4), _beside)
    assert [part.value.name for part in parts.values()] == ["a", "b", "total"]


def test_maps_that_are_results_stay_as_they_are() -> None:
    graph, maps = _sum_of_two_layers()
    graph.outputs.append(maps[2])
    assert tied(Uses(graph), Part(maps[0], 0, 4), _beside) == {}


def test_maps_of_nodes_that_mix_channels_stay_as_they_are() -> None:
    graph, maps = _sum_of_two_layers()
    assert tied(Uses(graph), Part(maps[1], 0, 4), lambda node, part: None) == {}
