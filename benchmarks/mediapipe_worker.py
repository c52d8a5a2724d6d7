"""What MediaPipe itself finds: run by the Python of an environment that has it.

    python benchmarks/mediapipe_worker.py BUNDLES PICTURES.npz OUT.json [--video] [TASK...]

It imports nothing of this library. Boxes are left, top, right and bottom, landmarks x and y, all in
pixels. With --video the pictures are frames, and the times in seconds of each are written too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mediapipe as mp
import numpy as np
from mediapipe.tasks import python as tasks

vision = tasks.vision
MOST = 4


def points(landmarks: Any, width: int, height: int) -> list[list[float]]:
    return [[point.x * width, point.y * height] for point in landmarks]


def options(kind: Any, bundle: str, video: bool, **more: Any) -> Any:
    mode = vision.RunningMode.VIDEO if video else vision.RunningMode.IMAGE
    base = tasks.BaseOptions(model_asset_path=bundle)
    return kind(base_options=base, running_mode=mode, **more)


def detecting(task: Any, video: bool) -> Callable[[Any, int], Any]:
    def detect(pixels: Any, time_ms: int) -> Any:
        image = mp.Image(image_format=mp.ImageFormat.SRGB, data=pixels)
        return task.detect_for_video(image, time_ms) if video else task.detect(image)

    return detect


def faces(folder: str, video: bool, most: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    made = options(vision.FaceDetectorOptions, f"{folder}/face_detector.tflite", video)

    def told(result: Any, width: int, height: int) -> Any:
        boxes = [each.bounding_box for each in result.detections]
        ends = [
            [b.origin_x, b.origin_y, b.origin_x + b.width, b.origin_y + b.height] for b in boxes
        ]
        return {"boxes": ends}

    return detecting(vision.FaceDetector.create_from_options(made), video), told


def hands(folder: str, video: bool, most: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    bundle = f"{folder}/hand_landmarker.task"
    made = options(vision.HandLandmarkerOptions, bundle, video, num_hands=most)

    def told(result: Any, width: int, height: int) -> Any:
        return {
            "landmarks": [points(each, width, height) for each in result.hand_landmarks],
            "names": [each[0].category_name for each in result.handedness],
        }

    return detecting(vision.HandLandmarker.create_from_options(made), video), told


def poses(folder: str, video: bool, most: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    bundle = f"{folder}/pose_landmarker.task"
    made = options(vision.PoseLandmarkerOptions, bundle, video, num_poses=most)

    def told(result: Any, width: int, height: int) -> Any:
        return {"landmarks": [points(each, width, height) for each in result.pose_landmarks]}

    return detecting(vision.PoseLandmarker.create_from_options(made), video), told


def face_points(
    folder: str, video: bool, most: int
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    bundle = f"{folder}/face_landmarker.task"
    made = options(vision.FaceLandmarkerOptions, bundle, video, num_faces=most)

    def told(result: Any, width: int, height: int) -> Any:
        return {"landmarks": [points(each, width, height) for each in result.face_landmarks]}

    return detecting(vision.FaceLandmarker.create_from_options(made), video), told


def persons(folder: str, video: bool, most: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    made = options(vision.HolisticLandmarkerOptions, f"{folder}/holistic_landmarker.task", video)
    make = vision.HolisticLandmarker.create_from_options
    followed = make(made) if video else None

    def run(pixels: Any, time_ms: int) -> Any:
        # A task for single pictures follows what it saw in the one before: each gets a new one.
        return detecting(followed or make(made), video)(pixels, time_ms)

    def told(result: Any, width: int, height: int) -> Any:
        parts = ("face", "pose", "left_hand", "right_hand")
        found = [getattr(result, f"{part}_landmarks") for part in parts]
        return {"landmarks": [points(each, width, height) for each in found if each]}

    return run, told


def meshes(folder: str, video: bool, most: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    mesh = mp.solutions.face_mesh.FaceMesh(
        static_image_mode=not video, refine_landmarks=True, max_num_faces=most
    )

    def told(result: Any, width: int, height: int) -> Any:
        found = result.multi_face_landmarks or []
        return {"landmarks": [points(each.landmark, width, height) for each in found]}

    return lambda pixels, _: mesh.process(pixels), told


TASKS = {
    "faces": faces,
    "face landmarks": face_points,
    "face mesh": meshes,
    "hands": hands,
    "persons": persons,
    "poses": poses,
}


def main() -> None:
    folder, pictures, out = sys.argv[1:4]
    video, names = "--video" in sys.argv, [each for each in sys.argv[4:] if each != "--video"]
    frames = np.load(pictures)
    answers: dict[str, Any] = {}
    # 0.10 ends the process where a person lacks a part, and 1.x has no solutions.
    lacking = "persons" if mp.__version__.startswith("0.") else "face mesh"
    for name in names or [each for each in TASKS if each != lacking]:
        make = TASKS[name]
        run, told = make(folder, video, 1 if video else MOST)
        found, times = [], []
        for number, key in enumerate(frames.files):
            pixels = np.ascontiguousarray(frames[key])
            started = time.perf_counter()
            result = run(pixels, 33 * number)
            times.append(time.perf_counter() - started)
            found.append(told(result, pixels.shape[1], pixels.shape[0]))
        answers[name] = {"found": dict(zip(frames.files, found, strict=True)), "times": times}
    Path(out).write_text(json.dumps(answers))  # MediaPipe's environment has no tflite_ort


if __name__ == "__main__":
    main()
