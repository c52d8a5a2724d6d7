"""WHILE loops whose bodies are put together from pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tests.one_op import Node, T
from tests.subgraph_models import Sub, model_of
from tflite_ort import export_onnx
from tflite_ort.schema import (
    AddOptions,
    CastOptions,
    ConcatenationOptions,
    GatherOptions,
    MulOptions,
    Op,
    ReshapeOptions,
    StridedSliceOptions,
    SubOptions,
    TensorType,
    WhileOptions,
)

Array = npt.NDArray[Any]

ROWS, WIDTH = 6, 3
COUNT, FLAG = T((), TensorType.INT32), T((), TensorType.BOOL)
VECTOR, ROW, TABLE = T((WIDTH,)), T((1, WIDTH)), T((ROWS, WIDTH))
PART = T((1, WIDTH), shape_signature=(-1, WIDTH))  # of as many rows as there turn out to be
OPTIONS = {Op.ADD: AddOptions(), Op.MUL: MulOptions(), Op.SUB: SubOptions()}
CPU = "CPUExecutionProvider"


def integers(*values: int) -> T:
    return T.constant(np.array(values, np.int32))


def number(value: int) -> T:
    return T.constant(np.array(value, np.int32))


def binary(op: Op, a: str, b: str, result: str) -> Node:
    return Node(op, [a, b], [result], OPTIONS[op])


# What bodies are made of: nodes, and the tensors that they add.
Piece = tuple[list[Node], dict[str, T]]


def reading(source: str, result: str) -> Piece:
    """result = source[i]."""
    gather = Node(Op.GATHER, [source, "i"], [result], GatherOptions(axis=0))
    return [gather], {result: VECTOR}


def slicing(source: str, result: str) -> Piece:
    """result = source[i], as tf.function writes it."""
    options = StridedSliceOptions(shrink_axis_mask=1)
    nodes = [
        Node(Op.RESHAPE, ["i", "shape"], ["begin"], ReshapeOptions()),
        Node(Op.RESHAPE, ["j", "shape"], ["end"], ReshapeOptions()),
        Node(Op.STRIDED_SLICE, [source, "begin", "end", "shape"], [result], options),
    ]
    vector = T((1,), TensorType.INT32)
    return nodes, {"shape": integers(1), "begin": vector, "end": vector, result: VECTOR}


def writing(table: str, row: str, result: str) -> Piece:
    """result = table where row i is `row` [1, WIDTH], as converters write a TensorList."""
    nodes = [
        Node(Op.RESHAPE, ["i", "one_size"], ["i_list"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["i_list", "rest"], ["before"], ConcatenationOptions(axis=0)),
        Node(Op.SLICE, [table, "origin", "before"], ["head"]),
        binary(Op.ADD, "i", "unit", "next"),
        Node(Op.RESHAPE, ["next", "one_size"], ["next_list"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["next_list", "zero"], ["after"], ConcatenationOptions(axis=0)),
        Node(Op.SLICE, [table, "after", "all"], ["tail"]),
        Node(Op.CONCATENATION, ["head", row, "tail"], [result], ConcatenationOptions(axis=0)),
    ]
    one, two = T((1,), TensorType.INT32), T((2,), TensorType.INT32)
    tensors = {"one_size": integers(1), "rest": integers(-1), "origin": integers(0, 0)}
    tensors |= {"zero": integers(0), "all": integers(-1, -1), "unit": number(1), "next": COUNT}
    tensors |= {"i_list": one, "next_list": one, "before": two, "after": two}
    return nodes, tensors | {"head": PART, "tail": PART, result: TABLE}


def updating(table: str, row: str, result: str) -> Piece:
    """As `writing` with DYNAMIC_UPDATE_SLICE."""
    nodes = [
        Node(Op.RESHAPE, ["i", "one_size"], ["i_list"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["i_list", "zero"], ["place"], ConcatenationOptions(axis=0)),
        Node(Op.DYNAMIC_UPDATE_SLICE, [table, row, "place"], [result]),
    ]
    one, two = T((1,), TensorType.INT32), T((2,), TensorType.INT32)
    tensors = {"one_size": integers(1), "zero": integers(0), "i_list": one, "place": two}
    return nodes, tensors | {result: TABLE}


def as_row(vector: str, result: str) -> Piece:
    node = Node(Op.RESHAPE, [vector, f"{result} shape"], [result], ReshapeOptions())
    return [node], {f"{result} shape": integers(1, WIDTH), result: ROW}


def of_counter(result: str) -> Piece:
    """result = the counter as a float."""
    return [Node(Op.CAST, ["i"], [result], CastOptions())], {result: T(())}


def loop(
    *pieces: Piece,
    x: str = "x",
    table: str = "table",
    start: int = 0,
    step: int = 1,
    until: int | None = ROWS,
    test: Op = Op.LESS,
    called: Sequence[Sub] = (),
    t: T = VECTOR,
) -> bytes:
    """A loop over i, x, table and xs while `test`(i, until) holds.

    Each iteration adds `step` to i and sets x and table to what `pieces` make; xs does not change.
    The inputs of the model are x, table and xs, the outputs i, x and table. Without `until` there
    is one more input, n, which is in its place.
    """
    state = {"i": COUNT, "x": t, "table": TABLE, "xs": TABLE}
    bound, given = "until", {"until": number(until or 0)}
    if until is None:
        bound, given = "n", {}
        state["n"] = COUNT
    made = {f"o{name}": tensor for name, tensor in state.items()}
    node = Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2))
    outputs = ["oi", "ox", "otable"]
    main = Sub(state | made | {"i": number(start)}, [node], list(state)[1:], outputs)
    tensors = state | given | {"t": FLAG}
    condition = Sub(tensors, [Node(test, ["i", bound], ["t"])], list(state), ["t"])
    nodes, tensors = [binary(Op.ADD, "i", "step", "j")], {"step": number(step), "j": COUNT}
    for more, own in pieces:
        nodes += more
        tensors = own | tensors
    results = ["j", x, table, "xs", *list(state)[4:]]
    body = Sub(tensors | state, nodes, list(state), results)
    return model_of(main, condition, body, *called)


def feeds(seed: int = 0, count: int = 2) -> list[list[Array]]:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    return [[t.random(rng, -1, 1) for t in (VECTOR, TABLE, TABLE)] for _ in range(count)]


def kinds(model: bytes) -> set[str]:
    return {node.op_type for node in export_onnx(model).graph.node}


def every_node(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and those of the bodies inside."""
    for node in graph.node:
        yield node
        for each in node.attribute:
            if each.HasField("g"):
                yield from every_node(each.g)
