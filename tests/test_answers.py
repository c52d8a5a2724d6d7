"""What outputs say: read from shapes, against plain readings of what each network gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_networks import network
from tests.prediction.models import described
from tests.test_cli import call
from tests.test_gestures import hand_bundle
from tflite_ort.decode.kinds import KINDS, kind_of
from tflite_ort.metadata import Metadata, model_metadata
from tflite_ort.model.class_names import class_names, names_of
from tflite_ort.prediction.answer_pictures import drawn
from tflite_ort.prediction.answer_text import lines_of, record_of
from tflite_ort.prediction.answers import Answer, Reader, read_labels
from tflite_ort.prediction.array_files import InputError
from tflite_ort.schema import ModelBuilder, Op, read_model
from tflite_ort.schema.file.model_metadata import TensorMetadata

Array = npt.NDArray[Any]
Image = pytest.importorskip("PIL.Image")

SIZE = 64  # of the networks; their pictures are twice as wide as high


def answer_of(outputs: Sequence[Array], labels: Sequence[str] = (), **how: Any) -> Answer:
    content = network(SIZE, [np.asarray(each, np.float32) for each in outputs])
    values = [np.asarray(each, np.float32) for each in outputs]
    found = Reader(read_model(content), Metadata(), labels, **how)(values, (200, 100))
    assert found is not None
    return found


def cells(strides: Sequence[int]) -> int:
    return sum((SIZE // stride) ** 2 for stride in strides)


def in_picture(box: Sequence[float]) -> list[float]:
    """A box in 0..1 of a square that holds a picture of 200 x 100, in 0..1 of the picture."""
    left, top, right, bottom = box
    return [left, top * 2 - 0.5, right, bottom * 2 - 0.5]


@pytest.mark.parametrize("pixels", [True, False])
@pytest.mark.parametrize("version", ["v5", "v8", "v10"])
def test_boxes_of_yolo(version: str, pixels: bool) -> None:
    scale = SIZE if pixels else 1
    boxes = np.array([[0.5, 0.5, 0.2, 0.1], [0.51, 0.5, 0.2, 0.1], [0.7, 0.4, 0.1, 0.1]]) * scale
    if version == "v8":
        table = np.zeros((1, 4 + 3, cells((8, 16, 32))))
        table[0, :4] = scale  # in the corner, without a score
        table[0, :4, :3], table[0, 4 + 1, :3] = boxes.T, [0.9, 0.8, 0.6]
        table[0, 4 + 2, 1] = 0.1
    elif version == "v5":
        table = np.zeros((1, 3 * cells((8, 16, 32)), 5 + 3))
        table[0, :, :4] = scale
        table[0, :3, :4], table[0, :3, 4], table[0, :3, 6] = boxes, [0.9, 0.8, 0.6], 1
    else:
        table = np.zeros((1, 300, 6))
        table[0, -1, :4] = scale
        corners = np.concatenate(
            [boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1
        )
        table[0, 0], table[0, 1] = [*corners[0], 0.9, 1], [*corners[2], 0.6, 1]
    found = answer_of([table], ["ant", "bee", "cat"])
    assert f"YOLO {version}" in found.kind
    assert [(box.what.name, round(box.what.score, 3)) for box in found.boxes] == [
        ("bee", 0.9),
        ("bee", 0.6),
    ]
    np.testing.assert_allclose(found.boxes[0].sides, in_picture([0.4, 0.45, 0.6, 0.55]), atol=1e-5)


def test_boxes_of_two_classes_may_overlap() -> None:
    table = np.zeros((1, 4 + 2, cells((8, 16, 32))))
    table[0, :4, :2] = np.array([[0.5, 0.5, 0.2, 0.1]] * 2).T
    table[0, 4, 0], table[0, 5, 1] = 0.9, 0.8
    assert [box.what.number for box in answer_of([table]).boxes] == [0, 1]


def test_logits_are_scores_too() -> None:
    table = np.full((1, 4 + 2, cells((8, 16, 32))), -9.0)
    table[0, :4] = 0.1
    table[0, :, 5] = [0.5, 0.5, 0.2, 0.2, np.log(4.0), -9]
    (box,) = answer_of([table]).boxes
    assert box.what.score == pytest.approx(0.8, abs=1e-6)


def test_boxes_of_nanodet() -> None:
    rows = cells((8, 16, 32))
    table = np.zeros((1, rows, 80 + 32))
    told = np.full((4, 8), -50.0)
    told[[0, 1, 2, 3], [1, 2, 3, 4]] = 50.0  # steps to the left, the top, the right, the bottom
    place = 8 * 3 + 4  # row 3, column 4 of the stride 8
    table[0, place, 80:], table[0, place, 7] = told.reshape(-1), 0.75
    found = answer_of([table])
    assert "NanoDet" in found.kind
    (box,) = found.boxes
    assert (box.what.number, box.what.score) == (7, 0.75)
    x, y = 4 * 8, 3 * 8
    sides = np.array([x - 8, y - 16, x + 24, y + 32]) / SIZE
    np.testing.assert_allclose(box.sides, sides, atol=1e-6)  # its pictures are stretched


def test_points_of_movenet() -> None:
    rng = np.random.default_rng(3)
    table = rng.uniform(0.3, 0.7, (1, 1, 17, 3))
    found = answer_of([table])
    (body,) = found.points
    assert (body.names[0], len(body.places)) == ("nose", 17)
    np.testing.assert_allclose(body.places[:, 0], table[0, 0, :, 1], atol=1e-6)
    np.testing.assert_allclose(body.places[:, 1], table[0, 0, :, 0] * 2 - 0.5, atol=1e-6)
    assert body.score == pytest.approx(table[0, 0, :, 2].mean())
    several = np.zeros((1, 6, 56))
    several[0, 2, :51], several[0, 2, 55] = table.reshape(-1), 0.8
    (one,) = answer_of([several]).points
    np.testing.assert_allclose(one.places, body.places, atol=1e-6)


def test_points_of_posenet() -> None:
    rows = 5
    heat, offsets = np.full((1, rows, rows, 17), -4.0), np.zeros((1, rows, rows, 34))
    for point in range(17):
        heat[0, point % rows, (point * 2) % rows, point] = 2.0
    offsets[0, :, :, :17], offsets[0, :, :, 17:] = 1.5, -2.5  # y, then x
    found = answer_of([heat, offsets, np.zeros((1, rows, rows, 32)), np.zeros((1, rows, rows, 32))])
    (body,) = found.points
    step = (SIZE - 1) / (rows - 1)
    y = (np.arange(17) % rows * step + 1.5) / SIZE
    x = (np.arange(17) * 2 % rows * step - 2.5) / SIZE
    np.testing.assert_allclose(body.places, np.stack([x, y], 1), atol=1e-6)
    assert body.score == pytest.approx(1 / (1 + np.exp(-2.0)), abs=1e-6)


def test_masks_have_shares() -> None:
    logits = np.zeros((1, 16, 16, 3))
    logits[0, :4, :, 2], logits[0, 4:, :, 1] = 9, 9
    found = answer_of([logits], ["sky", "grass", "tree"])
    assert [each.name for each in found.shares] == ["grass", "tree"]
    assert found.shares[0].score == pytest.approx(0.75, abs=0.04)
    assert found.mask is not None


def test_a_mask_of_one_class_is_drawn_where_the_class_is() -> None:
    heat = np.full((1, 16, 16, 1), -9.0)
    heat[0, :, :8] = 9.0  # the left half
    found = answer_of([heat])
    assert [each.name for each in found.shares] == ["foreground"]
    assert found.shares[0].score == pytest.approx(0.5, abs=0.05)
    pixels = np.asarray(drawn(found, np.full((100, 200, 3), 9, np.uint8)))
    assert (pixels[90, 30] != 9).any()
    assert (pixels[90, 170] == 9).all()


def test_a_grid_of_a_detector_is_no_mask() -> None:
    assert kind_of(read_model(network(SIZE, [np.zeros((1, 4, 4, 6))]))) is None


def test_letters_make_a_text() -> None:
    labels = ("<pad>", "|", "a", "b")
    reader = Reader(read_model(speech()), Metadata(), labels)
    scores = np.eye(4, dtype=np.float32)[[2, 2, 0, 2, 1, 1, 3, 0]][np.newaxis]
    found = reader([scores], None)
    assert found is not None
    assert lines_of(found) == ["aa b"]
    lacking = Reader(read_model(speech()), Metadata())([scores], None)
    assert lacking is not None
    assert "the 4 letters: --labels vocab.json" in lines_of(lacking)[0]


def speech() -> bytes:
    builder = ModelBuilder()
    graph = builder.subgraph("main").tensor("sound", (1, 1024)).tensor("scores", (1, 256, 4))
    graph.constant("shape", np.array([1, 256, 4], np.int32))
    graph.operator(Op.RESHAPE, ["sound", "shape"], ["scores"])
    graph.inputs("sound").outputs("scores")
    return builder.write()


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("cat\ndog\n", ".txt"),
        ("0 cat\n1  dog\n\n", ".txt"),
        ("0: cat\n1: dog", ".names"),
        ("index,mid,display_name\n0,/m/0,cat\n1,/m/1,dog\n", ".csv"),
        ('{"id2label": {"0": "cat", "1": "dog"}}', ".json"),
        ('{"cat": 0, "dog": 1}', ".json"),
        ('["cat", "dog"]', ".json"),
        ('{"names": {"0": "cat", "1": "dog"}, "imgsz": [640, 640]}', ".json"),
    ],
)
def test_files_of_names(text: str, suffix: str, tmp_path: Path) -> None:
    assert names_of(text, suffix) == ("cat", "dog")
    (tmp_path / f"names{suffix}").write_text(text)
    assert read_labels(tmp_path / f"names{suffix}") == ("cat", "dog")


def test_a_file_without_names_is_refused(tmp_path: Path) -> None:
    for content in ("", '{"a": [1, 2]}', "{" * 100_000):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(InputError, match="no names of classes"):
            read_labels(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metadata.json", json.dumps({"names": {"0": "cat", "1": "dog"}})),
        ("temp_meta.txt", "{'stride': 32, 'names': {0: 'cat', 1: 'dog'}}"),
    ],
)
def test_names_that_ultralytics_packs(file: str, text: str) -> None:
    content = described(network(SIZE, [np.zeros((1, 2))]), TensorMetadata(), [], {file: text})
    assert class_names(model_metadata(read_model(content), content)) == ("cat", "dog")


# The command line --------------------------------------------------------------------------------


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("RGB", (200, 100), (10, 200, 30)).save(tmp_path / "picture.png")
    return tmp_path / "picture.png"


def detector(tmp_path: Path) -> Path:
    table = np.zeros((1, 4 + 2, cells((8, 16, 32))))
    table[0, :, 3] = [0.5, 0.5, 0.2, 0.1, 0.9, 0]
    (tmp_path / "yolo.tflite").write_bytes(network(SIZE, [table]))
    return tmp_path / "yolo.tflite"


def test_run_prints_boxes_and_draws_them(tmp_path: Path, picture: Path) -> None:
    model, out = detector(tmp_path), tmp_path / "out.png"
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    result = call("run", model, picture, "--labels", tmp_path / "labels.txt", "--output", out)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[2].split() == ["what", "score", "left", "top", "width", "height"]
    assert lines[3].split() == ["cat", "90.0", "%", "80", "40", "40", "20"]
    pixels = np.asarray(Image.open(out))
    assert pixels.shape == (100, 200, 3)
    assert (pixels[40, 90] != [10, 200, 30]).any()  # the upper side of the box
    assert (pixels[90, 20] == [10, 200, 30]).all()
    (tmp_path / "labels.txt").unlink()  # beside the model it is read by itself
    bare = call("run", model, picture).stdout
    assert "class 0" in bare
    assert "lacks: names of the 2 classes: --labels FILE" in bare
    found = json.loads(call("run", model, picture, "--json").stdout)["answer"]
    assert found["boxes"][0]["index"] == 0
    np.testing.assert_allclose(found["boxes"][0]["box"], [0.4, 0.4, 0.6, 0.6], atol=1e-6)
    assert "output" in call("run", model, picture, "--raw").stdout.splitlines()[1]


def test_what_outputs_are_can_be_named(tmp_path: Path, picture: Path) -> None:
    model = tmp_path / "vector.tflite"
    model.write_bytes(network(SIZE, [np.array([[1.0, 3.0, 2.0]])]))
    assert "--decode classes if they are scores" in call("run", model, picture).stdout
    named = call("run", model, picture, "--decode", "classes", "--top", "1").stdout.splitlines()
    assert named[2:] == [
        "class 1  3",
        "lacks: names of the 3 classes: --labels FILE has one in a line; a labels.txt beside the "
        "model is read by itself",
    ]
    wrong = call("run", model, picture, "--decode", "yolo")
    assert "the outputs of the model are no such ones" in wrong.output
    assert "is none of" in call("run", model, picture, "--decode", "yolov5").output
    (tmp_path / "two.txt").write_text("a\nb")
    other = call("run", model, picture, "--labels", tmp_path / "two.txt")
    assert "there are 2 labels, and the model has 3 classes" in other.output
    assert "first line" in other.output


def test_run_of_a_bundle_runs_its_task(tmp_path: Path, picture: Path) -> None:
    (tmp_path / "hand.task").write_bytes(hand_bundle())
    result = call("run", tmp_path / "hand.task", picture, "--output", tmp_path / "out.png")
    assert result.exit_code == 0, result.output
    assert "hand landmarker" in result.stdout
    assert "21 points" in result.stdout
    assert (tmp_path / "out.png").exists()
    none = call("run", tmp_path / "hand.task")
    assert "takes one picture: run BUNDLE PICTURE" in none.output


def test_everything_can_be_drawn() -> None:
    pixels = np.zeros((60, 80, 3), np.uint8)
    table = np.full((1, 1, 17, 3), 0.5)
    logits = np.zeros((1, 16, 16, 3))
    logits[0, :4, :, 2], logits[0, 4:, :, 1] = 9, 9
    for outputs in ([table], [logits], [np.array([[1.0, 3.0]])]):
        found = answer_of(outputs, decode="classes" if outputs[0].ndim == 2 else "auto")
        assert np.asarray(drawn(found, pixels)).any()
        assert json.dumps(record_of(found))


def test_all_kinds_have_a_name_on_the_command_line() -> None:
    said = call("run", "--help").stdout
    assert all(name in said for name in KINDS)


@pytest.mark.parametrize("least, count", [(None, 2), (0.5, 1), (0.95, 0)])
def test_boxes_have_at_least_the_score_that_is_asked_for(
    least: float | None, count: int, tmp_path: Path, picture: Path
) -> None:
    table = np.zeros((1, 4 + 2, 84))
    table[0, :, 3] = [0.5, 0.5, 0.2, 0.1, 0.9, 0]
    table[0, :, 9] = [0.2, 0.2, 0.2, 0.1, 0, 0.4]
    table[0, :, 12] = [0.8, 0.2, 0.2, 0.1, 0, 0.2]
    assert len(answer_of([table], min_score=least).boxes) == count
    (tmp_path / "yolo.tflite").write_bytes(network(SIZE, [table]))
    more = [] if least is None else ["--min-score", least]
    shown = call("run", tmp_path / "yolo.tflite", picture, *more).stdout
    assert ("nothing found: a lower --min-score" in shown) == (count == 0)
