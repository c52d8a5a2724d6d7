"""What an invoke runs: bound sessions and numpy kernels over the interpreter's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.delegates import Delegate
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.fallback_kernels.control_flow import Call
from tflite_ort.opmap import Lowered, Target
from tflite_ort.partition import Partition, only_sets
from tflite_ort.runtime import Runtime
from tflite_ort.schema import KernelError, OperatorView, StateError, TensorView
from tflite_ort.session import Binding, Provider, Session
from tflite_ort.specialization import run_kernel
from tflite_ort.state import Variable, moved
from tflite_ort.versioning.registry import Entry

Array = npt.NDArray[Any]
Run = Callable[[], None]

# More sets of arrays than a session meets in turn are those of variables that were replaced.
_BINDINGS_KEPT = 16


@dataclass(frozen=True, slots=True)
class Memory:
    """Where tensors stand between steps, by tensor index.

    Args:
        arrays: of inputs, outputs and what crosses partitions, whose shapes are known; and, while
            an invoke runs, what kernels made.
        variables: what lasts from one invoke to the next.
    """

    arrays: dict[int, Array]
    variables: Mapping[int, Variable]

    def value(self, tensor: TensorView) -> Array:
        """The present value of a tensor."""
        if tensor.data is not None:
            return tensor.data
        if tensor.index not in self.variables:
            return self.arrays[tensor.index]
        value = self.variables[tensor.index].value
        if value is None:
            raise _unassigned(tensor)
        return value

    def put(self, tensor: TensorView, array: Array) -> None:
        """Give an input its value; one that is known to be constant has it."""
        if tensor.is_constant:
            return
        kept = None if tensor.dynamic else self.arrays.get(tensor.index)
        if kept is None:
            self.arrays[tensor.index] = array
        elif kept.shape == array.shape:
            kept[...] = array
        else:
            raise KernelError(
                f"{tensor.name!r} is given shape {list(array.shape)}, expected {list(kept.shape)}"
            )


def _unassigned(tensor: TensorView) -> StateError:
    return StateError(f"variable {tensor.name!r} is read before it has a value")


# Sessions ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Crossing:
    """A tensor where it enters or leaves a session, which carries int8 codes moved by 128.

    Args:
        dtype: in the session.
        array: what the interpreter keeps; None for a variable and for an unknown shape.
        bound: what the session is bound to; `array` itself where the types are the same.
    """

    tensor: TensorView
    dtype: np.dtype[Any]
    variable: Variable | None
    array: Array | None = None
    bound: Array | None = None

    @classmethod
    def of(cls, tensor: TensorView, target: Target, memory: Memory) -> _Crossing:
        dtype = target.boundary_dtype(tensor)
        variable = memory.variables.get(tensor.index)
        if variable is not None or tensor.dynamic:
            return cls(tensor, dtype, variable)
        array = memory.arrays[tensor.index]
        bound = array if array.dtype == dtype else np.zeros(array.shape, dtype)
        return cls(tensor, dtype, None, array, bound)

    @property
    def is_moved(self) -> bool:
        return self.bound is not self.array

    def source(self, memory: Memory) -> Array:
        """The array that the session reads at its next run."""
        if self.bound is not None:
            return self.bound
        if self.variable is None:
            array = np.ascontiguousarray(memory.arrays[self.tensor.index])
            return array if array.dtype == self.dtype else moved(array)
        array = self.variable.carried(self.dtype)
        if array is None:
            raise _unassigned(self.tensor)
        unfit = not self.tensor.dynamic and array.shape != self.tensor.shape
        if unfit or array.dtype != self.dtype:
            raise StateError(
                f"variable {self.tensor.name!r} has {array.dtype}{list(array.shape)}, the model "
                f"was made ready for {self.dtype}{list(self.tensor.shape)}"
            )
        return array

    def target(self) -> Array:
        """The array that the session writes at its next run; its shape has to be known."""
        if self.variable is not None:
            return self.variable.target(self.tensor, self.dtype)
        assert self.bound is not None
        return self.bound

    def store(self, result: Array, memory: Memory) -> None:
        """Put down what the session made in an array of its own."""
        if self.bound is not None:
            self.bound[...] = result
            return
        own = result if result.dtype == self.tensor.dtype else moved(result)
        if self.variable is not None:
            self.variable.assign(own)
        else:
            memory.arrays[self.tensor.index] = own


def session_step(
    part: Partition, lowered: Lowered, delegate: Delegate, memory: Memory, runtime: Runtime
) -> Run:
    part, passed = _without_passed(part, lowered.model.graph)
    provider = (delegate.name, dict(delegate.options)) if delegate.options else delegate.name
    session, target = _session(lowered.model, provider, runtime), runtime.target(delegate)
    inputs = [_Crossing.of(tensor, target, memory) for tensor in part.inputs]
    outputs = [_Crossing.of(tensor, target, memory) for tensor in part.outputs]
    moves_in = [(x.array, x.bound) for x in inputs if x.is_moved]
    moves_out = [(x.bound, x.array) for x in outputs if x.is_moved]
    if any(x.tensor.dynamic for x in (*inputs, *outputs)):
        run = _unbound(session, inputs, outputs, memory)
    elif any(x.variable is not None for x in (*inputs, *outputs)):
        run = _stateful(session, inputs, outputs, memory)
    else:
        binding = session.bind([x.source(memory) for x in inputs], [x.target() for x in outputs])
        run = partial(session.run, binding)
    if not (moves_in or moves_out or passed):
        return run

    def run_moved() -> None:
        for codes, carried in moves_in:
            moved(codes, out=carried)
        run()
        for carried, codes in moves_out:
            moved(carried, out=codes)
        for source, target in passed:
            memory.put(target, memory.value(source))

    return run_moved


def _session(model: ir.Model, provider: Provider, runtime: Runtime) -> Session:
    profile = runtime.profile
    prefix = None if profile is None else profile.prefix
    session = Session(model, [provider], num_threads=runtime.num_threads, profile=prefix)
    if profile is not None:
        profile.sessions.append(session)
    return session


def _without_passed(
    part: Partition, graph: ir.Graph
) -> tuple[Partition, list[tuple[TensorView, TensorView]]]:
    """`part` and `graph` without the outputs that are inputs, such as what a loop hands on as it
    is, and without inputs that nothing reads; and these pairs of input and output."""
    sources = {id(value): t for value, t in zip(graph.inputs, part.inputs, strict=True)}
    passed: list[tuple[TensorView, TensorView]] = []
    outputs = list(part.outputs)
    for value, tensor in zip(list(graph.outputs), part.outputs, strict=True):
        node = value.producer()
        source = (
            None if node is None or node.op_type != "Identity" else sources.get(id(node.inputs[0]))
        )
        if node is None or source is None or tensor.is_variable or source.type is not tensor.type:
            continue
        passed.append((source, tensor))
        outputs.remove(tensor)
        graph.outputs.remove(value)
        graph.remove(node, safe=True)
    for value in [value for value in graph.inputs if not value.uses()]:
        graph.inputs.remove(value)
    inputs = [sources[id(value)] for value in graph.inputs]
    return replace(part, inputs=inputs, outputs=outputs), passed


def _unbound(
    session: Session, inputs: Sequence[_Crossing], outputs: Sequence[_Crossing], memory: Memory
) -> Run:
    """A run over arrays whose shapes are known only then."""

    def run() -> None:
        results = session.call([x.source(memory) for x in inputs])
        for crossing, result in zip(outputs, results, strict=True):
            crossing.store(result, memory)

    return run


def _stateful(
    session: Session, inputs: Sequence[_Crossing], outputs: Sequence[_Crossing], memory: Memory
) -> Run:
    """A run that reads the variables' arrays and writes their spare ones; then these change places.

    Each set of arrays is bound once: as long as nothing else replaces one there are two such sets.
    """
    crossings = [x for x in (*inputs, *outputs) if x.variable is not None]
    variables = list(dict.fromkeys(x.variable for x in crossings if x.variable is not None))
    written = list(dict.fromkeys(x.variable for x in outputs if x.variable is not None))
    bindings: dict[tuple[int, ...], Binding] = {}

    def present() -> tuple[int, ...]:
        return tuple(
            [id(variable.array) for variable in variables]
            + [id(variable.spare) for variable in written]
        )

    def bind() -> Binding:
        if len(bindings) == _BINDINGS_KEPT:
            bindings.clear()
        binding = session.bind([x.source(memory) for x in inputs], [x.target() for x in outputs])
        # The binding keeps its arrays alive, so that no other array gets their identities.
        bindings[present()] = binding
        return binding

    def run() -> None:
        session.run(bindings.get(present()) or bind())
        for variable in written:
            variable.array, variable.spare = variable.spare, variable.array

    return run


# Kernels -----------------------------------------------------------------------------------------


def kernel_step(
    part: Partition,
    memory: Memory,
    subgraphs: Mapping[int, Sequence[Call]],
    runtime: Runtime,
) -> Run:
    """The kernels of a partition in turn.

    Args:
        subgraphs: by operator index, those that it calls; they reach the variables themselves.
    """
    calls: list[tuple[OperatorView[Any], Entry[Kernel], Any]] = []
    for op in part.operators:
        entry = runtime.resolver.kernels.of(op)
        assert entry is not None
        if op.index in subgraphs:
            given = tuple(t for t in op.present_inputs() if t.index not in memory.variables)
            calls.append((replace(op, inputs=given), entry, subgraphs[op.index]))
            continue
        bound = replace(op, names=entry.inputs.bind(op).names)
        calls.append((bound, entry, entry.state(bound) if entry.state else None))
    fixed = frozenset(memory.arrays)
    step = _run_kernel if runtime.profile is None else runtime.profile.timed(_run_kernel)

    def run() -> None:
        with np.errstate(all="ignore"):
            for op, entry, state in calls:
                step(op, entry, memory, fixed, state)

    return run


def _run_kernel(
    op: OperatorView[Any],
    entry: Entry[Kernel],
    memory: Memory,
    fixed: frozenset[int],
    state: Any,
) -> None:
    inputs = [
        None if tensor is None or only_sets(op, tensor) else memory.value(tensor)
        for tensor in op.inputs
    ]
    results = run_kernel(op, entry, inputs, state)
    for tensor, result in zip(op.outputs, results, strict=False):
        if tensor.index not in fixed:
            memory.arrays[tensor.index] = result
        elif result.shape == tensor.shape:
            memory.arrays[tensor.index][...] = result
        else:
            raise KernelError(
                f"{op.label}: the kernel made shape {result.shape}, expected {tensor.shape}"
            )
    for tensor, result in zip(op.variables(), results[len(op.outputs) :], strict=True):
        memory.variables[tensor.index].assign(result)


def sequence(steps: Sequence[Run]) -> Run:
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run
