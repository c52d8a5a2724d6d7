"""MediaPipe's tasks on ONNX Runtime: code written for ``mediapipe.tasks`` runs with these names.

::

    from tflite_ort import tasks as mp
    from tflite_ort.tasks import vision

    options = vision.HandLandmarkerOptions(
        base_options=mp.BaseOptions(model_asset_path="hand_landmarker.task"), num_hands=2
    )
    with vision.HandLandmarker.create_from_options(options) as landmarker:
        result = landmarker.detect(mp.Image.create_from_file("hands.jpg"))
"""

from __future__ import annotations

import sys

from tflite_ort.tasks import (
    audio,
    components,
    containers,
    drawing_styles,
    processors,
    solutions,
    text,
    vision,
)
from tflite_ort.tasks import painting as drawing_utils
from tflite_ort.tasks.audio_data import AudioData
from tflite_ort.tasks.classifiers import (
    AudioClassifier,
    AudioClassifierOptions,
    ImageClassifier,
    ImageClassifierOptions,
)
from tflite_ort.tasks.detectors import (
    FaceDetector,
    FaceDetectorOptions,
    ObjectDetector,
    ObjectDetectorOptions,
)
from tflite_ort.tasks.embedders import (
    AudioEmbedder,
    AudioEmbedderOptions,
    ImageEmbedder,
    ImageEmbedderOptions,
)
from tflite_ort.tasks.face_landmarker import FaceLandmarker, FaceLandmarkerOptions
from tflite_ort.tasks.gesture_recognizer import GestureRecognizer, GestureRecognizerOptions
from tflite_ort.tasks.hand_landmarker import HandLandmarker, HandLandmarkerOptions
from tflite_ort.tasks.holistic_landmarker import HolisticLandmarker, HolisticLandmarkerOptions
from tflite_ort.tasks.image import Image, ImageFormat
from tflite_ort.tasks.image_segmenter import ImageSegmenter, ImageSegmenterOptions
from tflite_ort.tasks.interactive_segmenter import (
    InteractiveSegmenter,
    InteractiveSegmenterOptions,
)
from tflite_ort.tasks.options import BaseOptions, ImageProcessingOptions, RectF, RunningMode
from tflite_ort.tasks.pose_landmarker import PoseLandmarker, PoseLandmarkerOptions
from tflite_ort.tasks.text_tasks import (
    LanguageDetector,
    LanguageDetectorOptions,
    TextClassifier,
    TextClassifierOptions,
    TextEmbedder,
    TextEmbedderOptions,
)

# So that ``mp.tasks.vision`` is there, where ``mp`` is this module, and ``tasks.python``.
tasks = python = sys.modules[__name__]

__all__ = [
    "AudioClassifier",
    "AudioClassifierOptions",
    "AudioData",
    "AudioEmbedder",
    "AudioEmbedderOptions",
    "BaseOptions",
    "FaceDetector",
    "FaceDetectorOptions",
    "FaceLandmarker",
    "FaceLandmarkerOptions",
    "GestureRecognizer",
    "GestureRecognizerOptions",
    "HandLandmarker",
    "HandLandmarkerOptions",
    "HolisticLandmarker",
    "HolisticLandmarkerOptions",
    "Image",
    "ImageClassifier",
    "ImageClassifierOptions",
    "ImageEmbedder",
    "ImageEmbedderOptions",
    "ImageFormat",
    "ImageProcessingOptions",
    "ImageSegmenter",
    "ImageSegmenterOptions",
    "InteractiveSegmenter",
    "InteractiveSegmenterOptions",
    "LanguageDetector",
    "LanguageDetectorOptions",
    "ObjectDetector",
    "ObjectDetectorOptions",
    "PoseLandmarker",
    "PoseLandmarkerOptions",
    "RectF",
    "RunningMode",
    "TextClassifier",
    "TextClassifierOptions",
    "TextEmbedder",
    "TextEmbedderOptions",
    "audio",
    "components",
    "containers",
    "drawing_styles",
    "drawing_utils",
    "processors",
    "python",
    "solutions",
    "tasks",
    "text",
    "vision",
]
