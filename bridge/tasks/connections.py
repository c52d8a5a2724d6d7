"""Which landmarks are joined where they are drawn, as ``mediapipe.tasks.python.vision`` says it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from tflite_ort.tasks.face_triangles import triangles


@dataclass
class Connection:
    """A line from one landmark to another."""

    start: int
    end: int


Connections = list[Connection]


def _joined(*chains: Iterable[int]) -> Connections:
    """Each point of a chain with the next one."""
    return [Connection(*pair) for chain in chains for pair in pairwise(chain)]


def _ring(*points: int) -> Sequence[int]:
    return (*points, points[0])


class HandLandmarksConnections:
    """Lines between the 21 points of a hand."""

    Connection = Connection

    HAND_PALM_CONNECTIONS: ClassVar = _joined((0, 1, 5), (9, 13, 17), (5, 9), (0, 17))
    HAND_THUMB_CONNECTIONS: ClassVar = _joined(range(1, 5))
    HAND_INDEX_FINGER_CONNECTIONS: ClassVar = _joined(range(5, 9))
    HAND_MIDDLE_FINGER_CONNECTIONS: ClassVar = _joined(range(9, 13))
    HAND_RING_FINGER_CONNECTIONS: ClassVar = _joined(range(13, 17))
    HAND_PINKY_FINGER_CONNECTIONS: ClassVar = _joined(range(17, 21))
    HAND_CONNECTIONS: ClassVar = [
        *HAND_PALM_CONNECTIONS,
        *HAND_THUMB_CONNECTIONS,
        *HAND_INDEX_FINGER_CONNECTIONS,
        *HAND_MIDDLE_FINGER_CONNECTIONS,
        *HAND_RING_FINGER_CONNECTIONS,
        *HAND_PINKY_FINGER_CONNECTIONS,
    ]


class PoseLandmarksConnections:
    """Lines between the 33 points of a body."""

    Connection = Connection

    POSE_LANDMARKS: ClassVar = _joined(
        *((0, 1, 2, 3, 7), (0, 4, 5, 6, 8), (9, 10), (11, 12)),
        *((11, 13, 15, 17), (15, 19), (15, 21), (17, 19)),
        *((12, 14, 16, 18), (16, 20), (16, 22), (18, 20)),
        *((11, 23), (12, 24), (23, 24), (23, 25), (24, 26), (25, 27), (26, 28)),
        *((27, 29), (28, 30), (29, 31), (30, 32), (27, 31), (28, 32)),
    )


# Of the lips, outside and inside: from the right corner to the left one, below and above.
_LIPS = (
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291),
    (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291),
    (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308),
    (78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308),
)
_LEFT_EYE = (
    (263, 249, 390, 373, 374, 380, 381, 382, 362),
    (263, 466, 388, 387, 386, 385, 384, 398, 362),
)
_RIGHT_EYE = (
    (33, 7, 163, 144, 145, 153, 154, 155, 133),
    (33, 246, 161, 160, 159, 158, 157, 173, 133),
)
_OVAL = _ring(
    *(10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377),
    *(152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109),
)


class FaceLandmarksConnections:
    """Lines between the 478 points of a face."""

    Connection = Connection

    FACE_LANDMARKS_LIPS: ClassVar = _joined(*_LIPS)
    FACE_LANDMARKS_LEFT_EYE: ClassVar = _joined(*_LEFT_EYE)
    FACE_LANDMARKS_LEFT_EYEBROW: ClassVar = _joined(
        (276, 283, 282, 295, 285), (300, 293, 334, 296, 336)
    )
    FACE_LANDMARKS_LEFT_IRIS: ClassVar = _joined(_ring(474, 475, 476, 477))
    FACE_LANDMARKS_RIGHT_EYE: ClassVar = _joined(*_RIGHT_EYE)
    FACE_LANDMARKS_RIGHT_EYEBROW: ClassVar = _joined((46, 53, 52, 65, 55), (70, 63, 105, 66, 107))
    FACE_LANDMARKS_RIGHT_IRIS: ClassVar = _joined(_ring(469, 470, 471, 472))
    FACE_LANDMARKS_FACE_OVAL: ClassVar = _joined(_OVAL)
    FACE_LANDMARKS_CONTOURS: ClassVar = [
        *FACE_LANDMARKS_LIPS,
        *FACE_LANDMARKS_LEFT_EYE,
        *FACE_LANDMARKS_LEFT_EYEBROW,
        *FACE_LANDMARKS_RIGHT_EYE,
        *FACE_LANDMARKS_RIGHT_EYEBROW,
        *FACE_LANDMARKS_FACE_OVAL,
    ]
    FACE_LANDMARKS_TESSELATION: ClassVar = _joined(*(_ring(*each) for each in triangles()))
