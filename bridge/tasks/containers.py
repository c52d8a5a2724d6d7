"""What tasks take and return, with the names and fields of ``mediapipe.tasks``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from tflite_ort.tasks.audio_data import AudioData as AudioData
from tflite_ort.tasks.audio_data import AudioDataFormat as AudioDataFormat

Array = npt.NDArray[Any]


@dataclass
class Rect:
    """A part of a picture, in 0..1 of it."""

    left: float
    top: float
    right: float
    bottom: float


RectF = Rect


@dataclass
class NormalizedRect:
    """A rotated rectangle in 0..1 of the picture; the rotation is clockwise, in radians."""

    x_center: float
    y_center: float
    width: float
    height: float
    rotation: float | None = 0.0
    rect_id: int | None = None


@dataclass
class Category:
    """A class and how sure the model is of it.

    Args:
        index: of the class.
        score: from 0 to 1.
        category_name: its label; empty without labels.
    """

    index: int | None = None
    score: float | None = None
    display_name: str | None = None
    category_name: str | None = None


@dataclass
class BoundingBox:
    """A box in pixels."""

    origin_x: int
    origin_y: int
    width: int
    height: int


@dataclass
class NormalizedKeypoint:
    """A point in 0..1 of the picture."""

    x: float
    y: float
    label: str | None = None
    score: float | None = None


@dataclass
class Detection:
    """An object: where it is and what it is."""

    bounding_box: BoundingBox
    categories: list[Category]
    keypoints: list[NormalizedKeypoint] | None = None


@dataclass
class DetectionResult:
    """All objects of a picture, the surest first."""

    detections: list[Detection]


FaceDetectorResult = ObjectDetectorResult = DetectionResult


@dataclass
class NormalizedLandmark:
    """A point in 0..1 of the picture; z in the units of x, smaller is nearer."""

    x: float | None = None
    y: float | None = None
    z: float | None = None
    visibility: float | None = None
    presence: float | None = None
    name: str | None = None


@dataclass
class Landmark:
    """A point in metres from the middle of the hand or the hips."""

    x: float | None = None
    y: float | None = None
    z: float | None = None
    visibility: float | None = None
    presence: float | None = None
    name: str | None = None


@dataclass
class HandLandmarkerResult:
    """For each hand, which one it is, and its 21 points."""

    handedness: list[list[Category]]
    hand_landmarks: list[list[NormalizedLandmark]]
    hand_world_landmarks: list[list[Landmark]]


@dataclass
class GestureRecognizerResult:
    """By hand: its gesture, which hand it is, and its 21 points. The index of a gesture is -1:
    there may be several classifiers."""

    gestures: list[list[Category]]
    handedness: list[list[Category]]
    hand_landmarks: list[list[NormalizedLandmark]]
    hand_world_landmarks: list[list[Landmark]]


@dataclass
class FaceLandmarkerResult:
    """By face, its points; how much it shows of each expression; and the matrix [4, 4] that turns
    the canonical face, in centimetres, to where this face is before the camera."""

    face_landmarks: list[list[NormalizedLandmark]]
    face_blendshapes: list[list[Category]] = field(default_factory=list)
    facial_transformation_matrixes: list[Array] = field(default_factory=list)


@dataclass
class PoseLandmarkerResult:
    """The 33 points of each person."""

    pose_landmarks: list[list[NormalizedLandmark]]
    pose_world_landmarks: list[list[Landmark]]
    segmentation_masks: list[Any] | None = None


@dataclass
class HolisticLandmarkerResult:
    """The points of one person: of its face, body and hands; how much the face shows of each
    expression; and its mask."""

    face_landmarks: list[NormalizedLandmark]
    pose_landmarks: list[NormalizedLandmark]
    pose_world_landmarks: list[Landmark]
    left_hand_landmarks: list[NormalizedLandmark]
    left_hand_world_landmarks: list[Landmark]
    right_hand_landmarks: list[NormalizedLandmark]
    right_hand_world_landmarks: list[Landmark]
    face_blendshapes: list[Category] | None = None
    segmentation_mask: Any | None = None


@dataclass
class ImageSegmenterResult:
    """Masks of the picture's size.

    Args:
        confidence_masks: by class, float32 from 0 to 1.
        category_mask: the class of each pixel, uint8.
    """

    confidence_masks: list[Any] | None = None
    category_mask: Any | None = None


InteractiveSegmenterResult = InteractiveSegmenterLegacyResult = ImageSegmenterResult


@dataclass
class Classifications:
    """The classes of one head of a model, the surest first."""

    categories: list[Category]
    head_index: int
    head_name: str | None = None


@dataclass
class ClassificationResult:
    """The classes of a picture, or of a piece of sound that begins at `timestamp_ms`."""

    classifications: list[Classifications]
    timestamp_ms: int | None = None


@dataclass
class LandmarksDetectionResult:
    """Landmarks of one thing, what it is, and where it lies."""

    landmarks: list[NormalizedLandmark] | None
    categories: list[Category] | None
    world_landmarks: list[Landmark] | None
    rect: NormalizedRect


ImageClassifierResult = AudioClassifierResult = TextClassifierResult = ClassificationResult


@dataclass
class Embedding:
    """A vector of one head of a model.

    Args:
        embedding: float64, or, if it is quantized, the bytes of int8 as uint8.
    """

    embedding: Array
    head_index: int | None = None
    head_name: str | None = None


@dataclass
class EmbeddingResult:
    """The vectors of a picture or a text, or of a piece of sound that begins at `timestamp_ms`."""

    embeddings: list[Embedding]
    timestamp_ms: int | None = None


ImageEmbedderResult = AudioEmbedderResult = TextEmbedderResult = EmbeddingResult


@dataclass(init=False)
class LanguageDetectorResult:
    """The languages of a text, the surest first.

    Args:
        languages: these; `detections` is the older name.
    """

    @dataclass
    class LanguagePrediction:
        """A language, such as ``en`` or ``ja-Latn``, and how sure the model is of it."""

        language_code: str
        probability: float

    Detection = LanguagePrediction

    languages: list[LanguagePrediction]

    def __init__(
        self,
        languages: list[LanguagePrediction] | None = None,
        detections: list[LanguagePrediction] | None = None,
    ) -> None:
        if languages is not None and detections is not None:
            raise ValueError("Specify either `languages` or deprecated `detections`, not both.")
        self.languages = languages or detections or []

    @property
    def detections(self) -> list[LanguagePrediction]:
        """The older name of `languages`."""
        return self.languages

    @detections.setter
    def detections(self, value: list[LanguagePrediction]) -> None:
        self.languages = value


def landmark_list(points: Array, *sure: Array) -> list[NormalizedLandmark]:
    """Points [N, 3] as landmarks, with visibility and presence, [N] each, where they are given."""
    return list(map(NormalizedLandmark, *_columns(points, *sure)))


def world_landmark_list(points: Array, *sure: Array) -> list[Landmark]:
    """Points [N, 3] in metres as landmarks."""
    return list(map(Landmark, *_columns(points, *sure)))


def _columns(points: Array, *more: Array) -> list[list[float]]:
    return [each.tolist() for each in (*points.T, *more)]
