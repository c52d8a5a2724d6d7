"""What every graph must hold after each rule on nodes."""

from __future__ import annotations

from collections.abc import Iterator

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rule, Stage


def check_graph(rule: Rule, graph: ir.Graph) -> None:
    """Fail where a rule left a graph that cannot be run."""
    wrong = list(inconsistencies(graph))
    if rule.stage is Stage.SESSION:  # ONNX Runtime fails where one that it is given is not read
        read = graph.read_ids()
        wrong += [name for name, value in graph.initializers.items() if id(value) not in read]
    assert not wrong, f"after the rule {rule.name!r}: {wrong[:5]}"


def inconsistencies(graph: ir.Graph, outside: frozenset[int] = frozenset()) -> Iterator[str]:
    """What is read before it is made, made twice, or called as something else is.

    Args:
        outside: the `id` of values that a body may read.
    """
    made = {id(value) for value in graph.inputs} | outside
    names = {value.name: value for value in graph.inputs}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.const_value is None and id(value) not in made:
                yield f"{node.name} reads {value.name}, which nothing before it makes"
        for body in node.bodies:
            yield from inconsistencies(body, frozenset(made))
        for value in node.outputs:
            if id(value) in made:
                yield f"{node.name} makes {value.name} again"
            if value.producer() is not node:
                yield f"{value.name} does not know that {node.name} makes it"
            if value.name and names.setdefault(value.name, value) is not value:
                yield f"two values are called {value.name}"
            made.add(id(value))
    for value in graph.outputs:
        if value.const_value is None and id(value) not in made:
            yield f"nothing makes the output {value.name}"
