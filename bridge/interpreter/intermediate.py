"""Intermediate results that somebody reads after an invoke.

A plan keeps only inputs and outputs. When a program asks for another tensor, the library makes a
plan that keeps it too. The new plan runs once beside the old one, on the same inputs, and replaces
it at the next invoke. So a program that reads none pays nothing, and later reads take as long as
those of outputs.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tflite_ort.base.collecting import seldom
from tflite_ort.base.records import replace
from tflite_ort.interpreter.executor import NextPlan, SubgraphExecutor
from tflite_ort.schema import Op, OperatorView, Specialized, TensorError
from tflite_ort.schema.arithmetic.generators import random_seeds
from tflite_ort.specialize.resources import DRAWS
from tflite_ort.versioning.resolver import operator_key

if TYPE_CHECKING:
    from tflite_ort.plan.build import Plan
    from tflite_ort.state import State

Array = npt.NDArray[Any]

# A program that asks for more tensors than these probably reads all of them in turn.
_FEW = 2


def intermediate(
    executor: SubgraphExecutor, index: int, state: State, computed: bool
) -> Array | None:
    """The value of an intermediate result at the last invoke; None of what no operator makes.

    Args:
        computed: the inputs are those of the last invoke.

    Raises:
        TensorError: what it was computed from is not there any more. The next invoke keeps it.
        BridgeError: no plan can keep it, or an operator fails.
    """
    graph = executor.graph
    made = {out.index for op in graph.operators for out in op.outputs}
    if index not in made or index in graph.handles:
        return None
    following = executor.following
    if following is None or index not in executor.asked:
        following = _keep(executor, index, made)
    if not following.has_run:
        if refused := _refused(executor, graph, index, state, computed):
            name = graph.tensors[index].name
            raise TensorError(
                f"Tensor data is null: {name!r} ({index}) is an intermediate result, and {refused}"
                ". Invoke again: it is kept from now on"
            )
        _run(executor, following.plan, state)
        following.has_run = True
    return following.plan.arrays.get(index)


def _keep(executor: SubgraphExecutor, index: int, made: set[int]) -> NextPlan:
    """Let the plans of a subgraph keep a tensor from the next invoke on."""
    before = executor.asked
    asked = before | {index} if len(before) < _FEW else frozenset(made)
    with seldom:
        following = NextPlan(executor.made_plan(asked))
    executor.asked = asked
    # Not the executor itself, which has the plan: what is dropped is to be freed at once.
    change = partial(_change, weakref.proxy(executor), following.plan)
    assert executor.plan is not None
    executor.plan, executor.following = replace(executor.plan, run=change), following
    return following


def _change(executor: SubgraphExecutor, plan: Plan) -> None:
    """Run `plan` from now on, at first on the inputs as they are."""
    _take_inputs(executor, plan)
    executor.use(plan)
    plan.run()


def _take_inputs(executor: SubgraphExecutor, plan: Plan) -> None:
    for index in plan.graph.inputs:
        array = executor.plain_array(index)
        if array is not None:
            plan.memory.put(plan.graph.tensors[index], array)


def _run(executor: SubgraphExecutor, plan: Plan, state: State) -> None:
    """Run `plan` on the inputs as they are; the state stays as it is."""
    _take_inputs(executor, plan)
    variables = plan.memory.variables.values()
    before = [(each, value.copy()) for each in variables if (value := each.value) is not None]
    try:
        plan.run()
    finally:
        state.settle(failed=True)
        for variable, value in before:
            variable.assign(value)


# What cannot be computed again -------------------------------------------------------------------


def _refused(
    executor: SubgraphExecutor, graph: Specialized, index: int, state: State, computed: bool
) -> str:
    """Why a run now does not give the value of the last invoke; empty where it does."""
    if not computed:
        return "the inputs were set, or there was no invoke, since the tensors were allocated"
    assert executor.plan is not None
    if executor.plan.memory.kept:
        return "a signature keeps some of its inputs, which change at each call"
    sets = any(op.variables() for op in graph.operators if op.op is not Op.CALL_ONCE)
    if (sets or state.last != executor.subgraph) and _reads_state(graph, index):
        return "the state that it depends on has changed since"
    resolver = executor.resolver
    codes = {(operator_key(code), code.version) for code in resolver.model.operator_codes}
    if not codes.isdisjoint(resolver.registered) or any(map(_draws_anew, graph.operators)):
        return "operators of yours, or random numbers, may give another value when they run again"
    return ""


def _reads_state(graph: Specialized, index: int) -> bool:
    """Whether a tensor depends on a variable."""
    needed = {index}
    for op in reversed(graph.operators):
        if not needed.isdisjoint(out.index for out in op.outputs):
            needed.update(tensor.index for tensor in op.present_inputs())
    return not needed.isdisjoint(graph.variables)


def _draws_anew(op: OperatorView[Any]) -> bool:
    """Whether `op`, or what it calls, draws random numbers without a seed."""
    if op.op in DRAWS and random_seeds(op.options) is None:
        return True
    return any(_draws_anew(inner) for body in op.bodies for inner in body.operators)
