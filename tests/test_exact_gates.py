"""HARD_SWISH of codes in exported files."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.test_presets import session
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import Op, TensorType

CODES = np.arange(-128, 128).astype(np.int8).reshape(1, 256)


@pytest.mark.parametrize("scales", [(0.0411, 0.0162), (0.05, 0.03), (0.1, 0.1), (0.02, 0.004)])
def test_files_for_onnx_runtime_make_the_codes_of_tflite(scales: tuple[float, float]) -> None:
    code = {"type": TensorType.INT8}
    x = T((1, 256), scale=scales[0], zero_point=-12, **code)
    y = T((1, 256), scale=scales[1], zero_point=-105, **code)
    content = one_op_model(Op.HARD_SWISH, [x], [y])
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, CODES)
    interpreter.invoke()
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    for destination in (None, "web", "triton", "onnxruntime"):
        model = export_onnx(content, for_=destination, check=True)
        (got,) = session(model).run(None, {"in0": CODES})
        np.testing.assert_array_equal(got, want)
    for destination in ("mobile", "qnn", "openvino"):
        kinds = [node.op_type for node in export_onnx(content, for_=destination).graph.node]
        assert kinds.count("HardSwish") == 1
