"""What the signatures of a model share: the variables that one sets and another reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import cast

from tflite_ort.base.records import field, record, replace
from tflite_ort.base.warned import warn_caller
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.schema import BridgeError, ExportWarning, Model, Op, Specialized
from tflite_ort.schema.values.view import VariableKey
from tflite_ort.specialize.resources import DRAWS, NAMES
from tflite_ort.specialize.specialization import specialize
from tflite_ort.versioning.resolver import OpResolver

# What the name of a state has at its end where it is an output.
NEXT = "_next"


@record
class SharedState:
    """The variables of a model as the files of all of its signatures have them.

    Args:
        names: by variable, what it is called.
        written: those that some signature sets: they are no constants of any other.
        unsure: what some signature sets is not known: any variable may be among it.
    """

    names: Mapping[VariableKey, str] = field(default_factory=dict)
    written: frozenset[VariableKey] = frozenset()
    unsure: bool = False

    def is_set(self, key: VariableKey) -> bool:
        """Whether a signature may set the variable."""
        return self.unsure or key in self.written

    def moved(self, place: Mapping[int, int]) -> SharedState:
        """The same of a model whose subgraphs have other numbers."""

        def new(key: VariableKey) -> VariableKey:
            owner = key[0]
            if not isinstance(owner, int):
                return key
            return cast("VariableKey", (place.get(owner, owner), key[1]))

        names = {new(key): name for key, name in self.names.items()}
        return replace(self, names=names, written=frozenset(map(new, self.written)))


def shared_state(model: Model, resolver: OpResolver) -> SharedState:
    """The state that the signatures of `model` share; nothing of a model with one signature."""
    roots = dict.fromkeys(each.subgraph_index for each in model.signature_defs)
    if len(roots) < 2 or not _keeps_state(model, roots):
        return SharedState()
    graphs, unsure = list[Specialized](), False
    with closing(BoundResolver(resolver, model)) as bound:
        for root in roots:
            try:
                graphs.append(specialize(bound.model, root, {}, bound.kernels, bound.preparers()))
            except BridgeError:  # whoever exports or runs that signature is told
                unsure = True
    starts = _starts(graphs)
    twice = {key for key, subgraphs in starts.items() if len(subgraphs) > 1}
    names = _names(model, graphs)
    if twice:
        said = ", ".join(sorted(repr(names[key]) for key in twice))
        warn_caller(
            f"signatures start {said} in different ways; the one that runs first decides, but "
            "each file has the first value of its own signature",
            ExportWarning,
        )
    return SharedState(names, frozenset({*_set(graphs), *twice}), unsure)


def _keeps_state(model: Model, roots: Iterable[int]) -> bool:
    codes = {code.builtin_code for code in model.operator_codes}
    tensors = (tensor for root in roots for tensor in model.subgraphs[root].tensors)
    return not codes.isdisjoint(NAMES | DRAWS) or any(each.is_variable for each in tensors)


def _set(graphs: Iterable[Specialized]) -> Iterator[VariableKey]:
    """The variables that are set after the start."""
    for graph in graphs:
        for op in graph.operators:
            if op.op is not Op.CALL_ONCE:
                yield from (graph.variables[tensor.index] for tensor in op.variables())


def _starts(graphs: Iterable[Specialized]) -> Mapping[VariableKey, set[int]]:
    """The subgraphs that initialize each variable."""
    found = defaultdict[VariableKey, set[int]](set)
    for graph in graphs:
        for op in graph.operators:
            if op.op is Op.CALL_ONCE:
                keys = (graph.variables[tensor.index] for tensor in op.variables())
                for key in keys:
                    if isinstance(key[1], str):
                        found[key].add(op.options.init_subgraph_index)
    return found


def _names(model: Model, graphs: Iterable[Specialized]) -> dict[VariableKey, str]:
    """Names that differ from each other, and from those of all arguments of signatures."""
    entries = (entry for each in model.signature_defs for entry in (*each.inputs, *each.outputs))
    taken, names = {entry.name or "" for entry in entries}, dict[VariableKey, str]()
    for graph in graphs:
        for index, key in graph.variables.items():
            if key in names or index in graph.inputs or index in graph.outputs:
                continue
            base = name = graph.tensors[index].name or f"state_{index}"
            number = 0
            while not taken.isdisjoint((name, name + NEXT)):
                number += 1
                name = f"{base}_{number}"
            taken.update((name, name + NEXT))
            names[key] = name
    return names
