"""LiteRT 2's Python API on ONNX Runtime: beside LiteRT's own, and what it has not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.models import model_path
from tests.one_op import T, one_op_model
from tests.test_cli import FLOAT, INT8
from tests.test_cli_run import two_signatures
from tflite_ort import install_as
from tflite_ort.compiled_model import (
    CompiledModel,
    CompiledModelError,
    CpuKernelMode,
    CpuOptions,
    Environment,
    EnvironmentOptions,
    HardwareAccelerator,
    Options,
    TensorBuffer,
)
from tflite_ort.providers import available
from tflite_ort.providers.provider import Device
from tflite_ort.schema import ModelBuilder, Op, SubOptions, TensorType


def outputs_of(model: Any, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """What each signature gives for random inputs, by its key and the output's name."""
    found, draw = {}, np.random.default_rng(seed)
    for number, (key, sides) in enumerate(model.get_signature_list().items()):
        inputs, outputs = model.create_input_buffers(number), model.create_output_buffers(number)
        details = model.get_input_tensor_details(key)
        for name, buffer in zip(sides["inputs"], inputs, strict=True):
            each = details[name]
            drawn = draw.uniform(-1, 1, each["shape"]) * (1 if each["dtype"] == "float32" else 100)
            buffer.write(drawn.astype(each["dtype"]).reshape(-1))
        model.run_by_index(number, inputs, outputs)
        details = model.get_output_tensor_details(key)
        for name, buffer in zip(sides["outputs"], outputs, strict=True):
            count = int(np.prod(details[name]["shape"]))
            found[f"{key}/{name}"] = buffer.read(count, details[name]["dtype"])
    return found


@pytest.mark.parametrize(
    "name",
    ["litert__multi_signature_def", "mediapipe__test_two_signature_keys_model",
     "mlperf-tiny__vww_96_float", "mlperf-tiny__vww_96_int8"],
)  # fmt: skip
def test_a_model_tells_and_gives_what_litert_does(name: str) -> None:
    theirs_module = pytest.importorskip("ai_edge_litert.compiled_model")
    path = str(model_path(f"{name}.tflite"))
    ours, theirs = CompiledModel.from_file(path), theirs_module.CompiledModel.from_file(path)
    assert ours.get_signature_list() == theirs.get_signature_list()
    assert ours.get_num_signatures() == theirs.get_num_signatures()
    for number, key in enumerate(ours.get_signature_list()):
        assert ours.get_signature_by_index(number) == theirs.get_signature_by_index(number)
        assert ours.get_signature_index(key) == theirs.get_signature_index(key) == number
        assert ours.get_input_tensor_details(key) == theirs.get_input_tensor_details(key)
        assert ours.get_output_tensor_details(key) == theirs.get_output_tensor_details(key)
    assert ours.get_input_buffer_requirements(0) == theirs.get_input_buffer_requirements(0)
    assert ours.get_output_buffer_requirements(0) == theirs.get_output_buffer_requirements(0)
    assert ours.is_fully_accelerated()  # LiteRT's answer is about XNNPACK
    found, expected = outputs_of(ours), outputs_of(theirs)
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        near = 1 if array.dtype.kind in "iu" else 1e-5 * float(np.abs(array).max() or 1)
        np.testing.assert_allclose(found[key], array, rtol=0, atol=near)


# Buffers -----------------------------------------------------------------------------------------


def test_a_run_between_the_models_own_buffers_copies_nothing() -> None:
    with CompiledModel.from_buffer(Path(FLOAT).read_bytes()) as model:
        (image,), (answer,) = model.create_input_buffers(0), model.create_output_buffers(0)
        image.write(np.ones((1, 8, 8, 1), np.float32))
        before = answer.array
        model.run_by_index(0, [image], [answer])
        assert answer.array is before
        own = model._interpreter._subgraph(0)
        index = own.declared.outputs[0]
        assert np.shares_memory(answer.array, own.buffer(index))
        assert np.isclose(answer.read(10, np.float32).sum(), 1)


