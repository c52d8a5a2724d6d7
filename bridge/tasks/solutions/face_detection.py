"""`mediapipe.solutions.face_detection`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tflite_ort.tasks.messages import Detection, LocationData, RelativeKeypoint
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.points import FaceKeyPoint
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.solution import Solution
from tflite_ort.tasks.vision_task import Frame

_OVERLAP = 0.3
# Of the network for faces further away, whatever a script says: MediaPipe does not hand it on.
_LEAST_FAR = 0.6


def get_key_point(detection: Detection, key_point_enum: FaceKeyPoint) -> RelativeKeypoint | None:
    """A keypoint of a face."""
    if not detection:
        return None
    point: RelativeKeypoint = detection.location_data.relative_keypoints[key_point_enum]
    return point


class FaceDetection(Solution):
    """Faces as boxes with six keypoints.

    Args:
        model_selection: 1 for the network for faces further away, which takes no confidence.
    """

    _outputs: ClassVar = ("detections",)

    def __init__(self, min_detection_confidence: float = 0.5, model_selection: int = 0) -> None:
        super().__init__()
        kind = "full_range_sparse" if model_selection == 1 else "short_range"
        base = bundled({"face_detector": f"face_detection/face_detection_{kind}.tflite"})
        (self._network,) = networks(base, {"face_detector": "face detector"})
        self._least = _LEAST_FAR if model_selection == 1 else float(min_detection_confidence)

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        found = self._network(
            frame.pixels, roi=frame.rect, min_score=self._least, min_suppression_threshold=_OVERLAP
        )
        faces = zip(*(found[key].tolist() for key in ("boxes", "scores", "keypoints")), strict=True)
        return {"detections": [_detection(*face) for face in faces] or None}

    def reset(self) -> None:
        """There is nothing to forget."""


def _detection(box: list[float], score: float, keypoints: list[list[float]]) -> Detection:
    left, top, right, bottom = box
    made = Detection(label_id=[0], score=[score])
    where = made.location_data
    where.format = LocationData.RELATIVE_BOUNDING_BOX
    sides = {"xmin": left, "ymin": top, "width": right - left, "height": bottom - top}
    for name, value in sides.items():
        setattr(where.relative_bounding_box, name, value)
    for x, y in keypoints:
        where.relative_keypoints.add(x=x, y=y)
    return made
