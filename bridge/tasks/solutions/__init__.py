"""The older solutions of MediaPipe, which scripts call ``mp.solutions``.

They run the networks of MediaPipe's own package, whose folder ``modules`` must be somewhere:
`models.module_folder`.
"""

from __future__ import annotations

from tflite_ort.tasks import drawing_styles
from tflite_ort.tasks import painting as drawing_utils
from tflite_ort.tasks.solutions import (
    face_detection,
    face_mesh,
    face_mesh_connections,
    hands,
    holistic,
    pose,
    selfie_segmentation,
)

__all__ = [
    "drawing_styles",
    "drawing_utils",
    "face_detection",
    "face_mesh",
    "face_mesh_connections",
    "hands",
    "holistic",
    "pose",
    "selfie_segmentation",
]
