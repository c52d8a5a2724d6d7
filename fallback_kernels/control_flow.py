"""IF, STABLEHLO_CASE, WHILE and CALL_ONCE, which run called subgraphs.

Their `state` has one function for every called subgraph, from its inputs to its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, kernel
from tflite_ort.schema import (
    CallOnceOptions,
    IfOptions,
    KernelError,
    Op,
    OperatorView,
    StablehloCaseOptions,
    WhileOptions,
)

Call = Callable[[Sequence[Array]], Sequence[Array]]
Calls = Sequence[Call]


@kernel(Op.IF, versions=(1, 1))
def if_(op: OperatorView[IfOptions], inputs: Inputs, state: Calls) -> Outputs:
    """The first subgraph if the condition is true, else the second one."""
    condition, *values = inputs
    then, otherwise = state
    return tuple((then if _single(op, condition) else otherwise)(values))


@kernel(Op.STABLEHLO_CASE, versions=(1, 1))
def stablehlo_case(op: OperatorView[StablehloCaseOptions], inputs: Inputs, state: Calls) -> Outputs:
    """The subgraph of this index; the last one for an index out of range."""
    index, *values = inputs
    chosen = int(_single(op, index))
    return tuple(state[chosen if 0 <= chosen < len(state) else -1](values))


@kernel(Op.WHILE, versions=(1, 1))
def while_(op: OperatorView[WhileOptions], inputs: Inputs, state: Calls) -> Outputs:
    """WHILE: repeat the second subgraph, the body, as long as the first, the condition, is true."""
    condition, body = state
    values: Sequence[Array] = inputs
    while _single(op, condition(values)[0]):
        values = body(values)
    return tuple(values)


@kernel(Op.CALL_ONCE, versions=(1, 1))
def call_once(op: OperatorView[CallOnceOptions], inputs: Inputs, state: Calls) -> Outputs:
    """Run the subgraph for its assignments; the function does nothing when called again."""
    state[0](())
    return ()


def _single(op: OperatorView[Any], array: Array) -> Any:
    if array.size != 1:
        raise KernelError(f"{op.label} is decided by one element, got shape {list(array.shape)}")
    return array.reshape(-1)[0]
