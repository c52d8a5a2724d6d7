"""The verb run: pictures, sounds, labels, signatures, and files of each kind."""

from __future__ import annotations

import io
import json
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.one_op import T, one_op_model
from tests.test_cli import FLOAT, call, refusal
from tflite_ort.decode.picture_input import PictureInput
from tflite_ort.decode.sampling import tensor_of
from tflite_ort.schema import (
    AddOptions,
    ModelBuilder,
    Op,
    SubOptions,
    TensorType,
)
from tflite_ort.schema.file.model_metadata import NAME as METADATA
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    Content,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
    write_metadata,
)


def labelled(
    tmp_path: Path, shape: tuple[int, ...], given: TensorMetadata, made: TensorMetadata
) -> Path:
    """y = x + x of `shape`, with metadata and the labels none, cat, dog packed behind."""
    builder = ModelBuilder()
    graph = builder.subgraph("main").tensor("x", shape).tensor("y", shape)
    graph.operator(Op.ADD, ["x", "x"], ["y"], AddOptions()).inputs("x").outputs("y")
    graphs = SubGraphMetadata(input_tensor_metadata=(given,), output_tensor_metadata=(made,))
    builder.metadata(METADATA, write_metadata(ModelMetadata(subgraph_metadata=(graphs,))))
    path = tmp_path / "labelled.tflite"
    path.write_bytes(builder.write())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "none\ncat\ndog\n")
    return path


LABELS = TensorMetadata(
    associated_files=(
        AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS),
    )
)
VALUE_LABELS = TensorMetadata(
    associated_files=(
        AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_VALUE_LABELS),
    )
)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("RGB", (9, 5), (0, 51, 255)).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def test_a_picture_is_normalised_and_a_map_has_its_labels(tmp_path: Path, picture: Path) -> None:
    unit = ProcessUnit(options=NormalizationOptions(mean=(127.5,), std=(127.5,)))
    model = labelled(tmp_path, (1, 4, 4, 3), TensorMetadata(process_units=(unit,)), LABELS)
    result = call("run", model, "--input", picture, "--output", tmp_path / "y.npy")
    assert result.exit_code == 0, result.output
    assert "picture.png as 4x4, (pixel - 127.5) / 127.5, as the metadata say" in result.stdout
    assert "segmentation (--raw" in result.stdout
    assert "dog  100.0 % of the picture" in result.stdout
    values = np.load(tmp_path / "y.npy")
    expected = 2 * (np.array([0, 51, 255], np.float32) - 127.5) / 127.5
    np.testing.assert_allclose(values, np.broadcast_to(expected, values.shape), rtol=1e-6)
    result = call("run", model, "--input", picture, "--mean", "0", "--std", "1", "--json")
    assert json.loads(result.stdout)["y"]["max"] == 510


def test_top_classes_have_names(tmp_path: Path) -> None:
    model = labelled(tmp_path, (1, 3), TensorMetadata(), LABELS)
    np.save(tmp_path / "x.npy", np.float32([[0.5, 3, 1]]))
    shown = call("run", model, tmp_path / "x.npy").stdout
    assert shown.splitlines()[1:] == ["cat   6", "dog   2", "none  1"]
    raw = call("run", model, tmp_path / "x.npy", "--raw").stdout
    assert "top of y: cat 6, dog 2, none 1" in raw
    top = json.loads(call("run", model, "--input", tmp_path / "x.npy", "--json").stdout)["y"]["top"]
    assert top[0] == {"index": 1, "label": "cat", "score": 6.0}


def test_values_have_names(tmp_path: Path) -> None:
    model = labelled(tmp_path, (1, 3), TensorMetadata(), VALUE_LABELS)
    np.save(tmp_path / "x.npy", np.float32([[0, 1, 0.5]]))
    assert "y = none, dog, cat" in call("run", model, "--input", tmp_path / "x.npy").stdout


