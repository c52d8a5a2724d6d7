"""The names of the tasks: what code that was written for MediaPipe's tasks asks for."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pytest

from tests.test_tasks import FACES, IMAGE, base
from tflite_ort import tasks
from tflite_ort.schema import DelegateError
from tflite_ort.tasks import audio, components, vision
from tflite_ort.tasks.face_landmarker import Blendshapes

NONE = "None"
CLASSIFIER = "display_names_locale max_results score_threshold category_allowlist category_denylist"
TRACKED = {
    name: (
        f"num_{name}s=1 min_{kind}_detection_confidence=0.5 min_{kind}_presence_confidence=0.5 "
        "min_tracking_confidence=0.5"
    )
    for name, kind in (("face", "face"), ("hand", "hand"), ("pose", "pose"))
}
MASKS = "output_confidence_masks=True output_category_mask=False"

# Fields of mediapipe.tasks 0.10.21 in their order, each with its default; None where none is said.
OPTIONS = {
    vision.FaceDetectorOptions: "min_detection_confidence=0.5 min_suppression_threshold=0.3",
    audio.AudioEmbedderOptions: "l2_normalize quantize",
    vision.FaceLandmarkerOptions: TRACKED["face"]
    + " output_face_blendshapes=False output_facial_transformation_matrixes=False",
    vision.HandLandmarkerOptions: TRACKED["hand"],
    vision.PoseLandmarkerOptions: TRACKED["pose"] + " output_segmentation_masks=False",
    vision.ObjectDetectorOptions: CLASSIFIER,
    vision.ImageClassifierOptions: CLASSIFIER,
    vision.ImageSegmenterOptions: MASKS,
    audio.AudioClassifierOptions: CLASSIFIER,
    vision.GestureRecognizerOptions: TRACKED["hand"]
    + " canned_gesture_classifier_options=_ custom_gesture_classifier_options=_",
}
LANDMARK = "x y z visibility presence name"
CONTAINERS = {
    "AudioDataFormat": "num_channels=1 sample_rate",
    "BoundingBox": "origin_x! origin_y! width! height!",
    "Category": "index score display_name category_name",
    "Classifications": "categories! head_index! head_name",
    "ClassificationResult": "classifications! timestamp_ms",
    "Detection": "bounding_box! categories! keypoints",
    "DetectionResult": "detections!",
    "Landmark": LANDMARK,
    "NormalizedLandmark": LANDMARK,
    "LandmarksDetectionResult": "landmarks! categories! world_landmarks! rect!",
    "Rect": "left! top! right! bottom!",
    "NormalizedRect": "x_center! y_center! width! height! rotation=0.0 rect_id",
}
RESULTS = {
    vision.FaceDetectorResult: "detections",
    vision.ObjectDetectorResult: "detections",
    vision.ImageClassifierResult: "classifications timestamp_ms",
    audio.AudioClassifierResult: "classifications timestamp_ms",
    vision.FaceLandmarkerResult: "face_landmarks face_blendshapes facial_transformation_matrixes",
    vision.HandLandmarkerResult: "handedness hand_landmarks hand_world_landmarks",
    vision.GestureRecognizerResult: "gestures handedness hand_landmarks hand_world_landmarks",
    vision.PoseLandmarkerResult: "pose_landmarks pose_world_landmarks segmentation_masks",
    vision.ImageSegmenterResult: "confidence_masks category_mask",
}
VERBS = {
    vision.FaceDetector: "detect",
    vision.FaceLandmarker: "detect",
    vision.HandLandmarker: "detect",
    vision.PoseLandmarker: "detect",
    vision.ObjectDetector: "detect",
    vision.ImageClassifier: "classify",
    vision.ImageSegmenter: "segment",
    vision.GestureRecognizer: "recognize",
}


def told(kind: Any) -> list[tuple[str, str]]:
    """The fields of a class with their defaults, ``!`` where there is none."""
    return [
        (each.name, "_" if each.default_factory is not MISSING else str(each.default))
        if each.default is not MISSING or each.default_factory is not MISSING
        else (each.name, "!")
        for each in fields(kind)
    ]


def wanted(text: str) -> list[tuple[str, str]]:
    pairs = (word.removesuffix("!").partition("=") for word in text.split())
    marks = (word.endswith("!") for word in text.split())
    return [
        (name, "!" if needed else default or NONE)
        for (name, _, default), needed in zip(pairs, marks, strict=True)
    ]


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: str(kind.__name__))
def test_options(kind: Any) -> None:
    mode = "AudioRunningMode.AUDIO_CLIPS" if "Audio" in kind.__name__ else "RunningMode.IMAGE"
    first = [("base_options", "!"), ("running_mode", mode)]
    assert told(kind) == [*first, *wanted(OPTIONS[kind]), ("result_callback", NONE)]


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name: str) -> None:
    assert told(getattr(components.containers, name)) == wanted(CONTAINERS[name])


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: str(kind.__name__))
def test_results(kind: Any) -> None:
    assert [each.name for each in fields(kind)] == RESULTS[kind].split()


@pytest.mark.parametrize("kind", VERBS, ids=lambda kind: str(kind.__name__))
def test_methods(kind: Any) -> None:
    def parameters(name: str) -> list[str]:
        return list(inspect.signature(getattr(kind, name)).parameters)

    verb, how = VERBS[kind], "image_processing_options"
    assert parameters(verb) == ["self", "image", how]
    assert parameters(f"{verb}_for_video") == ["self", "image", "timestamp_ms", how]
    assert parameters(f"{verb}_async") == ["self", "image", "timestamp_ms", how]
    assert parameters("create_from_options") == ["options"]
    assert parameters("create_from_model_path") == ["model_path"]
    assert {"close", "__enter__", "__exit__", "convert_to_normalized_rect"} <= set(dir(kind))


def test_enumerations_and_base_options() -> None:
    assert {each.name: each.value for each in vision.RunningMode} == {
        name: name for name in ("IMAGE", "VIDEO", "LIVE_STREAM")
    }
    assert [each.name for each in audio.RunningMode] == ["AUDIO_CLIPS", "AUDIO_STREAM"]
    assert {each.name: each.value for each in tasks.ImageFormat} == {
        "UNKNOWN": 0,
        "SRGB": 1,
        "SRGBA": 2,
        "GRAY8": 3,
        "GRAY16": 4,
        "SRGB48": 7,
        "SRGBA64": 8,
        "VEC32F1": 9,
        "SBGRA": 11,
        "VEC32F2": 12,
        "VEC32F4": 13,
    }
    names = [each.name for each in fields(tasks.BaseOptions)]
    assert names[:3] == ["model_asset_path", "model_asset_buffer", "delegate"]
    assert (tasks.BaseOptions.Delegate.CPU, tasks.BaseOptions.Delegate.GPU) == (1, 2)
    assert tasks.tasks is tasks, "mp.tasks.vision, where mp is this module"


def test_connections() -> None:
    hand, pose = vision.HandLandmarksConnections, vision.PoseLandmarksConnections
    face = vision.FaceLandmarksConnections
    assert (len(hand.HAND_CONNECTIONS), len(pose.POSE_LANDMARKS)) == (21, 35)
    assert len(face.FACE_LANDMARKS_CONTOURS) == 124
    lines = face.FACE_LANDMARKS_TESSELATION
    corners = np.array([[each.start, each.end] for each in lines]).reshape(-1, 3, 2)
    assert (corners[:, :, 1] == np.roll(corners[:, :, 0], -1, axis=1)).all()
    # Every point but those of the irises is in a triangle, and no edge is in more than two.
    assert sorted(set(corners.ravel().tolist())) == list(range(468))
    edges = np.sort(corners.reshape(-1, 2), axis=1)
    assert np.unique(edges, axis=0, return_counts=True)[1].max() == 2


def test_delegates() -> None:
    on_cpu = tasks.BaseOptions(model_asset_buffer=FACES, delegate=tasks.BaseOptions.Delegate.CPU)
    detector = vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(on_cpu))
    assert len(detector.detect(IMAGE).detections) == 1
    both = tasks.BaseOptions(delegate=tasks.BaseOptions.Delegate.CPU, providers="auto")
    with pytest.raises(ValueError, match="one of delegate and providers"):
        print(both.runs_on)


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflite_ort.providers.candidates.candidates", list)
    with pytest.raises(DelegateError, match="has a device GPU"):
        options = tasks.BaseOptions(
            model_asset_buffer=FACES, delegate=tasks.BaseOptions.Delegate.GPU
        )
        vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(options))


def test_a_closed_task_and_wrong_options() -> None:
    detector = vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(FACES)))
    detector.close()
    detector.close()
    with pytest.raises(ValueError, match="not running"):
        detector.detect(IMAGE)
    part = tasks.ImageProcessingOptions(components.containers.Rect(0.5, 0.0, 1.0, 0.5))
    picture = tasks.Image(tasks.ImageFormat.SRGB, IMAGE)
    rect = detector.convert_to_normalized_rect(part, picture)
    assert (rect.x_center, rect.y_center, rect.width, rect.height) == (0.75, 0.25, 0.5, 0.5)
    with pytest.raises(ValueError, match="doesn't support region"):
        detector.convert_to_normalized_rect(part, picture, roi_allowed=False)


def test_pictures() -> None:
    blue = np.zeros((2, 4, 4), np.uint8)
    blue[..., 0] = 255
    picture = tasks.Image(tasks.ImageFormat.SBGRA, blue)
    assert (picture.channels, picture.step, picture[1, 3, 0]) == (4, 16, 255)
    assert picture.is_contiguous() and not picture.is_empty() and not picture.uses_gpu()
    assert not picture.is_aligned(1 << 62)
    with pytest.raises(ValueError, match="read-only"):
        picture.numpy_view()[0, 0, 0] = 1
    assert tasks.image.pixels_of(picture)[0, 0].tolist() == [0, 0, 255]
    for wrong, why in (
        (tasks.ImageFormat.GRAY16, "GRAY16 is uint16"),
        (tasks.ImageFormat.UNKNOWN, "has a format"),
        ("SRGB", "has a format"),
    ):
        with pytest.raises(ValueError, match=why):
            tasks.Image(wrong, blue)


def test_sound() -> None:
    sound = components.containers.AudioData(4, tasks.containers.AudioDataFormat(1, 8_000))
    sound.load_from_array(np.array([1, 2, 3], np.float32))
    sound.load_from_array(np.array([9, 4, 5, 9], np.float32), offset=1, size=2)
    assert sound.buffer[:, 0].tolist() == [2, 3, 4, 5]
    sound.clear()
    assert (sound.buffer_length, sound.buffer.any()) == (4, False)
    with pytest.raises(ValueError, match="out of range"):
        sound.load_from_array(np.zeros(3, np.float32), offset=2, size=2)
    with pytest.raises(ValueError, match=r"channels\. Expect 1"):
        sound.load_from_array(np.zeros((3, 2), np.float32))
    stereo = tasks.AudioData.create_from_array(np.full((3, 2), -(2**15), np.int16))
    assert stereo.buffer.tolist() == [[-1, -1]] * 3
    assert stereo.audio_format == tasks.containers.AudioDataFormat(2, None)


def test_two_names_of_an_option() -> None:
    chosen = components.processors.ClassifierOptions(max_results=1)
    options = vision.GestureRecognizerOptions(
        base(FACES), canned_gestures_classifier_options=chosen
    )
    assert options.canned_gesture_classifier_options is chosen
    options.custom_gestures_classifier_options = chosen
    assert options.custom_gesture_classifier_options is chosen
    with pytest.raises(ValueError, match="not both"):
        vision.GestureRecognizerOptions(
            base(FACES),
            canned_gesture_classifier_options=chosen,
            canned_gestures_classifier_options=chosen,
        )


def test_expressions_have_names() -> None:
    made = [each.name for each in Blendshapes]
    assert (len(made), made[:2], made[-1]) == (
        52,
        ["NEUTRAL", "BROW_DOWN_LEFT"],
        "NOSE_SNEER_RIGHT",
    )
    assert Blendshapes.EYE_LOOK_UP_LEFT == 17
