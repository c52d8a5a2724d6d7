"""`FaceLandmarker`."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from tflite_ort.bundles import open_bundle
from tflite_ort.decode.face_mesh import BLENDSHAPE_POINTS, BLENDSHAPES
from tflite_ort.tasks.containers import Category, FaceLandmarkerResult, landmark_list
from tflite_ort.tasks.face_geometry import METADATA, CanonicalFace
from tflite_ort.tasks.landmarkers import Landmarker, Limits, smoothed
from tflite_ort.tasks.network import Network, networks
from tflite_ort.tasks.rects import Rect, Size, face_rect, new_before_kept
from tflite_ort.tasks.smoothing import OneEuro
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTaskOptions

Array = npt.NDArray[Any]

# By the number of an expression, its name.
Blendshapes = cast(Any, enum.IntEnum)(
    "Blendshapes",
    [re.sub("([A-Z])", r"_\1", name.strip("_")).upper() for name in BLENDSHAPES],
    start=0,
)
_SCALE = 1.5
# Of two faces that the detector finds, as in MediaPipe's task; its `FaceDetector` takes 0.3.
_OVERLAP = 0.5


@dataclass
class FaceLandmarkerOptions(VisionTaskOptions):
    """Options of `FaceLandmarker`.

    Args:
        output_face_blendshapes: how much a face shows of 52 expressions; the bundle needs
            ``face_blendshapes``.
        output_facial_transformation_matrixes: where a face is before the camera; the bundle needs
            ``geometry_pipeline_metadata_landmarks.binarypb``, with the canonical face.
    """

    num_faces: int = 1
    min_face_detection_confidence: float = 0.5
    min_face_presence_confidence: float = 0.5
    min_tracking_confidence: float = 0.5
    output_face_blendshapes: bool = False
    output_facial_transformation_matrixes: bool = False
    result_callback: ResultCallback | None = None


class FaceLandmarker(Landmarker[FaceLandmarkerResult]):
    """Faces as 478 or 468 points each, from a bundle of a face detector (``face_detector``) and a
    landmark network (``face_landmarks_detector``)."""

    _options_class = FaceLandmarkerOptions
    _models: ClassVar[Mapping[str, str]] = {
        "face_detector": "face detector",
        "face_landmarks_detector": "face landmarks",
    }

    def __init__(self, options: FaceLandmarkerOptions) -> None:
        limits = Limits(
            options.num_faces,
            options.min_face_detection_confidence,
            options.min_face_presence_confidence,
            options.min_tracking_confidence,
            _OVERLAP,
        )
        super().__init__(options, limits)
        self._filter: OneEuro | None = None
        wanted = {"face_blendshapes": "face blendshapes"} if options.output_face_blendshapes else {}
        self._expressions = networks(options.base_options, wanted)
        self._canonical: CanonicalFace | None = None
        if options.output_facial_transformation_matrixes:
            bundle = open_bundle(options.base_options.source)
            self._canonical = CanonicalFace.read(bytes(bundle.content(METADATA)))

    def _associated(self, tracked: Sequence[Rect], found: Sequence[Rect]) -> list[Rect]:
        return new_before_kept(tracked, found, self._limits.tracking)

    def _next_rect(self, outputs: Mapping[str, Array], size: Size) -> Rect:
        return face_rect(outputs["landmarks"], size).scaled(size, _SCALE, square=True)

    def _result(self, frame: Frame) -> FaceLandmarkerResult:
        points = [each.points for each in self.found(frame)]
        if frame.seconds is not None and self._limits.number == 1:
            points = [self._smoothed(each, frame, frame.seconds) for each in points]
            if not points:
                self._filter = None
        shown = [
            expressions(network, each, frame.size)
            for network in self._expressions
            for each in points
        ]
        turned = [self._canonical.matrix(each, frame.size) for each in points if self._canonical]
        return FaceLandmarkerResult(
            [landmark_list(each) for each in points],
            shown,
            [matrix for matrix in turned if matrix is not None],
        )

    def _smoothed(self, points: Array, frame: Frame, seconds: float) -> Array:
        self._filter = self._filter or OneEuro(0.05, 80.0)
        return smoothed(self._filter, points, frame.size, seconds)


def expressions(network: Network, points: Array, size: Size) -> list[Category]:
    """How much a face shows of each expression."""
    chosen = points[list(BLENDSHAPE_POINTS), :2] * np.array(size, np.float32)
    scores = network(chosen[np.newaxis].astype(np.float32))["scores"].tolist()
    return [
        Category(index, score, "", name)
        for index, (score, name) in enumerate(zip(scores, BLENDSHAPES, strict=True))
    ]
