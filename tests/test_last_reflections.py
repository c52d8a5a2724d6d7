"""Reflections in files for PyTorch, which reflects the last axes alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.test_presets import drawn, session
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import MirrorPadMode, MirrorPadOptions, Op

PADS = {
    "middle": ((2, 6, 3), [[0, 0], [4, 2], [0, 0]], 2),
    "first": ((4, 6, 3), [[1, 3], [0, 0], [0, 0]], 2),
    "last": ((2, 6, 3), [[0, 0], [0, 0], [1, 2]], 0),
    "both": ((4, 6, 3), [[2, 1], [3, 2], [0, 0]], 0),
    "row": ((1, 4, 6, 3), [[0, 0], [1, 2], [0, 0], [0, 0]], 2),
}


@pytest.mark.parametrize("name", PADS)
def test_reflected_axes_are_the_last_ones(name: str) -> None:
    shape, pads, moves = PADS[name]
    result = tuple(map(int, np.array(shape) + np.sum(pads, axis=1)))
    inputs = [T(shape), T.constant(np.array(pads, np.int32))]
    options = MirrorPadOptions(mode=MirrorPadMode.REFLECT)
    content = one_op_model(Op.MIRROR_PAD, inputs, [T(result)], options)
    model = export_onnx(content, for_="torch", check=True)
    assert sum(node.op_type == "Transpose" for node in model.graph.node) == moves
    interpreter = Interpreter(model_content=content)
    given = drawn(interpreter, 4)
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(session(model).run(None, given)[0], want)
