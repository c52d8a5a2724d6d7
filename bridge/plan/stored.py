"""Plans as data, and plans made of that data: the sessions of a plan without its operators.

A stored plan is JSON and the files of its sessions. A plan whose every step is a session is made
ready from that alone. Where numpy kernels run some of the operators, the subgraph is specialised
as always, and the stored part spares the translation and the making of the sessions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tflite_ort.optional import late
from tflite_ort.plan.bound_step import bound_run
from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.in_place import share
from tflite_ort.plan.memory import Memory, blank
from tflite_ort.plan.runs import Run, explained, sequence
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.session import Session
from tflite_ort.providers.stored_graph import StoredGraph
from tflite_ort.providers.threads import shares_threads
from tflite_ort.records import field, record, replace
from tflite_ort.schema import BridgeError, DelegateError, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.schema.values.view import Quantization, VariableKey
from tflite_ort.state import State, Whole, Window

if TYPE_CHECKING:
    from tflite_ort.plan import placements
    from tflite_ort.plan.placements import Placement
else:
    placements = late("tflite_ort.plan.placements")

Array = npt.NDArray[Any]
Row = Sequence[Any]

# By the files of their graph, the sessions that interpreters share while one of them lives.
_SHARED: WeakValueDictionary[Hashable, Session] = WeakValueDictionary()
_TYPES = {int(kind): kind for kind in TensorType}


class StaleEntry(Exception):
    """What was stored cannot be used; the plan has to be made anew."""


# Rows of tensors --------------------------------------------------------------------------------


def tensor_row(tensor: TensorView) -> list[Any]:
    """A tensor at the boundary of a session as JSON; it is no constant."""
    shape = [int(size) if is_known(size) else None for size in tensor.shape]
    quantization = tensor.quantization
    codes = None
    if quantization is not None:
        scale, zero_point = quantization.scale.tolist(), quantization.zero_point.tolist()
        codes = [scale, zero_point, quantization.axis]
    row = [tensor.index, tensor.name, int(tensor.type), shape, codes]
    return [*row, tensor.is_variable, tensor.ranked]


def tensor_of(row: Row, *, quantized: bool = True) -> TensorView:
    """The tensor that a row stands for.

    Args:
        quantized: with its scales, of which a session needs none.
    """
    index, name, kind, shape, codes, is_variable, ranked = row
    sizes = tuple(shape)
    if None in sizes:
        sizes = tuple(unknown_size() if size is None else size for size in shape)
    quantization = None
    if codes is not None and quantized:
        scale, zero_point, axis = codes
        quantization = Quantization(
            np.array(scale, np.float32), np.array(zero_point, np.int64), axis
        )
    return TensorView(index, name, _TYPES[kind], sizes, None, quantization, is_variable, ranked)


def variable_key(key: Row) -> VariableKey:
    """A variable's key, which JSON has as a list."""
    first, second = key
    return (first, second)


# Sessions ---------------------------------------------------------------------------------------


@record
class SessionStep:
    """A partition made ready.

    Args:
        providers: by operator, the execution providers that ONNX Runtime really uses.
    """

    run: Run
    providers: Mapping[int, str]


@record
class Surroundings:
    """What stored sessions need of the process.

    Args:
        providers: by backend.
        num_threads: within an operator.
    """

    providers: Mapping[str, Provider]
    num_threads: int


@record
class StoredScope:
    """One of the plans that are stored together.

    Args:
        row: as `Recorder` made it.
        graph: what the row of a session's graph describes.
    """

    row: Mapping[str, Any]
    graph: Callable[[Row], StoredGraph]
    _taken: list[int] = field(default_factory=lambda: [0])

    @property
    def backends(self) -> dict[int, str]:
        """The backend of each operator."""
        return {int(index): name for index, name in self.row["backends"].items()}

    @property
    def reasons(self) -> dict[int, str]:
        """By operator, why earlier delegates do not have it."""
        return {int(index): reason for index, reason in self.row["reasons"].items()}

    def take(self, memory: Memory, around: Surroundings) -> SessionStep:
        """The next session over `memory`.

        Raises:
            StaleEntry: its files cannot be used.
        """
        number = self._taken[0]
        self._taken[0] += 1
        step = self.row["steps"][number]
        tensors = {int(index): tensor_of(row) for index, row in self.row["tensors"].items()}
        run = session_run_of(StoredSession.of(step, tensors), self.graph, memory, around)
        return SessionStep(run, {int(i): name for i, name in step["providers"].items()})


