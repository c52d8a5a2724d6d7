"""Rotary embedding of a single token, whose angles are its position times constants.

A mask that is looked up by that position bounds it: TFLite refuses what is beyond the table, and
from a negative number counts from its end. So cosines and sines of all positions are constants. The
heads of one token are all turned by the same angles, so that they may stand in any shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.cache_rows import (
    before_reshapes,
    positions_within,
    rows_of_table,
)
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.pattern import View, shaped
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

Floats = npt.NDArray[np.float32]

_DOMAIN = "com.microsoft"


@record
class TokenAngles:
    """The angles of a single token.

    Args:
        position: of the token, an int32.
        count: it is below this number, and at least minus this number.
        factors: of each half of a head, by what the position is multiplied.
    """

    position: TensorView
    count: int
    factors: TensorView

    @classmethod
    def of(cls, tensor: TensorView, producers: Producers) -> TokenAngles | None:
        """None where the angles `tensor` are others, or any position is possible."""
        product = producers.maker(before_reshapes(tensor, producers))
        if product is None or product.op is not Op.MUL or product.options.fused_activation_function:
            return None
        for moving, factors in (("input1", "input2"), ("input2", "input1")):
            cast = producers.maker(before_reshapes(product[moving], producers))
            if cast is None or cast.op is not Op.CAST or product[factors].data is None:
                continue
            position = before_reshapes(cast["input"], producers)
            types = position.type, cast.output.type, product[factors].type
            if types != (TensorType.INT32, TensorType.FLOAT32, TensorType.FLOAT32):
                continue
            if not _is_number(position) or product.output.type is not TensorType.FLOAT32:
                continue
            count = rows_of_table(position, producers)
            return None if count is None else cls(position, count, product[factors])
        return None

    def tables(self, g: Graph) -> tuple[ir.Value, ir.Value]:
        """Cosines and sines [2 * count, half]: the last rows are of negative positions."""
        make = (partial(self._table, function) for function in (np.cos, np.sin))
        cos, sin = (
            g.constants.laid(self.factors.constant, (name, self.count), each, name)
            for name, each in zip(("cosines", "sines"), make, strict=True)
        )
        return cos, sin

    def _table(self, function: Any) -> Floats:
        assert self.factors.data is not None
        positions = positions_within(self.count).astype(np.float32)
        angles = positions[:, np.newaxis] * self.factors.data.reshape(-1)
        found: Floats = function(angles.astype(np.float64)).astype(np.float32)
        return found

    def rows(self, g: Graph, shape: Sequence[int]) -> ir.Value:
        """The row of the tables, int64, as often as `shape` says."""
        numbers = np.arange(2 * self.count).reshape(-1, *(1 for _ in shape))
        table = np.ascontiguousarray(np.broadcast_to(numbers, (2 * self.count, *shape)))
        name = "x".join(map(str, (2 * self.count, *shape)))
        found = g.constants.once(table.astype(np.int64), f"rows_{name}")
        return g.op("Gather", found, shaped(g, self.position, ()))


def emit(x: TensorView, angles: TokenAngles, producers: Producers, g: Graph, op: View) -> None:
    """One node, in the shape that the heads have before and after a RESHAPE."""
    source = before_reshapes(x, producers)
    source = x if source.is_variable else source  # which may be set anew before
    shape = _heads(source.shape, x.shape[-1]) or x.shape
    rows = angles.rows(g, (shape[0], shape[-2]))
    y = g.op("RotaryEmbedding", shaped(g, source, shape), rows, *angles.tables(g), domain=_DOMAIN)
    y.shape = shape
    g.write(op.output, g.reshape(y, op.output.shape))


def _heads(shape: Sequence[int], size: int) -> tuple[int, ...] | None:
    """A shape [..., heads, size] of 3 or 4 dimensions for the elements of one token that stand as
    `shape`, heads that are side by side apart; None where it is not made of heads."""
    if not shape or not is_known(*shape) or shape[-1] % size:
        return None
    if shape[-1] == size and len(shape) == 4:
        return tuple(shape)
    return prod(shape[:-1]), shape[-1] // size, size


def _is_number(tensor: TensorView) -> bool:
    known = is_known(*tensor.shape) and prod(tensor.shape) == 1
    return known and not tensor.is_variable and not tensor.is_constant
