"""Weights whose products an x86 processor without VNNI adds exactly.

ONNX Runtime's kernels for uint8 by int8 add the products of two neighbouring channels in 16 bits
there. With two codes of up to 255 they hold the sum if the two weights sum to at most 128 and at
least -128. Weights of different signs always do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.rules.channels import FREE

Rows = npt.NDArray[np.int16]
Places = npt.NDArray[np.intp]

_LOW, _HIGH = -128, 127
_MOST = 128
# How often channels without a partner are put in a new order, and which part has to find one.
_DRAWS, _FOUND = 12, 0.05
# So many weights of a channel tell how large they are.
_SOME = 64


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
    return bool(_are_exact(rows[0 : 2 * count : 2], rows[1 : 2 * count : 2]).all())


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
    orders, parts = list[Places](), list[Rows]()
    channels, left = np.arange(len(rows)), rows
    while len(channels):
        fitting = left.clip(_LOW, _HIGH)
        pairs, alone = _matched(fitting)
        first, second = alone[0 : len(alone) // 2 * 2 : 2], alone[1::2]
        other = fitting[second]
        low, high = _LOW - other.clip(max=0), _MOST - other.clip(min=0)
        fitting[first] = fitting[first].clip(low, high)
        order = np.concatenate([pairs, alone])
        orders.append(channels[order])
        parts.append(fitting[order])
        if len(order) % 2:
            orders.append(np.array([FREE]))
            parts.append(np.zeros_like(fitting[:1]))
        over = left - fitting
        more = np.flatnonzero(over.any(axis=1))
        channels, left = channels[more], over[more]
    return Pairing(np.concatenate(orders).tolist(), np.concatenate(parts))


def _are_exact(first: Rows, second: Rows) -> npt.NDArray[np.bool_]:
    """By pair of rows, whether 16 bits hold all sums."""
    sums = first + second
    np.abs(sums, out=sums)
    found: npt.NDArray[np.bool_] = sums.max(axis=1, initial=0) <= _MOST
    return found


def _matched(rows: Rows) -> tuple[Places, Places]:
    """Rows in pairs that are exact, and the rows that found no partner.

    The rows of the largest weights meet those of the smallest first. Two rows that are not exact
    together each try one of a pair.
    """
    made, rng = np.empty((0, 2), np.intp), np.random.default_rng(0)
    waiting, middle = np.argsort(np.abs(rows[:, :_SOME]).sum(axis=1)), len(rows) // 2
    waiting = np.concatenate([waiting[:middle], waiting[middle:][::-1]])
    for draw in range(_DRAWS):
        count = len(waiting) // 2
        drawn = waiting[: 2 * count].reshape(2, count).T
        exact = _are_exact(*rows[drawn.T])
        others, places = drawn[~exact], rng.permutation(len(made))
        others, places = others[: len(places)], places[: len(others)]
        mixed = np.stack([others, made[places]], axis=2)
        fits = _are_exact(*rows[mixed[:, 0].T]) & _are_exact(*rows[mixed[:, 1].T])
        made[places[fits]] = mixed[fits, 0]
        made = np.concatenate([made, drawn[exact], mixed[fits, 1]])
        left = np.concatenate([others[~fits], drawn[~exact][len(others) :]])
        waiting = rng.permutation(np.concatenate([left.ravel(), waiting[2 * count :]]))
        found = np.count_nonzero(exact) + np.count_nonzero(fits)
        if len(waiting) < 2 or (draw and found < _FOUND * count):
            break
    return made.ravel(), waiting