def test_small_outputs_show_their_values(tmp_path: Path) -> None:
    tensor = T((2, 2), TensorType.INT32)
    model = tmp_path / "add.tflite"
    model.write_bytes(one_op_model(Op.ADD, [tensor, tensor], [tensor], AddOptions()))
    np.savez(tmp_path / "x.npz", in0=[[1, 2], [3, 4]], in1=[[1, 1], [1, 1]])
    assert "out0 = [[2, 3], [4, 5]]" in call("run", model, "--input", tmp_path / "x.npz").stdout
    record = json.loads(call("run", model, "--input", tmp_path / "x.npz", "--json").stdout)["out0"]
    assert record == {
        "dtype": "int32",
        "shape": [2, 2],
        "min": 2.0,
        "max": 5.0,
        "mean": 3.5,
        "values": [[2, 3], [4, 5]],
    }


def test_a_sound_is_cut_to_what_the_model_takes(tmp_path: Path) -> None:
    content = Content(content_properties=AudioProperties(sample_rate=8000, channels=1))
    model = labelled(tmp_path, (1, 4000), TensorMetadata(content=content), TensorMetadata())
    with wave.open(str(tmp_path / "s.wav"), "wb") as stream:
        stream.setnchannels(2)
        stream.setsampwidth(2)
        stream.setframerate(16000)
        stream.writeframes(np.full(2 * 16000, 8192, "<i2").tobytes())
    result = call("run", model, "--input", tmp_path / "s.wav", "--output", tmp_path / "y.npy")
    assert "s.wav as 4000 samples at 8000 Hz, the first 0.5 of 1 s" in result.stdout
    np.testing.assert_allclose(np.load(tmp_path / "y.npy")[0, 100:], 0.5, rtol=1e-3)


def test_resizing_weighs_four_pixels_as_mediapipe_does() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (37, 53, 3), np.uint8)
    for height, width in ((20, 30), (90, 70), (5, 100)):
        made = tensor_of(pixels, PictureInput(height, width, dtype="uint8"))
        rows = np.clip(np.round(np.arange(height) * 37 / height * 32) / 32, 0, 36)
        columns = np.clip(np.round(np.arange(width) * 53 / width * 32) / 32, 0, 52)
        top, left = rows.astype(int), columns.astype(int)
        down, right = np.minimum(top + 1, 36), np.minimum(left + 1, 52)
        y, x = (rows - top)[:, None, None], (columns - left)[None, :, None]
        upper = pixels[top][:, left] * (1 - x) + pixels[top][:, right] * x
        lower = pixels[down][:, left] * (1 - x) + pixels[down][:, right] * x
        np.testing.assert_array_equal(made, np.floor(upper * (1 - y) + lower * y + 0.5))


# Files -------------------------------------------------------------------------------------------


def test_output_is_the_file_that_is_named(tmp_path: Path) -> None:
    for name in ("o.npy", "o.npz", "o.json"):
        result = call("run", FLOAT, "--output", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).is_file()
    array = np.load(tmp_path / "o.npy")
    (same,) = np.load(tmp_path / "o.npz").values()
    np.testing.assert_array_equal(array, same)
    (record,) = json.loads((tmp_path / "o.json").read_text()).values()
    np.testing.assert_array_equal(np.float32(record["values"]), array)


def test_output_goes_to_standard_output(tmp_path: Path) -> None:
    call("run", FLOAT, "--output", tmp_path / "o.npy")
    result = call("run", FLOAT, "--output", "-")
    array = np.load(io.BytesIO(result.stdout_bytes))
    np.testing.assert_array_equal(array, np.load(tmp_path / "o.npy"))


def test_an_output_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(two_signatures())
    target = tmp_path / "o.npy"
    call("run", model, "--signature", "both", "--output", f"sum={target}", "--seed", "3")
    assert np.load(target).shape == (2,)
    said = refusal("run", model, "--signature", "both", "--output", target)
    assert "holds one output, there are 2: difference, sum" in said
    said = refusal("run", model, "--signature", "both", "--output", f"summ={target}")
    assert "did you mean 'sum'?" in said


