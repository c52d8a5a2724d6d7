"""Our tasks beside MediaPipe's own, over pictures: how many are found, where, and how fast.

    python benchmarks/mediapipe_tasks.py --mediapipe ENV/bin/python PICTURE_OR_FOLDER...

`ENV` is another environment, with ``mediapipe`` 0.10.x in it; its wheel has the models. Of 1.x,
which alone can be asked for persons, `--modules` says where the folder of the older wheel is. Every
picture is also looked at turned, small, cut off, and beside another one. With --video the pictures
are panned over as a film, and the times of a frame are printed: run that on a machine that does
nothing else. With --itself MediaPipe is compared with itself, when one byte of each picture is
another one, of a film one byte of the first frame: how far it carries a small difference.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.mediapipe_models import make_bundles
from tflite_ort import tasks
from tflite_ort.base.files import writing
from tflite_ort.tasks import vision

Array = npt.NDArray[Any]
Pictures = dict[str, Array]

WORKER = Path(__file__).with_name("mediapipe_worker.py")
SUFFIXES = {".jpg", ".jpeg", ".png"}
MOST, LONGEST = 4, 1280
LEAST_IOU, MOST_OFF = 0.95, 0.01


def read(paths: list[Path]) -> Pictures:
    """Pictures by name, not larger than `LONGEST`."""
    pictures = {}
    for path in paths:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.suffix.lower() in SUFFIXES:
                image = Image.open(file).convert("RGB")
                image.thumbnail((LONGEST, LONGEST))
                pictures[file.stem] = np.array(image)
    return pictures


def varied(pictures: Pictures) -> Pictures:
    """Each picture, and in turn one of its variants."""
    names = list(pictures)
    found = dict(pictures)
    for number, name in enumerate(names):
        image = Image.fromarray(pictures[name])
        width, height = image.size
        other = Image.fromarray(pictures[names[(number + 7) % len(names)]]).resize((width, height))
        pair = Image.new("RGB", (2 * width, height))
        pair.paste(image, (0, 0))
        pair.paste(other, (width, 0))
        small = Image.new("RGB", (width, height), (90, 90, 90))
        small.paste(image.resize((width // 3 + 1, height // 3 + 1)), (width // 4, height // 3))
        kinds = {
            "turned 20": image.rotate(20, expand=True),
            "turned 90": image.rotate(90, expand=True),
            "small": small,
            "cut off": image.crop((width // 4, height // 5, width, height)),
            "pair": pair,
        }
        kind = list(kinds)[number % len(kinds)]
        found[f"{name} {kind}"] = np.array(kinds[kind])
    return found


def film(picture: Array, frames: int) -> Pictures:
    """Frames 640 wide that move over a picture."""
    height, width = picture.shape[:2]
    found = {}
    for number in range(frames):
        part = 0.9 + 0.05 * np.cos(number / 20)
        left = (1 - part) * width * (0.5 + 0.5 * np.sin(number / 15))
        top = (1 - part) * height * (0.5 + 0.5 * np.cos(number / 17))
        box = (left, top, left + part * width, top + part * height)
        size = (640, round(640 * height / width))
        image = Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR, box=box)
        found[f"{number:04}"] = np.array(image)
    return found


def theirs(
    python: str, bundles: Path, pictures: Pictures, video: bool, tasks: Sequence[str]
) -> dict[str, Any]:
    """What MediaPipe finds.

    Args:
        tasks: by name; none stands for all.
    """
    stored, out = bundles / "pictures.npz", bundles / "found.json"
    with writing(stored) as (stream,):
        np.savez(stream, **pictures)  # type: ignore[arg-type]
    command = [python, str(WORKER), str(bundles), str(stored), str(out)]
    command += [*(["--video"] if video else []), *tasks]
    subprocess.run(command, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def nudged(picture: Array) -> Array:
    """The same picture; its middle byte is larger or smaller by 1."""
    changed = picture.copy()
    byte = changed[changed.shape[0] // 2, changed.shape[1] // 2]
    byte[0] ^= 1
    return changed


def made(bundles: Path, video: bool, provider: str | None) -> dict[str, Any]:
    """Our tasks, by the names that the worker has."""
    mode = vision.RunningMode.VIDEO if video else vision.RunningMode.IMAGE
    most = 1 if video else MOST

    def base(name: str) -> tasks.BaseOptions:
        providers = None if provider is None else [provider]
        return tasks.BaseOptions(bundles / name, providers=providers)

    return {
        "faces": vision.FaceDetector.create_from_options(
            vision.FaceDetectorOptions(base("face_detector.tflite"), mode)
        ),
        "face landmarks": vision.FaceLandmarker.create_from_options(
            vision.FaceLandmarkerOptions(base("face_landmarker.task"), mode, num_faces=most)
        ),
        "face mesh": vision.FaceLandmarker.create_from_options(
            vision.FaceLandmarkerOptions(base("face_mesh.task"), mode, num_faces=most)
        ),
        "hands": vision.HandLandmarker.create_from_options(
            vision.HandLandmarkerOptions(base("hand_landmarker.task"), mode, num_hands=most)
        ),
        "persons": vision.HolisticLandmarker.create_from_options(
            vision.HolisticLandmarkerOptions(base("holistic_landmarker.task"), mode)
        ),
        "poses": vision.PoseLandmarker.create_from_options(
            vision.PoseLandmarkerOptions(base("pose_landmarker.task"), mode, num_poses=most)
        ),
    }


def told(result: Any, size: tuple[int, int]) -> dict[str, Any]:
    """A result of ours as the worker tells one of theirs."""
    if isinstance(result, tasks.containers.DetectionResult):
        boxes = [each.bounding_box for each in result.detections]
        return {
            "boxes": [
                [b.origin_x, b.origin_y, b.origin_x + b.width, b.origin_y + b.height] for b in boxes
            ]
        }
    if hasattr(result, "left_hand_landmarks"):
        parts = (result.face_landmarks, result.pose_landmarks)
        lists = [
            each
            for each in (*parts, result.left_hand_landmarks, result.right_hand_landmarks)
            if each
        ]
    else:
        names = ("face_landmarks", "hand_landmarks", "pose_landmarks")
        lists = next(getattr(result, name) for name in names if hasattr(result, name))
    found = {"landmarks": [[[p.x * size[0], p.y * size[1]] for p in each] for each in lists]}
    if hasattr(result, "handedness"):
        found["names"] = [each[0].category_name for each in result.handedness]
    return found


def ours(task: Any, pictures: Pictures, video: bool) -> tuple[dict[str, Any], list[float]]:
    """What a task of ours finds, and its times."""
    found, times = {}, []
    for number, (name, pixels) in enumerate(pictures.items()):
        started = time.perf_counter()
        result = task.detect_for_video(pixels, 33 * number) if video else task.detect(pixels)
        times.append(time.perf_counter() - started)
        found[name] = told(result, (pixels.shape[1], pixels.shape[0]))
    return found, times


def overlap(a: Array, b: Array) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.maximum(high - low, 0).prod()
    return float(common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common))


def bounds(points: Array) -> Array:
    return np.concatenate([points.min(0), points.max(0)])


def pairs(mine: list[Any], right: list[Any]) -> Iterator[tuple[Array, Array]]:
    """Each of theirs with the nearest of ours that has as many points."""
    arrays = [np.array(each, float) for each in mine]
    for each in right:
        wanted = np.array(each, float)
        alike = [array for array in arrays if array.shape == wanted.shape]
        if alike:
            yield min(alike, key=lambda array: float(np.abs(array - wanted).sum())), wanted


def differences(mine: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """Of each thing found: the overlap of the boxes, and how far the farthest landmark is off, in
    parts of the box's longer side."""
    for a, b in pairs(mine.get("boxes", []), right.get("boxes", [])):
        yield overlap(a, b), 0.0
    for a, b in pairs(mine.get("landmarks", []), right.get("landmarks", [])):
        box = bounds(b)
        off = np.linalg.norm(a - b, axis=1).max() / (box[2:] - box[:2]).max()
        yield overlap(bounds(a), box), float(off)


