"""One subgraph made ready for the shapes of its inputs, and run again and again."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tflite_ort.base.collecting import seldom
from tflite_ort.base.optional import late
from tflite_ort.base.records import record, replace
from tflite_ort.interpreter.known_sizes import KnownSize, KnownSizes
from tflite_ort.model.opened_model import OpenedModel
from tflite_ort.plan.stored import StoredPlan, stored_plan
from tflite_ort.plan.stored_rows import StaleEntry, Surroundings
from tflite_ort.schema.values import sizes
from tflite_ort.state import State, Variable, initial_value

# A plan that the cache has needs none of these.
with late:
    import dataclasses
    import pathlib
    import tempfile

    from tflite_ort.batching import regrouping
    from tflite_ort.cache import folder as cache_folder
    from tflite_ort.model import missing_operators
    from tflite_ort.plan import build, failures, partition, placements, profiling
    from tflite_ort.schema.values import resolve
    from tflite_ort.specialize import specialization

if TYPE_CHECKING:
    from tflite_ort.cache.plans import PlanCache, StoredEntry
    from tflite_ort.custom.kernels import BoundResolver
    from tflite_ort.plan.build import Plan
    from tflite_ort.plan.context import PlanContext
    from tflite_ort.plan.memory import Memory
    from tflite_ort.plan.placements import LoadTimes
    from tflite_ort.schema import BridgeError, DelegateError, Specialized, TensorType

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


@record
class Shared(Surroundings):
    """What the subgraphs of one interpreter share.

    Args:
        context: of plans that are made here; made when the first one is.
        cache: the plans that are stored; None for none.
        choice: why these providers, where they were found by trying.
        size: bytes of the model.
    """

    context: Callable[[], PlanContext]
    cache: PlanCache | None = None
    choice: str = ""
    size: int = 0


class NextPlan:
    """The plan of the next invoke, which keeps what was asked for.

    Attributes:
        has_run: it has the values of the last invoke.
    """

    __slots__ = ("has_run", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan, self.has_run = plan, False


class SubgraphExecutor:
    """A subgraph, its input shapes, and the plan for these shapes once it is allocated.

    Args:
        subgraph: which of the subgraphs of the model.
        opened: the model.
        shared: what the interpreter's subgraphs share.

    Attributes:
        plan: None before it is allocated.
        carries: some of what is kept does not come into being in place: it is to be copied after
            each run.
        asked: the intermediate results that plans keep, since somebody has read them.
        following: the plan that the next invoke makes the present one, see `intermediate`.
    """

    def __init__(self, subgraph: int, opened: OpenedModel, shared: Shared) -> None:
        self.subgraph = subgraph
        self._opened, self._shared = opened, shared
        self._shapes: dict[int, Shape] = {}
        self._resized: set[int] = set()
        self._made_for: dict[int, Shape] | None = None
        self._specialized: Specialized | None = None
        self._arrays: dict[int, Array] = {}
        self._lasting: frozenset[int] = frozenset()
        self._known = KnownSizes(shared.size)
        self._taken: KnownSize | None = None
        self._last_shapes: dict[int, Shape] = {}
        self._variables: Mapping[int, Variable] = {}
        self._unusable: Mapping[str, str] = {}
        self._specialize_seconds = 0.0
        self._warned = False
        self.plan: Plan | StoredPlan | None = None
        self.carries = False
        self.asked: frozenset[int] = frozenset()
        self.following: NextPlan | None = None

    def has_shape(self, index: int, shape: tuple[Any, ...]) -> bool:
        """Whether a tensor has a buffer of this shape."""
        return index in self._arrays and self._arrays[index].shape == shape

    def resize(self, index: int, shape: Shape) -> None:
        """Give a tensor another shape; `allocate` has to follow unless it has it already."""
        if self.has_shape(index, shape):
            return
        self._remember()
        self._shapes[index] = shape
        self._resized.add(index)
        self._arrays = {key: array for key, array in self._arrays.items() if key != index}
        self.plan = None

    @property
    def resized(self) -> Mapping[int, Shape]:
        """The shapes that the caller set in place of the file's, by tensor."""
        return self._shapes

    @property
    def _changed_shapes(self) -> Mapping[int, Shape]:
        """As `resized`, of those that are not as the file has them."""
        tensors = self._opened.declared(self.subgraph).tensors
        return {
            index: shape
            for index, shape in self._shapes.items()
            if tuple(tensors[index].shape) != shape or not tensors[index].has_rank
        }

    def keep(self, names: Mapping[str, tuple[int, int]]) -> None:
        """Let inputs have the values of outputs at the next invoke, see `KeptTensors.add`;
        `allocate` has to follow."""
        if self._shared.state.kept.add(self.subgraph, names):
            self._known.clear()
            self.plan = None

    def allocate(self) -> None:
        """Make the plan for the present shapes, unless it is there.

        Raises:
            ModelError: an operator cannot take the shapes that reach it; names the operator.
            VersionError: operators that nothing here runs.
        """
        if self.plan is None:
            known = self._known.take(self._changed_shapes)
            if known is not None:
                self._take(known)
                return
            stored = None if self.asked else self._stored_plan()
            if stored is not None:
                self.use(stored)
                return
            with seldom:
                model, resolver = self._opened.model, self._context.resolver
                missing_operators.check_operators(model, resolver, self.subgraph)
                self.use(self._new_plan())

    def use(self, plan: Plan | StoredPlan) -> None:
        """Run `plan` from now on."""
        self.plan, self._unusable, self.following = plan, plan.unusable, None
        self._last_shapes |= {index: array.shape for index, array in self._arrays.items()}
        self._arrays, self._variables = plan.arrays, plan.memory.variables
        self._lasting, self._taken = frozenset(self._arrays), None
        kept = plan.memory.kept.items()
        self.carries = any(self._arrays.get(to) is not self._arrays.get(of) for to, of in kept)
        self._resized.clear()

    def _remember(self) -> None:
        """Keep the plan, whose shapes are about to change, where a new one would be the same."""
        if self.plan is None:
            return
        known = self._taken
        if known is None:
            resolver = lambda: self._context.resolver  # noqa: E731
            known = KnownSize.of(self.plan, self._specialized, self._lasting, resolver)
        if known is not None:
            self._known.keep(self._changed_shapes, known)

    def _take(self, known: KnownSize) -> None:
        """Use a plan that was made for the present shapes before, as a new one."""
        self._begin()
        self._specialized = known.graph
        declared = self._opened.declared(self.subgraph)
        known.begin((*declared.inputs, *declared.outputs))
        self.use(known.plan)
        self._taken = known

    @property
    def _context(self) -> PlanContext:
        context = self._shared.context()
        same = context.unusable == self._unusable
        return context if same else replace(context, unusable=self._unusable)

    def _limited(self, graph: Specialized) -> PlanContext:
        """The context, with what may be asked for beside the inputs of `graph`."""
        context = self._context

        def given() -> int:
            inputs = [graph.tensors[index] for index in graph.inputs]
            return sum([sizes.known_product(t.shape) * t.dtype.itemsize for t in inputs])

        return replace(context, meter=resolve.meter_of(context.resolver.model, given))

    @property
    def _changed(self) -> bool:
        """Whether the subgraph was not made ready for its present shapes before."""
        return self._made_for is None or bool(self._resized)

    def _begin(self) -> None:
        """The subgraph is made ready for its present shapes."""
        if self._changed:
            self._made_for, self._specialized = dict(self._shapes), None
            self._shared.state.reset(self.subgraph)

    # The cache -------------------------------------------------------------------------------

    def _stored_plan(self) -> StoredPlan | None:
        """The plan that the cache has for the present shapes."""
        cache = self._shared.cache
        entry = None if cache is None else cache.find(self.subgraph, self._shapes)
        if cache is None or entry is None:
            return None
        try:
            # Not `self`, which holds the plan: what is dropped is to be freed at once.
            explain = partial(SubgraphExecutor._explain, weakref.proxy(self), entry)
            plan = stored_plan(entry, self._shared, self.subgraph, explain)
            if not self._opened.shows(self.subgraph):
                self._opened.show(entry.face)
        except (StaleEntry, *cache_folder.UNREADABLE):
            cache.drop(self.subgraph, self._shapes)
            return None
        self._begin()
        return plan

    def _explain(
        self, entry: StoredEntry, place: str, number: int, memory: Memory, error: DelegateError
    ) -> BridgeError:
        """An error of a partition of a stored plan, with what its operator says."""
        graph = whole = self._wanted()
        for caller in place.split("/")[1:]:
            index, _, body = caller.partition(".")
            op = next(op for op in graph.operators if op.index == int(index))
            graph = op.bodies[int(body)]
        given = entry.scopes()[place]["backends"].items()
        backends = {int(index): name for index, name in given}
        part = partition.partitions(graph.operators, backends, graph.outputs)[number]
        context = self._limited(whole)
        return failures.explanation(error, part=part, memory=memory, context=context)

    def _recorded(self, graph: Specialized, cache: PlanCache) -> Plan:
        """A new plan, which is stored."""
        model = self._opened.model
        recorder = cache.recorder(self.subgraph, self._shapes, model)
        try:
            plan = build.make_plan(graph, replace(self._limited(graph), recorder=recorder))
            if recorder is not None:
                rows = [dataclasses.astuple(row) for row in plan.placements]
                cache.store(self.subgraph, self._shapes, recorder, model, rows)
        finally:
            cache.discard(recorder)
        return build.observed(plan, self._context)

    # Making a plan ---------------------------------------------------------------------------

    def _new_plan(self) -> Plan:
        """A plan for the present shapes."""
        started = time.perf_counter()
        specialized = self._graph
        if self._changed or specialized is None:
            specialized = self._specialize(self._shapes)
        self._specialize_seconds = time.perf_counter() - started
        self._warn_of_regrouping(specialized)
        self._begin()
        self._specialized = specialized
        cache = self._shared.cache
        if cache is not None and not self.asked:
            return self._recorded(self._wanted(), cache)
        return self.made_plan(self.asked)

    def made_plan(self, asked: Set[int]) -> Plan:
        """A plan for the shapes for which the subgraph is ready, which is not stored.

        Args:
            asked: the intermediate results that it keeps.
        """
        graph = self._wanted(asked)
        return build.observed(build.make_plan(graph, self._limited(graph)), self._context)

    def _warn_of_regrouping(self, graph: Specialized) -> None:
        """Say once that samples of a batch run into each other, if inputs were resized so."""
        if self._shapes and not self._warned:
            model = self._context.resolver.model
            specialize = partial(self._specialize, resized=self._shapes)
            self._warned = regrouping.warn_of_regrouping(model, graph, self._shapes, specialize)

    def _wanted(self, asked: Set[int] = frozenset()) -> Specialized:
        """The subgraph with all that is to be there after an invoke."""
        keep_all = self._context.keep_all
        return _with_results(self.graph, asked, keep_all) if keep_all or asked else self.graph

    @property
    def graph(self) -> Specialized:
        """The subgraph, which has been made ready."""
        assert self._graph is not None
        return self._graph

    @property
    def resolver(self) -> BoundResolver:
        """Where its operators are looked up."""
        return self._context.resolver

    @property
    def _graph(self) -> Specialized | None:
        """The subgraph as it was made ready last; None before that."""
        if self._specialized is None and self._made_for is not None:
            self._specialized = self._specialize(self._made_for)
        return self._specialized

    def _specialize(
        self, shapes: Mapping[int, Shape], resized: Mapping[int, Shape] | None = None
    ) -> Specialized:
        """The subgraph for these shapes, of the operators that it has for those of `resized`."""
        resolver = self._context.resolver
        model = resolver.model_for(self.subgraph, shapes if resized is None else resized)
        return specialization.specialize(
            model, self.subgraph, shapes, resolver.kernels, resolver.preparers()
        )

    def reset_variables(self) -> None:
        """Give the variable tensors of all subgraphs their first value again, and inputs that the
        file calls variables."""
        self._shared.state.reset()
        self._shared.state.kept.reset()
        declared = self._opened.declared(self.subgraph)
        for index in declared.inputs:
            if declared.tensors[index].is_variable and self._graph is not None:
                self.assign(index, initial_value(self._graph.tensors[index]))

    def shape(self, index: int) -> Shape:
        """The shape a tensor has now: as resized, as the last invoke made it, or as declared."""
        if index in self._resized:
            return self._shapes[index]
        if index in self._arrays:
            return self._arrays[index].shape
        if self._graph is not None and not self._graph.tensors[index].dynamic:
            return self._graph.tensors[index].shape
        declared = self._opened.declared(self.subgraph).tensors[index]
        return self._last_shapes.get(index, declared.shape)

    def element_type(self, index: int) -> TensorType:
        """The element type a tensor has now: as its operator makes it, or as declared."""
        if isinstance(self.plan, StoredPlan) and index in self.plan.types:
            return self.plan.types[index]
        if self._graph is not None:
            return self._graph.tensors[index].type
        return self._opened.declared(self.subgraph).tensors[index].type

    def array(self, index: int) -> Array | None:
        """The buffer that is kept for a tensor, also while `allocate` has to follow."""
        if index in self._variables:
            return self._variables[index].value
        return self._arrays.get(index)

    def plain_array(self, index: int) -> Array | None:
        """As `array`, of tensors that are no variables."""
        return None if index in self._variables else self._arrays.get(index)

    def assign(self, index: int, value: Array) -> None:
        """Copy `value` into the buffer that is kept for a tensor."""
        if index in self._variables:
            self._variables[index].assign(value)
        else:
            self._arrays[index][...] = value

    def constant(self, index: int) -> Array | None:
        """The value of a tensor that is the same at every invoke; None for any other."""
        if self._graph is None:
            return resolve.tensor_views(self._context.resolver.model, self.subgraph)[index].data
        return self._graph.tensors[index].data

    def load_times(self, read: float) -> LoadTimes:
        """The times of the last allocation; `read` is the time of reading the file."""
        assert self.plan is not None
        if self._taken is not None:
            return placements.LoadTimes(read, 0.0, 0.0)
        translate, session = self.plan.seconds
        return placements.LoadTimes(read, self._specialize_seconds + translate, session)

    def profiled(self, runs: int) -> Sequence[profiling.OperatorTime]:
        """The times of `runs` invokes over the present inputs, by a plan and a state of their own;
        tensors have to be allocated."""
        assert self._graph is not None
        with tempfile.TemporaryDirectory() as folder:
            profile = profiling.Profile(pathlib.Path(folder))
            plan = build.make_plan(
                self._graph, replace(self._limited(self._graph), profile=profile, state=State())
            )
            for index in self._graph.inputs:
                array = self.array(index)
                if array is not None and index not in self._variables:
                    plan.memory.put(self._graph.tensors[index], array)
            for _ in range(runs):
                plan.run()
            return profile.times()


def _with_results(graph: Specialized, asked: Set[int], keep_all: bool) -> Specialized:
    """`graph` with more of what its operators make as outputs, its own outputs first."""
    results = (out.index for op in graph.operators for out in op.outputs)
    made = [index for index in results if keep_all or index in asked]
    return replace(graph, outputs=tuple(dict.fromkeys((*graph.outputs, *made))))
