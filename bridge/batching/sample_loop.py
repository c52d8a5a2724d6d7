"""An operator that knows one sample only, in a WHILE that runs it for each sample.

The state of the loop is the number of the sample, the number of samples, what the operator reads,
and its results so far::

    while number < count:
        result = operator(row `number` of what is batched)
        results = results with `result` as row `number`
        number += 1

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.plain import PlainGraph
from tflite_ort.schema import (
    AddOptions,
    LessOptions,
    Op,
    OperatorView,
    ReshapeOptions,
    Tensor,
    TensorType,
    TensorView,
    Unbatchable,
    WhileOptions,
)
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]
_INT32 = TensorType.INT32

# The results of these do not depend on their inputs alone.
_STREAMS = frozenset(
    {
        *("SignalFramer", "SignalStacker", "SignalDelay", "SignalOverlapAdd"),
        "SignalFilterBankSpectralSubtraction",
    }
)
_RANDOM = frozenset({Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL, Op.MULTINOMIAL})


def sample_by_sample(op: View, g: BatchedGraph) -> None:
    """Add a WHILE that runs `op` once a sample.

    Raises:
        Unbatchable: it keeps a state, or the size of a result depends on data.
    """
    _check(op, g)
    read = {t.index: t for t in op.present_inputs() if not t.is_constant}.values()
    batched = [tensor for tensor in read if g.is_batched(tensor)]
    others = [tensor for tensor in read if not g.is_batched(tensor)]
    given = [g.constant([0]), g.count(), *map(g.stacked, batched), *map(g.same, others)]
    kept = len(given)
    given += [_nothing(tensor, g) for tensor in op.outputs]
    body = PlainGraph(g.parts)
    state = [body.like(g.tensors[place], _sizes(g.tensors[place]), "in") for place in given]
    number = state[0]
    rows = dict(zip([t.index for t in batched], state[2:], strict=False))
    place = {index: _row(body, whole, number) for index, whole in rows.items()}
    place |= dict(zip([t.index for t in others], state[2 + len(batched) : kept], strict=True))
    made = _run(op, place, body, g)
    after = [
        _with_row(body, whole, result, number)
        for whole, result in zip(state[kept:], made, strict=True)
    ]
    following = body.new(_INT32, (1,), "following")
    body.emit(Op.ADD, [number, body.constant([1])], [following], AddOptions())
    results = [following, *state[1:kept], *after]
    test = _test(body, state, g)
    loop = WhileOptions(
        g.parts.add_subgraph(test), g.parts.add_subgraph(body.graph(state, results, op.label))
    )
    rest = [g.like(g.tensors[at], _sizes(g.tensors[at]), "after") for at in given[:kept]]
    g.emit(Op.WHILE, given, [*rest, *map(g.result_stacked, op.outputs)], loop)


def _check(op: View, g: BatchedGraph) -> None:
    if op.custom_code in _STREAMS:
        raise Unbatchable("it keeps a stream of its own")
    if op.op in _RANDOM:
        raise Unbatchable("its random numbers follow from run to run")
    tensors = [*op.present_inputs(), *op.outputs]
    if any(tensor.index >= len(g.source.tensors) for tensor in tensors):
        raise Unbatchable("it uses a variable or table of the model, and knows one sample only")
    if op.variables():
        raise Unbatchable("it keeps a state, and knows one sample only")
    if any(not tensor.ranked or not is_known(*tensor.shape) for tensor in tensors):
        raise Unbatchable("it knows one sample only, and the size of a tensor depends on data")
    if any(tensor.type is TensorType.STRING for tensor in op.outputs):
        raise Unbatchable("it knows one sample only, and gives strings")


def _sizes(table: Tensor) -> Sequence[int]:
    return table.shape_signature or table.shape


def _nothing(tensor: TensorView, g: BatchedGraph) -> int:
    """Zeros of the shape of all results."""
    like = replace(g.source.tensors[tensor.index], type=tensor.type)
    zero = g.constant(np.zeros((), tensor.dtype), tensor.dtype, like)
    out = g.temporary(tensor, g.stacked_shape(tensor.shape), "before")
    g.emit(Op.FILL, [g.dims(tensor.shape), zero], [out])
    return out


def _start(body: PlainGraph, number: int, rank: int) -> int:
    """Where row `number` starts: ``[number, 0, 0, ...]``."""
    return body.concatenated([number, body.constant([0] * (rank - 1))] if rank > 1 else [number])


def _row(body: PlainGraph, whole: int, number: int) -> int:
    """Row `number` of a stack: a sample."""
    table = body.tensors[whole]
    shape = table.shape[1:]
    row = body.like(table, (1, *shape), "row")
    body.emit(
        Op.SLICE,
        [whole, _start(body, number, len(table.shape)), body.constant([1, *shape])],
        [row],
    )
    return _reshaped(body, row, shape)


def _reshaped(body: PlainGraph, place: int, shape: Sequence[int]) -> int:
    out = body.like(body.tensors[place], shape, "sample")
    sizes = body.constant(list(shape))
    body.emit(Op.RESHAPE, [place, sizes], [out], ReshapeOptions(new_shape=tuple(shape)))
    return out


def _with_row(body: PlainGraph, whole: int, result: int, number: int) -> int:
    """A stack with `result` as row `number`."""
    table = body.tensors[whole]
    row = _reshaped(body, result, (1, *table.shape[1:]))
    out = body.like(table, _sizes(table), "with_row")
    start = _start(body, number, len(table.shape))
    body.emit(Op.DYNAMIC_UPDATE_SLICE, [whole, row, start], [out])
    return out


def _run(op: View, place: dict[int, int], body: PlainGraph, g: BatchedGraph) -> list[int]:
    """`op` itself over `place` and constants of its own; the places of its results."""
    inputs = [None if t is None else _input(t, place, body, g) for t in op.inputs]
    results = [body.like(_table(t, g), t.shape, "result") for t in op.outputs]
    extra = [_constant(_table(tensor, g), body) for tensor in op.intermediates]
    own = g.source.operators[op.index]
    body.operators.append(
        replace(own, inputs=tuple(inputs), outputs=tuple(results), intermediates=tuple(extra))
    )
    return results


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
    inputs = [test.like(body.tensors[place], _sizes(body.tensors[place]), "in") for place in state]
    less = test.new(TensorType.BOOL, (1,), "less")
    test.emit(Op.LESS, inputs[:2], [less], LessOptions())
    return test.graph(inputs, [less], "is_a_sample")
