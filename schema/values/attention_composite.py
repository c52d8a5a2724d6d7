"""Attention composites that fit inputs of any size.

LiteRT runs `odml.scaled_dot_product_attention` by its name, for the shapes that its inputs
have. The file's decomposition has the batch and the tokens of the file in its lists of sizes. Where
inputs were resized, one without such lists takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator
from tflite_ort.schema.file.flow import inlined_subgraph
from tflite_ort.schema.file.layer_options import BatchMatMulOptions, SoftmaxOptions
from tflite_ort.schema.file.model import Buffer, Model, Operator, OperatorCode, SubGraph, Tensor
from tflite_ort.schema.file.options import GatherOptions, ShapeOptions
from tflite_ort.schema.file.stablehlo_options import StableHLOCompositeOptions
from tflite_ort.schema.file.tables import Table

with late:
    from tflite_ort.schema.file import custom_options

_NAME = "odml.scaled_dot_product_attention"
_TURNED = (0, 2, 1, 3)
_Op = BuiltinOperator


def with_attention_of_any_size(model: Model) -> Model:
    """`model` with decompositions of attention composites that take any batch and any tokens; the
    model itself where it has no such composite."""
    parts = _Parts(model)
    graphs = [_with_attention(parts, graph) for graph in model.subgraphs]
    if not parts.bodies:
        return model
    return replace(
        model,
        operator_codes=tuple(parts.codes),
        buffers=tuple(parts.buffers),
        subgraphs=(*graphs, *parts.bodies),
    )


class _Parts:
    """The lists of a model that decompositions add to."""

    def __init__(self, model: Model) -> None:
        self.model, self.meter = model, Meter(model.budgets)
        self.codes = list(model.operator_codes)
        self.buffers = list(model.buffers)
        self.bodies: list[SubGraph] = []

    def code(self, op: BuiltinOperator) -> int:
        """The index of the first version of an operator."""
        code = OperatorCode(builtin_code=op)
        if code not in self.codes:
            self.codes.append(code)
        return self.codes.index(code)

    def buffer(self, data: npt.NDArray[Any]) -> int:
        """The index of new constant data."""
        self.buffers.append(Buffer(data=data.reshape(-1).view(np.uint8)))
        return len(self.buffers) - 1


class _Body:
    """A decomposition under construction, over the composite's inputs."""

    def __init__(self, parts: _Parts, inputs: Sequence[Tensor]) -> None:
        self._parts = parts
        self.tensors = [replace(tensor, buffer=0) for tensor in inputs]
        self._operators: list[Operator] = []

    def constant(self, data: npt.NDArray[Any], type: TensorType) -> int:
        """The index of a constant."""
        buffer = self._parts.buffer(data)
        return self._add(Tensor(shape=data.shape, type=type, buffer=buffer, has_rank=True))

    def op(self, op: BuiltinOperator, *inputs: int, options: Table | None = None) -> int:
        """The index of the float result of an operator, of four dimensions."""
        return self._made(op, inputs, Tensor(shape=(1, 1, 1, 1), has_rank=True), options)

    def integers(
        self, op: BuiltinOperator, rank: int, *inputs: int, options: Table | None = None
    ) -> int:
        """The index of the result of an operator, 32-bit integers of `rank` dimensions."""
        tensor = Tensor(shape=(1,) * rank, type=TensorType.INT32, has_rank=True)
        return self._made(op, inputs, tensor, options)

    def _made(
        self, op: BuiltinOperator, inputs: tuple[int, ...], result: Tensor, options: Table | None
    ) -> int:
        output = self._add(result)
        operator = Operator(
            opcode_index=self._parts.code(op), inputs=inputs, outputs=(output,), options=options
        )
        self._operators.append(operator)
        return output

    def graph(self, inputs: int, output: int) -> SubGraph:
        """The whole subgraph."""
        return SubGraph(
            tensors=tuple(self.tensors),
            inputs=tuple(range(inputs)),
            outputs=(output,),
            operators=tuple(self._operators),
            name=_NAME,
        )

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _with_attention(parts: _Parts, graph: SubGraph) -> SubGraph:
    """The subgraph with its attention composites standing for new decompositions."""
    first, operators = len(parts.model.subgraphs), []
    for operator in graph.operators:
        body = _attention(parts, graph, operator)
        if body is not None:
            assert isinstance(operator.options, StableHLOCompositeOptions)
            number = first + len(parts.bodies)
            parts.bodies.append(body)
            options = replace(operator.options, decomposition_subgraph_index=number)
            operator = replace(operator, options=options)
        operators.append(operator)
    return replace(graph, operators=tuple(operators))


