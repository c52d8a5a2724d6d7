"""MediaPipe's modules, and what they hold here: its tasks and its older solutions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from tflite_ort import tasks
from tflite_ort.base.optional import imported
from tflite_ort.tasks.options import UNSAID, AudioRunningMode, RunningMode

# The release whose tasks have these names.
MEDIAPIPE_VERSION = "1.2.3"
_OURS = "tflite_ort.tasks"
# By module of MediaPipe, those of `tflite_ort.tasks` that have its names; * is the package.
_MODULES = """
    mediapipe                   *
    mediapipe.tasks             *
    mediapipe.tasks.python      *
    mediapipe.framework
    mediapipe.framework.formats
    mediapipe.framework.formats.classification_pb2  messages
    mediapipe.framework.formats.detection_pb2       messages
    mediapipe.framework.formats.landmark_pb2        messages
    mediapipe.framework.formats.location_data_pb2   messages
    mediapipe.python
"""
_IN_TASKS = """
    audio                                 audio
    audio.audio_classifier                classifiers containers
    audio.audio_embedder                  embedders containers
    audio.core
    audio.core.audio_task_running_mode
    components                            components
    components.containers                 containers
    components.containers.audio_data      audio_data
    components.containers.bounding_box    containers
    components.containers.category        containers
    components.containers.classification_result      containers
    components.containers.detections      containers
    components.containers.embedding_result           containers
    components.containers.keypoint        containers
    components.containers.landmark        containers
    components.containers.landmark_detection_result  containers
    components.containers.rect            containers
    components.processors                 processors
    components.processors.classifier_options         processors
    components.utils
    components.utils.cosine_similarity    embedders
    core
    core.base_options                     options
    text                                  text
    text.language_detector                text_tasks containers processors
    text.text_classifier                  text_tasks containers processors
    text.text_embedder                    text_tasks containers
    vision                                vision
    vision.core
    vision.core.image                     image
    vision.core.image_processing_options  options
    vision.core.vision_task_running_mode
    vision.drawing_styles                 drawing_styles
    vision.drawing_utils                  painting
    vision.face_detector                  detectors containers
    vision.face_landmarker                face_landmarker connections containers
    vision.gesture_recognizer             gesture_recognizer containers
    vision.gesture_recognizer_result      containers
    vision.hand_landmarker                hand_landmarker connections containers points
    vision.holistic_landmarker            holistic_landmarker containers
    vision.image_classifier               classifiers containers
    vision.image_embedder                 embedders containers
    vision.image_segmenter                image_segmenter containers
    vision.interactive_segmenter          interactive_segmenter containers
    vision.interactive_segmenter_legacy   interactive_segmenter containers
    vision.object_detector                detectors containers
    vision.pose_landmarker                pose_landmarker connections containers points
"""
_IN_SOLUTIONS = (
    *("drawing_styles", "drawing_utils", "face_detection", "face_mesh", "face_mesh_connections"),
    *("hands", "hands_connections", "holistic", "pose", "pose_connections", "selfie_segmentation"),
)
_ELSEWHERE = {
    "drawing_styles": "drawing_styles",
    "drawing_utils": "painting",
    "hands_connections": "solutions.hands",
    "pose_connections": "solutions.pose",
}


def mediapipe_layout() -> Mapping[str, Mapping[str, Any]]:
    """The names of each module."""
    made = {theirs: _names(ours) for theirs, ours in _rows()}
    made["mediapipe"] |= {"__version__": MEDIAPIPE_VERSION}
    running = "mediapipe.tasks.python.{0}.core.{0}_task_running_mode"
    made[running.format("vision")] = {"VisionTaskRunningMode": RunningMode}
    made[running.format("audio")] = {"AudioTaskRunningMode": AudioRunningMode}
    return made


def _rows() -> Iterator[tuple[str, list[str]]]:
    for line in filter(None, map(str.split, _MODULES.splitlines())):
        yield line[0], line[1:]
    for line in filter(None, map(str.split, _IN_TASKS.splitlines())):
        yield f"mediapipe.tasks.python.{line[0]}", line[1:]
    for package in ("mediapipe.solutions", "mediapipe.python.solutions"):
        yield package, ["solutions"]
        for name in _IN_SOLUTIONS:
            yield f"{package}.{name}", [_ELSEWHERE.get(name, f"solutions.{name}")]


def _names(ours: list[str]) -> dict[str, Any]:
    """The public names of modules of ours."""
    found = dict[str, Any]()
    for name in ours:
        module = tasks if name == "*" else imported(f"{_OURS}.{name}")
        found |= {each: getattr(module, each) for each in _public(module)}
    return found


def _public(module: ModuleType) -> list[str]:
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    return [
        name
        for name, value in vars(module).items()
        if not (name.startswith("_") or isinstance(value, ModuleType))
    ]


def say(arguments: Mapping[str, Any]) -> None:
    """Let tasks have these arguments where a program gives none.

    Raises:
        ValueError: tasks have no such argument.
    """
    if unknown := [name for name in arguments if name in ("hybrid", "cache")]:
        raise ValueError(f"tasks of mediapipe have no {' and no '.join(unknown)}")
    UNSAID.clear()
    UNSAID.update(arguments)
