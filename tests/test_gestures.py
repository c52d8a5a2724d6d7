"""Gestures: what the networks after the hand landmarks read, and which class is given."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_bundles import task, with_files
from tests.one_op import Node, T, graph_model
from tests.test_decode import outputs_of, session
from tests.test_tasks import IMAGE, base, hand_bundle
from tflite_ort import ModelError, export_onnx, open_bundle, tasks
from tflite_ort.export.bundle import export_bundle
from tflite_ort.schema import (
    Buffer,
    ConcatenationOptions,
    FullyConnectedOptions,
    Op,
    ReshapeOptions,
    SoftmaxOptions,
    read_model,
    write_model,
)
from tflite_ort.schema.file.model import Metadata
from tflite_ort.schema.file.model_metadata import (
    NAME,
    AssociatedFile,
    AssociatedFileType,
    ModelMetadata,
    SubGraphMetadata,
    TensorMetadata,
    write_metadata,
)
from tflite_ort.tasks import vision

Array = npt.NDArray[Any]

CANNED, CUSTOM = ("None", "Closed_Fist", "Open_Palm", "Victory"), ("None", "mine")


def embedder() -> bytes:
    """All that it reads, one after the other. Its tensors have the names of decoded inputs."""
    tensors = {
        "landmarks": T((1, 21, 3)),
        "handedness": T((1, 1)),
        "size": T((1, 21, 3)),
        "shape": T.constant(np.array([1, 63], np.int32)),
        "rotation": T((1, 63)),
        "world": T((1, 63)),
        "embedding": T((1, 127)),
    }
    nodes = [
        Node(Op.RESHAPE, ["landmarks", "shape"], ["rotation"], ReshapeOptions()),
        Node(Op.RESHAPE, ["size", "shape"], ["world"], ReshapeOptions()),
        Node(
            Op.CONCATENATION,
            ["rotation", "handedness", "world"],
            ["embedding"],
            ConcatenationOptions(axis=1),
        ),
    ]
    model = read_model(graph_model(tensors, nodes, ["embedding"]))
    graph = model.subgraphs[0]
    names = [each.name for each in graph.tensors]
    order = tuple(names.index(name) for name in ("landmarks", "handedness", "size"))
    return write_model(replace(model, subgraphs=(replace(graph, inputs=order),)))


def classifier(scores: Sequence[float], labels: Sequence[str]) -> bytes:
    """It always gives these scores."""
    count = len(labels)
    tensors = {
        "x": T((1, 127)),
        "w": T.constant(np.zeros((count, 127), np.float32)),
        "b": T.constant(np.log(np.array(scores, np.float32))),
        "f": T((1, count)),
        "y": T((1, count)),
    }
    nodes = [
        Node(Op.FULLY_CONNECTED, ["x", "w", "b"], ["f"], FullyConnectedOptions()),
        Node(Op.SOFTMAX, ["f"], ["y"], SoftmaxOptions(1.0)),
    ]
    model = read_model(graph_model(tensors, nodes, ["y"]))
    file = AssociatedFile("labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    output = TensorMetadata(name="y", associated_files=(file,))
    graph = SubGraphMetadata(
        input_tensor_metadata=(TensorMetadata(name="x"),), output_tensor_metadata=(output,)
    )
    content = np.frombuffer(write_metadata(ModelMetadata(subgraph_metadata=(graph,))), np.uint8)
    metadata = (*model.metadata, Metadata(NAME, len(model.buffers)))
    buffers = (*model.buffers, Buffer(content))
    written = write_model(replace(model, buffers=buffers, metadata=metadata))
    return with_files(written, {"labels.txt": "\n".join(labels).encode()})


def bundle(canned: Sequence[float], custom: Sequence[float] | None = None) -> bytes:
    files = {
        "gesture_embedder.tflite": embedder(),
        "canned_gesture_classifier.tflite": classifier(canned, CANNED),
    }
    if custom is not None:
        files["custom_gesture_classifier.tflite"] = classifier(custom, CUSTOM)
    return task(
        {"hand_landmarker.task": hand_bundle(), "hand_gesture_recognizer.task": task(files)}
    )


def options(content: bytes, **more: Any) -> vision.GestureRecognizerOptions:
    return vision.GestureRecognizerOptions(base(content), **more)


def gesture(content: bytes, **more: Any) -> list[tuple[int | None, str | None, float]]:
    made = vision.GestureRecognizer.create_from_options(options(content, **more))
    (found,) = made.recognize(IMAGE).gestures
    return [(each.index, each.category_name, round(each.score or 0, 5)) for each in found]


def test_the_surest_gesture_of_the_first_classifier_that_sees_one() -> None:
    assert gesture(bundle([0.1, 0.2, 0.6, 0.1])) == [(-1, "Open_Palm", 0.6)]
    assert gesture(bundle([0.1, 0.2, 0.6, 0.1], [0.4, 0.6])) == [(-1, "mine", 0.6)]
    assert gesture(bundle([0.1, 0.2, 0.6, 0.1], [0.8, 0.2])) == [(-1, "Open_Palm", 0.6)]
    assert gesture(bundle([0.7, 0.1, 0.1, 0.1], [0.8, 0.2])) == [(-1, "None", 0.8)]


def test_what_each_classifier_may_give() -> None:
    content = bundle([0.1, 0.2, 0.6, 0.1])
    canned = tasks.processors.ClassifierOptions(category_denylist=["Open_Palm"])
    assert gesture(content, canned_gesture_classifier_options=canned) == [(-1, "Closed_Fist", 0.2)]
    canned = tasks.components.processors.ClassifierOptions(score_threshold=0.9)
    assert gesture(content, canned_gesture_classifier_options=canned) == []


def test_hands_in_a_film() -> None:
    content = bundle([0.1, 0.2, 0.6, 0.1])
    mode = vision.RunningMode.VIDEO
    recognizer = vision.GestureRecognizer.create_from_options(options(content, running_mode=mode))
    landmarker = vision.HandLandmarker.create_from_options(
        vision.HandLandmarkerOptions(base(hand_bundle()), mode)
    )
    for number in range(3):
        found = recognizer.recognize_for_video(IMAGE, 33 * number)
        hands = landmarker.detect_for_video(IMAGE, 33 * number)
        assert found.hand_landmarks == hands.hand_landmarks
        assert found.hand_world_landmarks == hands.hand_world_landmarks
        assert found.handedness == hands.handedness
        assert [each.category_name for each in found.gestures[0]] == ["Open_Palm"]


def normalised(points: Array, turn: float) -> Array:
    """As MediaPipe's calculator has it: turned, from the wrist on, by the longer side."""
    c, s = math.cos(turn), math.sin(-turn)
    x, y = points[:, 0] - 0.5, points[:, 1] - 0.5
    moved = np.stack([x * c - y * s, y * c + x * s, points[:, 2]], -1)
    moved -= moved[0].copy()
    sides = np.ptp(moved[:, :2], axis=0)
    return np.asarray(moved / (sides.max() + 1e-5))


