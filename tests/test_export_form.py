"""The form of an exported file: opset, 16-bit floats, layout, names, signatures and weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.test_cli import FLOAT, INT8, call, refusal
from tests.test_cli_run import two_signatures
from tflite_ort import ExportError, Interpreter, __version__, export_onnx, export_signatures
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    GeluOptions,
    ModelBuilder,
    MulOptions,
    Op,
    Padding,
    ReducerOptions,
    SplitOptions,
    TensorType,
)

OPSETS = range(17, 25)


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def results(model: onnx.ModelProto, *arrays: np.ndarray) -> list[np.ndarray]:
    ready = session(model)
    names = [each.name for each in ready.get_inputs()]
    return [np.asarray(each) for each in ready.run(None, dict(zip(names, arrays, strict=True)))]


def interpreted(content: bytes, *arrays: np.ndarray) -> list[np.ndarray]:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for each, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(each["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


# Opsets ------------------------------------------------------------------------------------------

X = np.random.default_rng(0).uniform(-2, 2, (2, 4, 6)).astype(np.float32)
AXES = T.constant(np.array([1], np.int32))
SPELLED = {
    "mean": (Op.MEAN, [T(X.shape), AXES], [T((2, 6))], ReducerOptions(), X),
    "largest": (Op.REDUCE_MAX, [T(X.shape), AXES], [T((2, 6))], ReducerOptions(), X),
    "product": (Op.REDUCE_PROD, [T(X.shape), AXES], [T((2, 6))], ReducerOptions(), X),
    "any": (
        Op.REDUCE_ANY,
        [T(X.shape, TensorType.BOOL), AXES],
        [T((2, 6), TensorType.BOOL)],
        ReducerOptions(),
        X > 1.5,
    ),
    "split": (
        Op.SPLIT,
        [T.constant(np.array(2, np.int32)), T(X.shape)],
        [T((2, 4, 3)), T((2, 4, 3))],
        SplitOptions(num_splits=2),
        X,
    ),
    "gelu": (Op.GELU, [T(X.shape)], [T(X.shape)], GeluOptions(), X),
    "gelu by tanh": (Op.GELU, [T(X.shape)], [T(X.shape)], GeluOptions(approximate=True), X),
}


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", SPELLED)
def test_a_node_is_spelled_as_the_opset_has_it(name: str, opset: int) -> None:
    op, inputs, outputs, options, x = SPELLED[name]
    content = one_op_model(op, inputs, outputs, options)
    model = export_onnx(content, opset=opset)
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == opset
    for found, expected in zip(results(model, x), interpreted(content, x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_what_an_opset_lacks_is_refused_by_name() -> None:
    wide = T((2,), TensorType.INT16, scale=0.5)
    content = one_op_model(Op.ADD, [wide, wide], [wide], AddOptions(), version=2)
    with pytest.raises(ExportError, match=r"ADD_0 .*INT16 needs opset 21"):
        export_onnx(content, opset=20)
    bits = T((2,), TensorType.INT32)
    content = one_op_model(Op.BITWISE_XOR, [bits, bits], [bits])
    with pytest.raises(ExportError, match="BitwiseXor needs opset 18"):
        export_onnx(content, opset=17)
    with pytest.raises(ValueError, match="from 17 to 24"):
        export_onnx(content, opset=16)


@pytest.mark.parametrize("opset", [17, 19, 24])
@pytest.mark.parametrize("path", [FLOAT, INT8])
def test_networks_of_every_opset_are_the_same(path: str, opset: int) -> None:
    kind = np.float32 if path == FLOAT else np.int8
    image = np.random.default_rng(1).uniform(0, 1, (1, 8, 8, 1)).astype(kind)
    model = export_onnx(path, opset=opset)
    onnx.checker.check_model(model)
    (found,), (expected,) = results(model, image), results(export_onnx(path), image)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# 16-bit floats -----------------------------------------------------------------------------------


def convolution() -> bytes:
    """relu(conv(image)) [1, 8, 8, 3] -> [1, 4, 4, 16]."""
    draw, builder = np.random.default_rng(2), ModelBuilder("a convolution")
    graph = builder.subgraph("main").tensor("image", (1, 8, 8, 3)).tensor("map", (1, 4, 4, 16))
    graph.constant("w", draw.normal(size=(16, 3, 3, 3)).astype(np.float32))
    graph.constant("b", draw.normal(size=16).astype(np.float32))
    relu = ActivationFunctionType.RELU
    options = Conv2DOptions(
        padding=Padding.SAME, stride_w=2, stride_h=2, fused_activation_function=relu
    )
    graph.operator(Op.CONV_2D, ["image", "w", "b"], ["map"], options)
    return graph.inputs("image").outputs("map") and builder.write()


IMAGE = np.random.default_rng(3).uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)


def test_float16_halves_weights_and_keeps_the_boundary() -> None:
    whole, half = export_onnx(convolution()), export_onnx(convolution(), float16=True)
    onnx.checker.check_model(half, full_check=True)
    types = {each.data_type for each in half.graph.initializer}
    assert onnx.TensorProto.FLOAT not in types and onnx.TensorProto.FLOAT16 in types
    for value in (*half.graph.input, *half.graph.output):
        assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    (found,), (expected,) = results(half, IMAGE), results(whole, IMAGE)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())
    assert np.any(found != expected)
    export_onnx(convolution(), float16=True, check=True)


@pytest.mark.parametrize("name", ["tf__lstm_seq_f32", "mlperf-tiny__vww_96_int8", "tf__gru_f32",
                                  "pypi-mediapipe__selfie_segmentation"])  # fmt: skip
def test_float16_networks(name: str) -> None:
    export_onnx(model_path(f"{name}.tflite"), float16=True, stateful=True, check=True)


LOADED = """
import sys
from tflite_ort import export_onnx
export_onnx(sys.argv[1], float16=True, check=True)
"""


@pytest.mark.parametrize("order", [(1, 0, 2), (1, 2, 0), (1, 2, 0, 3), (0, 2, 1), (2, 0, 1)])
def test_float16_products_of_what_is_transposed(order: tuple[int, ...], tmp_path: Path) -> None:
    """ONNX Runtime's FusedMatMul of 16-bit floats ends the process where a batch is moved."""
    rank, builder = len(order), ModelBuilder("a product of a transpose")
    graph = builder.subgraph("main").tensor("x", (2,) * rank).tensor("t", (2,) * rank)
    graph.tensor("y", (*(2,) * (rank - 1), 3)).constant("order", np.array(order, np.int32))
    graph.constant("w", np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32))
    graph.operator(Op.TRANSPOSE, ["x", "order"], ["t"])
    graph.operator(Op.BATCH_MATMUL, ["t", "w"], ["y"], BatchMatMulOptions())
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.inputs("x").outputs("y") and builder.write())
    subprocess.run([sys.executable, "-c", LOADED, str(path)], check=True, timeout=120)


