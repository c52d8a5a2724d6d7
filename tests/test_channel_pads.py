"""Channels that are added to pictures, in files for runtimes that pad along the sides alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.test_presets import drawn, session
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import Op, PadOptions

PADS = {
    "after": ([[0, 0], [0, 0], [0, 0], [0, 3]], "Concat"),
    "before": ([[0, 0], [0, 0], [0, 0], [2, 0]], "Concat"),
    "both": ([[0, 0], [0, 0], [0, 0], [1, 2]], "Concat"),
    "sides": ([[0, 0], [1, 2], [0, 1], [0, 0]], "Pad"),
    "all": ([[0, 0], [1, 0], [0, 0], [0, 3]], "Pad"),
}


@pytest.mark.parametrize("name", PADS)
@pytest.mark.parametrize("number", [None, -2.5])
def test_added_channels_are_joined(name: str, number: float | None) -> None:
    pads, wanted = PADS[name]
    inputs = [T((1, 3, 5, 4)), T.constant(np.array(pads, np.int32))]
    shape = np.array([1, 3, 5, 4]) + np.sum(pads, axis=1)
    op = Op.PAD
    if number is not None:
        op = Op.PADV2
        inputs.append(T.constant(np.array([number], np.float32)))
    content = one_op_model(op, inputs, [T(tuple(map(int, shape)))], PadOptions())
    model = export_onnx(content, for_="ncnn", check=True)
    kinds = {node.op_type for node in model.graph.node}
    assert wanted in kinds
    assert not kinds & ({"Pad", "Concat"} - {wanted})
    interpreter = Interpreter(model_content=content)
    given = drawn(interpreter, 3)
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    first = {key: np.moveaxis(value, -1, 1) for key, value in given.items()}
    (got,) = session(model).run(None, first)
    np.testing.assert_array_equal(np.moveaxis(got, 1, -1), want)
