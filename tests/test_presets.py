"""Exports for a destination: the form of each, what is refused, and quantized models as floats."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from benchmarks.consumers import CONSUMERS, RECORD, details, summary
from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.test_cli import INT8, call, refusal
from tflite_ort import ExportError, ExportWarning, Interpreter, export_onnx
from tflite_ort.command.presets_page import with_table
from tflite_ort.export.presets import FLOATS, PRESETS, ROUNDED, SIGNED, columns
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BridgeError,
    CastOptions,
    ConcatenationOptions,
    Conv2DOptions,
    FloorDivOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    Pool2DOptions,
    ReshapeOptions,
    TensorType,
    TransposeOptions,
)

Array = npt.NDArray[Any]

CODES = {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}
DESTINATIONS = [name for name in PRESETS if name != "tensorrt"]  # the digits are not symmetric


def session(model: onnx.ModelProto | str | Path) -> onnxruntime.InferenceSession:
    """Exact on every CPU."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def drawn(interpreter: Interpreter, seed: int) -> dict[str, Array]:
    """Random inputs, which the interpreter has run on."""
    rng, given = np.random.default_rng(seed), {}
    interpreter.allocate_tensors()
    for each in interpreter.get_input_details():
        dtype = np.dtype(each["dtype"])
        if dtype.kind == "f":
            array = rng.normal(0, 1, each["shape"]).astype(dtype)
        else:
            limits = np.iinfo(dtype)
            array = rng.integers(limits.min, limits.max + 1, each["shape"]).astype(dtype)
        interpreter.set_tensor(each["index"], array)
        given[each["name"]] = array
    interpreter.invoke()
    return given


def code_readers(model: onnx.ModelProto) -> Counter[str]:
    """The nodes that read or make 8-bit codes which are no constants."""
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {each.name: each.type.tensor_type.elem_type for each in inferred.graph.value_info}
    found = Counter[str]()
    for node in model.graph.node:
        if any(types.get(name) in CODES for name in (*node.input, *node.output)):
            found[node.op_type] += 1
    return found


# A network of all that moves codes, with a result of a narrower range than its parts.
S8 = {"type": TensorType.INT8, "scale": 0.05, "zero_point": -7}
NARROW = {"type": TensorType.INT8, "scale": 0.004, "zero_point": -128}


def small_network() -> bytes:
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (4, 3, 3, 4)).astype(np.int8)
    tensors = {
        "x": T((1, 4, 4, 4), **S8),
        "w": T.constant(weights, TensorType.INT8, scale=0.01, zero_point=0),
        "b": T.constant(np.arange(4, dtype=np.int32), TensorType.INT32, scale=0.0005),
        "c": T((1, 4, 4, 4), **S8),
        "k": T((1, 4, 4, 8), **S8),
        "m": T((1, 2, 2, 8), **S8),
        "order": T.constant(np.array([0, 3, 1, 2], np.int32)),
        "t": T((1, 8, 2, 2), **S8),
        "size": T.constant(np.array([1, 32], np.int32)),
        "r": T((1, 32), **S8),
        "v": T.constant(
            rng.integers(-127, 128, (3, 32)).astype(np.int8), TensorType.INT8, scale=0.02
        ),
        "y": T((1, 3), **NARROW),
    }
    conv = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    pool = Pool2DOptions(
        padding=Padding.VALID, filter_width=2, filter_height=2, stride_w=2, stride_h=2
    )
    nodes = [
        Node(Op.CONV_2D, ["x", "w", "b"], ["c"], conv),
        Node(Op.CONCATENATION, ["c", "x"], ["k"], ConcatenationOptions(axis=3)),
        Node(Op.MAX_POOL_2D, ["k"], ["m"], pool),
        Node(Op.TRANSPOSE, ["m", "order"], ["t"], TransposeOptions()),
        Node(Op.RESHAPE, ["t", "size"], ["r"], ReshapeOptions()),
        Node(Op.FULLY_CONNECTED, ["r", "v"], ["y"], FullyConnectedOptions()),
    ]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("name", DESTINATIONS)
def test_every_destination_gets_the_form_of_its_row(name: str) -> None:
    row, model = PRESETS[name], export_onnx(INT8, for_=name, check=True)
    assert model.opset_import[0].version == row.opset
    read = code_readers(model)
    if row.quantization == SIGNED:
        assert set(read) == {"QuantizeLinear", "DequantizeLinear"}
    elif row.quantization in (FLOATS, ROUNDED):
        assert not read
        kinds = {each.type.tensor_type.elem_type for each in model.graph.output}
        assert kinds == {onnx.TensorProto.FLOAT}
    if row.plain:
        constants = {each.name for each in model.graph.initializer}
        computed = [node for node in model.graph.node if set(node.input) <= constants]
        assert not [node for node in computed if node.op_type in ("Cast", "Mul")]
    assert not {node.op_type for node in model.graph.node} & set(row.never)


