"""The registry of batch rules: what makes of an operator over one sample one over a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.schema import OperatorView
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
            RULES[key] = function
        return function

    return register