@record
class StoredScopes:
    """The plans of a subgraph and of those that it calls, by place."""

    rows: Mapping[str, Any]
    graph: Callable[[Row], StoredGraph]

    def scope(self, place: str) -> StoredScope:
        """The plan of this place.

        Raises:
            StaleEntry: there is none.
        """
        if place not in self.rows:
            raise StaleEntry(f"no plan {place!r}")
        return StoredScope(self.rows[place], self.graph)


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
    stored: StoredSession,
    graph: Callable[[Row], StoredGraph],
    memory: Memory,
    around: Surroundings,
) -> Run:
    """The run of a stored session over `memory`.

    Raises:
        StaleEntry: its files cannot be used.
    """
    row, session = stored.row, None
    if row["in_place"]:
        share(row["in_place"], memory)
    if row["graph"] is not None:
        try:
            session = _stored_session(row, graph(row["graph"]), around)
        except (DelegateError, KeyError, OSError, TypeError, ValueError) as error:
            raise StaleEntry(str(error)) from error
    if session is not None and stored.places is not None:
        sources, targets = stored.places
        arrays = memory.arrays
        return session.runner(
            session.bind([arrays[i] for i in sources], [arrays[i] for i in targets])
        )
    inputs = [each.over(memory) for each in stored.inputs]
    outputs = [each.over(memory) for each in stored.outputs]
    return bound_run(session, inputs, outputs, stored.passed, memory, noted=row["noted"])


def _stored_session(row: Mapping[str, Any], graph: StoredGraph, around: Surroundings) -> Session:
    """The session of a row; interpreters share those that `model_session` would share. None draws
    random numbers: the library's translators leave that to numpy, and others are not stored."""
    provider = around.providers[row["backend"]]
    threads = 1 if row["alone"] else around.num_threads
    make = partial(Session, graph, provider, num_threads=threads, small=row["small"])
    own_threads = threads != 1 and not shares_threads()
    if provider != ON_CPU or own_threads or graph.in_place:
        return make()
    session = _SHARED.get(graph.files)
    if session is None:
        session = _SHARED[graph.files] = make()
    return session


# Whole plans ------------------------------------------------------------------------------------


@record
class WholeRow:
    """What is stored of a plan whose every step is a session, ready for any number of plans.

    Args:
        variables: by tensor index.
        tensors: those that it keeps, and those at the boundary of a session.
        types: of `tensors`.
        arrays: what makes the arrays of those that have one.
    """

    variables: Mapping[int, VariableKey]
    tensors: Mapping[int, TensorView]
    types: Mapping[int, TensorType]
    arrays: Mapping[int, Callable[[], Array]]
    sessions: Sequence[StoredSession]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> WholeRow:
        """What `whole_row` described."""
        keys = {index: variable_key(key) for index, key in row["variables"]}
        tensors = {each[0]: tensor_of(each, quantized=each[0] in keys) for each in row["tensors"]}
        types = {index: tensor.type for index, tensor in tensors.items()}
        arrays = {index: blank(tensors[index]) for index in row["arrays"]}
        sessions = [StoredSession.of(step, tensors, arrays) for step in row["steps"]]
        return cls(keys, tensors, types, arrays, sessions)


@record
class StoredPlan:
    """A plan whose every step is a session, as `Plan` otherwise.

    Args:
        types: of the tensors that it keeps.
        rows: of the placements, read when somebody asks.
    """

    run: Run
    memory: Memory
    types: Mapping[int, TensorType]
    rows: Callable[[], Sequence[Row]]
    seconds: tuple[float, float]
    unusable: Mapping[str, str]

    @property
    def arrays(self) -> dict[int, Array]:
        """By tensor index, the buffers of inputs, outputs and what crosses partitions."""
        return self.memory.arrays

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Where each operator runs, by subgraph and index."""
        return tuple(placements.Placement(*row) for row in self.rows())


def whole_plan(
    row: WholeRow,
    graph: Callable[[Row], StoredGraph],
    state: State,
    subgraph: int,
    around: Surroundings,
    explain: Callable[[int, DelegateError], BridgeError],
    rows: Callable[[], Sequence[Row]],
) -> StoredPlan:
    """The plan that a row describes.

    Args:
        graph: what the row of a session's graph describes.
        subgraph: the one that the plan is of.
        explain: an error of a partition by its number, with what its operator says.
        rows: of the placements.

    Raises:
        StaleEntry: its files cannot be used.
    """
    started = time.perf_counter()
    tensors = row.tensors
    variables = {index: state.variable(key, tensors[index]) for index, key in row.variables.items()}
    arrays = {index: make() for index, make in row.arrays.items()}
    memory = Memory(arrays, variables, {}, state.kept.place(subgraph, arrays))
    runs = [
        explained(session_run_of(stored, graph, memory, around), partial(explain, number))
        for number, stored in enumerate(row.sessions)
    ]
    seconds = (0.0, time.perf_counter() - started)
    return StoredPlan(sequence(runs), memory, row.types, rows, seconds, {})


def whole_row(
    scope: Mapping[str, Any],
    tensors: Sequence[TensorView],
    variables: Mapping[int, VariableKey],
    arrays: Sequence[int],
) -> dict[str, Any]:
    """A plan whose every step is a session, as JSON.

    Args:
        scope: as `Recorder` made it.
        tensors: of the subgraph.
        variables, arrays: those of the plan's memory.
    """
    rows = dict(scope["tensors"])
    rows.update({index: tensor_row(tensors[index]) for index in (*variables, *arrays)})
    steps = [{**step, "providers": {}} for step in scope["steps"]]
    return {
        "tensors": list(rows.values()),
        "variables": [[index, list(key)] for index, key in variables.items()],
        "arrays": list(arrays),
        "steps": steps,
    }
