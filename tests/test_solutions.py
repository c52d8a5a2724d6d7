"""Scripts written for MediaPipe: its import names, older solutions, their messages, and drawing.

What is compared with numbers was read from MediaPipe 0.10.21 and 1.2.3.
"""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_networks import network
from tests.test_tasks import IMAGE, face_bundle, hand_bundle, pose_bundle
from tflite_ort import install_as, open_bundle, tasks
from tflite_ort.schema import Op
from tflite_ort.tasks import drawing_styles, drawing_utils, messages, solutions, vision
from tflite_ort.tasks.body import calmed
from tflite_ort.tasks.options import BaseOptions
from tflite_ort.tasks.solutions import models

Array = npt.NDArray[Any]

_FILES = {
    "hand_detector": "palm_detection/palm_detection_full",
    "hand_landmarks_detector": "hand_landmark/hand_landmark_full",
    "face_detector": "face_detection/face_detection_short_range",
    "face_landmarks_detector": "face_landmark/face_landmark",
    "pose_detector": "pose_detection/pose_detection",
    "pose_landmarks_detector": "pose_landmark/pose_landmark_full",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as MediaPipe's package has it, of small networks."""
    folder = tmp_path / "modules"
    for content in (hand_bundle(), face_bundle(), pose_bundle()):
        bundle = open_bundle(content)
        for entry in bundle.models:
            path = folder / f"{_FILES[entry.name.removesuffix('.tflite')]}.tflite"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bundle.model_content(entry.name))
    selfie = folder / "selfie_segmentation" / "selfie_segmentation.tflite"
    selfie.parent.mkdir()
    selfie.write_bytes(network(32, [np.full((1, 32, 32, 1), 2.0)], last=Op.LOGISTIC))
    monkeypatch.setenv(models.VARIABLE, str(folder))
    return folder


def xy(points: Any) -> Array:
    return np.array([[each.x, each.y] for each in points.landmark])


@pytest.mark.usefixtures("modules")
def test_hands() -> None:
    with solutions.hands.Hands(static_image_mode=True) as hands:
        found = hands.process(IMAGE)
        assert found._fields == solutions.hands.Hands._outputs
        ((hand,),) = [each.classification for each in found.multi_handedness]
        # The network says 0.8 of its first class, which pictures of selfies call left.
        assert (hand.index, hand.label) == (0, "Left")
        assert hand.score == pytest.approx(0.8)
        (points,) = found.multi_hand_landmarks
        assert len(points.landmark) == 21
        assert not points.landmark[0].HasField("visibility")
        # The region is upright, where that of the task is turned by 90 radians.
        start, end = xy(points)[[0, 20]] * [160, 120]
        across, down = end - start
        assert (across / down) == pytest.approx(-100 / 140, rel=1e-3)
        with pytest.raises(ValueError, match="three channel rgb"):
            hands.process(IMAGE[..., 0])


@pytest.mark.usefixtures("modules")
def test_nothing_found_is_none() -> None:
    with solutions.hands.Hands(min_detection_confidence=0.99) as hands:
        assert hands.process(IMAGE) == (None, None, None)
    with solutions.face_mesh.FaceMesh(min_detection_confidence=0.99) as mesh:
        assert mesh.process(IMAGE).multi_face_landmarks is None
    with solutions.pose.Pose(min_detection_confidence=0.99) as pose:
        assert pose.process(IMAGE) == (None, None, None)
    with solutions.face_detection.FaceDetection(min_detection_confidence=0.99) as faces:
        assert faces.process(IMAGE).detections is None


@pytest.mark.usefixtures("modules")
def test_faces_are_not_smoothed() -> None:
    def x_of(static: bool, images: list[Array]) -> list[float]:
        with solutions.face_mesh.FaceMesh(static_image_mode=static) as mesh:
            found = [mesh.process(image).multi_face_landmarks for image in images]
        return [faces[0].landmark[3].x for faces in found]

    dark = IMAGE // 4
    static = x_of(True, [IMAGE, dark])
    with solutions.face_mesh.FaceMesh() as mesh:
        first = xy(mesh.process(IMAGE).multi_face_landmarks[0])
        again = xy(mesh.process(IMAGE).multi_face_landmarks[0])
        mesh.reset()
        anew = xy(mesh.process(IMAGE).multi_face_landmarks[0])
    assert static[0] != static[1]
    np.testing.assert_array_equal(first, anew)
    assert np.abs(first - again).max() > 1e-3, "the second picture's region is that of the points"


