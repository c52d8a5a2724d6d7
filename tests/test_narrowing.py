"""Exports write constants in the narrowest type that holds them; ONNX Runtime folds the rest."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from benchmarks.export_sizes import sizes
from tests.lstm_models import Lstm
from tests.models import model_path, model_paths
from tests.one_op import T, one_op_model
from tflite_ort import Interpreter, export_onnx
from tflite_ort.opmap.cells.lstm_integer import gate_tables
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.exponentials import powers_of, steps_of
from tflite_ort.opmap.onnx_graph.writing.gate_tables import Gate
from tflite_ort.opmap.onnx_graph.writing.interpolated import lines_of
from tflite_ort.opmap.onnx_graph.writing.narrowing import narrow_constants, narrowed
from tflite_ort.opmap.onnx_graph.writing.ramps import ramps_of
from tflite_ort.schema import (
    FullyConnectedOptions,
    GeluOptions,
    LeakyReluOptions,
    ModelBuilder,
    Op,
    QuantizationParameters,
    TensorType,
)
from tflite_ort.schema.arithmetic.code_functions import leaky_relu_codes, tanh_int16
from tflite_ort.schema.arithmetic.fixed_point import saturate
from tflite_ort.schema.arithmetic.softmax_tables import softmax_powers

Array = npt.NDArray[Any]
F = ir.DataType.FLOAT
RNG = np.random.default_rng(0)
CODES = RNG.integers(-127, 128, (24, 32)).astype(np.int8)
SCALES = RNG.uniform(0.001, 1, 32).astype(np.float32)
FLOATS = RNG.normal(0, 1, (24, 32)).astype(np.float32)
HALVES = FLOATS.astype(np.float16)


@pytest.mark.parametrize(
    ("array", "codes", "scales"),
    [
        (CODES.astype(np.float32), np.int8, None),
        (np.arange(2000, dtype=np.float32), np.float16, None),
        (np.arange(0, 20000, 7, dtype=np.int64), np.int16, None),
        (HALVES.astype(np.float32), np.float16, None),
        (CODES * SCALES, np.int8, (1, 32)),
        (CODES.T * SCALES[:, None], np.int8, (32, 1)),
        (CODES * np.float32(0.013), np.int8, ()),
        (CODES.clip(-7, 7) * SCALES, np.int8, (1, 32)),
        (np.append(CODES * 0, CODES, axis=1) * np.float32(0.5), np.float16, None),
    ],
)
def test_the_narrow_form_is_exactly_the_array(
    array: Array, codes: type, scales: tuple[int, ...] | None
) -> None:
    narrow = narrowed(np.ascontiguousarray(array))
    assert narrow is not None
    assert narrow.codes.dtype == codes
    assert (narrow.scales is None) is (scales is None)
    whole = narrow.codes.astype(array.dtype)
    back = whole if narrow.scales is None else whole * narrow.scales
    assert back.tobytes() == np.ascontiguousarray(array).tobytes()
    if scales:
        assert narrow.scales is not None
        assert narrow.scales.shape == scales


def stacked_model() -> tuple[ir.Model, dict[str, Array]]:
    """Constants of which some differ in their first size alone, each an output with x added."""
    x = ir.Value("x", dtype=F, shape=())
    rows = (1, 3, 40)
    floats = {f"half{n}": HALVES[:1, :12].astype(np.float32).repeat(n * 20, 0) for n in rows}
    codes = {f"codes{n}": CODES[:1].repeat(n * 10, 0) * SCALES[: n * 10, None] for n in (1, 2, 3)}
    rest = {
        "flat": HALVES.astype(np.float32).reshape(-1),
        "other": HALVES[:, :30].astype(np.float32),
    }
    arrays = {**floats, **codes, **rest}
    graph = ir.Graph([x], [], [], name="main")
    for name, array in arrays.items():
        made = ir.Value(f"{name}_made", dtype=F, shape=array.shape)
        held = graph.add_initializer(name, np.ascontiguousarray(array))
        graph.nodes.append(ir.Node("Add", [held, x], [made]))
        graph.outputs.append(made)
    return ir.Model(graph, opset_imports={"": 21}), arrays


def test_constants_of_rows_of_one_shape_share_a_cast(tmp_path: Path) -> None:
    model, arrays = stacked_model()
    narrow_constants(model)
    kinds = Counter(node.op_type for node in model.graph.nodes)
    assert kinds == {"Cast": 4, "Mul": 1, "Split": 2, "Add": len(arrays)}
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    content = serialized(model)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content, options)
    found = session.run(None, {"x": np.zeros((), np.float32)})
    for got, want in zip(found, arrays.values(), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
    left = {node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node}
    assert left == {"Add"}  # all else is computed at load


def test_what_a_scan_reads_is_not_stacked() -> None:
    """Its body has constants of its own."""
    weights = [HALVES[:16, :16].astype(np.float32) * n for n in (1, 2, 4)]
    held = [
        ir.Value(f"w{n}", dtype=F, const_value=ir.Tensor(each)) for n, each in enumerate(weights)
    ]
    zeros = ir.Value("zeros", dtype=F, const_value=ir.Tensor(np.zeros(16, np.float32)))
    x = ir.Value("x", dtype=F, shape=(3, 16))
    outputs = [ir.Value(f"y{n}", dtype=F, shape=(16,)) for n in range(3)]
    nodes = [
        ir.Node(
            "Scan", [zeros, x], [y], attributes={"body": summed(w, y.name), "num_scan_inputs": 1}
        )
        for w, y in zip(held, outputs, strict=True)
    ]
    graph = ir.Graph([x], outputs, nodes, initializers=[*held, zeros], name="main")
    narrow_constants(ir.Model(graph, opset_imports={"": 21}))
    assert [node.op_type for node in graph.nodes] == ["Scan"] * 3
    assert Counter(node.op_type for node in graph.all_nodes())["Cast"] == 3


@pytest.mark.parametrize(
    "array",
    [
        FLOATS,
        FLOATS.reshape(-1),
        FLOATS.reshape(-1, 2),
        np.array([0.0, -0.0, 1.0] * 400, np.float32),  # an integer has no -0.0
        np.array([np.nan, np.inf, 1e30] * 400, np.float32),
        np.where(CODES == 5, np.float32(np.inf), CODES * SCALES),
        np.array([2**40, 5] * 400, np.int64),
    ],
)
def test_what_has_no_narrow_form_stays(array: Array) -> None:
    narrow = narrowed(array)
    if narrow is not None:  # a 16-bit float has -0.0, NaN and infinity
        assert narrow.codes.dtype == np.float16
        assert narrow.codes.astype(np.float32).tobytes() == array.tobytes()


def test_a_matrix_of_a_transform_is_soon_given_up() -> None:
    """Its first row has codes, the others have none. An export took a minute for one of 1023."""
    angles = np.outer(np.arange(1500), np.arange(1500)) * (2 * np.pi / 1500)
    matrix, started = np.cos(angles).astype(np.float32), time.process_time()
    assert narrowed(matrix) is None
    assert time.process_time() - started < 10


def test_a_table_of_16_bit_codes_is_its_points() -> None:
    """GELU, as TFLite tabulates it: 513 points and straight lines."""
    tensors = [T((2, 300), TensorType.INT16, scale) for scale in (0.0003, 0.00025)]
    content = one_op_model(Op.GELU, tensors[:1], tensors[1:], GeluOptions(), 3)
    proto = export_onnx(content)
    assert proto.ByteSize() < 6000
    x = np.random.default_rng(5).integers(-32768, 32768, (2, 300)).astype(np.int16)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    assert np.array_equal(session.run(None, {"in0": x})[0], want)


def test_lines_are_exactly_the_table() -> None:
    codes = np.arange(-32768, 32768)
    points = RNG.integers(-32768, 32768, 513)
    slopes = np.diff(points.clip(-12000, 12000))
    index, step = (codes + 32768) >> 7, codes & 127
    table = points.clip(-12000, 12000)[index] + ((slopes[index] * step + 64) >> 7)
    lines = lines_of(table.astype(np.int16))
    assert lines is not None
    assert lines.points.tolist() == points.clip(-12000, 12000)[:-1].tolist()
    assert lines_of(np.rint(np.sin(codes / 50) * 30000).astype(np.int16)) is None


@pytest.mark.parametrize("joined", [True, False])
def test_a_file_has_no_slopes_where_segments_end_at_points(joined: bool) -> None:
    codes = np.arange(-32768, 32768)
    points = RNG.integers(-12000, 12000, 513)
    slopes = np.diff(points) - (0 if joined else (np.arange(512) % 7 == 3))
    index, step = (codes + 32768) >> 7, codes & 127
    table = (points[index] + ((slopes[index] * step + 64) >> 7)).astype(np.int16)
    size, made = made_at_load(table)
    assert np.array_equal(made, table)
    assert (size < 2000) is joined and size < 3000


def made_at_load(table: Array) -> tuple[int, Array]:
    """Bytes of a file that has `table` in the form that exports write, and the table that ONNX
    Runtime makes of it."""
    place = ir.Value("place", dtype=ir.DataType.INT64, shape=("n",))
    graph = ir.Graph([place], [], [], name="main")
    held = graph.add_initializer("table", table)
    graph.outputs.append(ir.Value("found", dtype=held.dtype, shape=("n",)))
    graph.nodes.append(ir.Node("Gather", [held, place], graph.outputs))
    model = ir.Model(graph, opset_imports={"": 21})
    narrow_constants(model)
    content = serialized(model)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content)
    return len(content), session.run(None, {"place": np.arange(len(table))})[0]


GATES = [Gate(True, bits) for bits in range(5)] + [Gate(False, 3), Gate(False, 3, rest=True)]


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("gate", GATES)
def test_a_table_of_a_16_bit_function_is_its_arithmetic(gate: Gate, ascending: bool) -> None:
    table = gate._replace(ascending=ascending).table()
    size, made = made_at_load(table)
    assert size < 4000
    np.testing.assert_array_equal(made, table, strict=True)


def test_tables_of_gates_share_their_arithmetic() -> None:
    size, made = made_at_load(gate_tables())
    assert size < 5000
    np.testing.assert_array_equal(made, gate_tables(), strict=True)
    assert gate_tables() is gate_tables()
    with pytest.raises(ValueError, match="read-only"):
        gate_tables()[0] = 1
    other = gate_tables().copy()
    other[70000] += 1
    size, made = made_at_load(other)
    assert size > other.nbytes
    np.testing.assert_array_equal(made, other, strict=True)


@pytest.mark.parametrize("alpha", [0.01, 0.2, 1.5, -0.7, 0.0])
@pytest.mark.parametrize(("scale", "unit"), [(0.003, 0.0021), (0.0011, 0.0075)])
def test_a_table_of_leaky_relu_is_two_ramps(alpha: float, scale: float, unit: float) -> None:
    codes = np.arange(-32768, 32768, dtype=np.int32)
    scales = np.float32(scale), np.float32(alpha), np.float32(unit)
    table = saturate(leaky_relu_codes(codes, *scales), np.int16).astype(np.int16)
    size, made = made_at_load(table)
    assert size < 1500
    np.testing.assert_array_equal(made, table, strict=True)


@pytest.mark.parametrize("scale", [3e-8, 1e-5, 10 / 65535, 0.000731, 0.0021, 0.013, 0.4])
def test_a_table_of_powers_is_a_multiplier(scale: float) -> None:
    """SOFTMAX of 16-bit codes, with shifts to the left, to the right and with none."""
    table = softmax_powers(scale)
    size, made = made_at_load(table)
    assert size < 5000
    np.testing.assert_array_equal(made, table, strict=True)


def test_what_is_no_table_of_powers() -> None:
    table = softmax_powers(0.0021).copy()
    table[60000] += 1
    assert powers_of(table) is None


@pytest.mark.parametrize("turned", [1, -1])
def test_a_table_of_small_steps_is_these(turned: int) -> None:
    table = (turned * tanh_int16(np.arange(-32768, 32768), np.float32(0.00021))).astype(np.int16)
    size, made = made_at_load(table)
    assert size < 34000
    np.testing.assert_array_equal(made, table, strict=True)
    table[40000] += 20
    assert steps_of(table) is None


@pytest.mark.parametrize("slope", [0.0, 1 / 95, -0.3, 1.7])
def test_a_ramp_that_ends_at_the_limits(slope: float) -> None:
    codes = np.arange(-32768, 32768)
    table = np.floor(codes * slope + 40.5).clip(0, 255).astype(np.uint8)
    size, made = made_at_load(table)
    assert size < 1500
    np.testing.assert_array_equal(made, table, strict=True)
    table[codes == 3] ^= 1
    assert ramps_of(table) is None


def test_names_of_a_file_are_not_taken_again() -> None:
    tensors = [T((2, 300), TensorType.INT16, scale) for scale in (0.0003, 0.00025)]
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    for name, tensor in zip(("c/0", "c/i32768"), tensors, strict=True):
        tensor.declare(graph, name)
    graph.operator(Op.LEAKY_RELU, ["c/0"], ["c/i32768"], LeakyReluOptions(alpha=0.1), version=2)
    graph.inputs("c/0").outputs("c/i32768")
    proto = export_onnx(builder.write())
    onnx.checker.check_model(proto, full_check=True)
    assert proto.ByteSize() < 2500
    assert [each.name for each in proto.graph.output] == ["c/i32768"]


def hybrid_model() -> bytes:
    """FULLY_CONNECTED of floats and 8-bit weights."""
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (4, 64)).tensor("y", (4, 48))
    codes = np.random.default_rng(1).integers(-127, 128, (48, 64)).astype(np.int8)
    scales = np.random.default_rng(2).uniform(0.01, 0.1, 48).astype(np.float32)
    quantization = QuantizationParameters.affine(scales.tolist(), [0] * 48, 0)
    main.constant("w", codes, TensorType.INT8, quantization)
    options = FullyConnectedOptions()
    main.operator(Op.FULLY_CONNECTED, ["x", "w"], ["y"], options, version=9)
    main.inputs("x").outputs("y")
    return builder.write()


def test_weights_of_8_bits_stay_so_and_run_as_floats(tmp_path: Path) -> None:
    content = hybrid_model()
    proto = export_onnx(content)
    kinds = {each.data_type for each in proto.graph.initializer if len(each.dims) == 2}
    assert onnx.TensorProto.INT8 in kinds
    assert proto.ByteSize() < 1.5 * len(content)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    nodes = [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node]
    assert nodes == ["Gemm"]
    x = np.random.default_rng(3).normal(0, 1, (4, 64)).astype(np.float32)
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert np.array_equal(session.run(None, {"x": x})[0], want)


# Largest of these exports, in parts of the file: what the networks have of each kind of weights.
BARS = {
    "npm-mediapipe-holistic__pose_landmark_lite.tflite": 1.06,
    "tflite-support__mobilenet_v2_1.0_224_quant.tflite": 1.02,
    "tflite-support__yamnet_wavin_quantized_mel_relu6.tflite": 0.98,  # with the waves of its DFT
    "pypi-basic-pitch__nmp.tflite": 0.87,
    "tflm__dtln_noise_suppression.tflite": 1.13,
    "mlperf-tiny__kws_ref_model.tflite": 0.71,
    "tf__lstm_seq_f32.tflite": 1.11,  # an LSTM, and a Scan of the same weights for its clip
    "tf__bilstm_f32.tflite": 1.38,
    "tf__bilstm_i8.tflite": 1.42,  # states that a file without them takes 1.24 for
    "tflm__trained_lstm_int8.tflite": 1.31,
}


@pytest.mark.parametrize("name", BARS)
def test_exports_are_hardly_larger_than_the_file(name: str) -> None:
    (size,) = sizes([model_path(name)])
    assert size.ratio <= BARS[name]


def test_no_export_of_a_small_file_is_far_larger() -> None:
    """Of all files, those of which names would be the largest part. Each value says its shape."""
    small = [path for path in model_paths() if path.stat().st_size < 24_000]
    assert len(small) > 40
    for size in sizes(small):
        assert size.ratio <= 3.33, size


NEWER = Path(os.environ.get("TFLITE_ORT_MODELS2") or Path(__file__).parents[2] / "shared/models2")


def test_exports_of_newer_networks_are_hardly_larger_than_the_file() -> None:
    model_paths()  # without the folders the test is skipped, or fails in CI
    names = ["vit_dyn8", "distilbert_dyn8", "stable_diffusion_dyn8", "mobilenet_v2_int8"]
    names += ["bert_tiny_a16w8", "deeplabv3_int8"]
    for size in sizes([NEWER / f"{name}.tflite" for name in names]):
        assert size.ratio <= 1.01, size


def computed_from_outside(graph: onnx.GraphProto, outer: frozenset[str] = frozenset()) -> set[str]:
    """What the bodies of Scans read that nodes outside of them compute."""
    made = {name for node in graph.node for name in node.output}
    found: set[str] = set()
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                beyond = (outer | made) if node.op_type == "Scan" else frozenset[str]()
                inside = computed_from_outside(attribute.g, beyond)
                reads = {name for each in attribute.g.node for name in each.input}
                found |= inside | (reads & beyond)
    return found


@pytest.mark.parametrize("form", [{}, {"peephole": True}, {"layer_norm": True}], ids=str)
def test_what_one_scan_reads_is_made_in_it(form: dict[str, bool]) -> None:
    """Readers that count values from outside as inputs of a Scan refuse few files."""
    content = Lstm(arithmetic="8x8_16", features=32, cells=32, **form).model()
    proto = export_onnx(content, stateful=True)
    assert {"Scan", "Cast"} <= {node.op_type for node in proto.graph.node}
    assert not computed_from_outside(proto.graph)
    onnx.checker.check_model(proto, full_check=True)


def test_a_file_for_openvino_has_no_computed_value_outside_of_scans() -> None:
    """OpenVINO counts such values as inputs of the Scan, and refuses the file."""
    path = model_path("tf__bilstm_i8.tflite")
    assert computed_from_outside(export_onnx(path, stateful=True).graph)
    assert not computed_from_outside(export_onnx(path, stateful=True, for_="openvino").graph)


def test_a_constant_of_two_scans_is_made_once_outside() -> None:
    weights = RNG.integers(-9, 9, (16, 16)).astype(np.float32)
    x, zeros = RNG.normal(0, 1, (3, 16)).astype(np.float32), np.zeros(16, np.float32)
    held = {"w": weights, "zeros": zeros}
    constants = {n: ir.Value(n, dtype=F, const_value=ir.Tensor(a)) for n, a in held.items()}
    given = ir.Value("x", dtype=F, shape=x.shape)
    shapes = {"one": (16,), "two": (16,), "product": (3, 16)}
    outputs = [ir.Value(name, dtype=F, shape=shape) for name, shape in shapes.items()]
    nodes = [
        ir.Node(
            "Scan",
            [constants["zeros"], given],
            [output],
            attributes={"body": summed(constants["w"], output.name), "num_scan_inputs": 1},
        )
        for output in outputs[:2]
    ]
    nodes.append(ir.Node("MatMul", [given, constants["w"]], [outputs[2]]))
    graph = ir.Graph([given], outputs, nodes, initializers=constants.values(), name="main")
    model = ir.Model(graph, opset_imports={"": 21})
    before = onnx.load_from_string(serialized(model))
    narrow_constants(model)
    proto = onnx.load_from_string(serialized(model))
    assert computed_from_outside(proto.graph) == {"w"}
    assert [node.op_type for node in proto.graph.node].count("Cast") == 1
    assert proto.ByteSize() < before.ByteSize()
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    want = [x.sum(axis=0) @ weights] * 2 + [x @ weights]
    for got, expected in zip(session.run(None, {"x": x}), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


def summed(weights: ir.Value, name: str) -> ir.Graph:
    """The body of a Scan: a row times `weights`, added to the state."""
    state, row, product, new = (ir.Value(f"{name}/{part}", dtype=F) for part in "abcd")
    nodes = [ir.Node("MatMul", [row, weights], [product]), ir.Node("Add", [state, product], [new])]
    return ir.Graph([state, row], [new], nodes, name=f"{name}/body")
