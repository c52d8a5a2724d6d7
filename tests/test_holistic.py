"""`HolisticLandmarker` and the older solution for whole persons, on small networks.

What MediaPipe's own networks give is compared with MediaPipe in `benchmarks/mediapipe_tasks.py`.
"""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_bundles import task
from tests.made_networks import network
from tests.test_blendshapes import blendshapes
from tests.test_tasks import (
    HAND_POINTS,
    IMAGE,
    base,
    detector,
    face_bundle,
    hand_bundle,
    pose_bundle,
)
from tflite_ort import ModelError, open_bundle
from tflite_ort.tasks import solutions, vision
from tflite_ort.tasks.holistic import Limits
from tflite_ort.tasks.points import PoseLandmark
from tflite_ort.tasks.rects import Rect, centred_rect, wrist_rect
from tflite_ort.tasks.solutions import models

Array = npt.NDArray[Any]

PARTS = ("face", "pose", "left_hand", "right_hand")
SIZE = (160, 120)


def body() -> dict[str, bytes]:
    """A person: its eyes level, its hands at the right and the left."""
    raw = np.zeros((39, 5))
    raw[:, :2], raw[:, 3:] = 128, 2.0
    places = {
        "RIGHT_EYE": (100, 60), "LEFT_EYE": (130, 60), "NOSE": (115, 75),
        "LEFT_WRIST": (200, 120), "LEFT_PINKY": (205, 90), "LEFT_INDEX": (195, 90),
        "RIGHT_WRIST": (60, 120), "RIGHT_PINKY": (55, 90), "RIGHT_INDEX": (65, 90),
    }  # fmt: skip
    for name, place in places.items():
        raw[PoseLandmark[name], :2] = place
    raw[:11][raw[:11, 0] == 128, :2] = 115, 70
    raw[33, :2], raw[34, :2] = (128, 128), (128, 40)
    world = np.zeros((39, 3))
    world[PoseLandmark.LEFT_WRIST] = 0.5, -0.25, 0.125
    size, cells = 256, 64
    outputs = [
        raw.reshape(1, 195),
        np.array([[0.9]]),
        np.full((1, size, size, 1), 4.0),
        np.full((1, cells, cells, 39), -5.0),
        world.reshape(1, 117),
    ]
    return {"pose_landmarks_detector.tflite": network(size, outputs)}


def models_of(content: bytes) -> dict[str, bytes]:
    bundle = open_bundle(content)
    return {each.name: bytes(bundle.model_content(each.name)) for each in bundle.models}


def networks_of(hand: float = 0.9) -> dict[str, bytes]:
    made = models_of(pose_bundle()) | models_of(face_bundle()) | models_of(hand_bundle(hand))
    crop = np.array([128, 128, 128, 200], np.float64).reshape(1, 1, 1, 4)
    eyes = np.array([[-1, 0], [1, 0], [0, 1], [0, 2], [-2, 0], [2, 0]]) / 16
    faces = {"face_detector.tflite": detector(128, 896, 6, 17 * 16, eyes)}
    return made | body() | faces | {"hand_roi_refinement.tflite": network(256, [crop])}


def landmarker(mode: Any = vision.RunningMode.IMAGE, **options: Any) -> Any:
    files = networks_of() | {"face_blendshapes.tflite": blendshapes()}
    made = vision.HolisticLandmarkerOptions(base(task(files)), mode, **options)
    return vision.HolisticLandmarker.create_from_options(made)