@pytest.mark.parametrize("seed", range(3))
def test_signed_files_are_exact(seed: int) -> None:
    content = small_network()
    interpreter = Interpreter(model_content=content)
    given = drawn(interpreter, seed)
    model = export_onnx(content, for_="mobile")
    (got,) = session(model).run(None, given)
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(got, want)
    read = code_readers(model)
    assert set(read) == {"QuantizeLinear", "DequantizeLinear"}


def test_signed_files_have_the_zero_points_of_the_model() -> None:
    model = export_onnx(small_network(), for_="mobile")
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    zeros = {
        (constants[node.input[2]].dtype.name, int(constants[node.input[2]].reshape(-1)[0]))
        for node in model.graph.node
        if node.op_type in ("QuantizeLinear", "DequantizeLinear")
    }
    assert zeros == {("int8", -7), ("int8", -128), ("int8", 0), ("int32", 0)}


def test_codes_for_an_npu_are_unsigned_between_pairs() -> None:
    model = export_onnx(small_network(), for_="qnn", check=True)
    assert set(code_readers(model)) == {"QuantizeLinear", "DequantizeLinear"}
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    codes = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    assert {constants[node.input[2]].dtype.name for node in codes} >= {"uint8"}


@pytest.mark.parametrize(
    "name", ["small", "mlperf-tiny__vww_96_int8", "mlperf-tiny__kws_ref_model"]
)
def test_one_tensor_has_one_scale_and_zero_point(name: str) -> None:
    """Whoever writes codes and whoever reads them say the same of them, those of means too."""
    content = small_network() if name == "small" else model_path(f"{name}.tflite").read_bytes()
    model = export_onnx(content, for_="qnn", check=True)
    made = {node.output[0]: node for node in model.graph.node}
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    pairs = 0
    for node in model.graph.node:
        before = made.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if before is not None:
            pairs += 1
            for one, other in zip(before.input[1:], node.input[1:], strict=True):
                np.testing.assert_array_equal(constants[one], constants[other])
    assert pairs > 5


def test_models_of_uint8_stay_uint8() -> None:
    side = {"type": TensorType.UINT8, "scale": 0.05, "zero_point": 7}
    content = one_op_model(Op.ADD, [T((2, 3), **side)] * 2, [T((2, 3), **side)], AddOptions())
    model = export_onnx(content, for_="mobile", check=True)
    zeros = {onnx.numpy_helper.to_array(each).dtype.name for each in model.graph.initializer}
    assert "int8" not in zeros


def test_mobile_files_convert_and_run(tmp_path: Path) -> None:
    """As phones get them: both forms of `.ort` file give what the interpreter gives."""
    (tmp_path / "models").mkdir()
    (tmp_path / "small.tflite").write_bytes(small_network())
    sources = {"digits": Path(INT8), "small": tmp_path / "small.tflite"}
    for name, source in sources.items():
        export_onnx(source, tmp_path / "models" / f"{name}.onnx", for_="mobile")
    tool = "onnxruntime.tools.convert_onnx_models_to_ort"
    subprocess.run([sys.executable, "-m", tool, tmp_path / "models"], check=True, timeout=120)
    for name, source in sources.items():
        interpreter = Interpreter(source)
        given = drawn(interpreter, 0)
        want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        for suffix in (".ort", ".with_runtime_opt.ort"):
            path = tmp_path / "models" / f"{name}{suffix}"
            (got,) = session(path).run(None, given)
            np.testing.assert_array_equal(got, want)


def test_sixteen_bit_codes_get_their_opset() -> None:
    side = {"type": TensorType.INT16, "scale": 0.001}
    content = one_op_model(Op.ADD, [T((2, 3), **side)] * 2, [T((2, 3), **side)], AddOptions())
    assert export_onnx(content, for_="qnn", check=True).opset_import[0].version == 21


# Refusals ----------------------------------------------------------------------------------------


def test_what_is_not_read_is_refused_with_a_way_out() -> None:
    with pytest.raises(ExportError, match=r"for tensorrt .*CONV_2D_0.*zero point.*--dequantize"):
        export_onnx(INT8, for_="tensorrt")
    model = export_onnx(INT8, for_="tensorrt", dequantize=True, float_io=True, check=True)
    assert not {"QuantizeLinear", "DequantizeLinear"} & {n.op_type for n in model.graph.node}


def test_open_sizes_are_refused_where_sizes_are_fixed() -> None:
    with pytest.raises(ExportError, match=r"fixed sizes.*'image'.*--batch with a number"):
        export_onnx(INT8, for_="qnn", batch="N")
    shape = export_onnx(INT8, for_="qnn", batch=4).graph.input[0].type.tensor_type.shape
    assert shape.dim[0].dim_value == 4


