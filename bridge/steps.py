"""What an invoke runs: bound sessions and numpy kernels over the interpreter's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.assignment import target_of
from tflite_ort.delegates import Delegate
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.opmap import Lowered, Target
from tflite_ort.partition import Partition
from tflite_ort.schema import KernelError, OperatorView, TensorView
from tflite_ort.session import Session
from tflite_ort.specialization import run_kernel
from tflite_ort.versioning.registry import Entry, Registry

Array = npt.NDArray[Any]
Run = Callable[[], None]

_TOP_BIT = np.uint8(128)  # flipping it moves int8 codes to uint8 and back


def session_step(
    part: Partition,
    lowered: Lowered,
    delegate: Delegate,
    arrays: Mapping[int, Array],
    num_threads: int,
) -> Run:
    provider = (delegate.name, dict(delegate.options)) if delegate.options else delegate.name
    session = Session(lowered.model, [provider], num_threads=num_threads)
    target = target_of(delegate)
    inputs = [_Crossing.of(tensor, arrays[tensor.index], target) for tensor in part.inputs]
    outputs = [_Crossing.of(tensor, arrays[tensor.index], target) for tensor in part.outputs]
    session.bind([x.carried for x in inputs], [x.carried for x in outputs])
    flips_in = [(x.codes, x.carried) for x in inputs if x.codes is not x.carried]
    flips_out = [(x.carried, x.codes) for x in outputs if x.codes is not x.carried]
    if not flips_in and not flips_out:
        return session.run

    def run() -> None:
        for codes, carried in flips_in:
            np.bitwise_xor(codes, _TOP_BIT, out=carried)
        session.run()
        for carried, codes in flips_out:
            np.bitwise_xor(carried, _TOP_BIT, out=codes)

    return run


@dataclass(frozen=True, slots=True)
class _Crossing:
    """A tensor where it enters or leaves a session.

    Args:
        codes: the interpreter's array; as uint8 where the session carries it moved by 128.
        carried: what the session is bound to; the same array where nothing is moved.
    """

    codes: Array
    carried: Array

    @classmethod
    def of(cls, tensor: TensorView, array: Array, target: Target) -> _Crossing:
        if target.boundary_dtype(tensor) == array.dtype:
            return cls(array, array)
        return cls(array.view(np.uint8), np.zeros(array.shape, np.uint8))


def kernel_step(part: Partition, kernels: Registry[Kernel], arrays: dict[int, Array]) -> Run:
    calls = []
    for op in part.operators:
        entry = kernels.of(op)
        assert entry is not None
        bound = replace(op, names=entry.inputs.bind(op).names)
        calls.append((bound, entry, entry.state(bound) if entry.state else None))
    fixed = frozenset(arrays)

    def run() -> None:
        with np.errstate(all="ignore"):
            for op, entry, state in calls:
                _run_kernel(op, entry, arrays, fixed, state)

    return run


def _run_kernel(
    op: OperatorView[Any],
    entry: Entry[Kernel],
    arrays: dict[int, Array],
    fixed: frozenset[int],
    state: Any,
) -> None:
    inputs = [_value(tensor, arrays) for tensor in op.inputs]
    made = (*op.outputs, *op.variables())
    for tensor, result in zip(made, run_kernel(op, entry, inputs, state), strict=True):
        if tensor.index not in fixed:
            arrays[tensor.index] = result
        elif result.shape == tensor.shape:
            arrays[tensor.index][...] = result
        else:
            raise KernelError(
                f"{op.label}: the kernel made shape {result.shape}, expected {tensor.shape}"
            )


def _value(tensor: TensorView | None, arrays: Mapping[int, Array]) -> Array | None:
    if tensor is None:
        return None
    return tensor.data if tensor.data is not None else arrays[tensor.index]


def sequence(steps: Sequence[Run]) -> Run:
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run
