"""What a bundle of MediaPipe's finds in a picture, as an answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.bundles import Bundle, open_bundle
from tflite_ort.export.decoded import known_kind
from tflite_ort.prediction.answers import Answer, Points
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.schema import Budgets
from tflite_ort.tasks.face_landmarker import FaceLandmarker, FaceLandmarkerOptions
from tflite_ort.tasks.gesture_recognizer import GestureRecognizer, GestureRecognizerOptions
from tflite_ort.tasks.hand_landmarker import HandLandmarker, HandLandmarkerOptions
from tflite_ort.tasks.options import BaseOptions
from tflite_ort.tasks.pose_landmarker import PoseLandmarker, PoseLandmarkerOptions

Array = npt.NDArray[Any]

_MOST_THINGS = 4


@dataclass(frozen=True, slots=True)
class _Task:
    """A task.

    Args:
        name: as MediaPipe calls it.
        number: what the option is called that says how many things are looked for.
        method: that finds them.
        points: the field of the result with their points.
        what: what they are.
        named: the field with classes of each, and what these say.
    """

    name: str
    task: Any
    options: Any
    number: str
    method: str
    points: str
    what: str
    named: Sequence[str] = ()


_HAND = _Task(
    *("hand landmarker", HandLandmarker, HandLandmarkerOptions, "num_hands", "detect"),
    *("hand_landmarks", "hand", ("handedness",)),
)
_GESTURE = _Task(
    *("gesture recognizer", GestureRecognizer, GestureRecognizerOptions, "num_hands", "recognize"),
    *("hand_landmarks", "hand", ("gestures", "handedness")),
)
_FACE = _Task(
    *("face landmarker", FaceLandmarker, FaceLandmarkerOptions, "num_faces", "detect"),
    *("face_landmarks", "face"),
)
_POSE = _Task(
    *("pose landmarker", PoseLandmarker, PoseLandmarkerOptions, "num_poses", "detect"),
    *("pose_landmarks", "body"),
)
# By the kind of network that tells them.
_TASKS = {"hand landmarks": _HAND, "face landmarks": _FACE, "pose landmarks": _POSE}
_INNER = "hand_gesture_recognizer.task"


def task_of(bundle: Bundle) -> _Task | None:
    """Which task a bundle is for; None where it is for none that is known.

    Raises:
        BridgeError: a model is damaged.
    """
    if any(entry.name.endswith(_INNER) for entry in bundle.entries):
        return _GESTURE
    for entry in bundle.models:
        kind = known_kind(bundle.model(entry.name), bundle.content(entry.name))
        if kind is not None and kind.name in _TASKS:
            return _TASKS[kind.name]
    return None


def bundle_answerer(
    path: str | os.PathLike[str],
    budgets: Budgets,
    providers: ProviderChoices | None = None,
    threads: int | None = None,
) -> Callable[[Array], Answer] | None:
    """A function that says what is in a picture, uint8 [height, width, 3]; None where the bundle is
    for no task on pictures.

    Raises:
        BridgeError: it cannot be read or run.
    """
    task = task_of(open_bundle(path, budgets=budgets))
    if task is None:
        return None
    base = BaseOptions(model_asset_path=path, providers=providers, num_threads=threads)
    options = task.options(base, **{task.number: _MOST_THINGS})
    made = task.task.create_from_options(options)

    def answer(pixels: Array) -> Answer:
        return _answer(task, getattr(made, task.method)(pixels), pixels)

    return answer


def _answer(task: _Task, result: Any, pixels: Array) -> Answer:
    things = []
    for number, points in enumerate(getattr(result, task.points)):
        said = [getattr(result, field)[number] for field in task.named]
        best = [classes[0] for classes in said if classes]
        names = [each.category_name for each in best if each.category_name]
        what = ": ".join([task.what, ", ".join(names)]) if names else task.what
        places = np.array([(point.x, point.y, point.z) for point in points], np.float32)
        things.append(Points(what, float(best[0].score) if best else 1.0, places))
    return Answer(task.name, (pixels.shape[1], pixels.shape[0]), points=tuple(things))
