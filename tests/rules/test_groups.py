"""The families of patterns: what a graph must have for one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tflite_ort.opmap.rules.operators.groups import FAMILIES, Family
from tflite_ort.opmap.rules.operators.matching import Node, Tree
from tflite_ort.schema import Op


def operators(tree: Tree) -> Iterator[Op]:
    """Those that a graph with this tree has in any case."""
    if isinstance(tree, Node):
        if len(tree.operators) == 1:
            yield from tree.operators
        for part in tree.operands:
            yield from operators(part)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: str(family.module))
def test_a_graph_with_a_pattern_has_what_its_family_needs(family: Family) -> None:
    assert family.patterns()
    for pattern in family.patterns():
        has = set(operators(pattern.root))
        assert any(needed <= has for needed in family.needs), pattern.name
