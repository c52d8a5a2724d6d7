"""The translation of an operator by the rules of the table, and by its translator at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any

from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.graph.choices import build_chosen
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import Translator, custom_translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.rule import Cut, NodesAround, Rule, Stage, View, show, switched_off
from tflite_ort.opmap.rules.table import RULES
from tflite_ort.schema.values.operators import Key, key_of
from tflite_ort.versioning.registry import Entry, Registry

_Asked = tuple[Rule, Callable[..., Any]]


def rewrite_target(target: Target) -> Target:
    """The target that translators see."""
    return _rewritten(target, switched_off())


@lru_cache(maxsize=32)
def _rewritten(target: Target, off: frozenset[str]) -> Target:
    for rule in RULES:
        if rule.stage is Stage.TARGET and rule.applies(target):
            target = rule.loaded()(target)
    return target


def rewrite_operators(
    producers: Producers, registry: Registry[Translator], target: Target
) -> tuple[Producers, Mapping[int, Sequence[Cut]]]:
    """The operators that rules make of those of a graph, and by index of an operator the rows that
    are cut before it."""
    cuts: dict[int, Sequence[Cut]] = {}
    present = frozenset([op.op for op in producers.operators])
    for rule in RULES:
        if rule.stage is Stage.OPERATORS and rule.may_be_in(present) and rule.applies(target):
            operators, more = rule.loaded()(producers, registry)
            if operators is not producers.operators or more:
                sources = [cut.source for before in more.values() for cut in before]
                producers = Producers(operators, [*producers.results, *sources])
                cuts.update(more)
    return producers, cuts


def translate_by_rules(op: View, g: Graph, entry: Entry[Translator]) -> None:
    """Add the nodes of `op`, by its translator `entry` where no rule knows something faster. A
    translator of a user is not replaced.

    Raises:
        Untranslatable: with the reason.
    """
    if entry.check is not None:
        entry.check(op)
    rules = _asked(key_of(op))
    own = rules and entry is (custom_translator if op.custom_code else translator).of(op)
    _from(0, rules if own else (), op, g, entry.function)


def _from(first: int, rules: Sequence[_Asked], op: View, g: Graph, translate: Translator) -> None:
    """Ask the rules from number `first` on."""
    for number in range(first, len(rules)):
        rule, function = rules[number]
        if not rule.applies(g.target):
            continue
        if rule.stage is Stage.REWRITE:
            op = function(op, g)
            continue
        rest = partial(_from, number + 1, rules, g=g, translate=translate)
        lowerings = function(op, g, rest)
        if lowerings:
            build_chosen(op, lowerings, g.target.choose)
            return
    translate(op, g)


@cache
def _asked(op: Key) -> Sequence[_Asked]:
    """The rules about an operator, in the order of the table, with their functions."""
    return tuple((rule, rule.loaded()) for rule in RULES if op in rule.operators)


def rewrite_nodes(stage: Stage, graph: ir.Graph, around: NodesAround) -> None:
    """Change a graph by the rules of a stage, in their order."""
    for rule, needed in _of_nodes(stage):
        if rule.applies(around.target):
            present = {node.op_type for node in graph.nodes}
            if not needed.isdisjoint(present):
                rule.loaded()(graph, around)
                show(rule, graph)


@cache
def _of_nodes(stage: Stage) -> Sequence[tuple[Rule, frozenset[str]]]:
    return [(rule, frozenset(map(str, rule.operators))) for rule in RULES if rule.stage is stage]
