"""Partitions: few, in an order that runs, and with the numbers of the whole."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.oracle import litert
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.fallback_kernels import kernel
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.plan.assignment import assign
from tflite_ort.plan.build import Plan, make_plan
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.partition import NUMPY, partitions, predecessors
from tflite_ort.providers.delegates import Delegate, ExecutionProviderDelegate
from tflite_ort.schema import (
    AddOptions,
    MulOptions,
    Op,
    OperatorView,
    SubOptions,
    TensorType,
    TensorView,
    read_model,
)
from tflite_ort.specialize.specialization import specialize

SHAPE = (2, 3)
QUANTIZED: dict[str, Any] = {"type": TensorType.INT8, "scale": 0.05, "zero_point": -3}


def chain(version: int = 1, **tensor: Any) -> bytes:
    """(x + y) * y - x, the product in `version`."""
    tensors = {name: T(SHAPE, **tensor) for name in ("x", "y", "sum", "product", "result")}
    nodes = [
        Node(Op.ADD, ["x", "y"], ["sum"], AddOptions(pot_scale_int16=False)),
        Node(Op.MUL, ["sum", "y"], ["product"], MulOptions(), version),
        Node(Op.SUB, ["product", "x"], ["result"], SubOptions(pot_scale_int16=False)),
    ]
    return graph_model(tensors, nodes, ["result"])


def branches() -> bytes:
    """x + y -> two branches, a product in one of them, -> their sum."""
    names = ("x", "y", "sum", "left", "right", "right2", "result")
    nodes = [
        Node(Op.ADD, ["x", "y"], ["sum"], AddOptions()),
        Node(Op.MUL, ["sum", "x"], ["left"], MulOptions()),
        Node(Op.SUB, ["sum", "x"], ["right"], SubOptions()),
        Node(Op.SUB, ["right", "y"], ["right2"], SubOptions()),
        Node(Op.ADD, ["left", "right2"], ["result"], AddOptions()),
    ]
    return graph_model({name: T(SHAPE) for name in names}, nodes, ["result"])


def plan_of(model: bytes, delegate: Delegate) -> tuple[Plan, list[int], int]:
    source = read_model(model)
    graph = specialize(source, 0, {}, kernel)
    return (
        make_plan(graph, PlanContext([delegate], BoundResolver(BuiltinOpResolver(), source), 1)),
        list(graph.inputs),
        graph.outputs[0],
    )


def without_mul() -> Delegate:
    return ExecutionProviderDelegate("CPUExecutionProvider", max_versions={Op.MUL: 0})


def backends(plan: Plan) -> list[tuple[str, int | None]]:
    return [(row.runs_on, row.partition) for row in plan.placements]


def run(model: bytes, seed: int, dtype: Any = np.float32) -> None:
    plan, inputs, output = plan_of(model, without_mul())
    rng = np.random.default_rng(seed)
    print(f"seed {seed}")
    feeds = []
    for index in inputs:
        codes = rng.integers(-128, 128, SHAPE).astype(dtype)
        plan.arrays[index][...] = codes
        feeds.append(codes)
    plan.run()
    (expected,) = litert(model, feeds)
    difference = np.abs(plan.arrays[output].astype(np.float64) - expected)
    limit = 1 if dtype is np.int8 else 1e-5 * np.abs(expected).max()
    assert difference.max() <= limit


def test_an_operator_refused_in_the_middle_gives_three_steps() -> None:
    plan, _, _ = plan_of(chain(), without_mul())
    assert backends(plan) == [("ort", 0), ("numpy", 1), ("ort", 2)]
    assert "takes MUL up to version 0" in plan.placements[1].reason
    run(chain(), 0)


def test_codes_cross_between_partitions() -> None:
    run(chain(**QUANTIZED), 1, np.int8)


def test_an_operator_refused_in_one_branch_does_not_cut_the_other() -> None:
    plan, _, _ = plan_of(branches(), without_mul())
    assert backends(plan) == [("ort", 0), ("numpy", 1), ("ort", 0), ("ort", 0), ("ort", 2)]
    run(branches(), 2)


def test_a_delegate_of_version_1_leaves_later_versions() -> None:
    limits = dict.fromkeys(Op, 1)
    delegate = ExecutionProviderDelegate("CPUExecutionProvider", {}, limits)
    plan, _, _ = plan_of(chain(version=2, **QUANTIZED), delegate)
    assert backends(plan) == [("ort", 0), ("numpy", 1), ("ort", 2)]
    assert "takes MUL up to version 1, this is 2" in plan.placements[1].reason


# Few partitions ----------------------------------------------------------------------------------


def drawn_operators(rng: np.random.Generator) -> tuple[list[OperatorView[Any]], dict[int, str]]:
    """A few operators in a random graph with two variables, each of one of up to four backends."""

    def view(index: int, *, is_variable: bool = False) -> TensorView:
        return TensorView(index, "", TensorType.FLOAT32, SHAPE, is_variable=is_variable)

    operators, backends = [], {}
    count, names = int(rng.integers(2, 10)), int(rng.integers(2, 5))
    for number in range(count):
        read = rng.choice(number, min(number, int(rng.integers(3))), replace=False)
        inputs = [view(int(index)) for index in read]
        if rng.random() < 0.4:
            inputs.append(view(100 + int(rng.integers(2)), is_variable=rng.random() < 0.5))
        operators.append(OperatorView(Op.ADD, 1, number, tuple(inputs), (view(number),), None))
        backends[number] = str(rng.integers(names))
    return operators, backends


def fewest(operators: list[OperatorView[Any]], backends: dict[int, str]) -> int:
    """How many partitions there have to be, all sequences of backends tried."""
    earlier = predecessors(operators)
    done, count = {frozenset[int]()}, 0
    while not any(len(each) == len(operators) for each in done):
        count += 1
        following = set()
        for each, backend in itertools.product(done, set(backends.values())):
            grown, size = set(each), -1
            while size < len(grown):
                size = len(grown)
                grown |= {
                    i for i, name in backends.items() if name == backend and earlier[i] <= grown
                }
            following.add(frozenset(grown))
        done = following
    return count


@pytest.mark.parametrize("seed", range(60))
def test_no_order_has_fewer_partitions(seed: int) -> None:
    operators, backends = drawn_operators(np.random.default_rng(seed))
    parts = partitions(operators, backends, [])
    assert len(parts) == fewest(operators, backends)
    earlier, done = predecessors(operators), set[int]()
    for part in parts:
        for op in part.operators:
            assert backends[op.index] == part.backend
            assert earlier[op.index] <= done
            done.add(op.index)
    assert len(done) == len(operators)


@pytest.mark.parametrize("seed", range(20))
def test_operators_in_order_are_the_partition_that_a_search_finds(seed: int) -> None:
    """One backend runs operators as they stand; those that do not stand so are put in order."""
    drawn, _ = drawn_operators(np.random.default_rng(seed))
    operators = [
        replace(op, inputs=tuple(replace(each, is_variable=False) for each in op.inputs if each))
        for op in drawn
    ]
    backends = dict.fromkeys(range(len(operators)), "one")
    last = [operators[-1].output.index]
    (part,) = partitions(operators, backends, last)
    (found,) = partitions(operators[::-1], backends, last)
    assert list(part.operators) == operators
    assert [tensor.index for tensor in part.outputs] == last
    assert {each.index for each in part.inputs} == {each.index for each in found.inputs}
    earlier, done = predecessors(operators), set[int]()
    for op in found.operators:
        assert earlier[op.index] <= done
        done.add(op.index)


def test_small_partitions_are_left_to_numpy() -> None:
    source = read_model(chain())
    graph = specialize(source, 0, {}, kernel)
    delegate = replace(without_mul(), min_partition_size=2)
    context = PlanContext([delegate], BoundResolver(BuiltinOpResolver(), source), 1)
    assignment = assign(graph, context)
    assert set(assignment.backends.values()) == {NUMPY}
    assert assignment.reasons[0] == "in a partition of 1, CPUExecutionProvider takes 2 or more"
