"""`mediapipe.solutions.holistic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tflite_ort.tasks.body import Body, Masks
from tflite_ort.tasks.holistic import Confidences
from tflite_ort.tasks.holistic import Holistic as Whole
from tflite_ort.tasks.messages import NormalizedLandmarkList
from tflite_ort.tasks.points import HandLandmark as HandLandmark
from tflite_ort.tasks.points import PoseLandmark as PoseLandmark
from tflite_ort.tasks.pose_landmarker import PoseLandmarkerOptions
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_CONTOURS as FACEMESH_CONTOURS,
)
from tflite_ort.tasks.solutions.face_mesh_connections import (
    FACEMESH_TESSELATION as FACEMESH_TESSELATION,
)
from tflite_ort.tasks.solutions.hands import HAND_CONNECTIONS as HAND_CONNECTIONS
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.pose import POSE_CONNECTIONS as POSE_CONNECTIONS
from tflite_ort.tasks.solutions.pose import pose_files, pose_limits, pose_messages
from tflite_ort.tasks.solutions.solution import Solution, mode, points_message
from tflite_ort.tasks.vision_task import Frame


class Holistic(Solution):
    """The body of a person as 33 points, its face as 468, and its hands as 21 each.

    Args:
        static_image_mode: look for a person in each picture anew.
        model_complexity: 0, 1 or 2; MediaPipe's package has the network of 1 alone.
        enable_segmentation: give a mask of the person too.
        refine_face_landmarks: 478 points of the face, more exact around eyes and lips.
        min_tracking_confidence: how sure the landmark network of the body has to be.
    """

    _outputs: ClassVar = (
        *("pose_landmarks", "pose_world_landmarks", "left_hand_landmarks"),
        *("right_hand_landmarks", "face_landmarks", "segmentation_mask"),
    )

    def __init__(
        self,
        static_image_mode: bool = False,
        model_complexity: int = 1,
        smooth_landmarks: bool = True,
        enable_segmentation: bool = False,
        smooth_segmentation: bool = True,
        refine_face_landmarks: bool = False,
        min_detection_confidence: float = 0.5,
        min_tracking_confidence: float = 0.5,
    ) -> None:
        super().__init__(static_image_mode)
        kind = "_with_attention" if refine_face_landmarks else ""
        base = bundled(
            {
                **pose_files(model_complexity),
                "face_detector": "face_detection/face_detection_short_range.tflite",
                "face_landmarks_detector": f"face_landmark/face_landmark{kind}.tflite",
                "hand_roi_refinement": "holistic_landmark/hand_recrop.tflite",
                "hand_landmarks_detector": "hand_landmark/hand_landmark_full.tflite",
            }
        )
        limits = pose_limits(min_detection_confidence, min_tracking_confidence)
        body = Body(PoseLandmarkerOptions(base, mode(static_image_mode)), limits)
        self._task = Whole(body, base, Confidences(), follows=not static_image_mode, older=True)
        self._calm = smooth_landmarks and not static_image_mode
        self._has_masks = enable_segmentation
        self._masks = Masks(smooth_segmentation and not static_image_mode)

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        person = self._task.find(frame, self._calm)
        if person is None:
            self._masks.forget()
            return {}
        parts = {"face": person.face, **{f"{s.lower()}_hand": h for s, h in person.hands.items()}}
        return {
            **pose_messages(person.body),
            **{
                f"{name}_landmarks": points_message(NormalizedLandmarkList, found["landmarks"])
                for name, found in parts.items()
                if found is not None
            },
            "segmentation_mask": self._masks(person.body, frame) if self._has_masks else None,
        }

    def reset(self) -> None:
        """Forget the pictures before."""
        self._task.forget()
        self._masks.forget()
