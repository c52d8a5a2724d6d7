"""The table of rules: names, functions, tests, the page, and the check after each rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.rules_page import rules_page
from tests.graph_checks import inconsistencies
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rule
from tflite_ort.opmap.rules.table import RULES

ROOT = Path(__file__).parents[2]


def test_each_rule_has_a_name_of_its_own() -> None:
    assert max(Counter(rule.name for rule in RULES).values()) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_a_rule_has_a_function_and_a_test(rule: Rule) -> None:
    assert rule.loaded()
    assert (ROOT / rule.test).is_file()
    assert rule.bound


def test_the_page_is_made_from_the_table() -> None:
    fresh = "python -m benchmarks.rules_page > docs/rules.md"
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert page == rules_page(), f"stale, run: {fresh}"


def _graph(nodes: list[ir.Node], source: ir.Value) -> ir.Graph:
    return ir.Graph([source], nodes[-1].outputs[:1] if nodes else [source], nodes)


def test_the_check_sees_what_a_rule_may_break() -> None:
    x, y, z = (ir.Value(name, dtype=ir.DataType.FLOAT) for name in "xyz")
    first, second = ir.Node("Abs", [x], [y], name="a"), ir.Node("Neg", [y], [z], name="b")
    assert list(inconsistencies(_graph([first, second], x))) == []
    (late, *_) = inconsistencies(ir.Graph([x], [z], [second, first]))
    assert late == "b reads y, which nothing before it makes"
    assert list(inconsistencies(ir.Graph([x], [z], [first]))) == ["nothing makes the output z"]
    z.name = "y"
    assert list(inconsistencies(_graph([first, second], x))) == ["two values are called y"]
