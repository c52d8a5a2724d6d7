"""A rule: what it changes, where it applies, how exact it is and what it gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, Protocol

from tflite_ort.base.optional import load
from tflite_ort.base.records import field, record
from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.schema import Op, OperatorView, TensorView
from tflite_ort.schema.values.operators import Key

View = OperatorView[Any]


class Stage(Enum):
    """When a rule is asked, and what its function takes and returns.

    - `TARGET`, before all others: ``(target)`` gives the target that translators see.
    - `OPERATORS`, before a graph is translated: ``(producers, registry)`` gives the operators that
      take the place of those of `producers`, and what is cut before each, see `unread_rows`.
    - `GROUPS`, of operators that are translated together: ``(around)`` gives the groups, see
      `groups`.
    - `TREES`, the same by a table of patterns in place of a function. Of the rules that stand side
      by side the first pattern that fits an operator is taken.
    - `REWRITE`, for each operator before it is translated: ``(op, g)`` gives the operator that
      takes its place, or the same one.
    - `LOWERING`, in place of a translation: ``(op, g, rest)`` gives the lowerings of which the
      target chooses one, or none; ``rest(op)`` goes on with the rules below, of which the last is
      the translator.
    - `NODES`, when all operators are translated: ``(graph, around)`` changes the nodes.
    - `SESSION`, the same when ONNX Runtime is to run the graph.
    """

    TARGET = "target"
    OPERATORS = "operators"
    GROUPS = "groups"
    TREES = "trees"
    REWRITE = "rewrite"
    LOWERING = "lowering"
    NODES = "nodes"
    SESSION = "session"

    __hash__ = object.__hash__


Rest = Callable[[View], None]


class Cut(Protocol):
    """Rows of a tensor as a tensor of their own."""

    @property
    def source(self) -> TensorView:
        """The tensor."""

    def emit(self, g: Graph) -> None:
        """Add the node that cuts."""


@record
class NodesAround:
    """What rules on nodes know besides the graph.

    Args:
        target: that the graph is made for.
        constants: of the graph.
        multiplies_in_pairs: whether this processor adds products of bytes in pairs of 16 bits that
            saturate; it takes time to tell.
        runs: what takes time to find has to save it within so many runs; 0: it is not looked for.
        sizes: by the `id` of a value that is a tensor of the file: the value, and its shape.
    """

    target: Target
    constants: Constants
    multiplies_in_pairs: Callable[[], bool] = bool
    runs: int = 0
    sizes: Mapping[int, tuple[ir.Value, tuple[int, ...]]] = field(default_factory=dict)


def any_target(target: Target) -> bool:
    """For every graph."""
    return True


def cpu(target: Target) -> bool:
    """For graphs that ONNX Runtime's own kernels for the CPU run."""
    return target.cpu_kernels


def paired(target: Target) -> bool:
    """For graphs in which every node of codes stands between a pair."""
    return target.paired_codes


def keeps_axes(target: Target) -> bool:
    """For graphs whose reductions keep the axes that they reduce."""
    return target.kept_axes


def parts_layers(target: Target) -> bool:
    """For devices that compute some layers wrongly together with what reads them."""
    return target.parted_layers


def rounding(target: Target) -> bool:
    """For devices that round floats."""
    return bool(target.no_floats)


def blocks(target: Target) -> bool:
    """For graphs whose floats have their channels in blocks."""
    return bool(target.block)


def tiles(target: Target) -> bool:
    """For CPUs that multiply 8-bit codes in tiles."""
    return target.cpu_kernels and target.tiles


@record
class Rule:
    """One way to make graphs faster.

    Args:
        name: by which it is switched off.
        stage: says what the function is.
        function: ``module:name``, the module below `tflite_ort.opmap.rules`; it is imported for
            the first graph with one of `operators`.
        operators: those that the rule is asked about, or sets of which a graph has to have a whole
            one; of rules on nodes the ONNX operators of which a graph has one at least.
        target: the graphs that it is for.
        bound: ``exact``, or how far results may differ from the plain translation's.
        gain: off / on: the time of an invoke without the rule over that with it, and the network.
        test: the file of its tests.
    """

    name: str
    stage: Stage
    function: str
    operators: Sequence[Key | frozenset[Op]]
    target: Callable[[Target], bool]
    bound: str
    gain: str
    test: str

    def applies(self, target: Target) -> bool:
        """Whether graphs for `target` are to have it."""
        return self.target(target) and self.name not in _off

    def may_be_in(self, present: frozenset[Op]) -> bool:
        """Whether a graph of these operators has what the rule needs."""
        return any(isinstance(each, frozenset) and each <= present for each in self.operators)

    def loaded(self) -> Any:
        """Its function, or its table of patterns."""
        module, _, name = self.function.partition(":")
        return vars(load(f"{__package__}.{module}"))[name]


_off: set[str] = set()


def switched_off() -> frozenset[str]:
    """The names of the rules that are not asked now."""
    return frozenset(_off)


Watcher = Callable[[Rule, ir.Graph], None]
_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Within the context, `watcher` gets each graph that a rule on nodes has changed: tests check
    it."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def show(rule: Rule, graph: ir.Graph) -> None:
    """Show a graph that `rule` has changed to all who watch."""
    for watcher in _watchers:
        watcher(rule, graph)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Within the context, rules of these names are not asked: to measure what they gain. Plans of
    the cache are not made anew."""
    added = set(names) - _off
    _off.update(added)
    try:
        yield
    finally:
        _off.difference_update(added)
