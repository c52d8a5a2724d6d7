"""The ONNX node of an unrolled recurrent cell.

T steps, B batch, K numbers of a source, N units of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.cells.directions import stacked_states
from tflite_ort.opmap.graph import Graph, Target, ir
from tflite_ort.opmap.loops.recurrent_cell_nodes import cell_node
from tflite_ort.opmap.patterns.pattern import Emit, shaped
from tflite_ort.opmap.patterns.unrolled_places import Chain, Chains, Joined, Source
from tflite_ort.schema import OperatorView, TensorView
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR

View = OperatorView[Any]


def unrolled(
    operators: Sequence[View],
    results: Sequence[TensorView],
    emitted: Mapping[int, View],
    target: Target,
) -> Iterator[tuple[Sequence[View], View, Emit]]:
    """Of each unrolled cell its operators, the one where its node is added, and what adds it.

    Args:
        results: the tensors that are read from outside.
        emitted: by index of an operator in a group, the operator where its nodes are added.
    """
    try:
        chains = Chains(operators, results, emitted, hybrid=target.rounds)
    except MALFORMED_OPERATOR:  # which operator is, its translator says
        return
    for chain in chains.found:
        yield chain.members, chain.place, partial(_emit, chain)


def _emit(chain: Chain, g: Graph, _: View) -> None:
    found, (batch, units) = chain.found, chain.states.shape[1:]
    parts = [_sequence(g, source, batch, backward=chain.backward) for source in chain.sources]
    x = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=2)
    initial: list[ir.Value | None] = [None] * len(found.cell.states)
    for place, tensor in enumerate(found.initial):
        initial[place] = stacked_states(g, [g.read(tensor)], (batch, units))
    direction = "reverse" if chain.backward else None
    outputs, *finals = cell_node(g, found.cell, x, initial, batch, direction)
    steps = g.reshape(outputs, chain.states.shape)
    g.write(chain.states, steps)
    for joined in chain.joined:
        g.write(joined.op.output, _joined(g, joined, steps, chain))
    for tensor, value in zip(found.results[-1], finals, strict=True):
        g.write(tensor, g.reshape(value, tensor.shape))
    for number, tensor in chain.single:
        if tensor.index != found.results[-1][0].index:
            value = g.op("Gather", steps, g.ints([number]), axis=0)
            g.write(tensor, g.reshape(value, tensor.shape))


def _joined(g: Graph, joined: Joined, steps: ir.Value, chain: Chain) -> ir.Value:
    """The outputs that an operator joins, as its output."""
    count, batch, units = chain.states.shape
    if list(joined.places) != list(range(count)):
        steps, count = g.op("Gather", steps, g.ints(joined.places), axis=0), len(joined.places)
    if joined.before > 1 and count > 1:
        shape = count, joined.before, batch * units // joined.before
        steps = g.op("Transpose", g.reshape(steps, shape), perm=[1, 0, 2])
    return g.reshape(steps, joined.op.output.shape)


def _sequence(g: Graph, source: Source, batch: int, *, backward: bool) -> ir.Value:
    """A source in all steps, [T, B, K]; the last step first if `backward`."""
    width, places = source.width, source.places
    if places is None:
        parts = [shaped(g, tensor, (1, batch, width)) for tensor in source.tensors]
        return g.op("Concat", *(parts[::-1] if backward else parts), axis=0)
    (whole,), count = source.tensors, len(places)
    places = places[::-1] if backward else places
    rows = np.arange(prod(whole.shape) // width)
    if np.array_equal(places.reshape(-1), rows):
        return shaped(g, whole, (count, batch, width))
    if np.array_equal(places.T.reshape(-1), rows):
        return g.op("Transpose", shaped(g, whole, (batch, count, width)), perm=[1, 0, 2])
    return g.op("Gather", shaped(g, whole, (len(rows), width)), g.ints(places), axis=0)
