"""A subgraph under construction: tensors, constants and operators by their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.batching.parts import Parts
from tflite_ort.schema import (
    ConcatenationOptions,
    Op,
    Operator,
    QuantizationParameters,
    SubGraph,
    Table,
    Tensor,
    TensorType,
)
from tflite_ort.schema.file.element_types import type_of
from tflite_ort.schema.values.sizes import is_known

Sizes = Sequence[int]


class PlainGraph:
    """A subgraph to which tensors and operators are added.

    Args:
        parts: what it shares with the other subgraphs of the model.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.tensors: list[Tensor] = []
        self.operators: list[Operator] = []

    def new(
        self,
        type: TensorType,
        sizes: Sizes,
        name: str = "batch",
        quantization: QuantizationParameters | None = None,
    ) -> int:
        """A further tensor of shape `sizes`, -1 for an open size."""
        table = Tensor(type=type, name=f"{name}_{len(self.tensors)}", has_rank=True)
        self.tensors.append(sized(replace(table, quantization=quantization), sizes))
        return len(self.tensors) - 1

    def like(self, table: Tensor, sizes: Sizes, what: str) -> int:
        """A further tensor of shape `sizes`, of the type and scale of `table`."""
        return self.new(table.type, sizes, f"{table.name}/{what}", table.quantization)

    def constant(self, values: Any, dtype: Any = np.int32, like: Tensor | None = None) -> int:
        """A constant, of int32 unless `dtype` is another, of the type and scale of `like`."""
        array = np.asarray(values, dtype)
        type = type_of(array.dtype) if like is None else like.type
        assert type is not None
        scale = None if like is None else like.quantization
        index = self.new(type, array.shape, "constant", scale)
        self.tensors[index] = replace(self.tensors[index], buffer=self.parts.buffer(array))
        return index

    def emit(
        self,
        op: Op,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        options: Table | None = None,
    ) -> None:
        """Add an operator that the file does not have."""
        code = self.parts.code(op)
        self.operators.append(
            Operator(
                opcode_index=code, inputs=tuple(inputs), outputs=tuple(outputs), options=options
            )
        )

    def concatenated(self, lists: Sequence[int]) -> int:
        """1-D tensors of one type, one after the other."""
        if len(lists) == 1:
            return lists[0]
        tables = [self.tensors[each] for each in lists]
        out = self.new(tables[0].type, (sum(each.shape[0] for each in tables),), "list")
        self.emit(Op.CONCATENATION, lists, [out], ConcatenationOptions(axis=0))
        return out

    def graph(self, inputs: Sequence[int], outputs: Sequence[int], name: str) -> SubGraph:
        """The subgraph as it is so far."""
        return SubGraph(
            tensors=tuple(self.tensors),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            operators=tuple(self.operators),
            name=name,
        )


def sized(table: Tensor, sizes: Sizes) -> Tensor:
    """`table` of shape `sizes`; what is open, or depends on data, is 1 there and -1 in its
    signature."""
    known = tuple(size if is_known(size) else -1 for size in sizes)
    signature = known if -1 in known else None
    shape = tuple(1 if size == -1 else size for size in known)
    return replace(table, shape=shape, shape_signature=signature)