def test_buffers_are_apart_from_each_other() -> None:
    model = CompiledModel.from_file(FLOAT)
    (first,), (second,) = model.create_input_buffers(0), model.create_input_buffers(0)
    (one,), (other,) = model.create_output_buffers(0), model.create_output_buffers(0)
    draw = np.random.default_rng(1)
    left, right = (draw.uniform(0, 1, (1, 8, 8, 1)).astype(np.float32) for _ in range(2))
    first.write(left)
    second.write(right)
    model.run_by_index(0, [first], [one])
    kept = one.read(10, np.float32)
    model.run_by_index(0, [second], [other])
    np.testing.assert_array_equal(one.read(10, np.float32), kept)
    np.testing.assert_array_equal(first.read(64, np.float32), left.reshape(-1))
    model.run_by_index(0, [first], [other])
    np.testing.assert_array_equal(other.read(10, np.float32), kept)


def test_host_memory_is_read_and_written_in_place() -> None:
    pixels, scores = np.zeros((1, 8, 8, 1), np.float32), np.zeros((1, 10), np.float32)
    image, answer = map(TensorBuffer.create_from_host_memory, (pixels, scores))
    pixels[...] = 0.5
    CompiledModel.from_file(FLOAT).run_by_index(0, [image], [answer])
    assert np.isclose(scores.sum(), 1)
    np.testing.assert_array_equal(answer.read(10, np.float32), scores[0])


def test_buffers_check_what_they_take() -> None:
    buffer = TensorBuffer.create_from_host_memory(np.zeros(4, np.float32))
    buffer.write(np.float32([1, 2]))
    assert buffer.read(4, np.float32).tolist() == [1, 2, 0, 0]
    assert buffer.get_tensor_details() == {"dtype": "float32", "shape": [4]}
    with pytest.raises(RuntimeError, match="larger"):
        buffer.write(np.zeros(5, np.float32))
    with pytest.raises(RuntimeError, match="larger"):
        buffer.read(5, np.float32)
    with pytest.raises(ValueError, match="must be a NumPy array"):
        buffer.write([1.0])  # type: ignore[arg-type]
    for dtype in (ml_dtypes.int4, ml_dtypes.uint2, object, "no type"):
        with pytest.raises(ValueError, match="Unsupported dtype"):
            buffer.read(1, dtype)
    with pytest.raises(ValueError, match="C-contiguous"):
        TensorBuffer.create_from_host_memory(np.zeros((4, 4), np.float32).T)
    buffer.destroy()
    with pytest.raises(ValueError, match="destroyed"):
        buffer.read(1, np.float32)


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int64]
)
def test_buffers_of_other_types(dtype: type) -> None:
    values = np.array([1, -2, 4], dtype)
    buffer = TensorBuffer.create_from_host_memory(values)
    assert buffer.get_tensor_details()["dtype"] == np.dtype(dtype).name
    np.testing.assert_array_equal(buffer.read(3, dtype), values)


# Calls -------------------------------------------------------------------------------------------


def test_run_by_name_and_async() -> None:
    model = CompiledModel.from_buffer(two_signatures())
    inputs = {name: model.create_input_buffer_by_name("both", name) for name in ("left", "right")}
    outputs = {name: model.create_output_buffer_by_name("both", name)
               for name in ("sum", "difference")}  # fmt: skip
    inputs["left"].write(np.float32([1, 2]))
    inputs["right"].write(np.float32([10, 20]))
    model.run_by_name("both", inputs, outputs)
    assert outputs["sum"].read(2, np.float32).tolist() == [11, 22]
    inputs["right"].write(np.float32([0, 0]))
    model.run_async("both", inputs, outputs).result(10)
    assert outputs["difference"].read(2, np.float32).tolist() == [1, 2]
    number = model.get_signature_index("twice")
    first, second = model.create_input_buffers(number), model.create_output_buffers(number)
    first[0].write(np.float32([3, 4]))
    model.run_async(number, first, second).result(10)
    assert second[0].read(2, np.float32).tolist() == [6, 8]
    with pytest.raises(CompiledModelError, match="number of inputs:1 vs buffers:0"):
        model.run_async(number, [], second).result(10)
    with pytest.raises(RuntimeError, match="Input tensor not found: right"):
        model.run_by_name("both", {"left": inputs["left"]}, outputs)
    model.close()


