"""What an operator's required version depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.schema import Model, Op, Operator, SubGraph, Tensor, TensorType
from tflite_ort.schema.file.tables import fields_of

Shape = tuple[int, ...]


@record
class TensorSignature:
    """An input or output of an operator, as the file has it.

    Args:
        type: None for an input that is left out.
        quantized: it has a quantization table, even an empty one.
        scales: how many scales that table has, along `axis`.
        scale: the first of them; 0.0 without any.
    """

    type: TensorType | None = None
    shape: Shape = ()
    is_constant: bool = False
    quantized: bool = False
    scales: int = 0
    scale: float = 0.0
    axis: int = 0
    sparse: bool = False


ABSENT = TensorSignature()


@record
class Signature:
    """An operator in its graph: types, shapes, const-ness, quantization, options.

    Args:
        options: by the schema's names; a field that is missing is 0. None stands for an operator
            that has no options at all, which no file can say of an operator that has a table.
    """

    op: Op
    inputs: tuple[TensorSignature, ...] = ()
    outputs: tuple[TensorSignature, ...] = ()
    options: Mapping[str, Any] | None = None

    def input(self, position: int) -> TensorSignature:
        """The input at `position`; an absent one beyond the last."""
        return self.inputs[position] if position < len(self.inputs) else ABSENT

    def output(self, position: int) -> TensorSignature:
        """The output at `position`; an absent one beyond the last."""
        return self.outputs[position] if position < len(self.outputs) else ABSENT

    def option(self, name: str) -> Any:
        """The value of an option; 0 where it is missing."""
        return (self.options or {}).get(name, 0)


def signature(model: Model, graph: SubGraph, operator: Operator) -> Signature:
    """The signature of `operator`, one of `graph`'s."""
    return Signature(
        model.operator_codes[operator.opcode_index].builtin_code,
        _tensors(model, graph, operator.inputs),
        _tensors(model, graph, operator.outputs),
        _options(operator),
    )


def _options(operator: Operator) -> Mapping[str, Any]:
    """An absent table reads as all zero, not as the schema's defaults."""
    table = operator.options
    return {} if table is None else {name: getattr(table, name) for name in fields_of(type(table))}


def _tensors(
    model: Model, graph: SubGraph, indices: Sequence[int | None]
) -> tuple[TensorSignature, ...]:
    return tuple(
        ABSENT if index is None else _tensor(model, graph.tensors[index]) for index in indices
    )


def _tensor(model: Model, tensor: Tensor) -> TensorSignature:
    quantization = tensor.quantization
    scale = None if quantization is None else quantization.scale
    return TensorSignature(
        tensor.type,
        tensor.shape,
        is_constant=bool(tensor.buffer) and model.buffers[tensor.buffer].data is not None,
        quantized=quantization is not None,
        scales=0 if scale is None else scale.size,
        scale=0.0 if scale is None or not scale.size else float(scale[0]),
        axis=0 if quantization is None else quantization.quantized_dimension,
        sparse=tensor.sparsity is not None,
    )
