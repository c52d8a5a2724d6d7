"""What a first try is told that goes wrong: the message says what to do."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tflite_ort
from tests.models import model_path, newer_model_path
from tests.one_op import T, one_op_model
from tflite_ort import (
    AllocationError,
    BatchWarning,
    BuiltinOpResolver,
    CacheWarning,
    GenerationError,
    Interpreter,
    MalformedModel,
    MissingDelegate,
    MissingEntry,
    ModelError,
    TensorError,
    UnreadableModel,
    WellKnownOpResolver,
    batched_model,
    export_onnx,
    first_state,
    load_delegate,
    verify,
)
from tflite_ort.command.cli import app
from tflite_ort.generation.language_model import prompt_of
from tflite_ort.generation.metadata import LanguageMetadata
from tflite_ort.prediction import images, record_files
from tflite_ort.schema import (
    CallOnceOptions,
    ModelBuilder,
    Op,
    ReshapeOptions,
    TensorType,
    read_model,
    write_model,
)
from tflite_ort.tasks import vision

KWS = "mlperf-tiny__kws_ref_model.tflite"
SHAPE = (1, 8, 10, 3)


def reshaped(
    shape: Sequence[int] = SHAPE,
    kind: TensorType = TensorType.FLOAT32,
    scale: float | None = None,
    zero_point: int = 0,
) -> Interpreter:
    """A model that makes one row of its input, whatever the batch."""
    made = (1, int(np.prod(shape)))
    one, row = T(tuple(shape), kind, scale, zero_point), T(made, kind, scale, zero_point)
    content = one_op_model(Op.RESHAPE, [one], [row], ReshapeOptions(new_shape=made))
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return interpreter


# Arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((8, 10, 3), r"'in0' takes \[1, 8, 10, 3\], the array has \[8, 10, 3\]; array\[None\]"),
        ((1, 3, 8, 10), r"has \[1, 3, 8, 10\]; numpy.moveaxis\(array, 1, -1\)"),
        ((4, 8, 10, 3), r"Interpreter\(\.\.\., batch=4\) takes a batch$"),
        ((1, 9, 10, 3), r"the array has \[1, 9, 10, 3\]$"),
        ((240,), r"the array has \[240\]$"),
    ],
)
def test_an_array_of_another_shape(shape: tuple[int, ...], advice: str) -> None:
    with pytest.raises(TensorError, match=f"^Cannot set tensor: Dimension mismatch. .*{advice}"):
        reshaped().set_tensor(0, np.zeros(shape, np.float32))


def test_what_is_advised_for_an_array_works() -> None:
    interpreter, picture = reshaped(), np.random.default_rng(0).random((8, 10, 3), np.float32)
    first = picture.transpose(2, 0, 1)[None]
    for array in (picture[None], np.moveaxis(first, 1, -1)):
        interpreter.set_tensor(0, array)
        np.testing.assert_array_equal(interpreter.get_tensor(0)[0], picture)


@pytest.mark.parametrize(
    ("dtype", "kind", "affine", "advice"),
    [
        (np.float64, TensorType.FLOAT32, (), r"; convert it with astype\(numpy.float32\)$"),
        (np.int64, TensorType.INT32, (), r"; convert it with astype\(numpy.int32\)$"),
        (np.int64, TensorType.UINT8, (0.5, 3), r"; convert it with astype\(numpy.uint8\)$"),
        (np.float32, TensorType.UINT8, (0.5, 3), r"; a real .* as round\(x / 0.5\) \+ 3$"),
        (np.float32, TensorType.INT8, (0.25, -8), r"; a real .* as round\(x / 0.25\) - 8$"),
        (np.float32, TensorType.INT16, (0.25, 0), r"; a real .* as round\(x / 0.25\)$"),
        (np.str_, TensorType.FLOAT32, (), "name: in0$"),
    ],
)
def test_an_array_of_another_type(
    dtype: Any, kind: TensorType, affine: tuple[float, int] | tuple[()], advice: str
) -> None:
    with pytest.raises(TensorError, match=f"Got value of type .* but expected type .*{advice}"):
        reshaped((1, 4), kind, *affine).set_tensor(0, np.zeros((1, 4), dtype))


@pytest.mark.parametrize("method", ["set_tensor", "get_tensor", "resize_tensor_input"])
def test_a_tensor_by_its_name_or_details(method: str) -> None:
    interpreter = reshaped()
    more: dict[str, list[Any]] = {
        "set_tensor": [np.zeros(SHAPE)],
        "resize_tensor_input": [SHAPE],
    }
    for index in ("in0", interpreter.get_input_details()[0], interpreter.get_input_details()):
        with pytest.raises(TypeError, match=r"by its index, such as get_input_details\(\)\[0\]"):
            getattr(interpreter, method)(index, *more.get(method, []))


def test_a_constant_is_named() -> None:
    interpreter = Interpreter(model_path(KWS))
    interpreter.allocate_tensors()
    detail = interpreter.get_tensor_details()[2]
    with pytest.raises(TensorError, match=r" \(2\) is a constant$") as caught:
        interpreter.set_tensor(2, np.zeros(detail["shape"], detail["dtype"]))
    assert repr(detail["name"]) in str(caught.value)


def test_a_resize_to_a_batch_names_the_operator_and_what_makes_a_batch() -> None:
    interpreter = reshaped()
    interpreter.resize_tensor_input(0, (4, *SHAPE[1:]))
    text = (
        r"^RESHAPE_0: 960 elements do not fill shape .* \(inputs were resized: 'in0' to "
        r"\[4, 8, 10, 3\]; Interpreter\(\.\.\., batch=4\) makes a batch\)$"
    )
    with pytest.raises(AllocationError, match=text):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, (1, 8, 10, 4))
    with pytest.raises(AllocationError, match=r"'in0' to \[1, 8, 10, 4\]\)$"):
        interpreter.allocate_tensors()


# Files -------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mobilenet.tflite").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    for path, hint in (
        ("mobilnet.tflite", "did you mean 'mobilenet.tflite'?"),
        ("models/mobilenet.tflite", "there is no folder 'models'"),
        ("~/mobilenet.tflite", "Python opens no name with ~"),
    ):
        with pytest.raises(UnreadableModel, match="No such file or directory; ") as caught:
            Interpreter(path)
        assert hint in str(caught.value)


def test_a_folder_in_the_place_of_a_model(tmp_path: Path) -> None:
    with pytest.raises(UnreadableModel, match=r"Is a directory$"):
        Interpreter(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(UnreadableModel, match="TensorFlow SavedModel; convert it to TFLite first"):
        Interpreter(tmp_path)
    result = CliRunner().invoke(app, ["run", str(tmp_path)])
    assert "Is a directory; this is a TensorFlow SavedModel" in result.output
    (tmp_path / "digits.tflite").write_bytes(b"")
    with pytest.raises(UnreadableModel, match=r"Is a directory; it has 'digits.tflite'$"):
        Interpreter(tmp_path)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["metadata.json", "config.json", "model.weights.h5"], "this is a Keras model"),
        (["saved/saved_model.pb", "saved/variables/x"], "this is a TensorFlow SavedModel"),
        (["archive/data.pkl"], "this is a PyTorch model"),
        (["notes.txt"], "the bundle has no model but 'notes.txt'$"),
    ],
)
def test_an_archive_without_a_model(names: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    with pytest.raises(MissingEntry, match=said):
        Interpreter(path)


# A node of a GraphDef: its name, and the operator that it is.
FROZEN = b"\x0a\x14\x0a\x05input\x12\x0bPlaceholder"
WEIGHTS = struct.pack("<Q", 20) + b'{"a":{"dtype":"F32"}}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (FROZEN, "this is a frozen TensorFlow graph; convert it to TFLite first"),
        (WEIGHTS, "this is a file of weights alone"),
        (b"GGUF\x03\x00\x00\x00", "this is a model of llama.cpp"),
        (b'<?xml version="1.0"?><net name="x">', "this is XML"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "this is a picture, a sound or an array"),
        (b"RIFF\x00\x00\x00\x00WAVE", "this is a picture, a sound or an array"),
    ],
)
def test_a_file_of_another_kind(content: bytes, said: str) -> None:
    with pytest.raises(MalformedModel, match=said):
        Interpreter(model_content=content)


def test_a_file_that_is_cut_short() -> None:
    content = model_path(KWS).read_bytes()
    with pytest.raises(MalformedModel, match="perhaps it is cut short"):
        Interpreter(model_content=content[:5000])


# Providers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpu", r"has a device GPU; to install one for a GPU: .*cuda: pip"),
        ("CUDAExecutonProvider", "did you mean 'CUDAExecutionProvider'"),
    ],
)
def test_a_provider_that_is_none(name: str, said: str) -> None:
    with pytest.raises(MissingDelegate, match=said):
        Interpreter(model_path(KWS), providers=[name])


# Arguments ---------------------------------------------------------------------------------------


def test_a_class_in_the_place_of_a_resolver() -> None:
    for call in (Interpreter, export_onnx):
        with pytest.raises(TypeError, match=r"expected an object: WellKnownOpResolver\(\)$"):
            call(model_path(KWS), resolver=WellKnownOpResolver)
        with pytest.raises(TypeError, match="must be an OpResolver, got dict"):
            call(model_path(KWS), resolver={"Atan": np.arctan})


def test_a_function_in_the_place_of_a_registration() -> None:
    function: Any = np.arctan
    with pytest.raises(TypeError, match=r"expected a Registration\(function=\.\.\.\), got ufunc"):
        BuiltinOpResolver().add_custom("Atan", function)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"input_shapes": (None, 49, 10, 1)}, "input_shapes is a dictionary by input"),
        ({"nchw": "input_1"}, r"nchw is a list of inputs and outputs.*got 'input_1'"),
        ({"nchw": True}, "nchw is a list of inputs and outputs"),
    ],
)
def test_arguments_of_an_export(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        export_onnx(model_path(KWS), **given)


def test_an_interpreter_in_the_place_of_a_model() -> None:
    interpreter: Any = Interpreter(model_path(KWS))
    with pytest.raises(TypeError, match=r"model must be a path, .* got Interpreter"):
        export_onnx(interpreter)


def test_a_warning_names_the_line_that_called(tmp_path: Path) -> None:
    """Not a line of the library, however deep it warns."""
    file = tmp_path / "file"
    file.write_bytes(b"")
    batch = Interpreter(newer_model_path("yolo_float.tflite"))
    shape = batch.get_input_details()[0]["shape"]
    batch.resize_tensor_input(batch.get_input_details()[0]["index"], (4, *shape[1:]))
    with pytest.warns(CacheWarning) as caught:
        Interpreter(model_path(KWS), cache=file)
    with pytest.warns(BatchWarning) as more:
        batch.allocate_tensors()
    assert [each.filename for each in (*caught, *more)] == [__file__] * 2


def test_a_batch_of_a_file() -> None:
    path = model_path(KWS)
    expected = write_model(batched_model(read_model(path), 4))
    for model in (path, str(path), path.read_bytes()):
        assert write_model(batched_model(model, 4)) == expected


def test_the_state_of_a_file_that_is_no_export() -> None:
    path = model_path(KWS)
    with pytest.raises(ModelError, match=f"{path.name} is no ONNX file"):
        first_state(path)


def test_names_of_signatures_and_of_their_inputs() -> None:
    interpreter = Interpreter(model_path("litert__multi_signature_def.tflite"))
    with pytest.raises(TensorError, match=r"its signatures: 'add', 'sub'; did you mean 'add'"):
        interpreter.get_signature_runner("ad")
    add, one = interpreter.get_signature_runner("add"), np.float32(1)
    with pytest.raises(TensorError, match=r"expected 2 vs provided 1; missing: b$"):
        add(a=one)
    with pytest.raises(TensorError, match=r"\(x\) for SignatureDef; missing: b; no inputs: x$"):
        add(a=one, x=one)
    with pytest.raises(TensorError, match=r"no input c to keep; there are a, b$"):
        interpreter.get_signature_runner("add", keep={"c"})


def test_each_name_is_listed_once() -> None:
    names = dir(tflite_ort)
    assert len(names) == len(set(names)) and {"Interpreter", "export_onnx"} <= set(names)


def test_one_message_in_the_place_of_a_list() -> None:
    message: Any = {"role": "user", "content": "Hello"}
    with pytest.raises(GenerationError, match="a list of messages; this is one message"):
        prompt_of(message, LanguageMetadata(), "")


def test_a_classifier_without_labels() -> None:
    path = model_path("tflite-support__mobilenet_v2_1.0_224_quant.tflite")
    picture = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    with vision.ImageClassifier.create_from_model_path(str(path)) as classifier:
        found = classifier.classify(picture).classifications[0].categories
    with vision.ImageEmbedder.create_from_model_path(str(path)) as embedder:
        vector = embedder.embed(picture).embeddings[0].embedding
    assert len(found) == 1001 and found[0].category_name == ""
    np.testing.assert_array_equal([vector[each.index] for each in found], [e.score for e in found])


# The command line --------------------------------------------------------------------------------


def said_by(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    return result.exit_code, result.output


def test_a_run_without_an_input_says_that_it_is_random(tmp_path: Path) -> None:
    _, said = said_by("run", model_path(KWS))
    assert said.startswith("input_1: random values, as no FILE gives others\n")
    np.save(tmp_path / "x.npy", np.zeros((1, 49, 10, 1), np.int8))
    assert "random" not in said_by("run", model_path(KWS), "--input", tmp_path / "x.npy")[1]


def test_a_run_on_a_folder(tmp_path: Path) -> None:
    code, said = said_by("run", model_path(KWS), "--input", tmp_path)
    assert code == 1 and "is a folder, an input is one file; predict reads folders" in said


def test_an_export_of_an_onnx_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    export_onnx(model_path(KWS), path)
    before = path.read_bytes()
    code, said = said_by("export", path)
    assert code == 1 and "this is an ONNX model, which onnxruntime runs as it is" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("given", ["nothing", "*.gif"])
def test_a_job_without_inputs_leaves_no_folder(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said_by("predict", model_path(KWS), given, "--out", "out.csv")[0] == 1
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("name", "module", "needed"),
    [
        ("x.png", images, "reading images needs Pillow: pip install 'tflite-ort[images]'"),
        ("x.csv", record_files, "CSV files need pyarrow: pip install 'tflite-ort[predict]'"),
    ],
)
def test_a_job_without_the_package_that_reads_does_not_begin(
    name: str, module: Any, needed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "optional_module", lambda _: None)
    (tmp_path / name).write_bytes(b"a\n1\n")
    code, said = said_by("predict", model_path(KWS), tmp_path / name, "--out", tmp_path / "o.jsonl")
    assert code == 1 and needed in said
    assert [each.name for each in tmp_path.iterdir() if each.name[0] != "."] == [name]


@pytest.mark.parametrize(
    "name",
    ["libedgetpu.so.1", "edgetpu.dll", "/x/libtensorflowlite_gpu_delegate.so", "lib.1.dylib"],
)
def test_a_delegate_of_tflite_is_told_what_to_do(name: str) -> None:
    with pytest.raises(MissingDelegate, match=r"Leave this one out.*providers=\[\.\.\.\]"):
        load_delegate(name)
    with pytest.raises(MissingDelegate) as caught:
        load_delegate("CUDAExecutonProvider")
    assert "Leave this one out" not in str(caught.value)


def test_an_onnx_file_that_is_not_there_is_told_before_any_work(tmp_path: Path) -> None:
    told: list[str] = []
    with pytest.raises(FileNotFoundError, match=r"none\.onnx"):
        verify(
            model_path(KWS),
            onnx_file=tmp_path / "none.onnx",
            progress=lambda what, done, count: told.append(what),
        )
    assert told == []


def test_first_values_that_nothing_computes(tmp_path: Path) -> None:
    builder = ModelBuilder()
    main, first = builder.subgraph("main"), builder.subgraph("first")
    first.tensor("table", (1,), TensorType.RESOURCE).operator("NoTable", [], ["table"])
    main.tensor("x", (2,)).tensor("y", (2,))
    main.operator(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=1))
    main.operator(Op.NEG, ["x"], ["y"]).inputs("x").outputs("y")
    (tmp_path / "m.tflite").write_bytes(builder.write())
    words = [
        "export",
        str(tmp_path / "m.tflite"),
        str(tmp_path / "m.onnx"),
        "--custom-ops",
        "domain",
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert f"{tmp_path / 'm.tflite'}: CALL_ONCE_0 sets the first values" in result.stderr
    assert "NoTable_0 version 1: no numpy kernel" in result.stderr