def count(found: Mapping[str, Any]) -> int:
    return len(found.get("boxes", found.get("landmarks", [])))


def compared(name: str, mine: dict[str, Any], right: dict[str, Any], verbose: bool) -> str:
    """A line about one task."""
    same = [key for key in right if count(mine[key]) == count(right[key])]
    if verbose:
        for key in right:
            if key not in same:
                print(f"  {name}, {key}: {count(mine[key])} instead of {count(right[key])}")
    off = [(*pair, key) for key in same for pair in differences(mine[key], right[key])]
    if verbose:
        for iou, distance, key in off:
            if iou < LEAST_IOU or distance > MOST_OFF:
                print(f"  {name}, {key}: IoU {iou:.3f}, landmarks off by {distance:.2%}")
    if not off:
        return f"{name:15} {len(same):4} of {len(right):4}      0"
    ious, distances = np.array([each[0] for each in off]), np.array([each[1] for each in off])
    hands = [key for key in same if mine[key].get("names") != right[key].get("names")]
    return (
        f"{name:15} {len(same):4} of {len(right):4} {len(off):6} "
        f"{(ious >= LEAST_IOU).mean():8.1%} {ious.min():7.3f} "
        f"{(distances <= MOST_OFF).mean():8.1%} {np.median(distances):8.3%} {distances.max():8.2%}"
        + (f"  handedness differs in {len(hands)}" if hands else "")
    )


