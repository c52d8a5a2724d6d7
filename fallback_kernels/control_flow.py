"""Branches and loops over called subgraphs, and what runs once.

Their `state` is one function per called subgraph, which maps its inputs to its outputs.
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
    """The first subgraph where the condition holds, else the second one."""
    condition, *values = inputs
    then, otherwise = state
    return tuple((then if _single(op, condition) else otherwise)(values))


@kernel(Op.STABLEHLO_CASE, versions=(1, 1))
def stablehlo_case(op: OperatorView[StablehloCaseOptions], inputs: Inputs, state: Calls) -> Outputs:
    """The subgraph of this index; of an index that none has, the last one."""
    index, *values = inputs
    chosen = int(_single(op, index))
    return tuple(state[chosen if 0 <= chosen < len(state) else -1](values))


@kernel(Op.WHILE, versions=(1, 1))
def while_(op: OperatorView[WhileOptions], inputs: Inputs, state: Calls) -> Outputs:
    """The second subgraph over and over, as long as the first one gives true."""
    condition, body = state
    values: Sequence[Array] = inputs
    while _single(op, condition(values)[0]):
        values = body(values)
    return tuple(values)


@kernel(Op.CALL_ONCE, versions=(1, 1))
def call_once(op: OperatorView[CallOnceOptions], inputs: Inputs, state: Calls) -> Outputs:
    """The subgraph, for what it assigns; the function given here does nothing the next time."""
    state[0](())
    return ()


def _single(op: OperatorView[Any], array: Array) -> Any:
    if array.size != 1:
        raise KernelError(f"{op.label} is decided by one element, got shape {list(array.shape)}")
    return array.reshape(-1)[0]
