"""Recurrent layers that are a WHILE over one sample, as Keras writes them, over a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.one_op import Node, T
from tests.ops.test_control_flow_loop_cells import COUNT, FLAG, Body, gru_after, lstm, rnn
from tests.subgraph_models import Sub, model_of
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import (
    AddOptions,
    ConcatenationOptions,
    GatherOptions,
    Op,
    ReshapeOptions,
    SoftmaxOptions,
    StridedSliceOptions,
    TensorType,
    WhileOptions,
)

STEPS, INPUTS, UNITS, SAMPLES = 5, 4, 3, 6
Make = Callable[[Body, Op], dict[str, str]]


def ints(*numbers: int) -> T:
    return T.constant(np.array(numbers, np.int32))


def model(make: Make, *, whole: bool, first: float = 0.0, mixed: bool = False) -> bytes:
    """A layer over x [1, STEPS, INPUTS] that gives its last output, or all of them.

    Args:
        first: what the states begin with.
        mixed: a softmax over the rows of the state, which are those of the samples.
    """
    body = Body(np.random.default_rng(1), 1, INPUTS, UNITS)
    states = make(body, Op.TANH)
    listed = states["h"]
    if mixed:
        turned, soft = body.made(Op.RESHAPE, listed), "soft"
        body.nodes[-1] = Node(Op.RESHAPE, [listed, "column"], [turned], ReshapeOptions())
        body.tensors |= {turned: T((UNITS, 1)), soft: T((UNITS, 1)), "column": ints(UNITS, 1)}
        body.nodes.append(Node(Op.SOFTMAX, [turned], [soft], SoftmaxOptions(beta=1.0)))
        listed = soft
    rows = STEPS if whole else 1
    row, table, xs = T((1, 1, UNITS)), T((rows, 1, UNITS)), T((STEPS, 1, INPUTS))
    state = {"i": COUNT, "list": table} | dict.fromkeys(states, T((1, UNITS))) | {"xs": xs}
    begun = {"list": T.constant(np.zeros((rows, 1, UNITS), np.float32))}
    begun |= {name: T.constant(np.full((1, UNITS), first, np.float32)) for name in states}
    made = {f"o{name}": t for name, t in state.items()}
    order = {"turned": T((1, STEPS, UNITS)), "order": ints(1, 0, 2), "y": T((1, UNITS))}
    ends = {"from": ints(-1, 0, 0), "to": ints(0, 1, UNITS), "by": ints(1, 1, 1)}
    last = StridedSliceOptions(begin_mask=6, end_mask=6, shrink_axis_mask=1)
    main = Sub(
        {"i": T.constant(np.int32(0)), "x": T((1, STEPS, INPUTS)), "shape": ints(STEPS, 1, INPUTS)}
        | begun
        | {"xs": xs}
        | made
        | order
        | ends,
        [
            Node(Op.RESHAPE, ["x", "shape"], ["xs"], ReshapeOptions()),
            Node(Op.WHILE, list(state), list(made), WhileOptions(1, 2)),
            Node(Op.TRANSPOSE, ["olist", "order"], ["turned"])
            if whole
            else Node(Op.STRIDED_SLICE, ["olist", "from", "to", "by"], ["y"], last),
        ],
        ["x"],
        ["turned" if whole else "y"],
    )
    tensors = state | {"one": T.constant(np.int32(1)), "j": COUNT, "x": T((1, INPUTS))}
    tensors |= {"row": ints(1, 1, UNITS), "line": row, "new": table}
    nodes = [
        Node(Op.ADD, ["i", "one"], ["j"], AddOptions()),
        Node(Op.GATHER, ["xs", "i"], ["x"], GatherOptions()),
        *body.nodes,
        Node(Op.RESHAPE, [listed, "row"], ["line"], ReshapeOptions()),
    ]
    if whole:
        more, writing = writer(table)
        tensors, nodes = tensors | more, [*nodes, *writing]
    written = "new" if whole else "line"
    inner = Sub(tensors | body.tensors, nodes, list(state), ["j", written, *states.values(), "xs"])
    bound = {"n": T.constant(np.int32(STEPS)), "t": FLAG}
    test = Sub(state | bound, [Node(Op.LESS, ["i", "n"], ["t"])], list(state), ["t"])
    return model_of(main, test, inner)


def writer(table: T) -> tuple[dict[str, T], list[Node]]:
    """The tensors and nodes that write `line` into row i of a list."""
    tensors = {"once": ints(1), "rest": ints(-1, -1), "all": ints(-1, -1, -1)}
    tensors |= {"zeros": ints(0, 0, 0), "two": ints(0, 0), "left": table, "right": table}
    sizes = {"at": 1, "after": 1, "size": 3, "begin": 3}
    tensors |= {name: T((n,), TensorType.INT32) for name, n in sizes.items()}
    joined = ConcatenationOptions(axis=0)
    return tensors, [
        Node(Op.RESHAPE, ["i", "once"], ["at"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["at", "rest"], ["size"], joined),
        Node(Op.SLICE, ["list", "zeros", "size"], ["left"]),
        Node(Op.RESHAPE, ["j", "once"], ["after"], ReshapeOptions()),
        Node(Op.CONCATENATION, ["after", "two"], ["begin"], joined),
        Node(Op.SLICE, ["list", "begin", "all"], ["right"]),
        Node(Op.CONCATENATION, ["left", "line", "right"], ["new"], joined),
    ]


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from all_nodes(attribute.g)


def one_by_one(content: bytes, x: np.ndarray) -> np.ndarray:
    interpreter = Interpreter(model_content=content, providers=[])
    interpreter.allocate_tensors()
    results = []
    for row in x:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], row[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return np.concatenate(results)


@pytest.mark.parametrize("whole", [False, True], ids=["last", "all"])
@pytest.mark.parametrize("first", [0.0, 0.5])
@pytest.mark.parametrize("make", [rnn, gru_after, lstm])
@pytest.mark.parametrize("batch", ["N", SAMPLES])
def test_a_layer_over_a_batch_is_one_node(
    make: Make, first: float, whole: bool, batch: int | str
) -> None:
    content = model(make, whole=whole, first=first)
    proto = export_onnx(content, batch=batch)
    kinds = Counter(node.op_type for node in all_nodes(proto.graph))
    assert kinds["GRU"] + kinds["LSTM"] + kinds["RNN"] == 1
    assert not kinds["Loop"] + kinds["Scan"] + kinds["If"]
    assert kinds.total() <= (10 if first == 0 else 18)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x = np.random.default_rng(2).normal(size=(SAMPLES, STEPS, INPUTS)).astype(np.float32)
    (got,) = session.run(None, {"x": x})
    want = one_by_one(content, x)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=1e-6)
    if batch == "N":  # ONNX Runtime ends the process in a GRU or an LSTM of no rows
        (nothing,) = session.run(None, {"x": x[:0]})
        assert nothing.shape == (0, *want.shape[1:])


def test_rows_that_are_mixed_run_one_by_one() -> None:
    """The proof refuses them."""
    content = model(gru_after, whole=False, mixed=True)
    proto = export_onnx(content, batch="N")
    x = np.random.default_rng(3).normal(size=(SAMPLES, STEPS, INPUTS)).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": x})[0], one_by_one(content, x), atol=1e-6)
