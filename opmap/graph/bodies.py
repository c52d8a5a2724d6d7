"""Called subgraphs as nodes in the graph of their caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.opmap.graph.forms import Domain, Form, Layout, carried_type
from tflite_ort.opmap.graph.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, Specialized, TensorType, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.complex_pairs import paired_shape, part_dtype

Forms = Mapping[Form, ir.Value]


def inlined(g: Graph, body: Specialized, inputs: Sequence[Forms]) -> Graph:
    """Add the operators of `body` to `g` as nodes; returns the graph of the tensors of `body`.

    Args:
        inputs: the forms of each input of `body`.

    Raises:
        Untranslatable: an operator has no translation; the message names it.
    """
    inner = g.of_subgraph()
    for index, forms in zip(body.inputs, inputs, strict=True):
        inner.take(body.tensors[index], forms)
    for op in body.operators:
        translate_inside(g, op, inner)
    return inner


def translate_inside(g: Graph, op: OperatorView[Any], inner: Graph) -> None:
    """Add the nodes of `op`, an operator of a called subgraph, whose tensors `inner` holds."""
    try:
        g.translate(op, inner)
    except Untranslatable as refusal:
        where = f"{op.label} of subgraph {op.subgraph}"
        raise Untranslatable(f"{where}: {refusal}") from refusal


def shared_domain(*tensors: TensorView) -> Domain:
    """The domain in which the value of one of `tensors` becomes the value of another.

    These are carried codes where all tensors are codes of one type, otherwise the elements as the
    file has them.
    """
    kinds = {tensor.type if tensor.is_quantized else None for tensor in tensors}
    return Domain.STORED if len(kinds) == 1 and None not in kinds else Domain.FILE


def element_type(tensor: TensorView, domain: Domain) -> ir.DataType:
    """The ONNX type of `tensor` in `domain`, STORED or FILE."""
    if tensor.type is TensorType.STRING:
        return ir.DataType.STRING
    if domain is Domain.STORED and tensor.is_quantized:
        return ir.DataType.from_numpy(NUMPY_DTYPE[carried_type(tensor)])
    return ir.DataType.from_numpy(part_dtype(tensor.dtype))


def declare(value: ir.Value, tensor: TensorView) -> None:
    """Give `value` the shape of `tensor`, where all sizes are known."""
    if not tensor.dynamic:
        value.shape = paired_shape(tensor, tensor.shape)


def results(
    g: Graph, inner: Graph, tensors: Sequence[TensorView], domains: Sequence[Domain]
) -> list[ir.Value]:
    """The values of `tensors`, as results of the body that `g` builds now.

    Args:
        inner: the graph that holds `tensors`.
        domains: one for each tensor.
    """
    pairs = zip(tensors, domains, strict=True)
    return distinct(g, [inner.read(t, layout=Layout.LAST, domain=domain) for t, domain in pairs])


def distinct(g: Graph, values: Sequence[ir.Value]) -> list[ir.Value]:
    """`values` as results of the body that `g` builds now.

    ONNX wants distinct values of nodes of the body; an Identity makes one where that is needed.
    """
    made: list[ir.Value] = []
    for value in values:
        inside = any(value.producer() is node for node in g.nodes)
        if not inside or any(value is other for other in made):
            value = g.op("Identity", value)
        made.append(value)
    return made