@pytest.mark.parametrize(
    "name", ["litert__unidirectional_sequence_lstm_quantized", "tf__bilstm_i8"]
)
def test_float16_quantised_sequences_load(name: str) -> None:
    """Of weights that are codes, which a Cast makes floats."""
    program = LOADED.replace("check=True", "hybrid='dynamic'") + LOAD
    path = str(model_path(f"{name}.tflite"))
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=120)


LOAD = """
import onnxruntime
model = export_onnx(sys.argv[1], float16=True, batch="N", stateful=False).SerializeToString()
onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
"""


@pytest.mark.parametrize("op", [Op.UNSORTED_SEGMENT_SUM, Op.UNSORTED_SEGMENT_PROD, Op.SCATTER_ND])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_float16_of_scattered_elements(op: Op, dtype: type) -> None:
    """ONNX Runtime adds and multiplies no scattered 16-bit floats."""
    data, scatters = np.arange(6).reshape(3, 2).astype(dtype), op is Op.SCATTER_ND
    builder = ModelBuilder("scattered")
    kind = TensorType.FLOAT32 if dtype is np.float32 else TensorType.INT32
    graph = builder.subgraph("main").tensor("x", (3, 2), kind).tensor("y", (4, 2), kind)
    graph.constant("ids", np.array([[1], [3], [1]] if scatters else [1, 3, 1], np.int32))
    graph.constant("n", np.array([4, 2] if scatters else 4, np.int32))
    graph.operator(op, ["ids", "x", "n"] if scatters else ["x", "ids", "n"], ["y"])
    content = graph.inputs("x").outputs("y") and builder.write()
    (found,), (expected,) = (
        results(export_onnx(content, float16=True), data),
        interpreted(content, data),
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("signature", [(-1, 3, 3), (-1,), (-1, 4), (5, -1), (-1, -1)])
def test_a_shape_signature_that_is_not_of_the_shape_opens_sizes_at_most(
    signature: tuple[int, ...],
) -> None:
    builder = ModelBuilder("a signature of other sizes")
    graph = builder.subgraph("main").tensor("x", (2, 3), shape_signature=signature)
    graph.tensor("y", (2, 3)).operator(Op.NEG, ["x"], ["y"])
    content, image = graph.inputs("x").outputs("y") and builder.write(), np.ones((2, 3), np.float32)
    (found,) = results(export_onnx(content), image)
    np.testing.assert_array_equal(found, -image)


def test_float16_keeps_quantised_networks_as_they_are() -> None:
    image = np.random.default_rng(4).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    (found,), (expected,) = (
        results(export_onnx(INT8, float16=half), image) for half in (True, False)
    )
    assert np.abs(found.astype(int) - expected).max() <= 1


# Layout ------------------------------------------------------------------------------------------


def test_nchw_moves_no_data_around_a_convolution() -> None:
    model = export_onnx(convolution(), nchw=["image", "map"])
    assert "Transpose" not in {node.op_type for node in model.graph.node}
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim]
              for v in (*model.graph.input, *model.graph.output)]  # fmt: skip
    assert shapes == [[1, 3, 8, 8], [1, 16, 4, 4]]
    (found,) = results(model, IMAGE.transpose(0, 3, 1, 2))
    (expected,) = results(export_onnx(convolution()), IMAGE)
    np.testing.assert_array_equal(found.transpose(0, 2, 3, 1), expected)


