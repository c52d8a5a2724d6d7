"""The command: what it prints and writes, and how it refuses."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

from tests.models import model_path
from tests.one_op import T, one_op_model
from tests.ops.test_state import MODELS as STATEFUL
from tflite_ort import DelegateWarning, Interpreter
from tflite_ort.command import arrays
from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model, held_out
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.prediction import images
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.tensors import InputColumn
from tflite_ort.providers.provider_choices import provider_choices
from tflite_ort.schema import (
    AddOptions,
    GatherOptions,
    Op,
    TensorType,
)

FLOAT, INT8 = str(digits_model("float32")), str(digits_model("int8"))


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refusal(*arguments: str | Path, code: int = 1) -> str:
    """What a call that fails says; nothing of it is a traceback."""
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.stderr


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """sum = in0 + in1 of [N, 2], N unknown."""
    tensor = T((1, 2), shape_signature=(-1, 2))
    path = tmp_path / "add.tflite"
    path.write_bytes(one_op_model(Op.ADD, [tensor, tensor], [tensor], AddOptions()))
    return path


# run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [FLOAT, INT8])
def test_run_prints_outputs_and_scores(model: str) -> None:
    result = call("run", model)
    assert result.exit_code == 0, result.output
    assert "1x10" in result.stdout
    assert "top of" in result.stdout


def test_run_repeats_with_the_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        call("run", FLOAT, "--seed", str(seed), "--output", tmp_path / f"{name}.npz")
    first, again, other = (
        next(iter(np.load(tmp_path / f"{name}.npz").values())) for name in ("a", "b", "c")
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_run_gives_what_the_interpreter_gives(tmp_path: Path) -> None:
    image = held_out()[0][0].astype(np.float32).reshape(1, 8, 8, 1) / 16
    np.save(tmp_path / "image.npy", image)
    call("run", FLOAT, "--input", tmp_path / "image.npy", "--output", tmp_path / "out.npz")
    interpreter = Interpreter(FLOAT)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    (found,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_array_equal(found, expected)


def test_run_takes_inputs_by_name_and_in_turn(add: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", [[1.0, 2.0]])
    np.save(tmp_path / "y.npy", [[10.0, 20.0]])
    given = ("--input", tmp_path / "y.npy", "--input", f"in0={tmp_path / 'x.npy'}")
    (tmp_path / "folder").mkdir()
    result = call("run", add, *given, "--output", tmp_path / "folder")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(np.load(tmp_path / "folder" / "out0.npy"), [[11, 22]])


def test_run_takes_an_archive_and_resizes(add: Path, tmp_path: Path) -> None:
    rows = np.arange(6, dtype=np.int32).reshape(3, 2)
    np.savez(tmp_path / "in.npz", in0=rows, in1=rows)
    call("run", add, "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["out0"], 2.0 * rows)


BAD_INPUTS = [
    (np.ones((3, 3, 3)), "has shape (3, 3, 3), input 'in0' takes (-1, 2)"),
    (np.ones((1, 2), np.complex64), "holds complex64, input 'in0' takes float32"),
    (np.array([["a", "b"]]), "input 'in0' takes float32"),
]


@pytest.mark.parametrize(("array", "message"), BAD_INPUTS)
def test_run_refuses_arrays(add: Path, tmp_path: Path, array: arrays.Array, message: str) -> None:
    np.save(tmp_path / "in0.npy", array)
    assert message in refusal("run", add, "--input", tmp_path / "in0.npy")


@pytest.mark.parametrize("value", [-1, 256, 0.5])
def test_run_refuses_values_that_would_change(tmp_path: Path, value: float) -> None:
    tensor = T((2,), TensorType.UINT8, scale=0.5)
    model = tmp_path / "bytes.tflite"
    model.write_bytes(one_op_model(Op.ADD, [tensor, tensor], [tensor], AddOptions()))
    np.save(tmp_path / "x.npy", [0, value])
    assert "input 'in0' takes uint8" in refusal("run", model, "--input", tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.png"])
def test_run_refuses_files_of_no_such_kind(add: Path, tmp_path: Path, name: str) -> None:
    model = add if name != "x.png" else Path(FLOAT)
    (tmp_path / name).write_bytes(b"neither this nor that")
    assert refusal("run", model, "--input", tmp_path / name).startswith("error: ")


def test_run_refuses_an_unknown_name(add: Path) -> None:
    assert "no input 'in7'" in refusal("run", add, "--input", "in7=x.npy")


def test_run_refuses_more_files_than_inputs(tmp_path: Path) -> None:
    image = tmp_path / "i.npy"
    np.save(image, np.zeros((1, 8, 8, 1), np.float32))
    refused = refusal("run", FLOAT, "--input", image, "--input", image)
    assert "a run takes one file for each input, and the model has 1" in refused


def test_run_refuses_a_provider_that_is_not_there() -> None:
    assert "NoSuchProvider" in refusal("run", FLOAT, "--provider", "NoSuchProvider")


CPU = "CPUExecutionProvider"


@pytest.mark.parametrize("command", ["run", "inspect", "bench"])
@pytest.mark.parametrize("option", ["speed=11", f"{CPU}:speed=11"])
def test_an_option_reaches_the_provider(command: str, option: str) -> None:
    said = call(command, FLOAT, "--provider", CPU, "--provider-option", option).output
    assert f"{CPU} has no option speed" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--provider", CPU, "--provider-option", "speed"], "is not"),
        (["--provider", CPU, "--provider-option", "=11"], "is not"),
        (["--provider", CPU, "--provider-option", f"{CPU}:=11"], "is not"),
        (["--provider", CPU, "--provider-option", "NPU:speed=11"], f"these are {CPU}"),
        (["--provider-option", "speed=11"], "is of no --provider"),
    ],
)
def test_an_option_of_no_provider_is_refused(arguments: list[str], message: str) -> None:
    said = " ".join(refusal("run", FLOAT, *arguments, code=2).replace("│", " ").split())
    assert "--provider-option" in said
    assert message in said


def test_options_go_to_the_provider_they_name() -> None:
    options = ["a=1", "Q.so:b=2=3", 'C:\\p.dll:c={"d": "e:f"}']
    assert provider_choices(["P", "Q.so", "C:\\p.dll"], options) == [
        ("P", {"a": "1"}),
        ("Q.so", {"b": "2=3"}),
        ("C:\\p.dll", {"c": '{"d": "e:f"}'}),
    ]
    assert provider_choices(None, None) is None


def test_a_warning_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(self: Interpreter) -> None:
        warnings.warn("something is slow", DelegateWarning, stacklevel=2)

    monkeypatch.setattr(Interpreter, "allocate_tensors", allocate)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = call("inspect", FLOAT)
    assert result.stderr.startswith("warning: something is slow\n")


@pytest.mark.parametrize("words", [["é", "b", "c"], [b"\xc3\xa9", b"b", b"c"]])
def test_run_takes_strings(tmp_path: Path, words: list[str] | list[bytes]) -> None:
    text = T((3,), TensorType.STRING)
    model = tmp_path / "gather.tflite"
    indices = T.constant(np.array([2, 0], np.int32))
    options = GatherOptions()
    out = T((2,), TensorType.STRING)
    model.write_bytes(one_op_model(Op.GATHER, [text, indices], [out], options, version=3))
    np.save(tmp_path / "words.npy", np.array(words))
    result = call("run", model, "--input", tmp_path / "words.npy", "--output", tmp_path / "o.npz")
    assert result.exit_code == 0, result.output
    assert np.load(tmp_path / "o.npz")["out0"].tolist() == [b"c", "é".encode()]


# Images ------------------------------------------------------------------------------------------


@pytest.fixture
def gray(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (20, 30), (51, 51, 51)).save(tmp_path / "gray.png")
    return tmp_path / "gray.png"


def details(dtype: type, shape: tuple[int, ...], scale: float = 0.0) -> dict[str, object]:
    scales = np.array([scale] if scale else [], np.float32)
    return {
        "name": "image",
        "index": 0,
        "dtype": dtype,
        "shape": np.abs(shape),
        "shape_signature": np.array(shape),
        "quantization_parameters": {"scales": scales, "zero_points": scales.astype(np.int32)},
    }


@pytest.mark.parametrize(
    ("dtype", "scale", "normalization", "value"),
    [
        (np.float32, 0.0, None, 0.2),
        (np.uint8, 0.5, None, 51),
        (np.int8, 0.5, None, 51 - 128),
        (np.float32, 0.0, images.Normalization((50.0, 49.0, 51.0), (2.0,)), (0.5, 1.0, 0.0)),
        (np.int16, 0.5, images.Normalization((1.0,), (1.0,)), 100),
    ],
)
def test_pixels_become_values(
    gray: Path,
    dtype: type,
    scale: float,
    normalization: images.Normalization | None,
    value: object,
) -> None:
    told = details(dtype, (1, 4, 6, 3), scale)
    how = Preparation(normalization=normalization).picture_of(InputColumn("x", told))
    array = images.read_image(gray, told, how)
    assert array.shape == (1, 4, 6, 3)
    assert array.dtype == dtype
    np.testing.assert_allclose(array, np.broadcast_to(value, (1, 4, 6, 3)), rtol=1e-6)


def test_an_image_keeps_its_size_where_the_model_takes_any(gray: Path) -> None:
    assert images.read_image(gray, details(np.uint8, (1, -1, -1, 1))).shape == (1, 30, 20, 1)


def test_an_image_is_refused_by_what_takes_none(gray: Path, add: Path) -> None:
    assert "takes no image" in refusal("run", add, "--input", gray)


def test_without_pillow_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "optional_module", lambda name: None)
    (tmp_path / "x.png").write_bytes(b"")
    message = refusal("run", FLOAT, "--input", tmp_path / "x.png")
    assert message.splitlines() == [
        f"error: reading the image {tmp_path / 'x.png'} needs Pillow: "
        "pip install 'tflite-ort[images]'"
    ]
    near = refusal("run", FLOAT, "--input", tmp_path / "y.png")  # which of the two is wrong
    assert "y.png: No such file or directory" in near


# Drawn inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "scale", "low", "high"),
    [
        (np.float32, 0.0, -1, 1),
        (np.int32, 0.0, 0, 9),
        (np.int64, 0.0, 0, 9),
        (np.uint8, 0.5, 0, 255),
        (np.int8, 0.5, -128, 127),
        (np.int16, 0.5, -32768, 32767),
        (np.bool_, 0.0, 0, 1),
    ],
)
def test_random_inputs_fill_their_range(dtype: type, scale: float, low: int, high: int) -> None:
    drawn = random_inputs([details(dtype, (1000, 20), scale)], 0)[0].astype(np.float64)
    assert low <= drawn.min() <= low + 0.01 * (high - low)
    assert high - 0.01 * (high - low) <= drawn.max() <= high


def test_random_strings_and_complex_numbers() -> None:
    assert isinstance(random_inputs([details(np.bytes_, (3,))], 0)[0][0], bytes)
    assert random_inputs([details(np.complex64, (3,))], 0)[0].dtype == np.complex64


def test_written_outputs_keep_apart_names_that_one_file_would_have(tmp_path: Path) -> None:
    outputs = {"a/b": np.zeros(1), "a:b": np.ones(1), "file": np.ones(2)}
    assert len(set(arrays.write_outputs(tmp_path / "folder", outputs))) == 3
    arrays.write_outputs(tmp_path / "all.npz", outputs)
    assert set(np.load(tmp_path / "all.npz").files) == set(outputs)


# export, inspect, versions, demo -----------------------------------------------------------------


@pytest.mark.parametrize(("weights", "stored"), [("uint8", 2), ("int8", 3)])
def test_export_writes_a_model(tmp_path: Path, weights: str, stored: int) -> None:
    result = call("export", INT8, tmp_path / "m.onnx", "--weights", weights)
    assert f"wrote {tmp_path / 'm.onnx'}" in result.stdout
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model)
    assert stored in {tensor.data_type for tensor in model.graph.initializer if tensor.dims}


def test_export_writes_beside_the_model(add: Path) -> None:
    call("export", add)
    assert add.with_suffix(".onnx").exists()


def test_export_leaves_sizes_open(add: Path, tmp_path: Path) -> None:
    names = [detail["name"] for detail in Interpreter(add).get_input_details()]
    shapes = (f"--shape={name}=batch,?" for name in names)
    call("export", add, tmp_path / "m.onnx", *shapes)
    for value in onnx.load(tmp_path / "m.onnx").graph.input:
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"
        assert value.type.tensor_type.shape.dim[1].dim_param
    assert "--shape" in refusal("export", add, "--shape", "3", code=2)


@pytest.mark.parametrize("batch", ["0", "-3", "1.5", "a b", ""])
def test_export_refuses_what_is_no_batch(add: Path, tmp_path: Path, batch: str) -> None:
    arguments = ["export", str(add), str(tmp_path / "m.onnx"), "--batch", batch]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and "a batch" in result.output
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize(("option", "inputs"), [("--stateful", ["x", "v"]), ("--stateless", ["x"])])
def test_export_makes_state_explicit_or_leaves_it_out(
    tmp_path: Path, option: str, inputs: list[str]
) -> None:
    path = tmp_path / "sum.tflite"
    path.write_bytes(STATEFUL["sum"][0])
    call("export", path, option)
    model = onnx.load(path.with_suffix(".onnx"))
    assert [value.name for value in model.graph.input] == inputs


def test_export_refuses_other_weights() -> None:
    assert "--weights" in refusal("export", INT8, "--weights", "float8", code=2)


def test_inspect_says_the_most_important_first() -> None:
    first = call("inspect", INT8).stdout.splitlines()[0]
    assert re.match(r"all \d+ operators run in ONNX Runtime; [\d.]+ kB; 1 input 1x8x8x1 ", first)
    several = call("inspect", model_path("litert__while_op_with_forwarding_input.tflite"))
    assert "2 inputs; 3 outputs" in several.stdout.splitlines()[0]
    assert "and 2 more subgraphs, which --all shows" in several.stdout
    whole = call("inspect", model_path("litert__while_op_with_forwarding_input.tflite"), "--all")
    assert "subgraph 2" in whole.stdout


def test_inspect_shows_tensors_and_operators() -> None:
    result = call("inspect", INT8)
    assert result.exit_code == 0, result.output
    for text in ("1x8x8x1", "CONV_2D", "CPUExecutionProvider"):
        assert text in result.stdout


def test_inspect_fits_a_narrow_terminal() -> None:
    result = CliRunner().invoke(app, ["inspect", INT8], env={"COLUMNS": "40"})
    assert max(map(len, result.stdout.splitlines())) <= 40


def test_inspect_says_why_a_model_cannot_run(tmp_path: Path) -> None:
    path = tmp_path / "future.tflite"
    path.write_bytes(one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions(), version=99))
    result = call("inspect", path)
    assert result.exit_code == 3
    assert "ADD" in result.stdout
    assert "cannot run: " in result.stdout
    assert "99" in result.stdout


def test_inspect_says_what_a_delegate_refused(tmp_path: Path) -> None:
    path = tmp_path / "int16.tflite"
    tensor = T((2,), TensorType.INT16, scale=0.5)
    path.write_bytes(one_op_model(Op.ADD, [tensor, tensor], [tensor], AddOptions(), version=2))
    result = call("inspect", path)
    assert result.exit_code == 0, result.output
    assert "refused because" in result.stdout


@pytest.mark.parametrize("command", ["run", "export", "inspect", "versions", "bench"])
def test_a_file_that_is_missing_is_one_line(command: str, tmp_path: Path) -> None:
    missing = tmp_path / "none.tflite"
    lines = [f"error: {missing}: No such file or directory"]
    assert refusal(command, missing).splitlines() == lines


@pytest.mark.parametrize("command", ["run", "export", "inspect", "versions", "bench"])
def test_a_file_that_is_no_model_is_one_line_that_names_it(command: str, tmp_path: Path) -> None:
    path = tmp_path / "text.tflite"
    path.write_text("no flatbuffer, however long it may be")
    (line,) = refusal(command, path).splitlines()
    assert line.startswith(f"error: {path}: ")


def test_versions_prints_json() -> None:
    result = call("versions", INT8, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["refused"] is False


def test_demo_reads_digits() -> None:
    assert "24" in call("demo").stdout


def test_version() -> None:
    assert call("--version").stdout.startswith("tflite-ort ")


USAGE_ERRORS = [
    ["nothing"],
    ["run"],
    ["run", FLOAT, "--threads", "0"],
    ["run", FLOAT, "--mean", "many"],
    ["run", FLOAT, "--std", "0"],
    ["bench", FLOAT, "--threads", "1,0"],
]


@pytest.mark.parametrize("arguments", USAGE_ERRORS, ids=" ".join)
def test_usage_errors_exit_with_2(arguments: list[str]) -> None:
    refusal(*arguments, code=2)
