"""Inputs and tables that all samples share, beside what differs between them."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.batching.single_runs import assert_batched
from tests.one_op import Node, T, graph_model
from tflite_ort import export_onnx
from tflite_ort.schema import ConcatenationOptions, GatherOptions, Op, TensorType


@pytest.mark.parametrize("size", [3, "N"])
def test_a_computed_value_that_all_samples_share_is_joined_to_their_rows(size: int | str) -> None:
    tensors = {"x": T((1, 4)), "k": T((1, 4)), "size": T((1, 4)), "out": T((1, 8))}
    nodes = [
        Node(Op.ABS, ["k"], ["size"]),
        Node(Op.CONCATENATION, ["x", "size"], ["out"], ConcatenationOptions(axis=1)),
    ]
    proto = export_onnx(graph_model(tensors, nodes, ["out", "size"]), input_shapes={"x": (size, 4)})
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x, k = np.arange(12, dtype=np.float32).reshape(3, 4), -np.ones((1, 4), np.float32)
    joined, shared = session.run(None, {"x": x, "k": k})
    np.testing.assert_array_equal(joined, np.concatenate([x, np.ones_like(x)], axis=1))
    np.testing.assert_array_equal(shared, -k)


def test_batch_dims_counted_from_the_end_are_those_of_a_sample() -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    tensors = {"at": T((2,), TensorType.INT32), "table": T.constant(table), "out": T((2, 3))}
    options = GatherOptions(axis=0, batch_dims=-1)
    node = Node(Op.GATHER, ["table", "at"], ["out"], options)
    samples = [[np.array(each, np.int32)] for each in ([0, 3], [2, 1], [1, 1])]
    assert_batched(graph_model(tensors, [node], ["out"]), samples)