def test_nchw_of_one_side_and_of_codes() -> None:
    model = export_onnx(INT8, nchw=["image"])
    codes = np.random.default_rng(5).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    (found,) = results(model, codes.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(found, results(export_onnx(INT8), codes)[0])


def test_nchw_refuses_what_has_no_channels() -> None:
    with pytest.raises(ExportError, match="has no channels"):
        export_onnx(FLOAT, nchw=["probabilities"])
    with pytest.raises(ExportError, match="did you mean 'image'"):
        export_onnx(FLOAT, nchw=["imag"])


def test_nchw_and_new_names_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "c.onnx"
    export_onnx(
        convolution(), path, nchw=["image"], rename={"image": "pixels"}, check=True,
        input_shapes={"image": (1, 6, 10, 3)},
    )  # fmt: skip
    (given,) = session(onnx.load(path)).get_inputs()
    assert (given.name, given.shape) == ("pixels", [1, 3, 6, 10])


# Names -------------------------------------------------------------------------------------------


def test_rename() -> None:
    model = export_onnx(convolution(), rename={"image": "map", "map": "image"})
    assert [each.name for each in model.graph.input] == ["map"]
    assert [each.name for each in model.graph.output] == ["image"]
    onnx.checker.check_model(model)
    np.testing.assert_array_equal(
        results(model, IMAGE)[0], results(export_onnx(convolution()), IMAGE)[0]
    )
    with pytest.raises(ExportError, match="several inputs or outputs would be called 'map'"):
        export_onnx(convolution(), rename={"image": "map"})


def test_state_is_renamed_too() -> None:
    path = model_path("tf__lstm_seq_f32.tflite")
    before, after = states(export_onnx(path, stateful=True))[0]
    renamed = export_onnx(path, stateful=True, rename={before: "h", after: "next_h"})
    assert states(renamed)[0] == ["h", "next_h"]
    onnx.checker.check_model(renamed)
    assert {"h", "next_h"} <= {v.name for v in (*renamed.graph.input, *renamed.graph.output)}


def states(model: onnx.ModelProto) -> list[list[str]]:
    found: list[list[str]] = json.loads(
        next(each.value for each in model.metadata_props if each.key == "tflite.state")
    )
    return found


def test_a_file_says_what_wrote_it() -> None:
    model = export_onnx(convolution())
    assert (model.producer_name, model.producer_version) == ("tflite-ort", __version__)
    assert model.doc_string == "a convolution"


# Weights and files -------------------------------------------------------------------------------


def test_external_data_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    export_onnx(convolution(), path, external_data=True)
    assert (tmp_path / "m.onnx.data").stat().st_size >= 16 * 27 * 4
    ready = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(
        ready.run(None, {"image": IMAGE})[0], results(export_onnx(convolution()), IMAGE)[0]
    )


# Signatures --------------------------------------------------------------------------------------


def test_a_signature_is_exported_with_its_names(tmp_path: Path) -> None:
    model = export_onnx(two_signatures(), signature="both")
    assert [each.name for each in model.graph.input] == ["left", "right"]
    total, difference = results(model, np.float32([1, 2]), np.float32([10, 20]))
    assert (total.tolist(), difference.tolist()) == ([11, 22], [-9, -18])
    files = export_signatures(two_signatures(), tmp_path / "all")
    assert {key: path.name for key, path in files.items()} == {
        "twice": "twice.onnx",
        "both": "both.onnx",
    }
    assert all(path.exists() for path in files.values())
    with pytest.raises(ExportError, match="no signatures"):
        export_signatures(convolution(), tmp_path)


# The command line --------------------------------------------------------------------------------


def test_the_verb_takes_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "c.tflite").write_bytes(convolution())
    out = tmp_path / "o.onnx"
    result = call("export", tmp_path / "c.tflite", out, "--opset", "18", "--nchw", "image",
                  "--rename", "image=x", "--external-data", "--check", "--json")  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["opset"] == 18 and record["inputs"] == ["x"]
    assert record["bytes"] == sum(os.path.getsize(each) for each in (out, f"{out}.data"))
    assert "checked" in record
    for option in ("--nchw", "imge"), ("--shape", "imge=N,4"):
        assert "did you mean 'image'" in refusal("export", tmp_path / "c.tflite", out, *option)
    assert "OLD=NEW" in refusal("export", FLOAT, out, "--rename", "x", code=2)
    assert "--decode" in refusal("export", FLOAT, out, "--decode", "--float16", code=2)


