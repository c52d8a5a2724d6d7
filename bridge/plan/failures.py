"""Why an operator failed in ONNX Runtime: its numpy kernel, run on the same values, tells.

ONNX Runtime names a node, and often neither the index nor the bound that do not agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap import lower
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.partition import Partition
from tflite_ort.providers.model_session import model_session
from tflite_ort.schema import (
    BridgeError,
    BudgetExceeded,
    DelegateError,
    KernelError,
    OperatorView,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.specialize.computed_sizes import check_results, has_computed_sizes
from tflite_ort.specialize.folding import run_kernel

Array = npt.NDArray[Any]

# A node is named after its operator, such as 'GATHER_3/Gather'.
_NODE = re.compile(r"([\w:.-]+_\d+)/")


def explanation(
    error: DelegateError, *, part: Partition, memory: Memory, context: PlanContext
) -> BridgeError:
    """`error` of a partition with what the kernel of the operator that failed says; a budget that
    its results exceed in its place."""
    named = _NODE.findall(str(error))
    failed = next((op for op in part.operators if op.label in named), None)
    if failed is None:
        return error
    try:
        _run_alone(failed, part, memory, context)
    except BudgetExceeded as reason:
        return reason
    except KernelError as reason:
        return DelegateError(f"{reason}. {error}")
    except BridgeError:  # what comes before cannot be run by itself
        pass
    made = " and ".join(repr(tensor.name) for tensor in failed.outputs)
    return DelegateError(f"{failed.label}, which makes {made}, failed to invoke. {error}")


def _run_alone(
    op: OperatorView[Any], part: Partition, memory: Memory, context: PlanContext
) -> None:
    """Run the kernel of `op` on what the operators before it make.

    Raises:
        KernelError: as the kernel does.
        BridgeError: these values cannot be had.
    """
    entry = context.resolver.kernels.of(op)
    if entry is None or entry.state is not None or op.bodies or part.places:
        return
    bound = replace(op, names=entry.inputs.bind(op).names)
    values = _inputs(op, part, memory, context)
    inputs = [None if tensor is None else values[tensor.index] for tensor in op.inputs]
    if has_computed_sizes(op, context.resolver.kernels):
        check_results(bound, inputs, context.meter)
    with np.errstate(all="ignore"):
        run_kernel(bound, entry, inputs)


def _inputs(
    op: OperatorView[Any], part: Partition, memory: Memory, context: PlanContext
) -> dict[int, Array]:
    """The inputs of `op` by index; its partition computes them once more."""
    before, wanted = _needed(op, part.operators)
    made = {tensor.index for tensor in wanted}
    values = {t.index: memory.value(t) for t in op.present_inputs() if t.index not in made}
    if not before:
        return values
    given = [tensor for tensor in part.inputs if not tensor.is_constant]
    lowered = lower(before, given, wanted, context.resolver.translators)
    if lowered.refusals or any(map(is_complex, wanted)):  # which would be pairs
        raise Untranslatable("what comes before is not run by itself")
    session = model_session(lowered.model, num_threads=context.num_threads)
    results = session.call([memory.value(tensor) for tensor in given])
    return values | {tensor.index: result for tensor, result in zip(wanted, results, strict=True)}


def _needed(
    op: OperatorView[Any], operators: Sequence[OperatorView[Any]]
) -> tuple[list[OperatorView[Any]], list[TensorView]]:
    """The operators before `op` that lead to it, and what they make for it."""
    own = {tensor.index for tensor in op.present_inputs()}
    read, needed = set(own), list[OperatorView[Any]]()
    for other in reversed(list(takewhile(lambda each: each is not op, operators))):
        if any(tensor.index in read for tensor in other.outputs):
            needed.insert(0, other)
            read.update(tensor.index for tensor in other.present_inputs())
    return needed, [out for other in needed for out in other.outputs if out.index in own]
