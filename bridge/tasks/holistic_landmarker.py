"""`HolisticLandmarker`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.body import Body, Masks
from tflite_ort.tasks.containers import (
    HolisticLandmarkerResult,
    Landmark,
    NormalizedLandmark,
    landmark_list,
    world_landmark_list,
)
from tflite_ort.tasks.face_landmarker import expressions
from tflite_ort.tasks.holistic import Confidences, Holistic
from tflite_ort.tasks.image import Image, ImageFormat
from tflite_ort.tasks.landmarkers import Limits
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import RunningMode, TwoNames
from tflite_ort.tasks.points import PoseLandmark
from tflite_ort.tasks.pose_landmarker import PoseLandmarkerOptions
from tflite_ort.tasks.vision_task import DetectingTask, Frame, ResultCallback, VisionTaskOptions

Array = npt.NDArray[Any]

_TRACKED = 0.5


@dataclass
class _Options(VisionTaskOptions):
    min_face_detection_confidence: float = 0.5
    min_face_suppression_threshold: float = 0.3
    min_face_presence_confidence: float = 0.5
    min_pose_detection_confidence: float = 0.5
    min_pose_suppression_threshold: float = 0.3
    min_pose_presence_confidence: float = 0.5
    min_hand_landmarks_confidence: float = 0.5
    output_face_blendshapes: bool = False
    output_pose_segmentation_masks: bool = False
    result_callback: ResultCallback | None = None


class HolisticLandmarkerOptions(TwoNames, _Options):
    """Options of `HolisticLandmarker`; some have older names too.

    Args:
        output_face_blendshapes: how much a face shows of 52 expressions; the bundle needs
            ``face_blendshapes``.
    """

    _OTHERS: ClassVar = {
        "min_face_landmarks_confidence": "min_face_presence_confidence",
        "min_pose_landmarks_confidence": "min_pose_presence_confidence",
        "output_segmentation_mask": "output_pose_segmentation_masks",
    }


class HolisticLandmarker(DetectingTask[HolisticLandmarkerResult]):
    """One person: its body as 33 points, its face as 478, and its hands as 21 each. The bundle has
    the networks of `FaceLandmarker` and `PoseLandmarker`, that for the landmarks of hands, and one
    that finds a hand where the body says it is (``hand_roi_refinement``)."""

    _options_class = HolisticLandmarkerOptions

    def __init__(self, options: HolisticLandmarkerOptions) -> None:
        super().__init__(options)
        base, alone = options.base_options, options.running_mode is RunningMode.IMAGE
        mode = RunningMode.IMAGE if alone else RunningMode.VIDEO
        limits = Limits(
            1,
            options.min_pose_detection_confidence,
            options.min_pose_presence_confidence,
            _TRACKED,
            options.min_pose_suppression_threshold,
        )
        sure = Confidences(
            options.min_face_detection_confidence,
            options.min_face_suppression_threshold,
            options.min_face_presence_confidence,
            options.min_hand_landmarks_confidence,
        )
        body = Body(PoseLandmarkerOptions(base, mode), limits)
        self._holistic = Holistic(body, base, sure, follows=not alone)
        self._masks = Masks(calm=not alone)
        wanted = {"face_blendshapes": "face blendshapes"} if options.output_face_blendshapes else {}
        self._expressions = networks(base, wanted)

    def _result(self, frame: Frame) -> HolisticLandmarkerResult:
        person = self._holistic.find(frame, calm=frame.seconds is not None)
        result = HolisticLandmarkerResult([], [], [], [], [], [], [])
        if person is None:
            self._masks.forget()
            return result
        body = person.body
        seen = body["visibility"], body["presence"]
        result.pose_landmarks = landmark_list(body["landmarks"], *seen)
        result.pose_world_landmarks = world_landmark_list(body["world_landmarks"], *seen)
        for side, hand in person.hands.items():
            if hand is not None:
                points, world = _hand(hand, body["world_landmarks"][PoseLandmark[f"{side}_WRIST"]])
                setattr(result, f"{side.lower()}_hand_landmarks", points)
                setattr(result, f"{side.lower()}_hand_world_landmarks", world)
        if person.face is not None:
            mesh = person.face["landmarks"]
            result.face_landmarks = landmark_list(mesh)
            for network in self._expressions:
                result.face_blendshapes = expressions(network, mesh, frame.size)
        if self._options.output_pose_segmentation_masks:
            result.segmentation_mask = Image(ImageFormat.VEC32F1, self._masks(body, frame))
        return result


def _hand(
    hand: Mapping[str, Array], wrist: Array
) -> tuple[list[NormalizedLandmark], list[Landmark]]:
    """The points of a hand in the picture, and in metres where the body's wrist is."""
    world = hand["world_landmarks"]
    return landmark_list(hand["landmarks"]), world_landmark_list(
        world - world[0] + np.asarray(wrist)
    )