def test_sizes_that_the_file_leaves_open_are_fixed_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    x = T((1, 3), shape_signature=(-1, 3))
    content = one_op_model(Op.RELU, [x], [x])
    inputs = {name: export_onnx(content, for_=name).graph.input[0] for name in ("web", "ncnn")}
    open_sizes = {n: v.type.tensor_type.shape.dim[0].dim_param for n, v in inputs.items()}
    assert open_sizes["web"]
    assert not open_sizes["ncnn"]
    assert not recwarn.list


def test_a_destination_that_is_not_there_is_said() -> None:
    with pytest.raises(ValueError, match=r"for_ must be one of .*did you mean 'mobile'"):
        export_onnx(INT8, for_="mobil")
    assert "did you mean 'mobile'" in refusal("export", INT8, "x.onnx", "--for", "mobil", code=2)


def test_options_come_before_the_row() -> None:
    assert export_onnx(INT8, for_="torch", opset=18).opset_import[0].version == 18


def test_pictures_for_ncnn_have_their_channels_first() -> None:
    sizes = export_onnx(small_network(), for_="ncnn").graph.input[0].type.tensor_type.shape.dim
    assert [size.dim_value for size in sizes] == [1, 4, 4, 4]
    x = T((1, 2, 3, 4))
    made = export_onnx(one_op_model(Op.RELU, [x], [x]), for_="ncnn", check=True)
    sizes = made.graph.input[0].type.tensor_type.shape.dim
    assert [size.dim_value for size in sizes] == [1, 4, 2, 3]


def test_slopes_of_places_are_a_sum_for_opencv() -> None:
    """OpenCV takes all slopes for those of channels, which come first."""
    x, rng = T((1, 4, 4, 2)), np.random.default_rng(0)
    for shape in ((4, 4, 2), (1, 1, 2)):
        slopes = T.constant(rng.uniform(0.1, 2, shape).astype(np.float32))
        model = export_onnx(one_op_model(Op.PRELU, [x, slopes], [x]), for_="opencv", check=True)
        assert "PRelu" not in {node.op_type for node in model.graph.node}
    model = export_onnx(model_path("pypi-mediapipe__face_landmark.tflite"), for_="opencv")
    assert "PRelu" in {node.op_type for node in model.graph.node}


def test_transposed_convolutions_are_cut_evenly() -> None:
    """TFLite's SAME takes off more at the end, which PyTorch and OpenCV 4 cannot."""
    path = model_path("tflite2onnx__transposeconv-samepad-stride2.float32.tflite")
    (plain,) = (n for n in export_onnx(path).graph.node if n.op_type == "ConvTranspose")
    (pads,) = (each.ints for each in plain.attribute if each.name == "pads")
    assert list(pads[:2]) != list(pads[2:])
    model = export_onnx(path, for_="torch", check=True)
    (node,) = (node for node in model.graph.node if node.op_type == "ConvTranspose")
    assert "pads" not in {each.name for each in node.attribute}


# Floats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_dequantized_models_give_the_numbers_of_the_codes(seed: int) -> None:
    """Within what rounding between three layers adds up to; what saturates is clipped."""
    content = small_network()
    interpreter = Interpreter(model_content=content)
    (x,) = drawn(interpreter, seed).values()
    codes = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    unit, most = np.float32(0.004), np.float32(0.004) * np.float32(255)
    want = (codes.astype(np.float32) + 128) * unit
    real = (x.astype(np.float32) + 7) * np.float32(0.05)
    model = export_onnx(content, dequantize=True, float_io=True, check=True)
    (got,) = session(model).run(None, {"x": real})
    assert want.max() == most, "the sample is to reach the end of its range"
    np.testing.assert_allclose(got, want, atol=0.12)
    assert got.min() >= 0
    assert got.max() <= most


def test_dequantized_models_keep_their_types_outside() -> None:
    model = export_onnx(small_network(), dequantize=True, check=True)
    kinds = {each.type.tensor_type.elem_type for each in (*model.graph.input, *model.graph.output)}
    assert kinds == {onnx.TensorProto.INT8}
    constants = {each.name for each in model.graph.initializer}
    read = [node.input[0] for node in model.graph.node if node.op_type == "DequantizeLinear"]
    assert not constants.intersection(read)


def test_float_ends_of_a_quantized_model() -> None:
    model = export_onnx(small_network(), float_io=True, check=True)
    kinds = {each.type.tensor_type.elem_type for each in (*model.graph.input, *model.graph.output)}
    assert kinds == {onnx.TensorProto.FLOAT}
    assert [each.name for each in model.graph.input] == ["x"]
    assert Counter(node.op_type for node in model.graph.node)["QuantizeLinear"] == 3


