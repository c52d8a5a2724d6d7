"""The measurement of where operators run: what it sees, and how it is held against the record."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests import placements
from tests.one_op import Node, T, graph_model, one_op_model, ours
from tflite_ort import BridgeError, Interpreter
from tflite_ort.plan.build import Plan, observing
from tflite_ort.plan.context import PlanContext
from tflite_ort.schema import AddOptions, GatherOptions, Op, TensorType

ADD = one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions())
FEEDS = [np.ones(2, np.float32)] * 2


def seen_while(run: Callable[[], object]) -> placements.Seen:
    seen: placements.Seen = {}
    with observing(lambda plan, runtime: placements.note(seen, plan, runtime)):
        run()
    return seen


def test_a_plan_is_told_once_when_it_has_run() -> None:
    told: list[Plan] = []
    with observing(lambda plan, _: told.append(plan)):
        interpreter = Interpreter(model_content=ADD)
        interpreter.allocate_tensors()
        assert told == []
        interpreter.invoke()
        interpreter.invoke()
    assert [row.operator for row in told[0].placements] == ["ADD"]
    assert len(told) == 1
    ours(ADD, FEEDS)
    assert len(told) == 1


def test_a_plan_that_fails_is_not_told() -> None:
    model = one_op_model(
        Op.GATHER, [T((3,)), T((1,), TensorType.INT32)], [T((1,))], GatherOptions()
    )
    told: list[tuple[Plan, PlanContext]] = []
    with observing(lambda *given: told.append(given)), pytest.raises(BridgeError):
        ours(model, [np.ones(3, np.float32), np.array([9], np.int32)])
    assert told == []


def test_operators_are_known_by_their_type_and_place() -> None:
    tensors = {name: T((2,)) for name in "xyz"} | {"k": T.constant(np.ones(2, np.float32))}
    nodes = [
        Node(Op.NEG, ["k"], ["y"]),
        Node(Op.ADD, ["x", "y"], ["z"], AddOptions()),
    ]
    model = graph_model(tensors, nodes, ["z"])
    assert seen_while(lambda: ours(model, FEEDS[:1])) == {
        ("NEG", "FLOAT32"): {"constant": {""}},
        ("ADD", "FLOAT32"): {"ort": {""}},
    }


def test_other_delegates_are_not_measured() -> None:
    assert seen_while(lambda: ours(ADD, FEEDS, providers=[])) == {}


def test_what_workers_saw_is_joined() -> None:
    seen: placements.Seen = {("ADD", "INT8"): {"ort": {""}}}
    placements.merge(seen, {("ADD", "INT8"): {"ort": {"a"}, "numpy": {"b"}}})
    placements.merge(seen, {("NEG", "INT8"): {"ort": {""}}})
    assert seen == {
        ("ADD", "INT8"): {"ort": {"", "a"}, "numpy": {"b"}},
        ("NEG", "INT8"): {"ort": {""}},
    }
    assert placements.record_of(seen)["ADD"] == {"INT8": {"numpy": ["b"], "ort": ["a"]}}


def test_what_the_record_does_not_say_is_a_contradiction() -> None:
    assert placements.contradictions({("ADD", "FLOAT32"): {"ort": {""}}}) == []
    stale = placements.contradictions({("ADD", "FLOAT32"): {"nowhere": {""}}})
    assert stale == ["ADD FLOAT32 runs on nowhere"]


def test_a_drawn_model_without_elements_contradicts_nothing() -> None:
    assert placements.contradictions({("REDUCE_WINDOW", "INT64"): {"constant": {""}}}) == []
