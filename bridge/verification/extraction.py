"""Cuts a part out of a model: what leads from some tensors to others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflite_ort.base.suggestions import suggestion
from tflite_ort.schema import (
    BridgeError,
    Model,
    Op,
    Operator,
    SubGraph,
    VarHandleOptions,
    with_own_data,
)
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.verification.submodel import submodel

Tensor = int | str

_RANDOM = ("RANDOM", "MULTINOMIAL", "STABLEHLO_RNG", "VAR_HANDLE", "HASHTABLE", "CUSTOM")
_HANDLES = frozenset({Op.VAR_HANDLE, Op.HASHTABLE})


class ExtractionError(BridgeError, ValueError):
    """A part of a model that cannot be cut out."""


def extract(
    model: Model, start: Sequence[Tensor], stop: Sequence[Tensor], subgraph: int = 0
) -> Model:
    """The part of a subgraph that computes the tensors `stop` from the tensors `start`.

    Inputs of the model that it needs besides stay inputs. Constants, variables and called
    subgraphs come along, and so does what sets a variable that the part reads. The part has the
    data of external files itself. Signatures and metadata stay where they still hold.

    Args:
        start: names or indices; they become the first inputs. ``CONV_2D_12``, the name that
            reports give an operator, stands for what it reads. Empty: from the model's inputs.
        stop: names or indices; they become the outputs. An operator stands for what it makes.
            Empty: the model's outputs.

    Raises:
        ExtractionError: there is no such tensor or subgraph, several have the name, a start does
            not lead to a stop, or a stop is not computed.
        ModelError: an external file cannot be read.
    """
    if not 0 <= subgraph < len(model.subgraphs):
        raise ExtractionError(f"no subgraph {subgraph}; the model has {len(model.subgraphs)}")
    graph = model.subgraphs[subgraph]
    constant = {view.index for view in tensor_views(model, subgraph) if view.is_constant}
    starts, stops = list[int](), list[int]()
    for each in start:
        op = _operator(model, graph, each)
        read = [tensor_index(graph, each)] if op is None else op.inputs
        starts += [i for i in read if i is not None and (op is None or i not in constant)]
    for each in stop:
        op = _operator(model, graph, each)
        stops += [tensor_index(graph, each)] if op is None else op.outputs
    starts, stops = list(dict.fromkeys(starts)), list(dict.fromkeys(stops)) or list(graph.outputs)
    producer = {index: i for i, op in enumerate(graph.operators) for index in op.outputs}
    for index in stops:
        if index not in producer or index in starts:
            raise ExtractionError(
                f"no operator is left to compute {_named(graph, index)}: the part ends in results "
                "of operators, behind the tensors where it begins"
            )
    walk = _Walk(model, graph, producer, set(starts))
    walk.reach(stops)
    for index in starts:
        if index not in walk.reached:
            ends = " or ".join(_named(graph, each) for each in stops)
            raise ExtractionError(f"{_named(graph, index)} does not lead to {ends}")
    walk.add_state()
    made = {index for i in walk.operators for index in graph.operators[i].outputs}
    if twice := made.intersection(starts):
        raise ExtractionError(f"{_named(graph, min(twice))} is computed along with what is needed")
    if fixed := constant.intersection(starts):
        raise ExtractionError(f"{_named(graph, min(fixed))} is a constant")
    besides = [index for index in graph.inputs if index in walk.reached and index not in starts]
    part = submodel(model, subgraph, sorted(walk.operators), [*starts, *besides], stops)
    return with_own_data(part)


class Singles:
    """Operators of a subgraph as models of their own; what all need to know is found once."""

    def __init__(self, model: Model, subgraph: int = 0) -> None:
        self._model, self._subgraph = model, subgraph
        self.graph = graph = model.subgraphs[subgraph]
        self._views = tensor_views(model, subgraph)
        fixed = constant_operators(model, subgraph)
        self._producer = {each: i for i, op in enumerate(graph.operators) for each in op.outputs}
        self._made_of = {each for i in fixed for each in graph.operators[i].outputs}

    def model(self, index: int, among: Sequence[int] = ()) -> tuple[Model, list[int], list[int]]:
        """Operator `index` with those that compute its constants, and the tensors of the whole
        model that are its inputs and outputs.

        Args:
            among: operators that lead to it and belong to the part.
        """
        group = sorted({index, *among})
        operators, waiting = set(group), list(group)
        while waiting:
            for each in self.graph.operators[waiting.pop()].inputs:
                if each in self._made_of and self._producer[each] not in operators:
                    operators.add(self._producer[each])
                    waiting.append(self._producer[each])
        own = [self.graph.operators[at] for at in group]
        made = {each for op in own for each in op.outputs}
        read = dict.fromkeys(each for op in own for each in op.inputs if each is not None)
        inputs = [each for each in read if each not in made and self._is_given(each)]
        outputs = list(dict.fromkeys(self.graph.operators[index].outputs))
        part = submodel(self._model, self._subgraph, sorted(operators), inputs, outputs)
        return part, inputs, outputs

    def _is_given(self, tensor: int) -> bool:
        view = self._views[tensor]
        return not (tensor in self._made_of or view.is_constant or view.is_variable)


def one_operator(model: Model, index: int, subgraph: int = 0) -> tuple[Model, list[int], list[int]]:
    """Operator `index` alone: see `Singles.model`."""
    return Singles(model, subgraph).model(index)


def constant_operators(model: Model, subgraph: int = 0) -> set[int]:
    """The operators whose results depend on constants alone."""
    graph = model.subgraphs[subgraph]
    fixed = {view.index for view in tensor_views(model, subgraph) if view.is_constant}
    found = set()
    for position, op in enumerate(graph.operators):
        name = model.operator_codes[op.opcode_index].builtin_code.name
        inputs = {each for each in op.inputs if each is not None}
        if inputs and inputs <= fixed and op.outputs and not name.startswith(_RANDOM):
            found.add(position)
            fixed.update(op.outputs)
    return found


def tensor_index(graph: SubGraph, tensor: Tensor) -> int:
    """The index of a tensor that is named, or its index itself.

    Raises:
        ExtractionError: there is none, or there are several.
    """
    if isinstance(tensor, int):
        if not 0 <= tensor < len(graph.tensors):
            raise ExtractionError(f"no tensor {tensor}; there are {len(graph.tensors)}")
        return tensor
    found = [index for index, each in enumerate(graph.tensors) if each.name == tensor]
    if len(found) == 1:
        return found[0]
    if found:
        raise ExtractionError(f"{len(found)} tensors are named {tensor!r}: {found}; give an index")
    if tensor.isdecimal():
        return tensor_index(graph, int(tensor))
    near = suggestion(tensor, [each.name for each in graph.tensors])
    raise ExtractionError(f"no tensor named {tensor!r}{near}")


def _operator(model: Model, graph: SubGraph, name: Tensor) -> Operator | None:
    """The operator that reports call so; None of a tensor."""
    if isinstance(name, int) or any(each.name == name for each in graph.tensors):
        return None
    for position, op in enumerate(graph.operators):
        code = model.operator_codes[op.opcode_index]
        if name == f"{code.custom_code or code.builtin_code.name}_{position}":
            return op
    return None


def _named(graph: SubGraph, index: int) -> str:
    return f"tensor {graph.tensors[index].name!r} ({index})"


class _Walk:
    """From tensors back to what they are computed from."""

    def __init__(
        self, model: Model, graph: SubGraph, producer: dict[int, int], starts: set[int]
    ) -> None:
        self._model, self._graph, self._producer, self._starts = model, graph, producer, starts
        self.operators: set[int] = set()
        self.reached: set[int] = set()

    def reach(self, tensors: Iterable[int]) -> None:
        waiting = list(tensors)
        while waiting:
            index = waiting.pop()
            if index in self.reached:
                continue
            self.reached.add(index)
            if index not in self._starts and index in self._producer:
                waiting += self._add(self._producer[index])

    def _add(self, position: int) -> list[int]:
        """The inputs of an operator that is part of it now."""
        self.operators.add(position)
        operator = self._graph.operators[position]
        self.reached.update(operator.outputs)
        return [index for index in operator.inputs if index is not None]

    def add_state(self) -> None:
        """Add what sets the variables and fills the tables that the part uses."""
        more = True
        while more:
            handles = self._handles(self.operators)
            more = False
            for position, operator in enumerate(self._graph.operators):
                if position not in self.operators and self._sets(operator, handles):
                    self.reach(self._add(position))
                    more = True

    def _sets(self, operator: Operator, handles: set[object]) -> bool:
        code = self._model.operator_codes[operator.opcode_index].builtin_code
        if operator.outputs or not handles:
            return False
        makers = [self._producer[index] for index in operator.inputs if index in self._producer]
        return code is Op.CALL_ONCE or bool(self._handles(makers) & handles)

    def _handles(self, positions: Iterable[int]) -> set[object]:
        """What the handles among some operators name."""
        named: set[object] = set()
        for position in positions:
            operator = self._graph.operators[position]
            code = self._model.operator_codes[operator.opcode_index].builtin_code
            if code in _HANDLES:
                options = operator.options
                if isinstance(options, VarHandleOptions):
                    named.add((options.container, options.shared_name))
                else:
                    named.add(options)
        return named