@pytest.mark.usefixtures("modules")
def test_a_body_and_its_mask() -> None:
    with solutions.pose.Pose(enable_segmentation=True) as pose:
        results = [pose.process(IMAGE) for _ in range(3)]
    for found in results:
        assert len(found.pose_landmarks.landmark) == 33
        point = found.pose_landmarks.landmark[solutions.pose.PoseLandmark.NOSE]
        assert point.visibility == pytest.approx(1 / (1 + math.exp(-2)))
        assert not point.HasField("presence")
        assert found.segmentation_mask.shape == IMAGE.shape[:2]
        assert found.segmentation_mask.dtype == np.float32
    with pytest.raises(FileNotFoundError):
        solutions.pose.Pose(model_complexity=2)


def test_an_unsure_mask_keeps_some_of_the_one_before() -> None:
    new = np.float32([0.5, 0.0, 1.0, 0.75])
    mixed = calmed(new, np.float32([1, 1, 0, 0]))
    # At a half 0.7 of the one before is kept, and at 0 and 1 none but for the polynomial's error.
    np.testing.assert_allclose(mixed[:3], [0.85, 0, 1], atol=0.03)
    squared = 0.25**2
    factors = (5.68842, -0.748699, -57.8051, 291.309, -624.717)
    sure = sum(factor * squared ** (power + 1) for power, factor in enumerate(factors))
    assert mixed[3] == pytest.approx(0.75 - 0.75 * (1 - sure) * 0.7, abs=1e-5)


@pytest.mark.usefixtures("modules")
def test_masks_and_boxes() -> None:
    with solutions.selfie_segmentation.SelfieSegmentation() as selfie:
        mask = selfie.process(IMAGE).segmentation_mask
    assert mask.shape == IMAGE.shape[:2] and mask.dtype == np.float32
    np.testing.assert_allclose(mask, 1 / (1 + math.exp(-2)), atol=1e-5)
    with solutions.face_detection.FaceDetection() as faces:
        (face,) = faces.process(IMAGE).detections
    assert face.score[0] == pytest.approx(1 / (1 + math.exp(-3)))
    nose = solutions.face_detection.get_key_point(
        face, solutions.face_detection.FaceKeyPoint.NOSE_TIP
    )
    assert nose is face.location_data.relative_keypoints[2]
    assert face.location_data.HasField("relative_bounding_box")