def test_a_fused_activation_and_a_range_are_one_clip() -> None:
    side = {"type": TensorType.INT8, "scale": 0.05, "zero_point": 0}
    options = AddOptions(fused_activation_function=ActivationFunctionType.RELU)
    content = one_op_model(Op.ADD, [T((2, 3), **side)] * 2, [T((2, 3), **side)], options)
    model = export_onnx(content, for_="coreml", check=True)
    assert Counter(node.op_type for node in model.graph.node)["Relu"] == 0
    (got,) = session(model).run(
        None, {i.name: np.full((2, 3), 4, np.float32) for i in model.graph.input}
    )
    np.testing.assert_allclose(got, np.float32(0.05) * 127)


def test_operators_on_codes_still_have_codes() -> None:
    """CAST makes numbers of the codes themselves."""
    side = T((2, 3), TensorType.INT8, scale=0.5, zero_point=3)
    options = CastOptions(in_data_type=TensorType.INT8, out_data_type=TensorType.FLOAT32)
    content = one_op_model(Op.CAST, [side], [T((2, 3))], options)
    model = export_onnx(content, dequantize=True, float_io=True, check=True)
    (name,) = (each.name for each in model.graph.input)
    (got,) = session(model).run(None, {name: np.full((2, 3), 2, np.float32)})
    np.testing.assert_array_equal(got, np.full((2, 3), 7, np.float32))


def test_scales_that_do_not_fit_are_a_typed_error() -> None:
    """A bias of three numbers beside two channels."""
    x = T((1, 4), TensorType.INT8, scale=0.1, zero_point=0)
    weights = T.constant(np.ones((2, 4), np.int8), TensorType.INT8, scale=[0.1, 0.2], axis=0)
    bias = T.constant(np.arange(3, dtype=np.int32))
    y = T((1, 2), TensorType.INT8, scale=0.1, zero_point=0)
    content = one_op_model(Op.FULLY_CONNECTED, [x, weights, bias], [y], FullyConnectedOptions())
    with pytest.raises(BridgeError, match="FULLY_CONNECTED_0"):
        export_onnx(content, dequantize=True)


@pytest.mark.parametrize("name", ["mlperf-tiny__vww_96_int8", "mlperf-tiny__kws_ref_model"])
def test_real_models_as_floats(name: str) -> None:
    interpreter = Interpreter(model_path(f"{name}.tflite"))
    given = drawn(interpreter, 0)
    detail = interpreter.get_output_details()[0]
    scale, zero = detail["quantization"]
    want = (interpreter.get_tensor(detail["index"]).astype(np.float32) - zero) * scale
    model = export_onnx(model_path(f"{name}.tflite"), dequantize=True, check=True)
    (got,) = session(model).run(None, given)
    got = (got.astype(np.float32) - zero) * scale
    np.testing.assert_allclose(got, want, atol=3 * scale)


# What is told ------------------------------------------------------------------------------------


def test_the_help_and_the_page_have_every_destination() -> None:
    said = call("export", "--for", "help").output
    assert all(name in said for name in PRESETS)
    page = (Path(__file__).parents[1] / "docs" / "exporting.md").read_text(encoding="utf-8")
    assert with_table(page) == page, "run python -m tflite_ort.command.presets_page"
    assert columns("qnn")["open sizes"] == "fixed"


def test_the_page_of_consumers_is_that_of_the_record() -> None:
    results = json.loads(RECORD.read_text(encoding="utf-8"))["results"]
    page = (Path(__file__).parents[1] / "docs" / "consumers.md").read_text(encoding="utf-8")
    fresh = "run python -m benchmarks.consumers --page docs/consumers.md"
    assert summary(results) in page, fresh
    assert details(results) in page, fresh
    assert set(results) <= set(CONSUMERS)
    assert set(CONSUMERS.values()) <= set(PRESETS)


def test_runtimes_without_64_bit_floats_get_32_bits() -> None:
    x = T((2, 8))
    options = FloorDivOptions()
    content = one_op_model(Op.FLOOR_DIV, [x, x], [x], options)
    assert "DOUBLE" in _kinds(export_onnx(content))
    with pytest.warns(ExportWarning, match="tract has no 64-bit floats: FLOOR_DIV_0 compute"):
        model = export_onnx(content, for_="tract", check=True)
    assert "DOUBLE" not in _kinds(model)


def _kinds(model: onnx.ModelProto) -> set[str]:
    """The types of all values."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    kinds = {each.type.tensor_type.elem_type for each in inferred.value_info}
    kinds |= {each.data_type for each in inferred.initializer}
    return {onnx.TensorProto.DataType.Name(kind) for kind in kinds}