def test_tensors_without_names_are_told_apart() -> None:
    tensor = T((2,))
    model = one_op_model(Op.SUB, [tensor, tensor], [tensor], SubOptions())
    for name in (b"in0", b"in1", b"out0"):  # their lengths stand before them
        place = model.index(name)
        model = model[: place - 4] + bytes(4 + len(name)) + model[place + len(name) :]
    theirs_module = pytest.importorskip("ai_edge_litert.compiled_model")
    found = []
    for kind in (CompiledModel, theirs_module.CompiledModel):
        compiled = kind.from_buffer(model)
        assert list(compiled.get_signature_list().values()) == [
            {"inputs": ["", ""], "outputs": [""]}
        ]
        inputs, (answer,) = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
        for buffer, values in zip(inputs, ([0, 9], [5, 9]), strict=True):
            buffer.write(np.float32(values))
        compiled.run_by_index(0, inputs, [answer])
        found.append(answer.read(2, np.float32).tolist())
    assert found == [[-5, 0]] * 2
    compiled = CompiledModel.from_buffer(model)
    ((key, _),) = compiled.get_signature_list().items()
    with pytest.raises(CompiledModelError, match=r"Input tensors \[0, 1\] have the same name: ''"):
        compiled.create_input_buffer_by_name(key, "")


def test_one_tensor_under_two_names() -> None:
    model = ModelBuilder()
    graph = model.subgraph("main")
    for name in "xyz":
        graph.tensor(name, (2,), TensorType.FLOAT32)
    graph.operator(Op.NEG, ["x"], ["y"], None).operator(Op.ABS, ["x"], ["z"], None)
    graph.inputs("x").outputs("y", "z")
    graph.signature("s", {"x": "x"}, {"first": "y", "second": "y", "third": "z"})
    compiled = CompiledModel.from_buffer(model.write())
    inputs, outputs = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    inputs[0].write(np.float32([1, 2]))
    compiled.run_by_index(0, inputs, outputs)
    names = compiled.get_signature_by_index(0)["outputs"]
    read = {
        name: each.read(2, np.float32).tolist() for name, each in zip(names, outputs, strict=True)
    }
    assert read == {"first": [-1, -2], "second": [-1, -2], "third": [1, 2]}


def test_bytes_of_any_shape_are_taken() -> None:
    tensor = T((2,))
    compiled = CompiledModel.from_buffer(one_op_model(Op.NEG, [tensor], [tensor]))
    column = np.float32([1, -2]).view(np.uint8).reshape(8, 1)
    (answer,) = compiled.create_output_buffers(0)
    compiled.run_by_index(0, [TensorBuffer.create_from_host_memory(column)], [answer])
    assert answer.read((2, 1), np.float32).tolist() == [[-1], [2]]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="negative"):
        answer.read(-1, np.float32)


def test_resizing() -> None:
    tensor = T((1, 2), shape_signature=(-1, 2))
    model = CompiledModel.from_buffer(one_op_model(Op.NEG, [tensor], [tensor]))
    (key,) = model.get_signature_list()
    model.resize_input_tensor(0, [3, 2])
    assert model.get_output_tensor_details(key)["out0"]["shape"] == [3, 2]
    assert model.get_input_buffer_requirements(0)["buffer_size"] == 24
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(np.arange(6, dtype=np.float32))
    model.run_by_index(0, inputs, outputs)
    assert outputs[0].read(6, np.float32).tolist() == [0, -1, -2, -3, -4, -5]
    with pytest.raises(RuntimeError, match="strict"):
        model.resize_input_tensor(0, [3, 4])
    model.resize_input_tensor_by_name(key, "in0", [1, 4], strict=False)
    with pytest.raises(RuntimeError, match="the buffer has 24 bytes"):
        model.run_by_index(0, inputs, outputs)
    with pytest.raises(ValueError, match="Unknown input"):
        model.resize_input_tensor_by_name(key, "no", [1, 4])
    with pytest.raises(ValueError, match="Unknown signature"):
        model.resize_input_tensor_by_name("no", "in0", [1, 4])


