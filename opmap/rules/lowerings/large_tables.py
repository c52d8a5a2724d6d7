"""GATHER from large constant tables of codes: the few rows that are read are moved to the codes of
the graph, not a copy of the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from tflite_ort.opmap.gather_scatter import gathered
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.rules.rule import Rest, View

# A copy of so many elements takes longer than what follows.
_LARGE = 2**20


def large_tables(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """GATHER of the codes of the file."""
    input = op["input"]
    is_moved = input.is_constant and carried_type(input) is not input.type
    if not is_moved or prod(input.shape) < _LARGE:
        return ()
    return [Lowering("table", {}, partial(gathered, op, g, Domain.FILE))]
