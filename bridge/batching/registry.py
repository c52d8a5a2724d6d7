"""The registry of batch rules: what makes of an operator over one sample one over a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.schema import BridgeError, OperatorView, Unbatchable
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.operators import Key

Rule = Callable[[OperatorView[Any], BatchedGraph], None]

# A rule is called if an input of the operator is batched. It adds operators to the graph, or it
# raises Unbatchable before it declares a result: the operator then runs sample by sample.
RULES: dict[Key, Rule] = {}


def rule(*keys: Key) -> Callable[[Rule], Rule]:
    """Register a function as the batch rule of these operators."""

    def register(function: Rule) -> Rule:
        for key in keys:
            if key in RULES:
                raise ValueError(f"{key} has a batch rule already")
            RULES[key] = _typed(function)
        return function

    return register


def _typed(function: Rule) -> Rule:
    """`function` for operators that have other inputs than they should: it refuses them."""

    @wraps(function)
    def typed(op: OperatorView[Any], graph: BatchedGraph) -> None:
        try:
            function(op, graph)
        except BridgeError:
            raise
        except MALFORMED_OPERATOR as error:
            raise Unbatchable(f"it is malformed: {said_of_file(error)}") from error

    return typed
