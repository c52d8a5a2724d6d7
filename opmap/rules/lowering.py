"""Lowering: a run of operators becomes one ONNX model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph.forms import Layout, Target
from tflite_ort.opmap.graph.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.opsets import IR_VERSIONS
from tflite_ort.opmap.onnx_graph.opsets import OPSET as OPSET
from tflite_ort.opmap.registry import Translator
from tflite_ort.opmap.rules.engine import (
    rewrite_nodes,
    rewrite_operators,
    rewrite_target,
    translate_by_rules,
)
from tflite_ort.opmap.rules.operators.groups import Group, groups
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.rule import Cut, NodesAround, Stage
from tflite_ort.schema import (
    BridgeError,
    ModelError,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.file.budgets import MOST_DIMENSIONS
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.complex_pairs import is_complex, paired_shape
from tflite_ort.schema.values.sizes import is_known, name_of
from tflite_ort.versioning.registry import Registry

# What ONNX Runtime moves a DequantizeLinear behind, of what translators make.
_PASSED = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


# Operators of ONNX that came later, which only graphs for ONNX Runtime itself have.
_LATER = {"Attention": 23, "TensorScatter": 24}
# Types that ONNX Runtime cannot hold as TFLite does.
_NOT_HELD = frozenset({TensorType.STRING, TensorType.BFLOAT16, TensorType.VARIANT})
# The versions of other domains, where they are not 1.
_VERSIONS = {"ai.onnx.ml": 2}
PORTABLE = Target()


@record
class Lowered:
    """An ONNX model of a run of operators.

    Args:
        model: its inputs and outputs have the order in which `lower` got them.
        refusals: the reason for every operator without a translation, by operator index. The
            model lacks these operators and must not be run.
        made: all nodes, of which the model has those that lead to its outputs.
    """

    model: ir.Model
    refusals: Mapping[int, str]
    made: Sequence[ir.Node]

    def release(self) -> None:
        """Let the model be freed at once; nothing of it may be read any more."""
        ir.release(self.made)
        ir.release(self.model.graph.nodes)


@np.errstate(all="ignore")  # of scales whose ratio no float32 holds
def lower(
    operators: Sequence[OperatorView[Any]],
    inputs: Sequence[TensorView],
    outputs: Sequence[TensorView],
    registry: Registry[Translator],
    *,
    target: Target = PORTABLE,
    name: str = "main",
) -> Lowered:
    """Translate `operators` (in execution order) into one graph, by the rules of the table.

    All operators are tried, even after a refusal, so that all refusals come at once.
    """
    target = rewrite_target(target)
    uses, cuts = rewrite_operators(Producers(operators, outputs), registry, target)
    g, dimensions = Graph(target, partial(translate, registry=registry)), dict[int, str]()
    input_names = unique_names(inputs, "input", set())
    output_names = unique_names(outputs, "output", set(input_names))
    g.reserve(output_names)
    g.uses = uses
    g.note_results(tensor for tensor in outputs if target.layout(tensor) is Layout.LAST)
    arguments = [
        g.add_input(tensor, name, _dimensions(tensor, name, dimensions))
        for tensor, name in zip(inputs, input_names, strict=True)
    ]
    refusals: dict[int, str] = {}
    grouped = groups(uses, registry, target)
    alone = _one_by_one(uses.operators, g, grouped, cuts) if grouped or cuts else uses.operators
    for op in alone:
        try:
            translate(op, g, registry)
        except Untranslatable as refusal:
            refusals[op.index] = str(refusal)
            g.stand_in([*op.outputs, *op.variables()])
    results = [
        _output(g, tensor, output_name, dimensions)
        for tensor, output_name in zip(outputs, output_names, strict=True)
    ]
    g.forget_notes()
    model = _model(g, arguments, results, name, whole=not refusals)
    return Lowered(model, refusals, g.nodes)


def _one_by_one(
    operators: Sequence[OperatorView[Any]],
    g: Graph,
    grouped: Mapping[int, Group],
    cuts: Mapping[int, Sequence[Cut]],
) -> Iterator[OperatorView[Any]]:
    """The operators that are translated alone. Groups and cuts are added to the graph on the
    way."""
    waiting, left = dict[int, list[OperatorView[Any]]](), set[int]()
    for op in operators:
        for cut in cuts.get(op.index, ()):
            with g.at(op):
                cut.emit(g)
        group = grouped.get(op.index)
        if group is None or id(group) in left:
            yield op
            continue
        waiting.setdefault(id(group), []).append(op)
        if op is group.place:
            try:
                with g.at(op, group.operators):
                    group.emit(g)
            except Untranslatable:
                left.add(id(group))
                yield from waiting[id(group)]


def translate(op: OperatorView[Any], g: Graph, registry: Registry[Translator]) -> None:
    """Run the translator of `op`; Untranslatable leaves `g` as it was."""
    entry = registry.of(op)
    if entry is None:
        raise Untranslatable(f"no translator for {op.name} version {op.version}")
    with g.at(op):
        tensors = (*op.present_inputs(), *op.outputs)
        if False in [tensor.ranked for tensor in tensors]:
            raise Untranslatable("a rank depends on data")
        if any(is_complex(tensor) and tensor.rank == MOST_DIMENSIONS for tensor in tensors):
            raise Untranslatable(f"complex numbers in {MOST_DIMENSIONS} dimensions")
        if g.target.fallback:
            _check_held(op, tensors)
        try:
            translate_by_rules(entry.inputs.bind(op), g, entry)
        except BridgeError:
            raise
        except OverflowError as error:  # TFLite computes with what no ONNX type holds
            raise Untranslatable(said_of_file(error)) from error
        except MALFORMED_OPERATOR as error:
            raise ModelError(f"{op.label}: {said_of_file(error)}") from error


def _check_held(op: OperatorView[Any], tensors: Sequence[TensorView]) -> None:
    """Refuses types that ONNX Runtime cannot hold as TFLite does.

    An operator with bodies may pass strings through.
    """
    types = {tensor.type for tensor in tensors}
    if _NOT_HELD.isdisjoint(types):
        return
    if TensorType.STRING in types and not op.bodies:
        raise Untranslatable("strings of any bytes are left to the kernels")
    if TensorType.BFLOAT16 in types:
        raise Untranslatable("ONNX Runtime takes no arrays of BFLOAT16")
    if TensorType.VARIANT in types and not op.bodies:
        raise Untranslatable("ONNX Runtime has no VARIANT")


def unique_names(tensors: Sequence[TensorView], fallback: str, taken: set[str]) -> list[str]:
    """The names of `tensors`; an empty name gets a default, and an equal one a number."""
    names, counts = [], dict[str, int]()
    for i, tensor in enumerate(tensors):
        base = tensor.name or f"{fallback}_{i}"
        if tensor.is_variable and fallback == "output":
            base += "_next"
        name = base
        while name in taken:
            counts[base] = counts.get(base, 0) + 1
            name = f"{base}_{counts[base]}"
        taken.add(name)
        names.append(name)
    return names


def _dimensions(tensor: TensorView, name: str, names: dict[int, str]) -> Sequence[int | str] | None:
    """The shape of `tensor`; an unknown size gets one name wherever it occurs."""
    if not tensor.ranked:
        return None
    if is_known(*tensor.shape):
        return tensor.shape
    named: list[int | str] = []
    for axis, size in enumerate(tensor.shape):
        if is_known(size):
            named.append(size)
        else:
            named.append(names.setdefault(id(size), name_of(size) or f"{name}_dim_{axis}"))
    return named


def _output(g: Graph, tensor: TensorView, name: str, dimensions: dict[int, str]) -> ir.Value:
    """An output of the graph called `name`, in the target's layout. It shares its value with no
    other output."""
    layout = g.target.layout(tensor)
    value = g.read(tensor, layout=layout, domain=g.target.boundary)
    if value.producer() is None or value.name in g.output_names:
        value = g.op("Identity", value)
    g.output_names.add(name)
    value.name = name
    value.dtype = g.boundary_type(tensor)
    sizes = _dimensions(tensor, name, dimensions)
    value.shape = None if sizes is None else paired_shape(tensor, layout.order(sizes))
    return value


def _model(
    g: Graph, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value], name: str, *, whole: bool
) -> ir.Model:
    """The model of the nodes that lead to `outputs`.

    Args:
        whole: all operators were translated: else the model is not run, and no rule is asked.
    """
    nodes = ir.leading_to(outputs, g.nodes)
    graph = ir.Graph(inputs, outputs, nodes, name=name)
    if whole:
        around = NodesAround(g.target, g.constants, sizes=g.sizes)
        rewrite_nodes(Stage.NODES, graph, around)
    if [body for node in nodes for body in node.bodies]:
        hold_values(graph)
    used = graph.read_ids()
    graph.initializers.update({x.name: x for x in g.constants.values if id(x) in used})
    kinds = dict.fromkeys([(node.domain, node.op_type) for node in graph.all_nodes()])
    later = [_LATER.get(op_type, 0) for domain, op_type in kinds if not domain]
    opset = max(g.target.opset, *later, 0)
    versions = {"": opset, **{name: _VERSIONS.get(name, 1) for name, _ in kinds if name}}
    return ir.Model(
        graph,
        opset_imports=versions,
        ir_version=IR_VERSIONS[opset],
        producer_name=ir.PRODUCER,
    )


def hold_values(graph: ir.Graph) -> None:
    """Put a Max of one value, which is that value, between a body and codes that became floats.

    ONNX Runtime 1.32 moves a DequantizeLinear behind a Reshape and the like. If the body of a Loop
    or an If reads the result, that ends the process: such a reader is none of the node's inputs.
    """
    bodies = [body for node in graph.nodes for body in node.bodies]
    read = set[int]().union(*(body.read_ids() for body in bodies))
    if not read:
        return
    nodes: list[ir.Node] = []
    for node in graph.nodes:
        nodes.append(node)
        value = node.outputs[0]
        if id(value) in read and _is_dequantized(node):
            held = ir.Value(f"{value.name}/held", dtype=value.dtype, shape=value.shape)
            node.give(0, held)
            nodes.append(ir.Node("Max", [held], [value], name=f"{value.name}/Max"))
        for body in node.bodies:
            hold_values(body)
    graph.nodes = nodes


def _is_dequantized(node: ir.Node) -> bool:
    """Whether what nodes such as Reshape give comes from a DequantizeLinear."""
    if node.op_type not in _PASSED:
        return False
    maker: ir.Node | None = node
    while maker is not None and maker.op_type in _PASSED:
        source = maker.inputs[0]
        maker = None if source is None else source.producer()
    return maker is not None and maker.op_type == "DequantizeLinear"
