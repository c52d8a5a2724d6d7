"""How the points and lines of hands, faces and bodies are drawn, as ``mediapipe`` draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflite_ort.tasks.connections import (
    Connection,
    FaceLandmarksConnections,
    HandLandmarksConnections,
)
from tflite_ort.tasks.painting import DrawingSpec
from tflite_ort.tasks.points import HandLandmark, PoseLandmark

Color = tuple[int, int, int]
Lines = Mapping[tuple[int, int], DrawingSpec]

# Blue, green, red.
_RED, _GREEN, _BLUE = (48, 48, 255), (48, 255, 48), (192, 101, 21)
_YELLOW, _PURPLE, _PEACH = (0, 204, 255), (128, 64, 128), (180, 229, 255)
_GRAY, _WHITE, _CYAN, _MAGENTA = (128, 128, 128), (224, 224, 224), (192, 255, 48), (192, 48, 255)
_LEFT, _RIGHT = (0, 138, 255), (231, 217, 0)

_RADIUS, _FILLED = 5, -1
_PALM_LINE, _FINGER_LINE, _MESH_LINE, _CONTOUR_LINE = 3, 2, 1, 2

_PALM = (0, 1, 5, 9, 13, 17)
# By the color: the points of a finger beyond the palm.
_FINGERS: Mapping[Color, Sequence[int]] = {
    _PEACH: (2, 3, 4),
    _PURPLE: (6, 7, 8),
    _YELLOW: (10, 11, 12),
    _GREEN: (14, 15, 16),
    _BLUE: (18, 19, 20),
}
_HAND = HandLandmarksConnections
# The older solutions draw this line of the palm, where the tasks draw the one from 1 to 5.
_SOLUTIONS_PALM = Connection(0, 5)
_HAND_LINES: Mapping[Color, Sequence[Connection]] = {
    _GRAY: [*_HAND.HAND_PALM_CONNECTIONS, _SOLUTIONS_PALM],
    _PEACH: _HAND.HAND_THUMB_CONNECTIONS,
    _PURPLE: _HAND.HAND_INDEX_FINGER_CONNECTIONS,
    _YELLOW: _HAND.HAND_MIDDLE_FINGER_CONNECTIONS,
    _GREEN: _HAND.HAND_RING_FINGER_CONNECTIONS,
    _BLUE: _HAND.HAND_PINKY_FINGER_CONNECTIONS,
}
_FACE = FaceLandmarksConnections
# The first style of a face and the second one; only the second one has the nose.
_FACE_LINES: Sequence[tuple[Sequence[Connection], Color | None, Color]] = (
    (_FACE.FACE_LANDMARKS_LIPS, _WHITE, _BLUE),
    (_FACE.FACE_LANDMARKS_LEFT_EYE, _GREEN, _CYAN),
    (_FACE.FACE_LANDMARKS_LEFT_EYEBROW, _GREEN, _GREEN),
    (_FACE.FACE_LANDMARKS_RIGHT_EYE, _RED, _MAGENTA),
    (_FACE.FACE_LANDMARKS_RIGHT_EYEBROW, _RED, _RED),
    (_FACE.FACE_LANDMARKS_FACE_OVAL, _WHITE, _WHITE),
    (_FACE.FACE_LANDMARKS_NOSE, None, _YELLOW),
)


def get_default_hand_landmarks_style() -> Mapping[int, DrawingSpec]:
    """The style of each point of a hand."""
    colors = {point: color for color, points in _FINGERS.items() for point in points}
    colors |= dict.fromkeys(_PALM, _RED)
    return {point: DrawingSpec(colors[point], _FILLED, _RADIUS) for point in HandLandmark}


def get_default_hand_connections_style() -> Lines:
    """The style of each line of a hand."""
    return {
        pair: DrawingSpec(color, _PALM_LINE if color == _GRAY else _FINGER_LINE)
        for color, lines in _HAND_LINES.items()
        for pair in _pairs(lines)
    }


def get_default_face_mesh_contours_style(i: int = 0) -> Lines:
    """By line of a face.

    Args:
        i: 1 for the second style.
    """
    colored = [(lines, second if i == 1 else first) for lines, first, second in _FACE_LINES]
    return {
        pair: DrawingSpec(color, _CONTOUR_LINE)
        for lines, color in colored
        if color is not None
        for pair in _pairs(lines)
    }


def get_default_face_mesh_tesselation_style() -> DrawingSpec:
    """The style of all lines of a face mesh."""
    return DrawingSpec(_GRAY, _MESH_LINE)


def get_default_face_mesh_iris_connections_style() -> Lines:
    """The style of each line of the irises."""
    sides = (_FACE.FACE_LANDMARKS_LEFT_IRIS, _GREEN), (_FACE.FACE_LANDMARKS_RIGHT_IRIS, _RED)
    return {
        pair: DrawingSpec(color, _CONTOUR_LINE) for lines, color in sides for pair in _pairs(lines)
    }


def get_default_pose_landmarks_style() -> Mapping[int, DrawingSpec]:
    """The style of each point of a body."""
    return {
        point: DrawingSpec(
            _WHITE if point is PoseLandmark.NOSE else _LEFT if "LEFT" in point.name else _RIGHT
        )
        for point in PoseLandmark
    }


def _pairs(lines: Sequence[Connection]) -> Sequence[tuple[int, int]]:
    return [(line.start, line.end) for line in lines]
