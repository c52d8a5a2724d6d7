"""Tasks on pictures, as ``mediapipe.tasks.python.vision`` has them."""

from __future__ import annotations

from tflite_ort.tasks import drawing_styles
from tflite_ort.tasks import painting as drawing_utils
from tflite_ort.tasks.classifiers import ImageClassifier, ImageClassifierOptions
from tflite_ort.tasks.connections import (
    FaceLandmarksConnections,
    HandLandmarksConnections,
    PoseLandmarksConnections,
)
from tflite_ort.tasks.containers import (
    FaceDetectorResult,
    FaceLandmarkerResult,
    GestureRecognizerResult,
    HandLandmarkerResult,
    HolisticLandmarkerResult,
    ImageClassifierResult,
    ImageEmbedderResult,
    ImageSegmenterResult,
    ObjectDetectorResult,
    PoseLandmarkerResult,
)
from tflite_ort.tasks.detectors import (
    FaceDetector,
    FaceDetectorOptions,
    ObjectDetector,
    ObjectDetectorOptions,
)
from tflite_ort.tasks.embedders import ImageEmbedder, ImageEmbedderOptions
from tflite_ort.tasks.face_landmarker import FaceLandmarker, FaceLandmarkerOptions
from tflite_ort.tasks.gesture_recognizer import GestureRecognizer, GestureRecognizerOptions
from tflite_ort.tasks.hand_landmarker import HandLandmarker, HandLandmarkerOptions
from tflite_ort.tasks.holistic_landmarker import HolisticLandmarker, HolisticLandmarkerOptions
from tflite_ort.tasks.image_segmenter import ImageSegmenter, ImageSegmenterOptions
from tflite_ort.tasks.interactive_segmenter import (
    InteractiveSegmenter,
    InteractiveSegmenterLegacy,
    InteractiveSegmenterLegacyOptions,
    InteractiveSegmenterOptions,
    RegionOfInterest,
)
from tflite_ort.tasks.options import ImageProcessingOptions, RunningMode
from tflite_ort.tasks.points import PoseLandmark
from tflite_ort.tasks.pose_landmarker import PoseLandmarker, PoseLandmarkerOptions

InteractiveSegmenterRegionOfInterest = RegionOfInterest
InteractiveSegmenterLegacyRegionOfInterest = RegionOfInterest

__all__ = [
    "FaceDetector",
    "FaceDetectorOptions",
    "FaceDetectorResult",
    "FaceLandmarker",
    "FaceLandmarkerOptions",
    "FaceLandmarkerResult",
    "FaceLandmarksConnections",
    "GestureRecognizer",
    "GestureRecognizerOptions",
    "GestureRecognizerResult",
    "HandLandmarker",
    "HandLandmarkerOptions",
    "HandLandmarkerResult",
    "HandLandmarksConnections",
    "HolisticLandmarker",
    "HolisticLandmarkerOptions",
    "HolisticLandmarkerResult",
    "ImageClassifier",
    "ImageClassifierOptions",
    "ImageClassifierResult",
    "ImageEmbedder",
    "ImageEmbedderOptions",
    "ImageEmbedderResult",
    "ImageProcessingOptions",
    "ImageSegmenter",
    "ImageSegmenterOptions",
    "ImageSegmenterResult",
    "InteractiveSegmenter",
    "InteractiveSegmenterLegacy",
    "InteractiveSegmenterLegacyOptions",
    "InteractiveSegmenterLegacyRegionOfInterest",
    "InteractiveSegmenterOptions",
    "InteractiveSegmenterRegionOfInterest",
    "ObjectDetector",
    "ObjectDetectorOptions",
    "ObjectDetectorResult",
    "PoseLandmark",
    "PoseLandmarker",
    "PoseLandmarkerOptions",
    "PoseLandmarkerResult",
    "PoseLandmarksConnections",
    "RunningMode",
    "drawing_styles",
    "drawing_utils",
]
