"""`mediapipe.solutions.face_mesh_connections`: which points of a face are joined."""

from __future__ import annotations

from collections.abc import Iterable

from tflite_ort.tasks.connections import Connection
from tflite_ort.tasks.connections import FaceLandmarksConnections as _Face

Lines = frozenset[tuple[int, int]]


def _lines(connections: Iterable[Connection]) -> Lines:
    return frozenset((each.start, each.end) for each in connections)


FACEMESH_LIPS = _lines(_Face.FACE_LANDMARKS_LIPS)
FACEMESH_LEFT_EYE = _lines(_Face.FACE_LANDMARKS_LEFT_EYE)
FACEMESH_LEFT_IRIS = _lines(_Face.FACE_LANDMARKS_LEFT_IRIS)
FACEMESH_LEFT_EYEBROW = _lines(_Face.FACE_LANDMARKS_LEFT_EYEBROW)
FACEMESH_RIGHT_EYE = _lines(_Face.FACE_LANDMARKS_RIGHT_EYE)
FACEMESH_RIGHT_EYEBROW = _lines(_Face.FACE_LANDMARKS_RIGHT_EYEBROW)
FACEMESH_RIGHT_IRIS = _lines(_Face.FACE_LANDMARKS_RIGHT_IRIS)
FACEMESH_FACE_OVAL = _lines(_Face.FACE_LANDMARKS_FACE_OVAL)
FACEMESH_NOSE = _lines(_Face.FACE_LANDMARKS_NOSE)
FACEMESH_CONTOURS = _lines(_Face.FACE_LANDMARKS_CONTOURS)
FACEMESH_IRISES = FACEMESH_LEFT_IRIS | FACEMESH_RIGHT_IRIS
FACEMESH_TESSELATION = _lines(_Face.FACE_LANDMARKS_TESSELATION)
