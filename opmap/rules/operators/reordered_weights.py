"""Rows whose elements are moved before a matrix multiplies them: the weights are moved instead.

Networks from PyTorch turn a map [batch, time, frequency, channels] to [batch, time, channels,
frequency] before its rows become features. The products are the same, added in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import prod

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Layout
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.moves import MOVES, Move, is_plain, moves_before, taken
from tflite_ort.opmap.rules.operators.pattern import View
from tflite_ort.opmap.rules.rule import Cut
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.versioning.registry import Registry

# With more weights the move is a small part of the product, and its copy a large one.
_MOST_WEIGHTS = 1 << 18


def with_reordered_weights(
    operators: Sequence[View], results: Sequence[TensorView], registry: Registry[Translator]
) -> tuple[Sequence[View], Mapping[int, Sequence[Cut]]]:
    """`operators`, in which FULLY_CONNECTED read tensors as they are before they are moved."""
    producers, fresh = Producers(operators, ()), count(_first_free(operators))
    changed = []
    for op in operators:
        move = _move(op, producers) if op.op is Op.FULLY_CONNECTED else None
        if move is not None:
            order = _order_in_row(move, op.present_inputs()[1].shape[1])
            if order is not None and all(
                registry.shares(translator, each) for each in (*move.operators, op)
            ):
                op = _reordered(op, move, order, next(fresh))
        changed.append(op)
    return changed, {}


def _first_free(operators: Sequence[View]) -> int:
    """An index that no tensor has."""
    tensors = (each for op in operators for each in (*op.present_inputs(), *op.outputs))
    return max((each.index for each in tensors), default=0) + 1


def _move(op: View, producers: Producers) -> Move | None:
    """What moves the rows of floats that constant weights multiply; None where nothing does."""
    inputs = op.present_inputs()
    if len(inputs) < 2 or inputs[1].data is None or inputs[1].data.size > _MOST_WEIGHTS:
        return None
    if any(each.type is not TensorType.FLOAT32 for each in inputs[:2]) or inputs[1].rank != 2:
        return None
    maker = producers.maker(inputs[0])
    if maker is None or maker.op not in MOVES or not is_plain(maker):
        return None
    operators = moves_before(maker, producers)
    moves = (taken(operators[first:]) for first in range(len(operators)))
    return next((move for move in moves if move is not None and _is_a_move(move)), None)


def _is_a_move(move: Move) -> bool:
    """Whether a chain moves elements otherwise than from one layout to the other, which a map that
    is there channels-first does for nothing."""
    rank = move.x.rank
    first = Layout.FIRST.permutation(rank) if rank > 2 else ()
    turned = [each for each in move.operators if each.op is Op.TRANSPOSE]
    return not move.returns and not (len(turned) == 1 and _turns(turned[0]) == list(first))


def _turns(op: View) -> list[int]:
    perm = op["perm"].data
    return [] if perm is None else [int(axis) % perm.size for axis in perm.ravel()]


def _order_in_row(move: Move, depth: int) -> npt.NDArray[np.int64] | None:
    """Where in a row of `depth` elements each element of the moved row stands; None where rows are
    not moved within themselves."""
    elements = prod(move.x.shape)
    if depth < 2 or elements % depth:
        return None
    rows = move.view.reshaped((elements // depth, depth))
    if rows is None or rows.dimensions[0] not in ((), ((elements // depth, depth),)):
        return None
    order = np.zeros(1, np.int64)
    for size, stride in rows.dimensions[1]:
        order = (order[:, np.newaxis] + np.arange(size) * stride).reshape(-1)
    return order if sorted(order.tolist()) == list(range(depth)) else None


def _reordered(op: View, move: Move, order: npt.NDArray[np.int64], index: int) -> View:
    """`op` over what is not moved yet."""
    _, weights, *others = op.inputs
    assert weights is not None and weights.data is not None
    data = np.empty_like(weights.data)
    data[:, order] = weights.data
    inputs = (move.x, replace(weights, index=index, constant=data), *others)
    return replace(op, inputs=inputs)
