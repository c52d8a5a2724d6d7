"""Plans as data, and plans made of that data.

A stored plan is JSON, the files of its sessions and the constants of its kernels. It is made ready
from that alone, without the operators. Those that numpy runs are read when they first run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import record, replace
from tflite_ort.plan.bound_step import bound_run
from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.in_place import share
from tflite_ort.plan.memory import Memory, blank
from tflite_ort.plan.runs import Run, at_first_run, explained, sequence
from tflite_ort.plan.stored_rows import (
    Row,
    StaleEntry,
    StoredArrays,
    Surroundings,
    tensor_of,
    variable_key,
)
from tflite_ort.providers.session import Session
from tflite_ort.providers.shared_sessions import may_share, shared_session
from tflite_ort.providers.stored_graph import StoredGraph
from tflite_ort.schema import BridgeError, DelegateError, TensorType, TensorView
from tflite_ort.schema.values.view import VariableKey
from tflite_ort.state import State, Whole, Window

with late:
    from tflite_ort.plan import placements, stored_operators

if TYPE_CHECKING:
    from tflite_ort.plan.placements import Placement
    from tflite_ort.plan.stored_operators import StoredKernels

Array = npt.NDArray[Any]
Explain = Callable[[str, int, Memory, DelegateError], BridgeError]


# Sessions ---------------------------------------------------------------------------------------


class Entry(Protocol):
    """An entry of the cache, as plans read it."""

    @property
    def whole(self) -> WholeRow:
        """The plan of the subgraph."""

    def arrays(self) -> StoredArrays:
        """Where the constants of kernels are."""

    @property
    def called(self) -> Sequence[Mapping[str, Any]]:
        """The stored rows of the sessions in plans of called subgraphs."""

    def graph(self, row: Row) -> StoredGraph:
        """What the row of a session's graph describes."""

    def rows(self) -> Sequence[Row]:
        """The rows of the placements."""

    def scopes(self) -> Mapping[str, Any]:
        """The plans of the subgraph and of the subgraphs that it calls, by their position."""


@record
class Crossing:
    """A tensor where it enters or leaves a stored session, before it has an array.

    Args: see `BoundaryTensor`.
    """

    tensor: TensorView
    dtype: np.dtype[Any]
    whole: Whole | None
    window: Window | None

    @classmethod
    def of(cls, row: Row, tensors: Mapping[int, TensorView]) -> Crossing:
        """What a row describes."""
        index, dtype, *place = row
        whole, window = None, None
        if len(place) == 1:
            width, steps = place[0]
            window = Window(width, steps, dtype)
        elif place:
            whole = Whole(tuple(place[0]), place[1])
        return cls(tensors[index], np.dtype(dtype), whole, window)

    def is_plain(self, arrays: Collection[int]) -> bool:
        """Whether the session has it as the array that it has for good."""
        same = self.whole is None and self.window is None and self.dtype == self.tensor.dtype
        return same and self.tensor.index in arrays

    def over(self, memory: Memory) -> BoundaryTensor:
        """The same with its array."""
        crossing = BoundaryTensor.of(self.tensor, self.dtype, memory)
        if self.window is not None:
            return crossing.as_rows(self.window)
        return crossing if self.whole is None else replace(crossing, whole=self.whole)


@record
class StoredSession:
    """What a row says of a session, ready for any number of plans.

    Args:
        places: of a session that reads and writes arrays of the interpreter as they are, the
            tensor indices of its inputs and of its outputs; None of others.
    """

    row: Mapping[str, Any]
    inputs: Sequence[Crossing]
    outputs: Sequence[Crossing]
    passed: Sequence[tuple[TensorView, TensorView]]
    places: tuple[Sequence[int], Sequence[int]] | None

    @classmethod
    def of(
        cls,
        row: Mapping[str, Any],
        tensors: Mapping[int, TensorView],
        arrays: Collection[int] = (),
    ) -> StoredSession:
        """What a row describes.

        Args:
            arrays: tensors that have one array for good.
        """
        inputs = [Crossing.of(each, tensors) for each in row["inputs"]]
        outputs = [Crossing.of(each, tensors) for each in row["outputs"]]
        passed = [(tensors[source], tensors[target]) for source, target in row["passed"]]
        places = None
        if not passed and all(x.is_plain(arrays) for x in (*inputs, *outputs)):
            places = [x.tensor.index for x in inputs], [x.tensor.index for x in outputs]
        return cls(row, inputs, outputs, passed, places)