def test_a_person() -> None:
    with landmarker(output_pose_segmentation_masks=True) as whole:
        found = whole.detect(IMAGE)
        again = whole.detect([IMAGE, IMAGE // 2, IMAGE])
    counts = [len(getattr(found, f"{part}_landmarks")) for part in PARTS]
    assert counts == [468, 33, 21, 21]
    assert found.face_blendshapes is None
    assert found.segmentation_mask.numpy_view().shape == IMAGE.shape[:2]
    assert found.pose_landmarks[0].visibility == pytest.approx(1 / (1 + math.exp(-2)))
    # Hands in metres stand where the wrists of the body are.
    wrists = [getattr(found, f"{side}_hand_world_landmarks")[0] for side in ("left", "right")]
    np.testing.assert_allclose([(p.x, p.y, p.z) for p in wrists][1], 0, atol=1e-6)
    left = found.pose_world_landmarks[PoseLandmark.LEFT_WRIST]
    assert (wrists[0].x, wrists[0].y, wrists[0].z) == pytest.approx((left.x, left.y, left.z))
    assert max(abs(left.x), abs(left.y)) > 0.1
    # A picture does not depend on the one before.
    for each in again:
        each.segmentation_mask = None
    assert again[0] == again[2]
    assert [p.x for p in again[0].pose_landmarks] == [p.x for p in found.pose_landmarks]


def test_a_film_is_followed() -> None:
    with landmarker(vision.RunningMode.VIDEO) as whole:
        results = [whole.detect_for_video(IMAGE, 33 * number) for number in range(3)]
    for found in results:
        assert [len(getattr(found, f"{part}_landmarks")) for part in PARTS] == [468, 33, 21, 21]
    with landmarker(vision.RunningMode.VIDEO, min_pose_presence_confidence=0.95) as whole:
        found = whole.detect_for_video(IMAGE, 0)
    assert [len(getattr(found, f"{part}_landmarks")) for part in PARTS] == [0, 0, 0, 0]
    assert found.segmentation_mask is None


def test_what_is_not_sure_is_left_out() -> None:
    with landmarker(min_hand_landmarks_confidence=0.95) as whole:
        found = whole.detect(IMAGE)
    assert [len(getattr(found, f"{part}_landmarks")) for part in PARTS] == [468, 33, 0, 0]
    with landmarker(min_face_detection_confidence=0.99) as whole:
        assert whole.detect(IMAGE).face_landmarks == []


def test_expressions() -> None:
    files = networks_of() | {"face_blendshapes.tflite": blendshapes()}
    mesh = np.random.default_rng(2).uniform(40, 150, (1, 1, 1, 1434))
    files["face_landmarks_detector.tflite"] = network(192, [mesh, np.full((1, 1, 1, 1), 5.0)])
    options = vision.HolisticLandmarkerOptions(base(task(files)), output_face_blendshapes=True)
    with vision.HolisticLandmarker.create_from_options(options) as whole:
        found = whole.detect(IMAGE)
    assert len(found.face_landmarks) == 478
    assert found.face_blendshapes is not None and len(found.face_blendshapes) == 52
    del files["hand_roi_refinement.tflite"]
    with pytest.raises(ModelError, match="hand_roi_refinement"):
        vision.HolisticLandmarker.create_from_options(
            vision.HolisticLandmarkerOptions(base(task(files)))
        )


def test_older_names_of_options() -> None:
    options = vision.HolisticLandmarkerOptions(
        base(b""), min_face_landmarks_confidence=0.25, output_segmentation_mask=True
    )
    assert options.min_face_presence_confidence == 0.25
    assert options.output_pose_segmentation_masks and options.output_segmentation_mask
    options.min_pose_landmarks_confidence = 0.75
    assert options.min_pose_presence_confidence == 0.75
    with pytest.raises(ValueError, match="not both"):
        vision.HolisticLandmarkerOptions(
            base(b""), min_pose_landmarks_confidence=0.1, min_pose_presence_confidence=0.2
        )
    assert [each.name for each in fields(options)][2:5] == [
        *("min_face_detection_confidence", "min_face_suppression_threshold"),
        "min_face_presence_confidence",
    ]


def test_regions_of_hands() -> None:
    """Around the middle finger, twice as large as it is far from the wrist, and upright for a hand
    that points up."""
    rect = wrist_rect(*(np.array(place) for place in ([0.5, 0.6], [0.6, 0.3], [0.45, 0.3])), SIZE)
    assert (rect.x, rect.y) == pytest.approx((0.5, 0.3))
    assert (rect.width * 160, rect.height * 120) == pytest.approx((72, 72))
    assert rect.rotation == pytest.approx(0)
    below = centred_rect(np.array([0.5, 0.5]), np.array([0.5, 0.75]), SIZE, -math.pi / 2)
    assert below.rotation == pytest.approx(0)


@pytest.mark.parametrize(
    ("changed", "holds"),
    [
        ({}, True),
        ({"rotation": 0.3 + math.radians(14)}, True),
        ({"rotation": 0.3 + math.radians(16)}, False),
        ({"rotation": 0.3 - 2 * math.pi}, True),
        ({"x": 0.51}, True),
        ({"x": 0.56}, False),
        ({"width": 0.5}, True),
        ({"width": 0.55}, False),
        ({"height": 0.2}, False),
    ],
)
def test_when_a_region_is_followed(changed: dict[str, float], holds: bool) -> None:
    said = {"x": 0.5, "y": 0.5, "width": 0.4, "height": 0.4, "rotation": 0.3}
    limits, points = Limits(15, 0.1, 0.3, -0.2), np.full((3, 3), 0.5)
    assert limits.hold(Rect(**(said | changed)), points, Rect(**said), SIZE) is holds
    points[0, 0] = 0.5 + 0.17
    assert not limits.hold(Rect(**said), points, Rect(**said), SIZE)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = {
        "pose_detector": "pose_detection/pose_detection",
        "pose_landmarks_detector": "pose_landmark/pose_landmark_full",
        "face_detector": "face_detection/face_detection_short_range",
        "face_landmarks_detector": "face_landmark/face_landmark",
        "hand_roi_refinement": "holistic_landmark/hand_recrop",
        "hand_landmarks_detector": "hand_landmark/hand_landmark_full",
    }
    files = networks_of()
    for name, place in names.items():
        path = tmp_path / f"{place}.tflite"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[f"{name}.tflite"])
    monkeypatch.setenv(models.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("modules")
def test_the_older_solution() -> None:
    with solutions.holistic.Holistic(enable_segmentation=True) as whole:
        results = [whole.process(IMAGE) for _ in range(3)]
        whole.reset()
        anew = whole.process(IMAGE)
    first = results[0]
    assert first._fields[:3] == ("pose_landmarks", "pose_world_landmarks", "left_hand_landmarks")
    for found in results:
        counts = [len(getattr(found, f"{part}_landmarks").landmark) for part in PARTS]
        assert counts == [468, 33, 21, 21]
        assert not found.left_hand_landmarks.landmark[0].HasField("visibility")
        assert found.segmentation_mask.shape == IMAGE.shape[:2]
    assert [p.x for p in anew.face_landmarks.landmark] == [
        p.x for p in first.face_landmarks.landmark
    ]
    with solutions.holistic.Holistic(min_detection_confidence=0.99) as whole:
        assert whole.process(IMAGE) == (None,) * 6


def test_hands_are_where_the_second_network_says() -> None:
    """Its circle is 72 of 256 pixels around the middle: the hand's region is that large a part of
    the coarse one, and the points of the hand lie in it."""
    with landmarker() as whole:
        found = whole.detect(IMAGE)
    coarse = [
        np.array([(found.pose_landmarks[p].x, found.pose_landmarks[p].y)])
        for p in (PoseLandmark.LEFT_WRIST, PoseLandmark.LEFT_PINKY, PoseLandmark.LEFT_INDEX)
    ]
    rect = wrist_rect(*(each[0] for each in coarse), SIZE)
    side = rect.width * 160 * 2.7 * 2 * 72 / 256
    hand = np.array([(p.x * 160, p.y * 120) for p in found.left_hand_landmarks])
    reach = np.linalg.norm(hand[20] - hand[0])
    wanted = np.linalg.norm(HAND_POINTS[20, :2] - HAND_POINTS[0, :2]) / 224 * side
    assert reach == pytest.approx(wanted, rel=1e-3)