def test_without_networks_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(models.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(FileNotFoundError, match=r"mediapipe==0\.10\.21.*MEDIAPIPE_MODELS"):
        solutions.hands.Hands()


# messages ----------------------------------------------------------------------------------------


def test_messages() -> None:
    points = messages.NormalizedLandmarkList()
    points.landmark.extend([messages.NormalizedLandmark(x=0.1, y=0.25, z=-1)])
    points.landmark.add(x=1).visibility = 0.5
    first, second = points.landmark
    assert first.x == float(np.float32(0.1)) and second.y == 0
    assert (first.HasField("visibility"), second.HasField("visibility")) == (False, True)
    second.ClearField("visibility")
    assert not second.HasField("visibility")
    assert str(points) == "landmark {\n  x: 0.1\n  y: 0.25\n  z: -1\n}\nlandmark {\n  x: 1\n}\n"
    other = messages.NormalizedLandmarkList()
    other.CopyFrom(points)
    assert other == points and other.landmark[0] is not first
    other.landmark[0].x = 0.5
    assert other != points
    for wrong in ({"w": 1}, {"landmarks": []}):
        with pytest.raises(ValueError, match="has no"):
            messages.NormalizedLandmarkList(**wrong)
    with pytest.raises(AttributeError, match="Assignment not allowed"):
        points.landmark = []
    with pytest.raises(AttributeError):
        first.w = 1
    with pytest.raises(ValueError, match="singular"):
        points.HasField("landmark")
    found = messages.Detection(score=[0.5])
    assert not found.HasField("location_data")
    found.location_data.relative_bounding_box.xmin = 0.5
    assert found.HasField("location_data")
    assert messages.Detection(location_data=found.location_data).location_data.HasField(
        "relative_bounding_box"
    )


# drawing -----------------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What OpenCV is told to draw."""
    told: list[Any] = []
    names = ("line", "circle", "rectangle", "arrowedLine")
    stand_in = SimpleNamespace(
        **{name: lambda image, *how, name=name: told.append((name, *how)) for name in names}
    )
    monkeypatch.setitem(sys.modules, "cv2", stand_in)
    return told


def test_points_and_lines_are_drawn(drawn: list[Any]) -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    points = [vision_point(0.5, 0.5), vision_point(0.999, 1.0), vision_point(1.5, 0.5)]
    drawing_utils.draw_landmarks(image, points, [(0, 1), (1, 2)])
    red, white = drawing_utils.RED_COLOR, drawing_utils.WHITE_COLOR
    assert drawn == [
        ("line", (100, 50), (199, 99), white, 2),
        ("circle", (100, 50), 3, white, 2),
        ("circle", (100, 50), 2, red, 2),
        ("circle", (199, 99), 3, white, 2),
        ("circle", (199, 99), 2, red, 2),
    ]
    drawn.clear()
    points[0].visibility = 0.4
    drawing_utils.draw_landmarks(image, points, [(0, 1)], landmark_drawing_spec=None)
    drawing_utils.draw_landmarks(image, None)
    assert drawn == []
    with pytest.raises(ValueError, match="#0 to landmark #3"):
        drawing_utils.draw_landmarks(image, points, [(0, 3)])
    with pytest.raises(ValueError, match="three channel"):
        drawing_utils.draw_landmarks(image[..., 0], points)


def vision_point(x: float, y: float) -> Any:
    return tasks.containers.NormalizedLandmark(x, y, 0.0)


def test_messages_and_results_are_drawn_alike(drawn: list[Any]) -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    message = messages.NormalizedLandmarkList()
    for number in range(21):
        message.landmark.add(x=number / 20, y=0.5)
    result = [vision_point(each.x, each.y) for each in message.landmark]
    style, lines = (
        drawing_styles.get_default_hand_landmarks_style(),
        drawing_styles.get_default_hand_connections_style(),
    )
    drawing_utils.draw_landmarks(image, message, solutions.hands.HAND_CONNECTIONS, style, lines)
    of_message = sorted(map(str, drawn))
    drawn.clear()
    connections = vision.HandLandmarksConnections.HAND_CONNECTIONS
    drawing_utils.draw_landmarks(image, result, connections, style, lines)
    apart = set(of_message) ^ set(map(str, drawn))
    assert len(drawn) == len(of_message) == 21 + 2 * 21
    assert len(apart) == 2, "the solution joins 0 and 5, the task 1 and 5"


def test_boxes_and_axes_are_drawn(drawn: list[Any]) -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    containers = tasks.containers
    box = containers.BoundingBox(10, 20, 30, 40)
    point = containers.NormalizedKeypoint(0.5, 0.5)
    drawing_utils.draw_detection(image, containers.Detection(box, [], [point]))
    message = messages.Detection()
    with pytest.raises(ValueError, match="relative"):
        drawing_utils.draw_detection(image, message)
    where = message.location_data
    where.format = where.RELATIVE_BOUNDING_BOX
    for name, value in (("xmin", 0.05), ("ymin", 0.2), ("width", 0.15), ("height", 0.4)):
        setattr(where.relative_bounding_box, name, value)
    drawing_utils.draw_detection(image, message)
    white = drawing_utils.WHITE_COLOR
    assert drawn == [
        ("circle", (100, 50), 2, drawing_utils.RED_COLOR, 2),
        ("rectangle", (10, 20), (40, 60), white, 2),
        ("rectangle", (10, 20), (40, 60), white, 2),
    ]
    drawn.clear()
    drawing_utils.draw_axis(image, np.eye(3), np.array([0.0, 0.0, -1.0]))
    assert [each[:3] for each in drawn] == [
        ("arrowedLine", (100, 50), (110, 50)),
        ("arrowedLine", (100, 50), (100, 44)),
        ("arrowedLine", (100, 50), (100, 50)),
    ]


# names -------------------------------------------------------------------------------------------

SCRIPT = """
import mediapipe as mp
from mediapipe import solutions
from mediapipe.framework.formats import landmark_pb2
from mediapipe.python.solutions.face_mesh_connections import FACEMESH_TESSELATION
from mediapipe.tasks import python
from mediapipe.tasks.python import audio, components, vision
from mediapipe.tasks.python.components.containers.landmark import NormalizedLandmark
from mediapipe.tasks.python.core.base_options import BaseOptions
from mediapipe.tasks.python.vision import drawing_styles, drawing_utils
from mediapipe.tasks.python.vision.core.vision_task_running_mode import VisionTaskRunningMode
from mediapipe.tasks.python.vision.hand_landmarker import HandLandmark, HandLandmarksConnections
import mediapipe.tasks.python.vision.pose_landmarker as pose_landmarker

assert mp.solutions.hands.Hands is solutions.hands.Hands
assert mp.tasks.BaseOptions is python.BaseOptions is BaseOptions
assert mp.tasks.vision.RunningMode is VisionTaskRunningMode is vision.RunningMode
assert mp.Image and mp.ImageFormat.SRGB and mp.__version__
assert pose_landmarker.PoseLandmark is mp.solutions.pose.PoseLandmark
assert mp.solutions.drawing_utils.draw_landmarks is drawing_utils.draw_landmarks
"""


def test_every_way_to_import_mediapipe() -> None:
    before = {name for name in sys.modules if name.startswith("mediapipe")}
    with install_as("mediapipe"):
        exec(compile(SCRIPT, "script.py", "exec"), {})
        assert importlib.import_module("mediapipe").Image is tasks.Image
    assert {name for name in sys.modules if name.startswith("mediapipe")} == before


def test_a_script_runs_with_mediapipe_named(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "tflite_ort", "as", "mediapipe", "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_options_reach_the_tasks() -> None:
    with install_as("mediapipe", providers=["cpu"], num_threads=2):
        said = BaseOptions(num_threads=1)
        assert (said.providers, said.num_threads) == (["cpu"], 1)
        assert BaseOptions(delegate=BaseOptions.Delegate.DEFAULT).num_threads == 2
        told = BaseOptions(delegate=BaseOptions.Delegate.CPU)
        assert told.providers is None and told.runs_on
    plain = BaseOptions()
    assert (plain.providers, plain.num_threads) == (None, None)
    for wrong in ({"hybrid": "float"}, {"cache": True}):
        with pytest.raises(ValueError, match="have no"):
            install_as("mediapipe", **wrong)


def test_the_lines_of_the_solutions() -> None:
    connections = solutions.face_mesh_connections
    assert {
        name: len(getattr(connections, name))
        for name in vars(connections)
        if name.startswith("FACEMESH")
    } == {
        "FACEMESH_LIPS": 40,
        "FACEMESH_LEFT_EYE": 16,
        "FACEMESH_LEFT_IRIS": 4,
        "FACEMESH_LEFT_EYEBROW": 8,
        "FACEMESH_RIGHT_EYE": 16,
        "FACEMESH_RIGHT_EYEBROW": 8,
        "FACEMESH_RIGHT_IRIS": 4,
        "FACEMESH_FACE_OVAL": 36,
        "FACEMESH_NOSE": 25,
        "FACEMESH_CONTOURS": 124,
        "FACEMESH_IRISES": 8,
        "FACEMESH_TESSELATION": 2556,
    }
    assert len(solutions.hands.HAND_CONNECTIONS) == 21
    assert len(solutions.pose.POSE_CONNECTIONS) == 35
