"""MediaPipe's tasks: their names and modes, and what they find; plain ONNX Runtime finds it too."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_bundles import task
from tests.made_networks import network
from tests.models import model_path
from tests.test_decode import outputs_of, session
from tflite_ort import ModelError, export_onnx, tasks
from tflite_ort.schema import Op
from tflite_ort.tasks import rects, vision
from tflite_ort.tasks.detectors import pixel_box
from tflite_ort.tasks.rects import Rect
from tflite_ort.tasks.smoothing import LowPass, OneEuro

Array = npt.NDArray[Any]

IMAGE = np.random.default_rng(0).integers(0, 256, (120, 160, 3), np.uint8)


def detector(size: int, count: int, points: int, at: int, keypoints: Array | None = None) -> bytes:
    """A detector that sees one thing: at an anchor, a quarter of the picture large."""
    raw = np.zeros((1, count, 4 + 2 * points))
    raw[0, at, 2:4] = size / 4
    if keypoints is not None:
        raw[0, at, 4:] = (keypoints * size).reshape(-1)
    logits = np.full((1, count, 1), -9.0)
    logits[0, at] = 3
    return network(size, [raw, logits])


FACES = detector(128, 896, 6, 17 * 2)  # the anchor in column 1 and row 1 of 16
HAND_POINTS = np.stack([np.linspace(60, 160, 21), np.linspace(180, 40, 21), np.zeros(21)], -1)


def hand_bundle(score: float = 0.9, handedness: float = 0.8) -> bytes:
    palm = np.zeros((7, 2))
    palm[2] = 0, -0.1
    landmarks = network(
        224,
        [
            HAND_POINTS.reshape(1, 63),
            np.array([[score]]),
            np.array([[handedness]]),
            HAND_POINTS.reshape(1, 63) / 1000,
        ],
    )
    files = {
        "hand_detector.tflite": detector(192, 2016, 7, 600, palm),
        "hand_landmarks_detector.tflite": landmarks,
    }
    return task(files)


def base(content: bytes) -> tasks.BaseOptions:
    return tasks.BaseOptions(model_asset_buffer=content, num_threads=1)


def test_a_box_that_is_no_number_is_drawn_at_the_edge() -> None:
    box = pixel_box(np.array([math.nan, 0.25, math.inf, 0.5]), (160, 120))
    assert (box.origin_x, box.origin_y, box.width, box.height) == (0, 30, 0, 30)


def test_a_face() -> None:
    with vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(FACES))) as task:
        (found,) = task.detect(tasks.Image(tasks.ImageFormat.SRGB, IMAGE)).detections
        assert found.categories[0].score == pytest.approx(1 / (1 + math.exp(-3)))
        # The letterbox is as high as the picture is wide: 20 pixels above it.
        middle = np.array([1.5 / 16 * 160, 1.5 / 16 * 160 - 20])
        box = found.bounding_box
        assert (box.width, box.height) == (40, 40)
        assert (box.origin_x, box.origin_y) == (0, 0)
        assert found.keypoints is not None
        assert (found.keypoints[0].x, found.keypoints[0].y) == pytest.approx(middle / [160, 120])
        assert task.detect(IMAGE[..., :1].repeat(4, axis=2)).detections
        assert task.detect(IMAGE[..., 0]).detections


def test_plain_onnx_runtime_finds_the_same(tmp_path: Path) -> None:
    content = detector(128, 896, 6, 300)
    path = tmp_path / "face.onnx"
    run = session(export_onnx(content, path, decode="image", decode_inputs=True))
    found = outputs_of(run, {"image": IMAGE})
    task = vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(content)))
    (detection,) = task.detect(IMAGE).detections
    left, top, right, bottom = found["boxes"][0] * [160, 120, 160, 120]
    box = detection.bounding_box
    sides = (box.origin_x, box.origin_y, box.width, box.height)
    assert sides == tuple(map(int, (left, top, right - left, bottom - top)))
    assert detection.categories[0].score == found["scores"][0]


def test_thresholds() -> None:
    options = vision.FaceDetectorOptions(base(FACES), min_detection_confidence=0.96)
    assert not vision.FaceDetector.create_from_options(options).detect(IMAGE).detections


def test_a_turned_picture() -> None:
    task = vision.FaceDetector.create_from_options(
        vision.FaceDetectorOptions(base(detector(128, 896, 6, 300)))
    )
    turned = tasks.ImageProcessingOptions(rotation_degrees=90)
    (found,) = task.detect(IMAGE, turned).detections
    (upright,) = task.detect(np.ascontiguousarray(np.rot90(IMAGE, -1))).detections
    assert found.keypoints is not None
    assert upright.keypoints is not None
    x, y = upright.keypoints[0].x, upright.keypoints[0].y
    assert (found.keypoints[0].x, found.keypoints[0].y) == pytest.approx((y, 1 - x), abs=1e-5)
    for wrong in (
        tasks.ImageProcessingOptions(rotation_degrees=45),
        tasks.ImageProcessingOptions(tasks.RectF(0, 0, 0.5, 0.5)),
    ):
        with pytest.raises(ValueError, match=r"multiple of 90|region-of-interest"):
            task.detect(IMAGE, wrong)


def test_running_modes() -> None:
    make = vision.FaceDetector.create_from_options
    mode = vision.RunningMode
    with pytest.raises(ValueError, match="not initialized with the video mode"):
        make(vision.FaceDetectorOptions(base(FACES))).detect_for_video(IMAGE, 1)
    video = make(vision.FaceDetectorOptions(base(FACES), mode.VIDEO))
    video.detect_for_video(IMAGE, 5)
    with pytest.raises(ValueError, match="monotonically increasing"):
        video.detect_for_video(IMAGE, 5)
    with pytest.raises(ValueError, match="callback must be"):
        make(vision.FaceDetectorOptions(base(FACES), mode.LIVE_STREAM))
    with pytest.raises(ValueError, match="callback should not be"):
        make(vision.FaceDetectorOptions(base(FACES), mode.IMAGE, result_callback=print))


def test_a_live_stream_is_answered_in_another_thread() -> None:
    answers: list[Any] = []

    def callback(result: Any, image: Any, timestamp_ms: int) -> None:
        answers.append((len(result.detections), timestamp_ms, threading.current_thread()))

    mode = vision.RunningMode.LIVE_STREAM
    with vision.FaceDetector.create_from_options(
        vision.FaceDetectorOptions(base(FACES), mode, result_callback=callback)
    ) as task:
        task.detect_async(IMAGE, 7)
    ((count, time, thread),) = answers
    assert (count, time) == (1, 7)
    assert thread is not threading.current_thread()


def test_another_kind_of_model_is_refused() -> None:
    with pytest.raises(ModelError, match=r"is a network for face detector, .* pose detector is"):
        vision.PoseLandmarker.create_from_options(vision.PoseLandmarkerOptions(base(FACES)))
    with pytest.raises(ValueError, match="give one of"):
        vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(tasks.BaseOptions()))


def test_a_hand() -> None:
    task = vision.HandLandmarker.create_from_options(
        vision.HandLandmarkerOptions(base(hand_bundle()))
    )
    found = task.detect(IMAGE)
    assert found.handedness[0][0].category_name == "Right"
    anchor = np.array([(600 // 2 % 24 + 0.5) / 24, (600 // 2 // 24 + 0.5) / 24])
    middle = np.array([anchor[0], (anchor[1] * 160 - 20) / 120])
    # The line between the keypoints points up, and the graph takes 90 radians for upright.
    turn = rects.normalized_angle(90 - math.pi / 2)
    rect = Rect(*middle, 0.25, 0.25 * 160 / 120, turn)
    rect = rect.scaled((160, 120), 2.6, shift_y=-0.5, square=True)
    inside = (HAND_POINTS[:, :2] / 224 - 0.5) * [rect.width * 160, rect.height * 120]
    c, s = math.cos(turn), math.sin(turn)
    expected = (inside @ np.array([[c, s], [-s, c]])) / [160, 120] + [rect.x, rect.y]
    points = np.array([[point.x, point.y] for point in found.hand_landmarks[0]])
    np.testing.assert_allclose(points, expected, atol=1e-4)
    world = found.hand_world_landmarks[0][0]
    np.testing.assert_allclose(
        [world.x, world.y], HAND_POINTS[0, :2] / 1000 @ [[c, s], [-s, c]], atol=1e-5
    )


class Counted:
    """A network that counts its runs."""

    def __init__(self, network: Any) -> None:
        self._network, self.runs = network, 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.runs += 1
        return self._network(*arguments, **named)


@pytest.mark.parametrize(("score", "runs"), [(0.9, 1), (0.1, 3)])
def test_a_hand_is_followed(score: float, runs: int) -> None:
    options = vision.HandLandmarkerOptions(base(hand_bundle(score)), vision.RunningMode.VIDEO)
    task = vision.HandLandmarker.create_from_options(options)
    counted = Counted(task._detector)
    task._detector = counted  # type: ignore[assignment]
    for number in range(3):
        assert len(task.detect_for_video(IMAGE, number).hand_landmarks) == (score > 0.5)
    assert counted.runs == runs


def test_a_left_hand_and_two_that_are_one() -> None:
    content = hand_bundle(handedness=0.3)
    options = vision.HandLandmarkerOptions(base(content), num_hands=2)
    task = vision.HandLandmarker.create_from_options(options)
    (found,) = task.found(task._frame(IMAGE, None, None))
    assert len(task._distinct([found, found], (160, 120))) == 1
    assert task.detect(IMAGE).handedness[0][0].category_name == "Left"


def face_bundle() -> bytes:
    mesh = np.random.default_rng(2).uniform(40, 150, (1, 1, 1, 1404))
    landmarks = network(192, [mesh, np.full((1, 1, 1, 1), 5.0)], weight=20.0)
    files = {"face_detector.tflite": FACES, "face_landmarks_detector.tflite": landmarks}
    return task(files)


def test_faces_are_smoothed_in_a_video() -> None:
    def x_of(mode: Any, images: list[Array]) -> list[float]:
        options = vision.FaceLandmarkerOptions(base(face_bundle()), mode)
        task = vision.FaceLandmarker.create_from_options(options)
        if mode is vision.RunningMode.IMAGE:
            results = [task.detect(image) for image in images]
        else:
            results = [task.detect_for_video(im, 33 * n) for n, im in enumerate(images)]
        return [float(each.face_landmarks[0][3].x or 0) for each in results]

    images = [IMAGE, IMAGE, IMAGE // 4]
    still, moving = x_of(vision.RunningMode.IMAGE, images), x_of(vision.RunningMode.VIDEO, images)
    assert still[0] == still[1] == moving[0]
    assert still[2] != still[1]


def pose_bundle() -> bytes:
    size, cells = 256, 64
    raw = np.zeros((1, 195))
    raw[0, 3::5] = 2.0
    raw[0, 33 * 5 : 33 * 5 + 2] = 128, 128
    raw[0, 34 * 5 : 34 * 5 + 2] = 128, 40
    outputs = [
        raw,
        np.array([[0.9]]),
        np.full((1, size, size, 1), 4.0),
        np.full((1, cells, cells, 39), -5.0),
        np.zeros((1, 117)),
    ]
    keypoints = np.zeros((4, 2))
    keypoints[1] = 0, -0.2
    files = {
        "pose_detector.tflite": detector(224, 2254, 4, 700, keypoints),
        "pose_landmarks_detector.tflite": network(size, outputs),
    }
    return task(files)


def test_a_pose() -> None:
    mode = vision.RunningMode.VIDEO
    options = vision.PoseLandmarkerOptions(
        base(pose_bundle()), mode, output_segmentation_masks=True
    )
    landmarker = vision.PoseLandmarker.create_from_options(options)
    for number in range(3):
        found = landmarker.detect_for_video(IMAGE, 33 * number)
    (points,) = found.pose_landmarks
    assert len(points) == 33
    assert points[0].visibility == pytest.approx(1 / (1 + math.exp(-2)))
    assert found.segmentation_masks is not None
    mask = found.segmentation_masks[0].numpy_view()
    assert mask.shape == IMAGE.shape[:2]
    assert mask.max() == pytest.approx(1 / (1 + math.exp(-4)), abs=1e-4)


def test_masks_of_the_picture() -> None:
    logits = np.zeros((1, 32, 32, 2))
    logits[:, :, 16:, 1] = 4
    content = network(32, [logits], last=Op.SOFTMAX)
    options = vision.ImageSegmenterOptions(base(content), output_category_mask=True)
    result = vision.ImageSegmenter.create_from_options(options).segment(IMAGE)
    assert result.confidence_masks is not None
    assert result.category_mask is not None
    category = result.category_mask.numpy_view()
    assert category.shape == (120, 160)
    assert (category[:, 90:] == 1).all()
    sure = result.confidence_masks[1].numpy_view()
    assert sure[:, 100:] == pytest.approx(1 / (1 + math.exp(-4)), abs=1e-4)
    with pytest.raises(ValueError, match="At least one of"):
        vision.ImageSegmenter.create_from_options(
            vision.ImageSegmenterOptions(base(content), output_confidence_masks=False)
        )


def test_classes_of_a_picture() -> None:
    content = network(16, [np.array([[0.0, 3, 1]])], last=Op.SOFTMAX)
    options = vision.ImageClassifierOptions(base(content), max_results=2)
    (head,) = vision.ImageClassifier.create_from_options(options).classify(IMAGE).classifications
    assert [each.index for each in head.categories] == [1, 2]
    with pytest.raises(ValueError, match="must be != 0"):
        vision.ImageClassifier.create_from_options(
            vision.ImageClassifierOptions(base(content), max_results=0)
        )
    with pytest.raises(ValueError, match="mutually exclusive"):
        vision.ImageClassifier.create_from_options(
            vision.ImageClassifierOptions(
                base(content), category_allowlist=["a"], category_denylist=["b"]
            )
        )


def test_objects_of_a_real_model() -> None:
    path = model_path("tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")
    options = vision.ObjectDetectorOptions(tasks.BaseOptions(path), max_results=3)
    found = vision.ObjectDetector.create_from_options(options).detect(IMAGE)
    assert len(found.detections) == 3
    assert all(each.categories[0].category_name for each in found.detections)


def several() -> list[tuple[Any, str]]:
    """A task of each kind for single pictures, and the name of its method."""
    masks, classes = np.zeros((1, 32, 32, 2)), np.array([[0.0, 3, 1]])
    make = (
        vision.FaceDetectorOptions(base(FACES)),
        vision.FaceLandmarkerOptions(base(face_bundle())),
        vision.HandLandmarkerOptions(base(hand_bundle())),
        vision.ImageSegmenterOptions(base(network(32, [masks], last=Op.SOFTMAX))),
        vision.ImageClassifierOptions(base(network(16, [classes], last=Op.SOFTMAX))),
    )
    verbs = ("detect", "detect", "detect", "segment", "classify")
    kinds = [getattr(vision, type(each).__name__.removesuffix("Options")) for each in make]
    tasks = [kind.create_from_options(each) for kind, each in zip(kinds, make, strict=True)]
    return list(zip(tasks, verbs, strict=True))


@pytest.mark.parametrize("place", range(5))
def test_several_pictures_at_once(place: int) -> None:
    found, verb = several()[place]
    pictures = [IMAGE, IMAGE[:90, 20:], IMAGE // 2, tasks.Image(tasks.ImageFormat.SRGB, IMAGE)]
    act = getattr(found, verb)
    alone = [repr(numbers(act(each))) for each in pictures]
    assert [repr(numbers(each)) for each in act(pictures)] == alone
    assert act([]) == []
    with pytest.raises(ValueError, match="a picture is uint8"):
        act([IMAGE, IMAGE.astype(float)])


def numbers(result: Any) -> Any:
    """A result with the values of its masks."""
    masks = getattr(result, "confidence_masks", None)
    return result if masks is None else [mask.numpy_view().tobytes() for mask in masks]


def test_files_and_formats(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(IMAGE).save(tmp_path / "picture.png")
    image = tasks.Image.create_from_file(tmp_path / "picture.png")
    assert (image.width, image.height) == (160, 120)
    assert (image.numpy_view() == IMAGE).all()
    with pytest.raises(ValueError, match="SRGBA is uint8"):
        tasks.Image(tasks.ImageFormat.SRGBA, IMAGE)
    with pytest.raises(ValueError, match="a picture is uint8"):
        vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(FACES))).detect(
            IMAGE.astype(float)
        )


def test_the_region_of_a_hand_follows_its_turn() -> None:
    upright = np.stack([np.linspace(0.3, 0.4, 21), np.linspace(0.7, 0.3, 21)], -1)
    size = (400, 300)
    plain = rects.hand_rect(upright, size)
    for angle in (0.5, -2.0, 3.0):
        c, s = math.cos(angle), math.sin(angle)
        pixels = (upright * size - [200, 150]) @ np.array([[c, s], [-s, c]]) + [200, 150]
        turned = rects.hand_rect(pixels / size, size)
        assert rects.normalized_angle(turned.rotation - plain.rotation - angle) == pytest.approx(
            0, abs=1e-6
        )
        sides = turned.width * 400, turned.height * 300
        assert sides == pytest.approx((plain.width * 400, plain.height * 300))


def test_which_regions_stay() -> None:
    old, near, far = Rect(0.3, 0.3, 0.2, 0.2), Rect(0.31, 0.3, 0.2, 0.2), Rect(0.8, 0.8, 0.1, 0.1)
    assert rects.kept_before_new([old], [near, far], 0.5) == [old, far]
    assert rects.new_before_kept([old], [near, far], 0.5) == [near, far]
    assert old.overlap(far) == 0
    assert old.overlap(old) == pytest.approx(1)


def test_one_euro_filter_is_that_of_single_values() -> None:
    rng = np.random.default_rng(5)
    values, times = rng.normal(size=(10, 4)), np.cumsum(rng.uniform(0.01, 0.1, 10))
    filter = OneEuro(0.05, 80.0)
    found = [filter(row, time, 0.01) for row, time in zip(values, times, strict=True)]
    for column in range(4):
        x, dx, rate = values[0, column], 0.0, 0.0
        for number in range(1, 10):
            rate = 1 / (times[number] - times[number - 1])
            speed = (values[number, column] - values[number - 1, column]) * 0.01 * rate
            a = 1 / (1 + rate / (2 * math.pi))
            dx = a * speed + (1 - a) * dx
            a = 1 / (1 + rate / (2 * math.pi * (0.05 + 80 * abs(dx))))
            x = a * values[number, column] + (1 - a) * x
            assert found[number][column] == pytest.approx(x)
    assert (filter(values[0], times[-1]) == values[0]).all()
    low = LowPass(0.1)
    low(values[0])
    np.testing.assert_allclose(low(values[1]), 0.1 * values[1] + 0.9 * values[0])
