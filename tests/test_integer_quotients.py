"""FLOOR_DIV of integers in files that others than ONNX Runtime read."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import ArgMaxOptions, Op, TensorType

INT32 = TensorType.INT32


@pytest.mark.parametrize("divisor", [[3], [-7], [1, 48, 2**31 - 1, 5, 3, 2, 7], None])
def test_integers_of_files_are_divided_without_64_bit_floats(divisor: list[int] | None) -> None:
    ends = np.iinfo(np.int32)
    x = np.array([ends.min, ends.min + 1, -7, 0, 7, ends.max - 1, ends.max], np.int32)
    by = np.array([2, -3, 5, 7, -7, 4, 1] if divisor is None else divisor, np.int32)
    second = T(by.shape, INT32) if divisor is None else T.constant(by)
    model = one_op_model(Op.FLOOR_DIV, [T((7,), INT32), second], [T((7,), INT32)])
    proto = export_onnx(model)
    made = onnx.shape_inference.infer_shapes(proto).graph.value_info
    assert onnx.TensorProto.DOUBLE not in {each.type.tensor_type.elem_type for each in made}
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    feeds = [x, by][: len(session.get_inputs())]
    names = [each.name for each in session.get_inputs()]
    (got,) = session.run(None, dict(zip(names, feeds, strict=True)))
    np.testing.assert_array_equal(got, litert(model, feeds)[0])


def test_an_index_is_divided_by_one_node() -> None:
    tensors = {
        "x": T((2, 9)),
        "axis": T.constant(np.int32(1)),
        "best": T((2,), INT32),
        "width": T.constant(np.int32(3)),
        "row": T((2,), INT32),
    }
    nodes = [
        Node(Op.ARG_MAX, ["x", "axis"], ["best"], ArgMaxOptions(output_type=INT32)),
        Node(Op.FLOOR_DIV, ["best", "width"], ["row"]),
    ]
    proto = export_onnx(graph_model(tensors, nodes, ["row"]))
    assert [node.op_type for node in proto.graph.node] == ["ArgMax", "Cast", "Div"]
