"""Results drawn into pictures of OpenCV, as ``mediapipe``'s ``drawing_utils`` draw them.

OpenCV draws, and matplotlib for `plot_landmarks`: scripts that draw have them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import optional_module
from tflite_ort.tasks.messages import LocationData

Array = npt.NDArray[Any]
Point = tuple[int, int]

# Blue, green, red.
WHITE_COLOR = (224, 224, 224)
BLACK_COLOR = (0, 0, 0)
RED_COLOR = (0, 0, 255)
GREEN_COLOR = (0, 128, 0)
BLUE_COLOR = (255, 0, 0)

# What is less visible or less likely there is not drawn.
_LEAST_VISIBILITY = _LEAST_PRESENCE = 0.5


@dataclass
class DrawingSpec:
    """How something is drawn.

    Args:
        color: blue, green, red.
        thickness: of lines, in pixels; below 0 circles are filled.
        circle_radius: in pixels.
    """

    color: tuple[int, int, int] = WHITE_COLOR
    thickness: int = 2
    circle_radius: int = 2


Style = DrawingSpec | Mapping[Any, DrawingSpec]
_RED, _WHITE = DrawingSpec(color=RED_COLOR), DrawingSpec()
_THICK_RED = DrawingSpec(color=RED_COLOR, thickness=5)
_THICK_BLACK = DrawingSpec(color=BLACK_COLOR, thickness=5)


def draw_landmarks(
    image: Array,
    landmark_list: Any,
    connections: Iterable[Any] | None = None,
    landmark_drawing_spec: Style | None = _RED,
    connection_drawing_spec: Style = _WHITE,
    is_drawing_landmarks: bool = True,
) -> None:
    """Draw the points of one thing, and the lines between them.

    Args:
        image: uint8 [height, width, 3], which is changed.
        landmark_list: of a task's result, or a message of `mediapipe.solutions`.
        connections: which points are joined: objects with ``start`` and ``end``, or pairs.
        landmark_drawing_spec: for all points, or by point; None draws none.
        connection_drawing_spec: for all lines, or by pair.

    Raises:
        ValueError: the picture has not three channels, or a line leads to no point.
        ImportError: OpenCV is not installed.
    """
    if not landmark_list:
        return
    _check_channels(image)
    opencv, landmarks = _opencv(), _landmarks(landmark_list)
    size = image.shape[1], image.shape[0]
    seen = {
        number: at
        for number, each in _visible(landmarks)
        if (at := _in_pixels(each.x, each.y, size)) is not None
    }
    for start, end in _pairs(connections, len(landmarks)):
        if start in seen and end in seen:
            line = _of(connection_drawing_spec, (start, end))
            opencv.line(image, seen[start], seen[end], line.color, line.thickness)
    if not is_drawing_landmarks or not landmark_drawing_spec:
        return
    for number, at in seen.items():
        dot = _of(landmark_drawing_spec, number)
        border = max(dot.circle_radius + 1, int(dot.circle_radius * 1.2))
        opencv.circle(image, at, border, WHITE_COLOR, dot.thickness)
        opencv.circle(image, at, dot.circle_radius, dot.color, dot.thickness)


def draw_detection(
    image: Array,
    detection: Any,
    keypoint_drawing_spec: DrawingSpec = _RED,
    bbox_drawing_spec: DrawingSpec = _WHITE,
) -> None:
    """Draw a box and its keypoints.

    Args:
        image: uint8 [height, width, 3], which is changed.
        detection: of a task's result, or a message of `mediapipe.solutions`.

    Raises:
        ValueError: the picture has not three channels, or the message has no relative box.
        ImportError: OpenCV is not installed.
    """
    _check_channels(image)
    opencv, size = _opencv(), (image.shape[1], image.shape[0])
    message = hasattr(detection, "location_data")
    where = detection.location_data if message else detection
    if message and where.format != LocationData.RELATIVE_BOUNDING_BOX:
        raise ValueError("LocationData must be relative for this drawing function to work.")
    for point in (where.relative_keypoints if message else where.keypoints) or ():
        at = _in_pixels(point.x, point.y, size)
        if at is not None:
            dot = keypoint_drawing_spec
            opencv.circle(image, at, dot.circle_radius, dot.color, dot.thickness)
    if message:
        box = where.relative_bounding_box
        corners = [
            _in_pixels(x, y, size)
            for x, y in (
                (box.xmin, box.ymin),
                (box.xmin + box.width, box.ymin + box.height),
            )
        ]
    else:
        box = where.bounding_box
        start = box.origin_x, box.origin_y
        corners = [start, (start[0] + box.width, start[1] + box.height)]
    if None not in corners:
        opencv.rectangle(image, *corners, bbox_drawing_spec.color, bbox_drawing_spec.thickness)


def draw_axis(
    image: Array,
    rotation: Array,
    translation: Array,
    focal_length: tuple[float, float] = (1.0, 1.0),
    principal_point: tuple[float, float] = (0.0, 0.0),
    axis_length: float = 0.1,
    axis_drawing_spec: DrawingSpec = _WHITE,
) -> None:
    """Draw the axes of an object before the camera: x red, y green, z blue.

    Args:
        image: uint8 [height, width, 3], which is changed.
        rotation, translation: from the object to the camera, [3, 3] and [3].

    Raises:
        ValueError: the picture has not three channels.
        ImportError: OpenCV is not installed.
    """
    _check_channels(image)
    height, width = image.shape[:2]
    ends = np.concatenate([np.zeros([1, 3]), np.eye(3)]).astype(np.float32)
    x, y, z = (np.matmul(rotation, axis_length * ends.T).T + translation).T
    across = np.clip(-focal_length[0] * x / (z + 1e-5) + principal_point[0], -1.0, 1.0)
    up = np.clip(-focal_length[1] * y / (z + 1e-5) + principal_point[1], -1.0, 1.0)
    at = np.stack([(1 + across) * 0.5 * width, (1 - up) * 0.5 * height]).astype(np.int32)
    origin, *tips = map(tuple, at.T.tolist())
    for tip, color in zip(tips, (RED_COLOR, GREEN_COLOR, BLUE_COLOR), strict=True):
        _opencv().arrowedLine(image, origin, tip, color, axis_drawing_spec.thickness)


def plot_landmarks(
    landmark_list: Any,
    connections: Iterable[Any] | None = None,
    landmark_drawing_spec: DrawingSpec = _THICK_RED,
    connection_drawing_spec: DrawingSpec = _THICK_BLACK,
    elevation: int = 10,
    azimuth: int = 10,
) -> None:
    """Show the points of one thing in space, with matplotlib.

    Raises:
        ValueError: a line leads to no point.
        ImportError: matplotlib is not installed.
    """
    if not landmark_list:
        return
    plots = optional_module("matplotlib.pyplot")
    if plots is None:
        raise ImportError("plot_landmarks needs matplotlib: pip install matplotlib")
    landmarks = _landmarks(landmark_list)
    plots.figure(figsize=(10, 10))
    axes = plots.axes(projection="3d")
    axes.view_init(elev=elevation, azim=azimuth)
    seen = {number: (-each.z, each.x, -each.y) for number, each in _visible(landmarks)}
    dot, line = landmark_drawing_spec, connection_drawing_spec
    for x, y, z in seen.values():
        axes.scatter3D(xs=[x], ys=[y], zs=[z], color=_rgb(dot), linewidth=dot.thickness)
    for start, end in _pairs(connections, len(landmarks)):
        if start in seen and end in seen:
            xs, ys, zs = zip(seen[start], seen[end], strict=True)
            axes.plot3D(xs=xs, ys=ys, zs=zs, color=_rgb(line), linewidth=line.thickness)
    plots.show()


def _opencv() -> Any:
    opencv = optional_module("cv2")
    if opencv is None:
        raise ImportError("to draw as MediaPipe install OpenCV: pip install opencv-python-headless")
    return opencv


def _check_channels(image: Array) -> None:
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError("Input image must contain three channel bgr data.")


def _landmarks(given: Any) -> Sequence[Any]:
    """The points of a list, or of a message with such a list."""
    landmarks: Sequence[Any] = getattr(given, "landmark", given)
    return landmarks


def _visible(landmarks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """The points that are to be seen, with their numbers."""
    for number, each in enumerate(landmarks):
        visibility, presence = (_told(each, name) for name in ("visibility", "presence"))
        if not (
            (visibility is not None and visibility < _LEAST_VISIBILITY)
            or (presence is not None and presence < _LEAST_PRESENCE)
        ):
            yield number, each


def _told(landmark: Any, name: str) -> float | None:
    """What a point, or the message of one, says; None where it says nothing."""
    if hasattr(landmark, "HasField") and not landmark.HasField(name):
        return None
    value: float | None = getattr(landmark, name)
    return value


def _pairs(connections: Iterable[Any] | None, count: int) -> Iterator[Point]:
    """Which points are joined."""
    for each in connections or ():
        start, end = each if isinstance(each, tuple) else (each.start, each.end)
        if not (0 <= start < count and 0 <= end < count):
            raise ValueError(
                "Landmark index is out of range. Invalid connection from landmark "
                f"#{start} to landmark #{end}."
            )
        yield start, end


def _in_pixels(x: float, y: float, size: Point) -> Point | None:
    """Where a point in 0..1 is; None outside the picture."""
    if not all((0 < n < 1) or math.isclose(n, 0) or math.isclose(n, 1) for n in (x, y)):
        return None
    width, height = size
    return min(math.floor(x * width), width - 1), min(math.floor(y * height), height - 1)


def _of(style: Style, key: Any) -> DrawingSpec:
    return style[key] if isinstance(style, Mapping) else style


def _rgb(spec: DrawingSpec) -> tuple[float, ...]:
    return tuple(value / 255 for value in spec.color[::-1])