def run(arguments: argparse.Namespace) -> None:
    python = arguments.mediapipe
    code = "import mediapipe, os; print(os.path.dirname(mediapipe.__file__), mediapipe.__version__)"
    answer = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    place, version = answer.stdout.split()
    pictures = read(arguments.pictures)
    shown = film(next(iter(pictures.values())), arguments.frames) if arguments.video else None
    shown = shown or varied(pictures)
    with tempfile.TemporaryDirectory() as folder:
        bundles = Path(folder)
        make_bundles(arguments.modules or Path(place) / "modules", bundles)
        names = arguments.task or []
        right = theirs(python, bundles, shown, arguments.video, names)
        print(f"mediapipe {version}, {len(shown)} pictures of {len(pictures)}")
        report: Callable[..., None] = timed if arguments.video else listed
        if arguments.itself:
            some = list(shown)[:1] if arguments.video else list(shown)
            changed = {**shown, **{name: nudged(shown[name]) for name in some}}
            other = theirs(python, bundles, changed, arguments.video, names)
            for name, answer in right.items():
                print(compared(name, other[name]["found"], answer["found"], arguments.verbose))
            return
        tasks = made(bundles, arguments.video, arguments.provider)
        wanted = {name: tasks[name] for name in right}
        report(wanted, shown, right, arguments)


def listed(made: dict[str, Any], shown: Pictures, right: Any, arguments: Any) -> None:
    print(f"{'':15} same number  things IoU>=.95   least  off<=1%   median  farthest")
    for name, task in made.items():
        found, _ = ours(task, shown, False)
        print(compared(name, found, right[name]["found"], arguments.verbose))


def timed(made: dict[str, Any], shown: Pictures, right: Any, arguments: Any) -> None:
    print(f"{'':15} {'theirs':>9} {'ours':>9}   ratio (milliseconds a frame, median)")
    for name, task in made.items():
        found, times = ours(task, shown, True)
        their, our = (1000 * float(np.median(each[10:])) for each in (right[name]["times"], times))
        print(f"{name:15} {their:9.2f} {our:9.2f} {their / our:7.2f}")
        print(f"  {compared(name, found, right[name]['found'], False)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--mediapipe", default=sys.executable, help="the other Python")
    parser.add_argument("--modules", type=Path, help="of an unpacked wheel of 0.10, for 1.x")
    parser.add_argument("--video", action="store_true")
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--provider")
    parser.add_argument("--task", action="append", help="one of them, instead of all")
    parser.add_argument("--itself", action="store_true", help="compare MediaPipe with itself")
    parser.add_argument("--verbose", action="store_true", help="name what differs")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