def test_names_and_numbers_that_are_not_there() -> None:
    model = CompiledModel.from_file(FLOAT)
    for call in (
        lambda: model.get_signature_by_index(1),
        lambda: model.create_input_buffers(-1),
        lambda: model.get_input_tensor_details("no"),
        lambda: model.get_input_buffer_requirements(1),
        lambda: model.create_input_buffer_by_name("no", "image"),
        lambda: CompiledModel.from_file("/nowhere.tflite"),
        lambda: CompiledModel.from_buffer(b"nothing"),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert model.get_signature_index("no") == -1


# Hardware ----------------------------------------------------------------------------------------


def test_hardware_is_chosen_from_the_providers_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(RuntimeError, match="has a NPU here"):
        CompiledModel.from_file(FLOAT, hardware_accel=HardwareAccelerator.NPU)
    both = HardwareAccelerator.GPU | HardwareAccelerator.CPU
    assert CompiledModel.from_file(FLOAT, hardware_accel=both).is_fully_accelerated()
    device = Device("CPUExecutionProvider", "GPU", "", "", "")
    monkeypatch.setattr(available, "devices", lambda: [device])
    assert available.providers_on("GPU") == ["CPUExecutionProvider"]
    assert CompiledModel.from_file(FLOAT, hardware_accel=HardwareAccelerator.GPU)


def test_options() -> None:
    options = Options(cpu_options=CpuOptions(kernel_mode=CpuKernelMode.REFERENCE, num_threads=2))
    model = CompiledModel.from_file(INT8, options=options)
    assert not model.is_fully_accelerated()  # numpy runs it
    assert {row.runs_on for row in model._interpreter.delegation()} == {"numpy"}
    by_number: Any = int(CpuKernelMode.REFERENCE)
    options = Options(cpu_options=CpuOptions(kernel_mode=by_number))
    assert not CompiledModel.from_file(INT8, options=options).is_fully_accelerated()
    unknown: Any = "reference"
    with pytest.raises(ValueError, match="not a valid CpuKernelMode"):
        CompiledModel.from_file(INT8, options=Options(cpu_options=CpuOptions(kernel_mode=unknown)))
    with pytest.raises(ValueError, match="not both"):
        CompiledModel.from_file(INT8, HardwareAccelerator.CPU, options=options)
    assert Options.create().cpu_options.num_threads == 0
    environment = Environment.create(runtime_path="/here")
    assert environment.options.runtime_path == "/here"
    assert CompiledModel.from_file(INT8, environment=environment).environment is environment
    with pytest.raises(ValueError, match="either"):
        Environment.create(options=EnvironmentOptions(), runtime_path="/here")


def test_it_stands_in_for_litert() -> None:
    with install_as("ai_edge_litert"):
        from ai_edge_litert import compiled_model, hardware_accelerator, tensor_buffer

        assert compiled_model.CompiledModel is CompiledModel
        assert tensor_buffer.TensorBuffer is TensorBuffer
        assert hardware_accelerator.HardwareAccelerator is HardwareAccelerator


def test_without_litert_in_a_fresh_process() -> None:
    code = (
        "import sys; sys.modules['ai_edge_litert'] = None; del sys.modules['ai_edge_litert']\n"
        "import tflite_ort; tflite_ort.install_as('ai_edge_litert')\n"
        "from ai_edge_litert.compiled_model import CompiledModel, Environment, QualcommOptions\n"
        "from ai_edge_litert.intel_openvino_options import IntelOpenVinoPerformanceMode\n"
        f"print(CompiledModel.from_file({FLOAT!r}).get_num_signatures())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