def session_run_of(
    stored: StoredSession, made: Callable[[Mapping[str, Any]], Session], memory: Memory
) -> Run:
    """The run of a stored session over `memory`.

    Args:
        made: the session of a row.

    Raises:
        StaleEntry: its files cannot be used.
    """
    row, session = stored.row, None
    if row["in_place"]:
        share(row["in_place"], memory)
    if row["graph"] is not None:
        session = made(row)
    if session is not None and stored.places is not None:
        sources, targets = stored.places
        arrays = memory.arrays
        return session.runner(
            session.bind([arrays[i] for i in sources], [arrays[i] for i in targets])
        )
    inputs = [each.over(memory) for each in stored.inputs]
    outputs = [each.over(memory) for each in stored.outputs]
    return bound_run(session, inputs, outputs, stored.passed, memory, noted=row["noted"])


def _stored_session(row: Mapping[str, Any], entry: Entry, around: Surroundings) -> Session:
    """The session of a row. None draws random numbers: the library's translators leave that to
    numpy, and others are not stored.

    Raises:
        StaleEntry: its files cannot be used.
    """
    try:
        graph, provider = entry.graph(row["graph"]), around.providers[row["backend"]]
        threads = 1 if row["alone"] else around.num_threads
        make = partial(Session, graph, provider, num_threads=threads)
        shares = may_share(provider, threads)
        return shared_session(graph.files, make) if shares else make()
    except (DelegateError, KeyError, OSError, TypeError, ValueError) as error:
        raise StaleEntry(str(error)) from error


# Plans ------------------------------------------------------------------------------------------


@record
class WholeRow:
    """What is stored of a plan, ready for any number of plans.

    Args:
        variables: by tensor index.
        tensors: those that it keeps, and those at the boundary of a session.
        types: of `tensors`.
        arrays: what makes the arrays of those that have one.
        sessions: of each step; None of a step of kernels.
        has_kernels: whether there is such a step.
    """

    variables: Mapping[int, VariableKey]
    tensors: Mapping[int, TensorView]
    types: Mapping[int, TensorType]
    arrays: Mapping[int, Callable[[], Array]]
    sessions: Sequence[StoredSession | None]
    has_kernels: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> WholeRow:
        """What a `Recorder` has noted."""
        keys = {index: variable_key(key) for index, key in row["variables"]}
        tensors = {each[0]: tensor_of(each, quantized=each[0] in keys) for each in row["tensors"]}
        types = {index: tensor.type for index, tensor in tensors.items()}
        arrays = {index: blank(tensors[index]) for index in row["arrays"]}
        sessions = [
            None if step is None else StoredSession.of(step, tensors, arrays)
            for step in row["steps"]
        ]
        has_kernels = None in row["steps"]
        return cls(keys, tensors, types, arrays, sessions, has_kernels)

    def memory(self, state: State, subgraph: int | None = None) -> Memory:
        """What the plan runs over.

        Args:
            subgraph: of which callers of signatures may keep something; None where an operator
                calls it.
        """
        tensors = self.tensors
        variables = {i: state.variable(key, tensors[i]) for i, key in self.variables.items()}
        arrays = {index: make() for index, make in self.arrays.items()}
        kept = {} if subgraph is None else state.kept.place(subgraph, arrays)
        return Memory(arrays, variables, {}, kept)


