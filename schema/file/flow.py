"""Whether a model's subgraphs call each other to an end, and operators can run in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cache
from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator
from tflite_ort.schema.file.model import Model, Operator, SubGraph, stored_data
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.file.options import CallOptions
from tflite_ort.schema.file.stablehlo_options import StableHLOCompositeOptions
from tflite_ort.schema.file.tables import Table, fields_of
from tflite_ort.schema.file.unions import OPTIONS

# How deep subgraphs may call each other. ONNX Runtime reads graphs nested up to 33 deep.
MOST_NESTED = 32

# CALL, which the schema has and no TFLite runs; and what TFLite runs as a call of its
# decomposition, whatever the composite's name.
INLINED = frozenset({BuiltinOperator.CALL, BuiltinOperator.STABLEHLO_COMPOSITE})

# Operators whose options name subgraphs; those above are among them.
_CALLERS = frozenset(
    op for op, table in OPTIONS.items() if any("subgraph" in name for name in fields_of(table))
)

Problem = tuple[str, str, Table]  # reason, path, the table it is in


def called_subgraphs(options: Table) -> Iterator[tuple[str, int]]:
    """The subgraphs that an operator's options name, by field."""
    kind: Any = type(options)
    for name in _naming_fields(kind):
        if name == "branch_subgraph_indices":
            yield from ((name, index) for index in getattr(options, name) or ())
        else:
            yield name, getattr(options, name)


@cache
def _naming_fields(cls: Any) -> Sequence[str]:
    """The fields of a table of options that name subgraphs."""
    ends = ("subgraph_index", "branch_subgraph_indices")
    return [name for name in fields_of(cls) if name == "subgraph" or name.endswith(ends)]


def inlined_subgraph(model: Model, operator: Operator) -> int | None:
    """The subgraph that `operator` stands for; None for an operator that stands for itself."""
    code = model.operator_codes[operator.opcode_index].builtin_code
    if code in INLINED and isinstance(operator.options, CallOptions):
        return operator.options.subgraph
    if code in INLINED and isinstance(operator.options, StableHLOCompositeOptions):
        return operator.options.decomposition_subgraph_index
    return None


# The order of operators --------------------------------------------------------------------------


def order_problems(model: Model, graph: SubGraph, variables: Set[int]) -> Iterator[str]:
    """What keeps the operators of a subgraph from running one after the other: a tensor is computed
    twice, or read before it is computed. `variables` have values that operators may set."""
    computed = {index for operator in graph.operators for index in operator.outputs}
    fixed = _at_the_start(model, graph, computed)
    ready = fixed | variables
    for number, operator in enumerate(graph.operators):
        for index in operator.inputs:
            if index is not None and index not in ready:
                late = "is read before it is computed" if index in computed else "lacks data"
                yield f"operator {number}: input tensor {index} {late}"
        for index in operator.outputs:
            if index in fixed or index in operator.inputs:
                yield f"operator {number}: tensor {index} has a value before it is computed"
            if index not in variables:
                fixed.add(index)
        ready.update(operator.outputs)
    for index in graph.outputs:
        if index not in ready:
            yield f"output tensor {index} lacks data"


def _at_the_start(model: Model, graph: SubGraph, computed: Set[int]) -> set[int]:
    """The tensors that have a value at the start, which no operator may set."""
    lengths = {buffer.id: buffer.length for buffer in model.external_buffers}
    constants = {
        index
        for index, tensor in enumerate(graph.tensors)
        if stored_data(model, tensor) is not None
        or (tensor.external_buffer and not tensor.buffer and lengths[tensor.external_buffer])
        or (0 in tensor.shape and index not in computed)
    }
    return constants.union(graph.inputs)


# Calls -------------------------------------------------------------------------------------------


def call_problems(model: Model) -> Iterator[Problem]:
    """Subgraphs that call themselves or too deep, or take or give what their caller does not."""
    kinds = {code.builtin_code for code in model.operator_codes}
    if _CALLERS.isdisjoint(kinds):
        return
    callees = [_callees(model, graph) for graph in model.subgraphs]
    depths = _depths(callees)
    for index, graph in enumerate(model.subgraphs):
        depth = depths.get(index)
        if depth is None:
            looped = _in_a_circle(callees, depths, index)
            yield f"subgraph {looped} calls itself", f"subgraphs[{index}]", graph
        elif depth > MOST_NESTED:
            reason = f"subgraphs call each other {depth} deep, at most {MOST_NESTED} are supported"
            yield reason, f"subgraphs[{index}]", graph
    for index, graph in enumerate(model.subgraphs):
        for number, operator in enumerate(graph.operators):
            path = f"subgraphs[{index}].operators[{number}]"
            for reason in _inlining(model, operator):
                yield reason, path, operator


def reached_subgraphs(model: Model, subgraph: int) -> set[int]:
    """A subgraph, and those that it calls, directly or through others."""
    reached, waiting = set[int](), [subgraph]
    while waiting:
        index = waiting.pop()
        if index not in reached and index < len(model.subgraphs):
            reached.add(index)
            waiting += _callees(model, model.subgraphs[index])
    return reached


def _callees(model: Model, graph: SubGraph) -> set[int]:
    called = set[int]()
    for operator in graph.operators:
        code = model.operator_codes[operator.opcode_index].builtin_code
        if code in _CALLERS:  # one without options of its own calls subgraph 0
            options = options_of(code, operator.options)
            called.update(index for _, index in called_subgraphs(options))
    return called


def _depths(callees: Sequence[set[int]]) -> dict[int, int]:
    """How deep each subgraph calls others, itself counted; none of what calls itself, or calls
    such a one."""
    callers: list[list[int]] = [[] for _ in callees]
    waiting = [len(called) for called in callees]
    for index, called in enumerate(callees):
        for other in called:
            callers[other].append(index)
    depths: dict[int, int] = {}
    ready = [index for index, count in enumerate(waiting) if not count]
    for index in ready:  # grows
        depths[index] = 1 + max((depths[other] for other in callees[index]), default=0)
        for caller in callers[index]:
            waiting[caller] -= 1
            if not waiting[caller]:
                ready.append(caller)
    return depths


def _in_a_circle(callees: Sequence[set[int]], depths: dict[int, int], index: int) -> int:
    """A subgraph that calls itself, directly or through others, among those below `index`."""
    seen = set[int]()
    while index not in seen:
        seen.add(index)
        index = min(other for other in callees[index] if other not in depths)
    return index


def _inlining(model: Model, operator: Operator) -> Iterator[str]:
    """Why the subgraph that `operator` stands for cannot take its place."""
    called = inlined_subgraph(model, operator)
    if called is None:
        return
    body = model.subgraphs[called]
    if len(body.inputs) != len(operator.inputs) or len(body.outputs) != len(operator.outputs):
        yield (
            f"subgraph {called} maps {len(body.inputs)} tensors to {len(body.outputs)}, "
            f"its operator {len(operator.inputs)} to {len(operator.outputs)}"
        )
