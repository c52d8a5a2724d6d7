"""Draws hands, faces and bodies on the frames of a film.

python examples/draw_landmarks.py FRAMES OUT hand_landmarker.task face_landmarker.task

FRAMES is a folder of pictures, which are the frames in the order of their names. What a bundle is
for is told by the models in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from tflite_ort import open_bundle
from tflite_ort.export_decoded import known_kind
from tflite_ort.tasks import BaseOptions, vision

SUFFIXES = {".bmp", ".jpeg", ".jpg", ".png", ".webp"}
MILLISECONDS = 33

Array = npt.NDArray[Any]
Points = Sequence[Any]
Lines = tuple[tuple[int, ...], ...]
# Which points of a hand and of a body are joined.
HAND: Lines = (
    (0, 1, 2, 3, 4),
    (0, 5, 6, 7, 8),
    (5, 9, 10, 11, 12),
    (9, 13, 14, 15, 16),
    (13, 17, 18, 19, 20),
    (0, 17),
)
BODY: Lines = (
    (8, 6, 5, 4, 0, 1, 2, 3, 7),
    (10, 9),
    (20, 18, 16, 14, 12, 11, 13, 15, 17, 19),
    (12, 24, 23, 11),
    (24, 26, 28, 30, 32),
    (23, 25, 27, 29, 31),
)
# By the kind of the landmark network: the task, what its number is called, where its points are,
# the lines and the colour.
KINDS: dict[str, tuple[Any, Any, str, str, Lines, str]] = {
    "hand landmarks": (
        vision.HandLandmarker,
        vision.HandLandmarkerOptions,
        "num_hands",
        "hand_landmarks",
        HAND,
        "#18b26b",
    ),
    "face landmarks": (
        vision.FaceLandmarker,
        vision.FaceLandmarkerOptions,
        "num_faces",
        "face_landmarks",
        (),
        "#f2c230",
    ),
    "pose landmarks": (
        vision.PoseLandmarker,
        vision.PoseLandmarkerOptions,
        "num_poses",
        "pose_landmarks",
        BODY,
        "#3b8eea",
    ),
}


def drawer(bundle: Path, most: int) -> Callable[[Image.Image, int, Array], None]:
    """A function that draws on a frame what a bundle is for."""
    opened = open_bundle(bundle)
    kinds = [known_kind(opened.model(e.name), opened.content(e.name)) for e in opened.models]
    found = [kind.name for kind in kinds if kind is not None and kind.name in KINDS]
    if not found:
        raise SystemExit(f"{bundle} has no landmarks of hands, faces or bodies")
    task, options, number, field, lines, colour = KINDS[found[0]]
    base = BaseOptions(model_asset_path=bundle)
    landmarker = task.create_from_options(options(base, vision.RunningMode.VIDEO, **{number: most}))

    def draw(frame: Image.Image, time_ms: int, clean: Array) -> None:
        result = landmarker.detect_for_video(clean, time_ms)
        for points in getattr(result, field):
            draw_points(frame, points, lines, colour)

    return draw


def draw_points(frame: Image.Image, points: Points, lines: Lines, colour: str) -> None:
    """Draw landmarks, and lines between them."""
    places = [(point.x * frame.width, point.y * frame.height) for point in points]
    pen = ImageDraw.Draw(frame)
    thick = max(1, frame.width // 250)
    for line in lines:
        pen.line([places[index] for index in line], fill=colour, width=thick)
    radius = 1 if len(places) > 100 else 1.5 * thick
    for x, y in places:
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def frames_of(folder: Path) -> list[Path]:
    """The pictures in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frames", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("bundles", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=2, help="of each kind in a frame")
    given = parser.parse_args()
    drawers = [drawer(bundle, given.most) for bundle in given.bundles]
    given.out.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(frames_of(given.frames)):
        frame = Image.open(path).convert("RGB")
        clean = np.asarray(frame)
        for draw in drawers:
            draw(frame, number * MILLISECONDS, clean)
        frame.save(given.out / f"{path.stem}.png")
        print(given.out / f"{path.stem}.png")


if __name__ == "__main__":
    main()
