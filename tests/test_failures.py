"""What a user is told when an operator fails in ONNX Runtime: what its numpy kernel would say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.one_op import Array, Node, T, graph_model, one_op_model, ours
from tflite_ort import DelegateError
from tflite_ort.schema import CastOptions, GatherOptions, Op, TensorType, UnpackOptions

FLOAT32, INT32 = TensorType.FLOAT32, TensorType.INT32
TABLE = np.zeros((3, 4), np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "output", "feeds", "message"),
    [
        (Op.GATHER, [(3, 4), (2,)], (2, 4), (TABLE, ints(1, 5)), "1..5 in an axis of 3"),
        (Op.GATHER, [(3, 4), (2,)], (2, 4), (TABLE, ints(-2, 1)), "-2..1 in an axis of 3"),
        (Op.GATHER_ND, [(3, 4), (1, 2)], (1,), (TABLE, ints(0, 5)[None]), "5..5 in an axis of 4"),
        (Op.RESHAPE, [(3, 4), (2,)], (6, 2), (TABLE, ints(5, 2)), r"12 elements .* \(5, 2\)"),
        (
            Op.SLICE,
            [(3, 4), (2,), (2,)],
            (2, 4),
            (TABLE, ints(2, 0), ints(2, 4)),
            r"begin \(2, 0\) with size \(2, 4\) leaves shape \(3, 4\)",
        ),
    ],
)
def test_the_numbers_that_do_not_agree(
    op: Op,
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    feeds: Sequence[Array],
    message: str,
) -> None:
    data, *lists = inputs
    tensors = [T(data), *(T(shape, INT32) for shape in lists)]
    model = one_op_model(op, tensors, [T(output)], GatherOptions() if op is Op.GATHER else None)
    with pytest.raises(
        DelegateError, match=rf"^{op.name}_0, which reads .*, failed to invoke: .*{message}.* ONNX"
    ):
        ours(model, feeds)


def chain(*tail: Node) -> bytes:
    """Positions are computed as floats before they are used."""
    tensors = {"at": T((2,)), "to": T((2,), INT32), "table": T((3, 4)), "rows": T((2, 4))}
    tensors |= {name: T((4,)) for node in tail for name in node.outputs}
    nodes = [
        Node(Op.CAST, ["at"], ["to"], CastOptions(FLOAT32, INT32)),
        Node(Op.GATHER, ["table", "to"], ["rows"], GatherOptions()),
        *tail,
    ]
    return graph_model(tensors, nodes, [*nodes[-1].outputs])


def test_values_are_those_that_reach_the_operator() -> None:
    model = chain(Node(Op.UNPACK, ["rows"], ["a", "b"], UnpackOptions(num=2)))
    message = r"^GATHER_1, which reads 'table' and 'to', failed to invoke: .* 0..99 in an axis of 3"
    with pytest.raises(DelegateError, match=message):
        ours(model, [np.array([0, 99], np.float32), TABLE])


def test_a_failure_that_numpy_does_not_have_names_operator_and_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tflite_ort.plan.failures.run_kernel", lambda *_: None)
    message = r"^GATHER_1, which makes 'rows', failed to invoke. ONNX Runtime failed: .*idx=99"
    with pytest.raises(DelegateError, match=message):
        ours(chain(), [np.array([0, 99], np.float32), TABLE])
