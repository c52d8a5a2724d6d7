"""How a session is run: bound once to its arrays, bound to others in turn, or not bound at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.runs import Run
from tflite_ort.providers.binding import Binding
from tflite_ort.providers.session import Session
from tflite_ort.state import Turns, Variable

Array = npt.NDArray[Any]
Tensors = Sequence[BoundaryTensor]  # in graph order

# Two bindings do for most sessions with variables, see `_Bindings`.
_BINDINGS_KEPT = 16
_ARRAY, _KEPT, _FIXED = attrgetter("array"), attrgetter("kept"), attrgetter("fixed")


def session_run(
    session: Session, inputs: Tensors, outputs: Tensors, memory: Memory, *, noted: bool
) -> Run:
    """A run of the session over the present values of the tensors at its boundary.

    Args:
        noted: more is to run in the invoke, which may fail: values are kept until its end.
    """
    boundary = (*inputs, *outputs)
    if all(map(_FIXED, boundary)):
        return session.runner(_bind(session, inputs, outputs, memory))
    if any(x.tensor.dynamic for x in boundary):
        return _unbound(session, inputs, outputs, memory)
    return _rebound(session, inputs, outputs, memory, noted=noted)


def _bind(session: Session, inputs: Tensors, outputs: Tensors, memory: Memory) -> Binding:
    sources = [x.place or x.source(memory) for x in inputs]
    return session.bind(sources, [x.place or x.written() for x in outputs])


def _unbound(session: Session, inputs: Tensors, outputs: Tensors, memory: Memory) -> Run:
    """A run over arrays whose shapes are known only at the run; the session makes its results."""

    def run() -> None:
        results = session.call([x.source(memory) for x in inputs])
        for crossing, result in zip(outputs, results, strict=True):
            crossing.store(result, memory)

    return run


def _rebound(
    session: Session, inputs: Tensors, outputs: Tensors, memory: Memory, *, noted: bool
) -> Run:
    """A run over arrays that change from run to run, see `_Bindings`.

    Args:
        noted: more is to run in the invoke, which may fail: values are kept until its end.
    """
    made = [(i, x) for i, x in enumerate(inputs) if x.variable is None and not x.fixed]
    bindings = _Bindings(session, inputs, outputs, memory)
    known, variables = bindings.known, bindings.variables  # what follows takes microseconds

    def place() -> tuple[int, ...]:
        arrays = map(id, map(_ARRAY, variables))
        return tuple(arrays) if not noted else (*arrays, *map(id, map(_KEPT, variables)))

    def run() -> None:
        bound = known.get(place())
        if bound is None:
            bound = bindings.made()
            known[place()] = bound  # to make it may have moved codes to other arrays
        else:
            for position, tensor in made:
                session.bind_input(bound.binding, position, tensor.source(memory))
        session.run(bound.binding)
        if noted:
            for variable, _ in bound.results:
                variable.note()
        for variable, array in bound.results:
            variable.place(array, variable.array)
        if turns is not None:
            turns.begin(bound, known.get(place()))

    turns = None if noted or made else _AlternateRuns(session, variables)
    return run if turns is None else partial(turns.run, run)


@record
class _Bound:
    """A binding to the arrays that hold the values of the variables.

    Args:
        arrays: the arrays, kept alive so that no other array gets the identity of one of them.
        results: each variable that a run sets, and the array in which its next value is then.
    """

    binding: Binding
    arrays: list[Array | None]
    results: list[tuple[Variable, Array]]


class _AlternateRuns:
    """Runs of a session over two bindings in turn, with all its variables set at each run. Until
    something else gives a variable another array, nothing is looked up, and no variable is touched.
    """

    def __init__(self, session: Session, variables: Sequence[Variable]) -> None:
        self._session, self._variables = session, variables
        self._turns = Turns()
        self._runs: tuple[Run, ...] = ()

    def run(self, other: Run) -> None:
        """A run over the next binding; `other` where that is not known."""
        turns = self._turns
        if not turns.valid:
            other()
            return
        self._runs[turns.odd]()
        turns.odd ^= 1

    def begin(self, last: _Bound, following: _Bound | None) -> None:
        """The session has run over `last`; `following` is the binding to the arrays as they are."""
        if following is None or {id(v) for v, _ in last.results} != set(map(id, self._variables)):
            return
        if any(variable.spare is not array for variable, array in following.results):
            return
        for variable in self._variables:
            variable.take_turns(self._turns)
        self._turns.valid = True
        pair = (following, last)[:: -1 if self._turns.odd else 1]
        self._runs = tuple(self._session.runner(each.binding) for each in pair)


class _Bindings:
    """The bindings of a session with variables: why two of them are enough.

    A variable has two arrays: the session reads its value from one and writes its next value to the
    other, the spare one. After the run the two change places. With arrays A and B, the first run
    reads A and writes B, the second reads B and writes A, and the third is like the first. So two
    bindings do, each made the first time that it is needed, and looked up by the identity of the
    arrays that hold the values. All variables of a session change places at each run, so that there
    are two bindings however many variables there are.

    Where an invoke may fail after the run, the array that held the value when the invoke began is
    kept until its end, and no session may write to it. A second run in one invoke, as in a loop,
    then needs a third array. So the lookup is by the kept arrays too.

    Other bindings appear only where something else replaces an array, such as a value of another
    shape. `_BINDINGS_KEPT` bounds how many of them are kept.

    An input that a kernel makes anew is no variable; it is bound at each run.
    """

    def __init__(self, session: Session, inputs: Tensors, outputs: Tensors, memory: Memory) -> None:
        self._session, self._inputs, self._outputs = session, inputs, outputs
        self._memory = memory
        used = (x.variable for x in (*inputs, *outputs) if x.variable is not None)
        self.variables = list(dict.fromkeys(used))
        self.known: dict[tuple[int, ...], _Bound] = {}

    def made(self) -> _Bound:
        """A new binding to the arrays that hold the values now, and room for it in `known`."""
        if len(self.known) == _BINDINGS_KEPT:
            self.known.clear()
        return _Bound(
            _bind(self._session, self._inputs, self._outputs, self._memory),
            [variable.array for variable in self.variables],
            [(x.variable, x.target()) for x in self._outputs if x.variable is not None],
        )