def test_a_map_is_written_as_a_picture(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    model = labelled(tmp_path, (1, 2, 2, 4), TensorMetadata(), TensorMetadata())
    np.save(tmp_path / "x.npy", np.eye(4, dtype=np.float32).reshape(1, 2, 2, 4))
    call("run", model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.png")
    with pillow.open(tmp_path / "y.png") as image:
        assert np.asarray(image).tolist() == [[0, 1], [2, 3]]
        assert image.getpalette()[:3] == [0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "values", "pixels"),
    [
        ((1, 2, 2, 1), [0, 1, 0.5, 0], [[0, 255], [128, 0]]),
        ((1, 1, 2, 3), [0, 0.1, 0.5, 0, 0, 0], [[[0, 51, 255], [0, 0, 0]]]),
        ((1, 1, 2, 3), [-0.5, 0, 0.5, 0, 0, 0], [[[0, 128, 255], [128, 128, 128]]]),
    ],
)
def test_gray_and_coloured_maps(
    tmp_path: Path, shape: tuple[int, ...], values: list[float], pixels: object
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    model = labelled(tmp_path, shape, TensorMetadata(), TensorMetadata())
    np.save(tmp_path / "x.npy", np.float32(values).reshape(shape))
    result = call("run", model, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.png")
    assert result.exit_code == 0, result.output
    with pillow.open(tmp_path / "y.png") as image:
        assert np.asarray(image).tolist() == pixels


def test_a_vector_is_no_picture(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    model = labelled(tmp_path, (3,), TensorMetadata(), TensorMetadata())
    assert "is no map" in refusal("run", model, "--output", tmp_path / "y.png")


def test_a_file_of_no_known_kind_is_refused_before_the_run(tmp_path: Path) -> None:
    said = refusal("run", tmp_path / "none.tflite", "--output", tmp_path / "y.nyp")
    assert "no known kind" in said and "did you mean" in said


def test_a_near_miss_of_an_input_is_suggested(tmp_path: Path) -> None:
    model = labelled(tmp_path, (3,), TensorMetadata(), TensorMetadata())
    said = refusal("run", model, "--input", f"X={tmp_path / 'x.npy'}")
    assert "did you mean 'x'?" in said


# Signatures --------------------------------------------------------------------------------------


def two_signatures() -> bytes:
    """``twice`` of the first subgraph, and ``both``, which gives two outputs of another order."""
    builder = ModelBuilder()
    first = builder.subgraph("first").tensor("p", (2,)).tensor("q", (2,))
    first.operator(Op.ADD, ["p", "p"], ["q"], AddOptions()).inputs("p").outputs("q")
    first.signature("twice", {"x": "p"}, {"y": "q"})
    second = builder.subgraph("second")
    for name in ("a", "b", "s", "d"):
        second.tensor(name, (2,))
    second.operator(Op.ADD, ["a", "b"], ["s"], AddOptions())
    second.operator(Op.SUB, ["a", "b"], ["d"], SubOptions())
    second.inputs("a", "b").outputs("s", "d")
    second.signature("both", {"left": "a", "right": "b"}, {"sum": "s", "difference": "d"})
    return builder.write()


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_signatures())
    return path


def test_run_takes_a_signature(two: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", left=[1.0, 2], right=[10.0, 20])
    given = ("--signature", "both", "--input", tmp_path / "in.npz", "--json")
    found = json.loads(call("run", two, *given).stdout)
    assert found["sum"]["values"] == [11, 22]
    assert found["difference"]["values"] == [-9, -18]
    assert "did you mean 'both'?" in refusal("run", two, "--signature", "bth")


def test_numbers_of_another_type_are_told_or_refused(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(
        one_op_model(Op.NEG, [T((3,), TensorType.INT32)], [T((3,), TensorType.INT32)])
    )
    np.save(tmp_path / "fits.npy", np.int64([1, 2, 3]))
    np.save(tmp_path / "far.npy", np.int64([0, 2**40, 3]))
    np.save(tmp_path / "same.npy", np.int32([1, 2, 3]))
    said = call("run", tmp_path / "m.tflite", "--input", tmp_path / "fits.npy")
    assert "in0: fits.npy holds int64, taken as int32" in said.stdout
    assert (
        "holds" not in call("run", tmp_path / "m.tflite", "--input", tmp_path / "same.npy").stdout
    )
    text = refusal("run", tmp_path / "m.tflite", "--input", tmp_path / "far.npy")
    assert "holds int64 from 0 to 1099511627776, input 'in0' takes int32" in text


def test_a_folder_that_is_not_there_is_told_before_the_run(tmp_path: Path) -> None:
    said = refusal("run", FLOAT, "--output", tmp_path / "none" / "out.npy")
    assert "there is no folder" in " ".join(said.split())


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_every_verb_tells_and_refuses_numbers_alike(verb: str, tmp_path: Path) -> None:
    model, file = tmp_path / "m.tflite", tmp_path / "in.npy"
    model.write_bytes(one_op_model(Op.NEG, [T((3,))], [T((3,))]))

    def saved(array: Any) -> tuple[str | Path, ...]:
        np.save(file, array)
        return verb, model, "--input", file

    told = "in0: in.npy holds float64, taken as float32"
    assert told in call(*saved(np.float64([1, 2, np.inf]))).stdout
    silent = call(*saved(np.float64([1, 2, 3])), "--json")
    assert told in silent.stderr
    json.loads(silent.stdout)
    assert "holds" not in call(*saved(np.float32([1, 2, 3]))).stdout
    assert "would take as infinite" in " ".join(refusal(*saved(np.array([1, 2, -1e300]))).split())
    assert "holds strings, input 'in0' takes float32" in refusal(*saved(np.array(["a", "b", "c"])))
    assert "has shape (4,), input 'in0' takes (3,)" in refusal(*saved(np.ones(4, np.float32)))


def test_verify_tells_once_what_it_does_to_a_folder_of_pictures(tmp_path: Path) -> None:
    model, folder = tmp_path / "m.tflite", tmp_path / "pictures"
    shape = T((1, 2, 2, 3))
    model.write_bytes(one_op_model(Op.NEG, [shape], [shape]))
    folder.mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(folder / name)
    said = call("verify", model, "--input", folder).stdout
    assert "in0: a.png as 2x2, pixels from 0 to 1" in said
    assert "b.png" not in said
    said = call("verify", model, "--input", folder, "--mean", "127.5", "--std", "127.5").stdout
    assert "in0: a.png as 2x2, (pixel - 127.5) / 127.5" in said


def test_a_model_alone_generates_no_text(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(one_op_model(Op.NEG, [T((3,))], [T((3,))]))
    said = " ".join(refusal("generate", tmp_path / "m.tflite", "--prompt", "hi").split())
    assert "text is generated by a .litertlm bundle, and tflite-ort run runs a model" in said


@pytest.mark.parametrize("typed", ["model.tflit", "model", "modle.tflite"])
def test_a_near_miss_of_a_file_is_suggested(tmp_path: Path, typed: str) -> None:
    for name in ("model.tflite", "another.tflite", "picture.png"):
        (tmp_path / name).write_bytes(b"")
    assert "did you mean 'model.tflite'?" in " ".join(refusal("run", tmp_path / typed).split())


@pytest.mark.parametrize("batch", ["0", "-1", "", " "])
def test_a_batch_is_a_name_or_a_number_above_zero(batch: str, tmp_path: Path) -> None:
    asked = ("export", FLOAT, tmp_path / "m.onnx", "--batch", batch)
    said = " ".join(refusal(*asked, code=2).split())
    assert ("at least one sample" if batch.strip() else "a number of samples or a name") in said


@pytest.mark.parametrize("batch", ["N", "any_number"])
def test_a_batch_has_a_name(batch: str, tmp_path: Path) -> None:
    made = call("export", FLOAT, tmp_path / "m.onnx", "--batch", batch)
    assert made.exit_code == 0, made.output
