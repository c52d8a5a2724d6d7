"""Random operators over tensors whose sizes depend on the data of a sample."""

from __future__ import annotations

from tests.batching.random_graphs import BOOL, INT, RandomGraph, Value, step
from tests.one_op import Node, T
from tflite_ort.schema import (
    AddOptions,
    GreaterOptions,
    MulOptions,
    Op,
    ReducerOptions,
    TensorType,
    UniqueOptions,
)


def _unknown(g: RandomGraph, sizes: tuple[int, ...], type: TensorType) -> str:
    """A tensor that no other step picks."""
    name = f"t{len(g.tensors)}"
    g.tensors[name] = T(sizes, type)
    return name


@step()
def found(g: RandomGraph) -> None:
    """The sum of what is above a number, or of its squares."""
    source = g.pick(lambda v: v.rank in (1, 2) and v.exact and v.largest < 64)
    if source is None:
        return
    mask = _unknown(g, source.shape, BOOL)
    limit = g.constant(())
    places = _unknown(g, (0, source.rank), TensorType.INT64)
    values = _unknown(g, (0,), source.type)
    g.nodes += [
        Node(Op.GREATER, [source.name, limit.name], [mask], GreaterOptions()),
        Node(Op.WHERE, [mask], [places]),
        Node(Op.GATHER_ND, [source.name, places], [values]),
    ]
    if g.draw.random() < 0.5:
        op, options = g.draw.choice(((Op.ADD, AddOptions()), (Op.MUL, MulOptions())))
        other = _unknown(g, (0,), source.type)
        g.nodes.append(Node(op, [values, values], [other], options))
        values = other
    held = Value(values, (), source.type, source.largest**2 * 2 * 36)
    g.emit(Op.SUM, [held, g.ints([0])], [()], ReducerOptions())


@step()
def distinct(g: RandomGraph) -> None:
    """The sum of the numbers that are there, each once."""
    source = g.pick(lambda v: v.rank == 1, INT)
    if source is None:
        return
    values, places = _unknown(g, (0,), INT), _unknown(g, source.shape, INT)
    g.nodes.append(
        Node(Op.UNIQUE, [source.name], [values, places], UniqueOptions(idx_out_type=INT))
    )
    held = Value(values, (), INT, source.largest * 6)
    g.emit(Op.SUM, [held, g.ints([0])], [()], ReducerOptions())
