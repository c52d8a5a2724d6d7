"""Operators that know one sample only, in a WHILE that runs them for each sample.

The state of the loop is the number of the sample, the number of samples, what the operators read,
and their results so far::

    while number < count:
        result = operators(row `number` of what is batched)
        results = results with `result` as row `number`
        number += 1

"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.loop_results import Kept, kept, sizes_of, start, without_first
from tflite_ort.batching.plain import PlainGraph
from tflite_ort.schema import (
    AddOptions,
    LessOptions,
    Op,
    OperatorView,
    Tensor,
    TensorType,
    TensorView,
    Unbatchable,
    WhileOptions,
)
from tflite_ort.schema.values.sizes import has_roots

View = OperatorView[Any]
_INT32 = TensorType.INT32

# The results of these do not depend on their inputs alone.
STREAMS = frozenset(
    {
        *("SignalFramer", "SignalStacker", "SignalDelay", "SignalOverlapAdd"),
        "SignalFilterBankSpectralSubtraction",
    }
)
_RANDOM = frozenset({Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL, Op.MULTINOMIAL})


def sample_by_sample(op: View, g: BatchedGraph) -> None:
    """Add a WHILE that runs `op` once a sample.

    Raises:
        Unbatchable: it keeps a state, or the size of a tensor depends on data.
    """
    tensors = (*op.present_inputs(), *op.outputs)
    if not all(tensor.ranked and has_roots(tensor.shape, g.open_sizes) for tensor in tensors):
        raise Unbatchable("it knows one sample only, and the size of a tensor depends on data")
    samples_one_by_one([op], [out.index for out in op.outputs], g)


def samples_one_by_one(ops: Sequence[View], wanted: Collection[int], g: BatchedGraph) -> None:
    """Add a WHILE that runs all of `ops` once a sample.

    Args:
        wanted: the tensors that are read outside of the loop.

    Raises:
        Unbatchable: with the name of the operator that keeps a state, or whose result no batch has
            a place for.
    """
    results: list[Kept] = []
    for op in ops:
        try:
            _check(op, g)
            results += [kept(out, g.open_sizes) for out in op.outputs if out.index in wanted]
        except Unbatchable as error:
            raise Unbatchable(error.reason, op.name, op.index, op.subgraph) from None
    _Loop(ops, results, g).emit()


class _Loop:
    """The WHILE around `ops`."""

    def __init__(self, ops: Sequence[View], results: Sequence[Kept], g: BatchedGraph) -> None:
        self._ops, self._results, self._g = ops, results, g
        read = list(_read(ops))
        self._batched = [tensor for tensor in read if g.is_batched(tensor)]
        self._others = [tensor for tensor in read if not g.is_batched(tensor)]
        stacks, same = map(g.stacked, self._batched), map(g.same, self._others)
        self._given = [g.constant([0]), g.count(), *stacks, *same]
        self._first = [each.first(g) for each in results]
        self._before = [*self._given, *(place for places in self._first for place in places)]

    def emit(self) -> None:
        """Add the operator, and what is made of its results."""
        g = self._g
        body = PlainGraph(g.parts)
        state = [_as_in(g.tensors[place], body) for place in self._before]
        after = self._after(body, state)
        test = _test(body, state, g)
        whole = body.graph(state, after, self._ops[0].label)
        options = WhileOptions(g.parts.add_subgraph(test), g.parts.add_subgraph(whole))
        rest = [g.like(g.tensors[at], sizes_of(g.tensors[at]), "after") for at in self._given]
        finals = [each.finals(g) for each in self._results]
        made = [place for places in finals for place in places]
        g.emit(Op.WHILE, self._before, [*rest, *made], options)
        for each, places in zip(self._results, finals, strict=True):
            each.finish(g, places)

    def _after(self, body: PlainGraph, state: Sequence[int]) -> list[int]:
        """The state that an iteration makes."""
        number, kept_as = state[0], iter(state[len(self._given) :])
        stacks, same = state[2 : 2 + len(self._batched)], state[2 + len(self._batched) :]
        place = {
            tensor.index: _row(body, whole, number)
            for tensor, whole in zip(self._batched, stacks, strict=True)
        }
        place |= {tensor.index: at for tensor, at in zip(self._others, same, strict=False)}
        for op in self._ops:
            _run(op, place, body, self._g)
        following = body.new(_INT32, (1,), "following")
        body.emit(Op.ADD, [number, body.constant([1])], [following], AddOptions())
        after = [following, *state[1 : len(self._given)]]
        for each, places in zip(self._results, self._first, strict=True):
            now = [next(kept_as) for _ in places]
            after += each.updated(body, now, place[each.tensor.index], number)
        return after


def _read(ops: Sequence[View]) -> Iterator[TensorView]:
    """What operators read that none of them makes, each tensor once."""
    known = {out.index for op in ops for out in op.outputs}
    for op in ops:
        for tensor in op.present_inputs():
            if not tensor.is_constant and tensor.index not in known:
                known.add(tensor.index)
                yield tensor


def _check(op: View, g: BatchedGraph) -> None:
    if op.custom_code in STREAMS:
        raise Unbatchable("it keeps a stream of its own")
    if op.op in _RANDOM:
        raise Unbatchable("its random numbers follow from run to run")
    tensors = [*op.present_inputs(), *op.outputs]
    if any(tensor.index >= len(g.source.tensors) for tensor in tensors):
        raise Unbatchable("it uses a variable or table of the model, and knows one sample only")
    if op.variables():
        raise Unbatchable("it keeps a state, and knows one sample only")


def _as_in(table: Tensor, body: PlainGraph) -> int:
    return body.like(table, sizes_of(table), "in")


def _row(body: PlainGraph, whole: int, number: int) -> int:
    """Row `number` of a stack: a sample."""
    table = body.tensors[whole]
    sizes = [1, *sizes_of(table)[1:]]
    row = body.like(table, sizes, "row")
    body.emit(Op.SLICE, [whole, start(body, number, len(sizes)), body.constant(sizes)], [row])
    return without_first(body, row)


def _run(op: View, place: dict[int, int], body: PlainGraph, g: BatchedGraph) -> None:
    """`op` itself over what stands in `place`, and over constants of its own; the places of its
    results stand there then too."""
    inputs = [None if t is None else _input(t, place, body, g) for t in op.inputs]
    results = [body.like(_table(t, g), t.shape, "result") for t in op.outputs]
    extra = [_constant(_table(tensor, g), body) for tensor in op.intermediates]
    own = g.source.operators[op.index]
    body.operators.append(
        replace(own, inputs=tuple(inputs), outputs=tuple(results), intermediates=tuple(extra))
    )
    place |= {out.index: at for out, at in zip(op.outputs, results, strict=True)}


def _table(tensor: TensorView, g: BatchedGraph) -> Tensor:
    return replace(g.source.tensors[tensor.index], type=tensor.type)


def _input(tensor: TensorView, place: dict[int, int], body: PlainGraph, g: BatchedGraph) -> int:
    if not tensor.is_constant:
        return place[tensor.index]
    if tensor.blocks is not None:
        raise Unbatchable("it knows one sample only, and its weights have scales of blocks")
    return _constant(g.with_data(tensor), body)


def _constant(table: Tensor, body: PlainGraph) -> int:
    body.tensors.append(table)
    return len(body.tensors) - 1


def _test(body: PlainGraph, state: Sequence[int], g: BatchedGraph) -> Any:
    """The condition: whether there is a further sample."""
    test = PlainGraph(g.parts)
    inputs = [_as_in(body.tensors[place], test) for place in state]
    less = test.new(TensorType.BOOL, (1,), "less")
    test.emit(Op.LESS, inputs[:2], [less], LessOptions())
    return test.graph(inputs, [less], "is_a_sample")