def test_the_verb_writes_to_standard_output(tmp_path: Path) -> None:
    result = call("export", FLOAT, "-")
    model = onnx.load_model_from_string(result.stdout_bytes)
    assert [each.name for each in model.graph.input] == ["image"]
    assert not (tmp_path / "-").exists()


def test_the_verb_writes_all_signatures(tmp_path: Path) -> None:
    (tmp_path / "two.tflite").write_bytes(two_signatures())
    result = call("export", tmp_path / "two.tflite", "--all-signatures", "--check")
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in (tmp_path / "two").iterdir())
    assert names == ["both.onnx", "twice.onnx"]
    result = call("export", tmp_path / "two.tflite", tmp_path / "one.onnx", "--signature", "twice")
    assert [each.name for each in onnx.load(tmp_path / "one.onnx").graph.input] == ["x"]


def test_the_runtime_says_nothing_of_a_plain_export(tmp_path: Path) -> None:
    path = tmp_path / "c.onnx"
    export_onnx(convolution(), path)
    code = f"import onnxruntime; onnxruntime.InferenceSession({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert "W:onnxruntime" not in done.stderr


@pytest.mark.parametrize("op", [Op.ADD, Op.MUL])
def test_an_exact_export_has_the_codes_of_the_interpreter(op: Op) -> None:
    scales = [(0.0011, "a"), (0.00073, "b"), (0.0019, "y")]
    tensors = {name: T((4, 64), TensorType.INT16, scale) for scale, name in scales}
    options = {Op.ADD: AddOptions(pot_scale_int16=False), Op.MUL: MulOptions()}[op]
    content = graph_model(tensors, [Node(op, ["a", "b"], ["y"], options, version=4)], ["y"])
    rng = np.random.default_rng(4)
    feeds = {name: rng.integers(-32767, 32768, (4, 64)).astype(np.int16) for name in "ab"}
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], feeds[detail["name"]])
    interpreter.invoke()
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    proto = export_onnx(content, exact=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    assert np.array_equal(session.run(None, feeds)[0], want)
    assert len(proto.graph.node) > len(export_onnx(content).graph.node)
