"""A partition in ONNX Runtime: a session bound to the arrays of the tensors that cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap import Lowered, Target
from tflite_ort.opmap.graph.pairs import is_complex
from tflite_ort.plan.partition import Partition
from tflite_ort.plan.runtime import Runtime
from tflite_ort.plan.steps import Memory, Run, unassigned
from tflite_ort.providers.delegates import Delegate
from tflite_ort.providers.session import CPU, Binding, DeviceTensor, Provider, Session
from tflite_ort.schema import DelegateError, OperatorView, StateError, TensorView
from tflite_ort.state import Variable, moved

Array = npt.NDArray[Any]

# Where some nodes are left to ONNX Runtime's CPU provider they get what is between in parts whose
# weights are inputs, which they compute in floats.
_WHOLE_GRAPHS_ONLY = ("OpenVINOExecutionProvider",)

# More sets of arrays than a session meets in turn are those of variables that were replaced.
_BINDINGS_KEPT = 16


class LeftToTheCPU(DelegateError):
    """A provider that is fast only where it takes all nodes has not taken those of `operators`."""

    def __init__(self, delegate: Delegate, operators: Sequence[OperatorView[Any]]) -> None:
        super().__init__(f"{delegate.name} leaves nodes of it to ONNX Runtime's CPU provider")
        self.operators = operators


@dataclass(frozen=True, slots=True)
class SessionStep:
    """A partition made ready.

    Args:
        providers: by operator, the execution providers that ONNX Runtime really uses.
    """

    run: Run
    providers: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Crossing:
    """A tensor where it enters or leaves a session, which carries int8 codes moved by 128.

    Args:
        dtype: in the session.
        array: what the interpreter keeps; None for a variable, an unknown shape and what a
            kernel makes anew at each run.
        bound: what the session is bound to; `array` itself where the types are the same.
        place: where the tensor is instead that stays on a device.
    """

    tensor: TensorView
    dtype: np.dtype[Any]
    variable: Variable | None
    array: Array | None = None
    bound: Array | None = None
    place: DeviceTensor | None = None

    @classmethod
    def of(
        cls, tensor: TensorView, target: Target, memory: Memory, place: DeviceTensor | None = None
    ) -> _Crossing:
        dtype = target.boundary_dtype(tensor)
        if place is not None:
            return cls(tensor, dtype, None, place=place)
        variable = memory.variables.get(tensor.index)
        array = memory.arrays.get(tensor.index)
        if variable is not None or tensor.dynamic or array is None:
            return cls(tensor, dtype, variable)
        bound = array if array.dtype == dtype else np.zeros(array.shape, dtype)
        return cls(tensor, dtype, None, array, bound)

    @property
    def fixed(self) -> bool:
        """Whether a session can be bound to it once."""
        return self.bound is not None or self.place is not None

    def source(self, memory: Memory) -> Array:
        """The array that the session reads at its next run."""
        if self.bound is not None:
            return self.bound
        if self.variable is None:
            array = np.asarray(memory.arrays[self.tensor.index], order="C")
            return array if array.dtype == self.dtype else moved(array)
        value = self.variable.carried(self.dtype)
        if value is None:
            raise unassigned(self.tensor)
        unfit = not self.tensor.dynamic and value.shape != self.tensor.shape
        if unfit or value.dtype != self.dtype:
            raise StateError(
                f"variable {self.tensor.name!r} has {value.dtype}{list(value.shape)}, the model "
                f"was made ready for {self.dtype}{list(self.tensor.shape)}"
            )
        return value

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
        own = result if result.dtype == self.tensor.dtype else _own(result, self.tensor)
        if self.variable is not None:
            self.variable.set(own)
        else:
            memory.arrays[self.tensor.index] = own


def _moves(crossings: Sequence[_Crossing]) -> list[tuple[Array, Array]]:
    """(codes, the same moved by 128) of those that the session carries so."""
    return [
        (x.array, x.bound)
        for x in crossings
        if x.array is not None and x.bound is not None and x.bound is not x.array
    ]


def session_step(
    part: Partition, lowered: Lowered, delegate: Delegate, memory: Memory, runtime: Runtime
) -> SessionStep:
    """One session over the tensors that enter and leave a partition.

    Raises:
        LeftToTheCPU: some operators are better run by the next delegate.
        DelegateError: ONNX Runtime could not make it, or not as a strict runtime wants it.
    """
    part, passed = _without_passed(part, lowered.model.graph, memory)
    target = runtime.target(delegate)
    session = _session(lowered.model, delegate.provider, runtime) if part.outputs else None
    providers = {} if session is None else _providers(part, session, delegate, runtime)
    places = part.places
    inputs = [_Crossing.of(t, target, memory, places.get(t.index)) for t in part.inputs]
    outputs = [_Crossing.of(t, target, memory, places.get(t.index)) for t in part.outputs]
    outputs += [_Crossing.of(t, target, memory) for t in part.copies]
    moves_in, moves_out = _moves(inputs), _moves(outputs)
    if session is not None and session.on_device and not any(op.bodies for op in part.operators):
        _try(session, inputs)
    if session is None:
        run: Run = lambda: None  # noqa: E731
    elif any(x.tensor.dynamic for x in (*inputs, *outputs)):
        run = _unbound(session, inputs, outputs, memory)
    elif not all(x.fixed for x in (*inputs, *outputs)):
        run = _rebound(session, inputs, outputs, memory, noted=runtime.continued)
    else:
        run = partial(session.run, _bind(session, inputs, outputs, memory))
    if not (moves_in or moves_out or passed):
        return SessionStep(run, providers)

    def run_moved() -> None:
        for codes, carried in moves_in:
            moved(codes, out=carried)
        run()
        for codes, carried in moves_out:
            moved(carried, out=codes)
        for source, target in passed:
            memory.put(target, memory.value(source))

    return SessionStep(run_moved, providers)


def _try(session: Session, inputs: Sequence[_Crossing]) -> None:
    """A first run, over zeros: some devices compile only then, and may fail to. It is not for
    loops, which may not end with zeros.

    Raises:
        DelegateError: it failed.
    """
    if not any(x.tensor.dynamic or x.dtype == np.object_ for x in inputs):
        session.call([np.zeros(x.tensor.shape, x.dtype) for x in inputs])


def _providers(
    part: Partition, session: Session, delegate: Delegate, runtime: Runtime
) -> dict[int, str]:
    """By operator, the execution providers that its nodes were given to.

    An operator whose nodes ONNX Runtime merged into others has those of the whole partition.
    """
    assigned = session.assigned()
    if runtime.strict and (strays := [n for n, name in assigned.items() if name != delegate.name]):
        raise DelegateError(f"{delegate.name} was not given {', '.join(sorted(strays))}")
    everywhere = list(dict.fromkeys(assigned.values())) or [delegate.name]
    if delegate.name not in everywhere:
        raise DelegateError("ONNX Runtime gave it none of the nodes")
    used: dict[str, dict[str, None]] = {}
    for node, name in assigned.items():
        used.setdefault(node.partition("/")[0], {})[name] = None
    left = [op for op in part.operators if used.get(op.label, {}).keys() - {delegate.name}]
    if left and delegate.name in _WHOLE_GRAPHS_ONLY and CPU in {d.name for d in runtime.delegates}:
        raise LeftToTheCPU(delegate, left)
    return {op.index: ", ".join(used.get(op.label, everywhere)) for op in part.operators}


def _session(model: ir.Model, provider: Provider, runtime: Runtime) -> Session:
    profile = runtime.profile
    prefix = None if profile is None else profile.prefix
    session = Session(model, provider, num_threads=runtime.num_threads, profile=prefix)
    if profile is not None:
        profile.sessions.append(session)
    return session


def _without_passed(
    part: Partition, graph: ir.Graph, memory: Memory
) -> tuple[Partition, list[tuple[TensorView, TensorView]]]:
    """`part` and `graph` without the outputs that are inputs, such as what a loop hands on as it
    is, and without inputs that nothing reads; and these pairs of input and output."""
    sources = {id(value): t for value, t in zip(graph.inputs, part.inputs, strict=True)}
    passed: list[tuple[TensorView, TensorView]] = []
    outputs = list(part.outputs)
    for value, tensor in zip(list(graph.outputs), [*part.outputs, *part.copies], strict=True):
        if tensor.index in part.places:
            continue
        node = value.producer()
        assert node is not None
        source = sources.get(id(node.inputs[0])) if node.op_type == "Identity" else None
        if source is None or source.type is not tensor.type:
            continue
        if memory.variables.keys() & {source.index, tensor.index}:
            continue
        passed.append((source, tensor))
        outputs.remove(tensor)
        graph.outputs.remove(value)
        graph.remove(node, safe=True)
    for value in [value for value in graph.inputs if not value.uses()]:
        graph.inputs.remove(value)
    inputs = [sources[id(value)] for value in graph.inputs]
    return replace(part, inputs=inputs, outputs=outputs), passed


def _bind(
    session: Session, inputs: Sequence[_Crossing], outputs: Sequence[_Crossing], memory: Memory
) -> Binding:
    sources = [x.place or x.source(memory) for x in inputs]
    return session.bind(sources, [x.place or x.target() for x in outputs])


def _unbound(
    session: Session, inputs: Sequence[_Crossing], outputs: Sequence[_Crossing], memory: Memory
) -> Run:
    """A run over arrays whose shapes are known only then."""

    def run() -> None:
        results = session.call([x.source(memory) for x in inputs])
        for crossing, result in zip(outputs, results, strict=True):
            crossing.store(result, memory)

    return run


def _rebound(
    session: Session,
    inputs: Sequence[_Crossing],
    outputs: Sequence[_Crossing],
    memory: Memory,
    *,
    noted: bool,
) -> Run:
    """A run over arrays that are others the next time.

    It reads the variables' arrays and writes their spare ones; then these change places. Each set
    of these arrays is bound once: as long as nothing else replaces one there are two such sets.
    What a kernel made is bound at each run.

    Args:
        noted: see `Variable.advance`.
    """
    made = [(i, x) for i, x in enumerate(inputs) if x.variable is None and not x.fixed]
    used = (x.variable for x in (*inputs, *outputs) if x.variable is not None)
    variables = list(dict.fromkeys(used))
    bindings: dict[tuple[int, ...], _Bound] = {}

    def place() -> tuple[int, ...]:
        arrays = [id(variable.array) for variable in variables]
        if noted:  # a session must not write over what may be needed again
            arrays += [id(variable.kept) for variable in variables]
        return tuple(arrays)

    def bind() -> _Bound:
        if len(bindings) == _BINDINGS_KEPT:
            bindings.clear()
        bound = _Bound(
            _bind(session, inputs, outputs, memory),
            [variable.array for variable in variables],
            [(x.variable, x.target()) for x in outputs if x.variable is not None],
        )
        bindings[place()] = bound
        return bound

    def run() -> None:
        bound = bindings.get(place())
        if bound is None:
            bound = bind()
        else:
            for position, crossing in made:
                session.bind_input(bound.binding, position, crossing.source(memory))
        session.run(bound.binding)
        for variable, array in bound.results:
            variable.advance(array, noted=noted)

    return run


@dataclass(frozen=True, slots=True)
class _Bound:
    """A binding to the arrays that variables had.

    Args:
        arrays: these, kept alive so that no other array gets the identity of one.
        results: where the next values are after a run.
    """

    binding: Binding
    arrays: list[Array | None]
    results: list[tuple[Variable, Array]]


def _own(result: Array, tensor: TensorView) -> Array:
    """What a session made with the element type that `tensor` has in the file."""
    if is_complex(tensor):
        if result.shape[-1:] != (2,):
            raise DelegateError(f"{tensor.name!r} is {tensor.type.name}: {result.shape} of reals")
        return np.ascontiguousarray(result).view(tensor.dtype).reshape(result.shape[:-1])
    return moved(result)
