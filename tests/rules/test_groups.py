"""The rules that are tables of patterns: what a graph must have for one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tflite_ort.opmap.rules.operators.matching import Node, Tree
from tflite_ort.opmap.rules.rule import Rule, Stage
from tflite_ort.opmap.rules.table import RULES
from tflite_ort.schema import Op


def operators(tree: Tree) -> Iterator[Op]:
    """Those that a graph with this tree has in any case."""
    if isinstance(tree, Node):
        if len(tree.operators) == 1:
            yield from tree.operators
        for part in tree.operands:
            yield from operators(part)


TREES = [rule for rule in RULES if rule.stage is Stage.TREES]


@pytest.mark.parametrize("rule", TREES, ids=lambda rule: str(rule.name))
def test_a_graph_with_a_pattern_has_what_its_rule_needs(rule: Rule) -> None:
    patterns = rule.loaded()
    assert patterns
    for pattern in patterns:
        assert rule.may_be_in(frozenset(operators(pattern.root))), pattern.name
