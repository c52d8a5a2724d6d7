"""Called subgraphs inside the graph of their caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from tflite_ort.opmap.graph.constants import carried_type
from tflite_ort.opmap.graph.forms import Domain, Form, Layout
from tflite_ort.opmap.graph.graph import Graph
from tflite_ort.opmap.graph.pairs import paired_shape, part_dtype
from tflite_ort.schema import OperatorView, Specialized, TensorType, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Forms = Mapping[Form, ir.Value]


def inlined(g: Graph, body: Specialized, given: Sequence[Forms]) -> Graph:
    """The operators of `body` as nodes of `g`, and the tensors of `body` to read them from.

    Args:
        given: in which forms there is each of its inputs.
    """
    inner = g.of_subgraph()
    for index, forms in zip(body.inputs, given, strict=True):
        inner.take(body.tensors[index], forms)
    for op in body.operators:
        translate_inside(g, op, inner)
    return inner


def translate_inside(g: Graph, op: OperatorView[Any], inner: Graph) -> None:
    """The nodes of `op` of a called subgraph, whose tensors `inner` has."""
    try:
        g.translate(op, inner)
    except Untranslatable as refusal:
        where = f"{op.label} of subgraph {op.subgraph}"
        raise Untranslatable(f"{where}: {refusal}") from refusal


def shared_domain(*tensors: TensorView) -> Domain:
    """In which `tensors`, which stand for one another, are handed on: codes as they are carried
    where all of them are codes."""
    kinds = {tensor.type if tensor.is_quantized else None for tensor in tensors}
    return Domain.STORED if len(kinds) == 1 and None not in kinds else Domain.FILE


def element_type(tensor: TensorView, domain: Domain) -> ir.DataType:
    """The type that `tensor` has in a domain, which is not that of real numbers."""
    if tensor.type is TensorType.STRING:
        return ir.DataType.STRING
    if domain is Domain.STORED and tensor.is_quantized:
        return ir.DataType.from_numpy(NUMPY_DTYPE[carried_type(tensor)])
    return ir.DataType.from_numpy(part_dtype(tensor.dtype))


def declare(value: ir.Value, tensor: TensorView) -> None:
    """Give `value` the shape of `tensor` if that is known."""
    if not tensor.dynamic:
        value.shape = ir.Shape(paired_shape(tensor, tensor.shape))


def results(
    g: Graph, inner: Graph, tensors: Sequence[TensorView], domains: Sequence[Domain]
) -> list[ir.Value]:
    """`tensors` of `inner`, each as a value of its own that is made inside the body of `g`."""
    values: list[ir.Value] = []
    for tensor, domain in zip(tensors, domains, strict=True):
        value = inner.read(tensor, layout=Layout.LAST, domain=domain)
        inside = any(value.producer() is node for node in g.nodes)
        if not inside or any(value is other for other in values):
            value = g.op("Identity", value)
        values.append(value)
    return values
