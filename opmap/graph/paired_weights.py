"""Weights whose products an x86 processor without VNNI adds exactly.

ONNX Runtime's kernels for uint8 by int8 add the products of two neighbouring channels in 16 bits
there. With two codes of up to 255 they hold the sum if the two weights sum to at most 128 and at
least -128. Weights of different signs always do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph.integer_layers import FREE
from tflite_ort.records import record

Rows = npt.NDArray[np.int16]

_LOW, _HIGH = -128, 127
_MOST = 128
# How often channels without a partner are put in a new order, and which part has to find one.
_DRAWS, _FOUND = 12, 0.05


@record
class Pairing:
    """Channels in an order in which each two neighbours are exact.

    Args:
        order: by place the channel, which may have several places, or FREE.
        weights: [places, ...], by place a part of the weights of its channel. They sum to these.
    """

    order: Sequence[int]
    weights: Rows


def are_exact(rows: Rows) -> bool:
    """Whether the weights [channels, ...] have 8 bits, and each two neighbours are exact."""
    if rows.max(initial=0) > _HIGH or rows.min(initial=0) < _LOW:
        return False
    count = len(rows) // 2
    return not _exceed(rows[0 : 2 * count : 2], rows[1 : 2 * count : 2]).any()


def excess(rows: Rows) -> float:
    """How many sums of two neighbours exceed 16 bits, in the mean of all pairs."""
    count = len(rows) // 2
    sums = rows[0 : 2 * count : 2] + rows[1 : 2 * count : 2]
    return float(np.count_nonzero(np.abs(sums) > _MOST) / max(1, count))


def paired(rows: Rows) -> Pairing:
    """An order of channels with few places.

    Channels change places first. Of two channels that fit with no other one, the first has another
    place, for what is too much of its weights.

    Args:
        rows: [channels, ...], the weights of each in 9 bits.
    """
    order, parts = list[int](), list[Rows]()
    channels, left = np.arange(len(rows)), rows
    while len(channels):
        fitting = left.clip(_LOW, _HIGH)
        pairs, alone = _matched(fitting)
        for first, second in zip(alone[::2], alone[1::2], strict=False):
            other = fitting[second]
            fitting[first] = fitting[first].clip(
                _LOW - other.clip(max=0), _MOST - other.clip(min=0)
            )
            pairs.append((first, second))
        for pair in pairs:
            order += [int(channels[each]) for each in pair]
            parts += [fitting[each] for each in pair]
        if len(alone) % 2:
            order += [int(channels[alone[-1]]), FREE]
            parts += [fitting[alone[-1]], np.zeros_like(fitting[0])]
        over = left - fitting
        more = np.flatnonzero(over.any(axis=1))
        channels, left = channels[more], over[more]
    return Pairing(order, np.stack(parts))


def _exceed(first: Rows, second: Rows) -> npt.NDArray[np.bool_]:
    """By pair of rows, whether a sum can exceed 16 bits."""
    sums = first + second
    found: npt.NDArray[np.bool_] = (sums.max(axis=1, initial=0) > _MOST) | (
        sums.min(axis=1, initial=0) < -_MOST
    )
    return found


def _matched(rows: Rows) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs of rows that are exact, and the rows that found no partner.

    The rows of the largest weights meet those of the smallest first.
    """
    pairs, rng = list[tuple[int, int]](), np.random.default_rng(0)
    waiting, middle = np.argsort(np.abs(rows).sum(axis=1, dtype=np.int32)), len(rows) // 2
    waiting = np.concatenate([waiting[:middle], waiting[middle:][::-1]])
    for draw in range(_DRAWS):
        count = len(waiting) // 2
        first, second = waiting[:count], waiting[count : 2 * count]
        exact = ~_exceed(rows[first], rows[second])
        pairs += zip(first[exact].tolist(), second[exact].tolist(), strict=True)
        waiting = np.concatenate([first[~exact], second[~exact], waiting[2 * count :]])
        if len(waiting) < 2 or (draw and exact.mean() < _FOUND):
            break
        waiting = rng.permutation(waiting)
    return pairs, waiting.tolist()
