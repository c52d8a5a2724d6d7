"""`mediapipe.solutions.face_mesh`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tflite_ort.tasks.face_landmarker import FaceLandmarker, FaceLandmarkerOptions
from tflite_ort.tasks.landmarkers import Landmarker, Limits
from tflite_ort.tasks.messages import NormalizedLandmarkList
from tflite_ort.tasks.rects import Rect, new_before_kept
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_CONTOURS as FACEMESH_CONTOURS,
)
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_FACE_OVAL as FACEMESH_FACE_OVAL,
)
from tflite_ort.tasks.solutions.face_mesh_connections import FACEMESH_IRISES as FACEMESH_IRISES
from tflite_ort.tasks.solutions.face_mesh_connections import FACEMESH_LEFT_EYE as FACEMESH_LEFT_EYE
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_LEFT_EYEBROW as FACEMESH_LEFT_EYEBROW,
)
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_LEFT_IRIS as FACEMESH_LEFT_IRIS,
)
from tflite_ort.tasks.solutions.face_mesh_connections import FACEMESH_LIPS as FACEMESH_LIPS
from tflite_ort.tasks.solutions.face_mesh_connections import FACEMESH_NOSE as FACEMESH_NOSE
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_RIGHT_EYE as FACEMESH_RIGHT_EYE,
)
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_RIGHT_EYEBROW as FACEMESH_RIGHT_EYEBROW,
)
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_RIGHT_IRIS as FACEMESH_RIGHT_IRIS,
)
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_TESSELATION as FACEMESH_TESSELATION,
)
from tflite_ort.tasks.solutions.hands import SAME
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.solution import Solution, mode, points_message
from tflite_ort.tasks.vision_task import Frame

FACEMESH_NUM_LANDMARKS = 468
FACEMESH_NUM_LANDMARKS_WITH_IRISES = 478


class _Faces(FaceLandmarker):
    """As the task, but for what its graph does otherwise: two faces may overlap less, the tracked
    region stays, and nothing is smoothed."""

    def __init__(self, options: FaceLandmarkerOptions, limits: Limits) -> None:
        Landmarker.__init__(self, options, limits)

    def _associated(self, tracked: Sequence[Rect], found: Sequence[Rect]) -> list[Rect]:
        return new_before_kept(found, tracked, SAME)


class FaceMesh(Solution):
    """Faces as 468 points each.

    Args:
        static_image_mode: look for faces in each picture anew.
        refine_landmarks: 478 points, more exact around eyes and lips.
        min_tracking_confidence: how sure the landmark network has to be.
    """

    _outputs: ClassVar = ("multi_face_landmarks",)

    def __init__(
        self,
        static_image_mode: bool = False,
        max_num_faces: int = 1,
        refine_landmarks: bool = False,
        min_detection_confidence: float = 0.5,
        min_tracking_confidence: float = 0.5,
    ) -> None:
        super().__init__(static_image_mode)
        kind = "_with_attention" if refine_landmarks else ""
        base = bundled(
            {
                "face_detector": "face_detection/face_detection_short_range.tflite",
                "face_landmarks_detector": f"face_landmark/face_landmark{kind}.tflite",
            }
        )
        limits = Limits(max_num_faces, min_detection_confidence, min_tracking_confidence, SAME)
        self._task = _Faces(FaceLandmarkerOptions(base, mode(static_image_mode)), limits)

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        faces = [each.points for each in self._task.found(frame)]
        messages = [points_message(NormalizedLandmarkList, each) for each in faces]
        return {"multi_face_landmarks": messages or None}

    def reset(self) -> None:
        """Forget the pictures before."""
        self._task.forget()
