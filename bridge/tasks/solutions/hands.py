"""`mediapipe.solutions.hands`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tflite_ort.tasks.hand_landmarker import HandLandmarker, HandLandmarkerOptions
from tflite_ort.tasks.landmarkers import Found, Landmarker, Limits
from tflite_ort.tasks.messages import ClassificationList, LandmarkList, NormalizedLandmarkList
from tflite_ort.tasks.points import HandLandmark as HandLandmark
from tflite_ort.tasks.rects import Rect, Size, new_before_kept
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.solution import Solution, mode, points_message
from tflite_ort.tasks.vision_task import Frame

# As of the tasks, but for a line of the palm.
HAND_PALM_CONNECTIONS = ((0, 1), (0, 5), (9, 13), (13, 17), (5, 9), (0, 17))
HAND_THUMB_CONNECTIONS = ((1, 2), (2, 3), (3, 4))
HAND_INDEX_FINGER_CONNECTIONS = ((5, 6), (6, 7), (7, 8))
HAND_MIDDLE_FINGER_CONNECTIONS = ((9, 10), (10, 11), (11, 12))
HAND_RING_FINGER_CONNECTIONS = ((13, 14), (14, 15), (15, 16))
HAND_PINKY_FINGER_CONNECTIONS = ((17, 18), (18, 19), (19, 20))
HAND_CONNECTIONS = frozenset(
    (
        *(*HAND_PALM_CONNECTIONS, *HAND_THUMB_CONNECTIONS, *HAND_INDEX_FINGER_CONNECTIONS),
        *(*HAND_MIDDLE_FINGER_CONNECTIONS, *HAND_RING_FINGER_CONNECTIONS),
        *HAND_PINKY_FINGER_CONNECTIONS,
    )
)
# Of two regions: above it they are one.
SAME = 0.5


class _Hands(HandLandmarker):
    """As the task, but for what its graph does otherwise: regions are turned by 90 degrees, hands
    that are near each other stay, and of two regions the tracked one stays, behind the new ones."""

    def __init__(self, options: HandLandmarkerOptions, limits: Limits) -> None:
        Landmarker.__init__(self, options, limits)
        self._region = replace(self._region, upright=math.pi / 2)

    def _associated(self, tracked: Sequence[Rect], found: Sequence[Rect]) -> list[Rect]:
        return new_before_kept(found, tracked, SAME)

    def _distinct(self, found: list[Found], size: Size) -> list[Found]:
        return found


class Hands(Solution):
    """Hands as 21 points each, in a picture that is mirrored as of a selfie.

    Args:
        static_image_mode: look for hands in each picture anew.
        model_complexity: 0 for smaller networks.
        min_tracking_confidence: how sure the landmark network has to be.
    """

    _outputs: ClassVar = ("multi_hand_landmarks", "multi_hand_world_landmarks", "multi_handedness")

    def __init__(
        self,
        static_image_mode: bool = False,
        max_num_hands: int = 2,
        model_complexity: int = 1,
        min_detection_confidence: float = 0.5,
        min_tracking_confidence: float = 0.5,
    ) -> None:
        super().__init__(static_image_mode)
        size = "full" if model_complexity else "lite"
        base = bundled(
            {
                "hand_detector": f"palm_detection/palm_detection_{size}.tflite",
                "hand_landmarks_detector": f"hand_landmark/hand_landmark_{size}.tflite",
            }
        )
        limits = Limits(max_num_hands, min_detection_confidence, min_tracking_confidence, SAME)
        self._task = _Hands(HandLandmarkerOptions(base, mode(static_image_mode)), limits)

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        hands = [each.outputs for each in self._task.found(frame)]
        if not hands:
            return {}
        return {
            "multi_hand_landmarks": [
                points_message(NormalizedLandmarkList, each["landmarks"]) for each in hands
            ],
            "multi_hand_world_landmarks": [
                points_message(LandmarkList, each["world_landmarks"]) for each in hands
            ],
            "multi_handedness": [_handedness(float(each["handedness"])) for each in hands],
        }

    def reset(self) -> None:
        """Forget the pictures before."""
        self._task.forget()


def _handedness(first: float) -> ClassificationList:
    """Which hand it is of a selfie, which is mirrored: the task calls the first class "Right"."""
    index, score, label = (0, first, "Left") if first >= 0.5 else (1, 1 - first, "Right")
    made = ClassificationList()
    made.classification.add(index=index, score=score, label=label)
    return made