def _attention(parts: _Parts, graph: SubGraph, operator: Operator) -> SubGraph | None:
    """The decomposition of an attention composite; None for any other operator.

    Queries [batch, tokens, heads, size], keys and values [batch, keys, heads of keys, size], a mask
    [batch or 1, heads or 1, tokens, keys].
    """
    if inlined_subgraph(parts.model, operator) is None:
        return None
    options = operator.options
    if not isinstance(options, StableHLOCompositeOptions) or options.name != _NAME:
        return None
    tensors = [graph.tensors[index] for index in operator.inputs if index is not None]
    scale = _scale(options, tensors, parts.meter)
    if scale is None or not _fit(tensors) or len(operator.outputs) != 1:
        return None
    body = _Body(parts, tensors)
    turned = body.constant(np.array(_TURNED, np.int32), TensorType.INT32)
    factor = body.constant(np.array(scale, np.float32), TensorType.FLOAT32)
    q, k, v = body.op(_Op.MUL, 0, factor), 1, 2
    places = _heads_of_keys(body)
    k, v = (body.op(_Op.GATHER, each, places, options=GatherOptions(axis=2)) for each in (k, v))
    q, k, v = (body.op(_Op.TRANSPOSE, each, turned) for each in (q, k, v))
    scores = body.op(_Op.BATCH_MATMUL, q, k, options=BatchMatMulOptions(adj_y=True))
    masked = body.op(_Op.ADD, scores, 3)
    weights = body.op(_Op.SOFTMAX, masked, options=SoftmaxOptions(beta=1.0))
    result = body.op(_Op.BATCH_MATMUL, weights, v, options=BatchMatMulOptions())
    return body.graph(len(tensors), body.op(_Op.TRANSPOSE, result, turned))


def _heads_of_keys(body: _Body) -> int:
    """For each head of the queries, the head of the keys that it reads: neighbours
    share one. Numbers of heads that do not divide make a place beyond the last one."""

    def number(value: int) -> int:
        return body.constant(np.array(value, np.int32), TensorType.INT32)

    def heads(tensor: int) -> int:
        shape = body.integers(_Op.SHAPE, 1, tensor, options=ShapeOptions(TensorType.INT32))
        return body.integers(_Op.GATHER, 0, shape, number(2), options=GatherOptions())

    of_queries = heads(0)
    shared = body.integers(_Op.FLOOR_DIV, 0, of_queries, heads(1))
    places = body.integers(_Op.RANGE, 1, number(0), of_queries, number(1))
    return body.integers(_Op.FLOOR_DIV, 1, places, shared)


def _fit(tensors: Sequence[Tensor]) -> bool:
    """Whether these are queries, keys, values and a mask of an attention of floats."""
    floats = all(each.type is TensorType.FLOAT32 and len(each.shape) == 4 for each in tensors)
    if len(tensors) != 4 or not floats:
        return False
    heads, shared, of_values = (each.shape[2] for each in tensors[:3])
    return shared > 0 and heads % shared == 0 and of_values == shared


def _scale(
    options: StableHLOCompositeOptions, tensors: Sequence[Tensor], meter: Meter
) -> float | None:
    """The factor of the queries; None if the attributes say more than that."""
    content = options.composite_attributes
    if content is None or not tensors or not tensors[0].shape or tensors[0].shape[-1] < 1:
        return None
    attributes = custom_options.custom_options(content.tobytes(), meter)
    if not isinstance(attributes, Mapping) or set(attributes) - {"scale"}:
        return None
    scale = attributes.get("scale", float(tensors[0].shape[-1]) ** -0.5)
    return float(scale) if isinstance(scale, float) and isfinite(scale) else None