@record
class StoredPlan:
    """A plan of the cache, as `Plan` otherwise.

    Args:
        types: of the tensors that it keeps.
        rows: of the placements, read when somebody asks.
        has_kernels: whether numpy runs some of it.
    """

    run: Run
    memory: Memory
    types: Mapping[int, TensorType]
    rows: Callable[[], Sequence[Row]]
    seconds: tuple[float, float]
    unusable: Mapping[str, str]
    has_kernels: bool

    @property
    def arrays(self) -> dict[int, Array]:
        """The buffers of inputs, outputs and tensors between partitions, by tensor index."""
        return self.memory.arrays

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Where each operator runs, by subgraph and index."""
        return tuple(placements.Placement(*row) for row in self.rows())


@record
class Source:
    """What the steps of stored plans are made of.

    Args:
        arrays: where the constants of kernels are; None without kernels.
        explain: an error of a session by the place of its plan, its number there and the memory,
            with what its operator says.
        called: by the number of their first file, the sessions in plans of called subgraphs. They
            are made at once, since the files may be gone when their steps first run.
        kernels: what is read when the first of them runs.
    """

    entry: Entry
    around: Surroundings
    arrays: StoredArrays | None
    explain: Explain
    called: Mapping[int, Session]
    kernels: list[StoredKernels]

    def session(self, row: Mapping[str, Any]) -> Session:
        """The session of a row.

        Raises:
            StaleEntry: its files cannot be used.
        """
        made = self.called.get(_first_file(row))
        return _stored_session(row, self.entry, self.around) if made is None else made


def _first_file(row: Mapping[str, Any]) -> int:
    """The number of the first file of a session, which no other has."""
    number: int = row["graph"][1][0]
    return number


def stored_plan(
    entry: Entry,
    around: Surroundings,
    subgraph: int,
    explain: Explain,
) -> StoredPlan:
    """The plan of an entry.

    Args:
        subgraph: the one that the plan is of.
        explain: see `Source`.

    Raises:
        StaleEntry: its files cannot be used.
    """
    started = time.perf_counter()
    row = entry.whole
    memory = row.memory(around.state, subgraph)
    arrays = entry.arrays() if row.has_kernels else None
    called = {_first_file(each): _stored_session(each, entry, around) for each in entry.called}
    run = run_of(row, "", memory, Source(entry, around, arrays, explain, called, []))
    seconds = (0.0, time.perf_counter() - started)
    return StoredPlan(run, memory, row.types, entry.rows, seconds, {}, row.has_kernels)


def run_of(row: WholeRow, place: str, memory: Memory, source: Source) -> Run:
    """All steps of a plan.

    Raises:
        StaleEntry: its files cannot be used.
    """
    runs: list[Run] = []
    for number, stored in enumerate(row.sessions):
        if stored is None:
            runs.append(at_first_run(partial(_kernels, place, number, memory, source)))
        else:
            run = session_run_of(stored, source.session, memory)
            runs.append(explained(run, partial(source.explain, place, number, memory)))
    return sequence(runs)


def _kernels(place: str, number: int, memory: Memory, source: Source) -> Run:
    """A step of kernels; what makes it is imported when it runs."""
    if not source.kernels:
        assert source.arrays is not None
        read, arrays = source.entry.scopes, source.arrays
        source.kernels.append(stored_operators.StoredKernels(read, arrays, source.around))
    (kernels,) = source.kernels
    return stored_operators.kernels_run(kernels, place, number, memory, partial(_inner, source))


def _inner(source: Source, place: str, row: Mapping[str, Any]) -> tuple[Run, Memory]:
    """A plan of a called subgraph, and what it runs over.

    Raises:
        StaleEntry: its files cannot be used.
    """
    whole = WholeRow.of(row)
    memory = whole.memory(source.around.state)
    return run_of(whole, place, memory, source), memory
