"""Small networks, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.one_op import Node, T
from tflite_ort.schema import (
    AddOptions,
    BatchMatMulOptions,
    ConcatenationOptions,
    MulOptions,
    Op,
    ReducerOptions,
    SoftmaxOptions,
    SubOptions,
)

OPTIONS: Mapping[Op, Any] = {
    Op.ADD: AddOptions(),
    Op.BATCH_MATMUL: BatchMatMulOptions(),
    Op.CONCATENATION: ConcatenationOptions(axis=-1),
    Op.MEAN: ReducerOptions(keep_dims=True),
    Op.MUL: MulOptions(),
    Op.SOFTMAX: SoftmaxOptions(beta=1.0),
    Op.SUB: SubOptions(),
}


@dataclass
class Builder:
    """Tensors and operators, each under the name of its result."""

    tensors: dict[str, T] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def op(self, op: Op, inputs: Sequence[str], shape: Sequence[int], options: Any = None) -> str:
        """The result of an operator, of this shape."""
        name = f"{op.name.lower()}{len(self.nodes)}"
        self.tensors[name] = T(tuple(shape))
        self.nodes.append(Node(op, list(inputs), [name], options or OPTIONS.get(op)))
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """A constant."""
        name = f"constant{len(self.tensors)}"
        self.tensors[name] = T.constant(np.asarray(values, dtype))
        return name

    def reshape(self, source: str, shape: Sequence[int]) -> str:
        """`source` in another shape."""
        return self.op(Op.RESHAPE, [source, self.constant(shape, np.int32)], shape)

    def input(self, name: str, *shape: int) -> str:
        """An input."""
        self.tensors[name] = T(shape)
        return name