def test_what_an_embedder_reads_in_plain_onnx_runtime() -> None:
    rng = np.random.default_rng(4)
    written = export_onnx(embedder(), decode=True, decode_inputs=True)
    said = {each.key: each.value for each in written.metadata_props}
    assert json.loads(said["tflite.decoded"])["kind"] == "gesture embedder"
    run = session(written)
    landmarks, world = rng.normal(size=(2, 21, 3)).astype(np.float32)
    feeds = {
        "landmarks": landmarks,
        "handedness": np.array(0.25, np.float32),
        "world_landmarks": world,
        "size": np.array([320, 200], np.float32),
    }
    for turn in (0.0, 1.0):
        more = {"rotation": np.array(turn, np.float32)} if turn else {}
        found = outputs_of(run, {**feeds, **more})["embedding"]
        assert found[63] == 0.25
        shaped = landmarks * [1, 200 / 320, 1] + [0, 0.5 - 100 / 320, 0]
        np.testing.assert_allclose(found[:63], normalised(shaped, turn).ravel(), atol=1e-5)
        np.testing.assert_allclose(found[64:], normalised(world, turn).ravel(), atol=1e-5)


def test_a_bundle_without_gestures() -> None:
    files = {"hand_landmarker.task": hand_bundle()}
    with pytest.raises(ModelError, match="gesture_embedder"):
        gesture(task(files))
    names = [entry.stem for entry in open_bundle(bundle([1, 1, 1, 1])).models]
    assert names == [
        *("hand_detector", "hand_landmarks_detector"),
        *("gesture_embedder", "canned_gesture_classifier"),
    ]


def test_a_bundle_whose_later_networks_take_no_picture(tmp_path: Path) -> None:
    path = export_bundle(open_bundle(bundle([0.1, 0.2, 0.6, 0.1])), tmp_path, decode="image")
    models = {each["kind"]: each for each in json.loads(path.read_text("utf-8"))["models"]}
    first = {kind: each["inputs"][0]["name"] for kind, each in models.items()}
    assert first["palm detector"] == first["hand landmarks"] == "image"
    assert first["gesture embedder"] == "landmarks"
    assert "image" not in first["classifier"]
