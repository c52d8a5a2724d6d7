"""Hands, faces and bodies drawn on the frames of a film."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.files import distinct_names, made_folder, writing
from tflite_ort.base.guard import protect
from tflite_ort.base.optional import optional_module
from tflite_ort.bundles import open_bundle
from tflite_ort.export.decoded import known_kind
from tflite_ort.prediction.array_files import InputError, open_plain
from tflite_ort.prediction.images import converted, is_picture, opened_picture
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.schema import ModelError
from tflite_ort.tasks.face_landmarker import FaceLandmarker, FaceLandmarkerOptions
from tflite_ort.tasks.hand_landmarker import HandLandmarker, HandLandmarkerOptions
from tflite_ort.tasks.options import BaseOptions, RunningMode
from tflite_ort.tasks.pose_landmarker import PoseLandmarker, PoseLandmarkerOptions

Array = npt.NDArray[Any]
Lines = tuple[tuple[int, ...], ...]

_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".webp"})
_MILLISECONDS = 33  # from a frame to the next one where nothing tells

# Which points of a hand and of a body are joined.
_HAND: Lines = (
    (0, 1, 2, 3, 4),
    (0, 5, 6, 7, 8),
    (5, 9, 10, 11, 12),
    (9, 13, 14, 15, 16),
    (13, 17, 18, 19, 20),
    (0, 17),
)
_BODY: Lines = (
    (8, 6, 5, 4, 0, 1, 2, 3, 7),
    (10, 9),
    (20, 18, 16, 14, 12, 11, 13, 15, 17, 19),
    (12, 24, 23, 11),
    (24, 26, 28, 30, 32),
    (23, 25, 27, 29, 31),
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How landmarks of a kind are found and drawn.

    Args:
        number: what the option is called that says how many are looked for.
        field: of the result, with the points.
    """

    task: Any
    options: Any
    number: str
    field: str
    lines: Lines
    colour: str


# By the kind of the landmark network.
_KINDS = {
    "hand landmarks": _Kind(
        HandLandmarker, HandLandmarkerOptions, "num_hands", "hand_landmarks", _HAND, "#18b26b"
    ),
    "face landmarks": _Kind(
        FaceLandmarker, FaceLandmarkerOptions, "num_faces", "face_landmarks", (), "#f2c230"
    ),
    "pose landmarks": _Kind(
        PoseLandmarker, PoseLandmarkerOptions, "num_poses", "pose_landmarks", _BODY, "#3b8eea"
    ),
}


@dataclass(frozen=True, slots=True)
class FilmFrame:
    """A frame: what it is called, uint8 [height, width, 3] in RGB, and when it is shown."""

    name: str
    pixels: Array
    time_ms: int


def frames_of(film: Path) -> Iterator[FilmFrame]:
    """The frames of a folder of pictures, of an animated picture, or of a film.

    Raises:
        ImportError: Pillow is missing, or OpenCV for a film.
        OSError: there is no such file, it is no plain one, or it holds no frames that can be read.
    """
    _needed("PIL.Image", "pillow")
    if film.is_dir():
        paths = sorted(path for path in film.iterdir() if path.suffix.lower() in _SUFFIXES)
        protect(paths)
        names = distinct_names([path.stem for path in paths], "{name}_{number}")
        for number, (path, name) in enumerate(zip(paths, names, strict=True)):
            with _picture(path) as picture:
                yield FilmFrame(name, _pixels(picture), number * _MILLISECONDS)
    elif _is_picture(film):
        with _picture(film) as picture:
            yield from _animated_frames(picture)
    else:
        yield from _film_frames(film)


def _animated_frames(picture: Any) -> Iterator[FilmFrame]:
    time_ms = 0
    for number in range(getattr(picture, "n_frames", 1)):
        if number:
            picture.seek(number)
        yield FilmFrame(f"{number:06}", _pixels(picture), time_ms)
        time_ms += max(1, round(picture.info.get("duration") or _MILLISECONDS))


@contextmanager
def _picture(path: Path) -> Iterator[Any]:
    """As `opened_picture`.

    Raises:
        OSError: there is no such file, it is no plain one, or it is damaged or too large.
    """
    with _as_os_error(), open_plain(path) as stream, opened_picture(stream, path) as picture:
        yield picture


def _is_picture(path: Path) -> bool:
    with _as_os_error():
        return is_picture(path)


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise OSError(str(error)) from error


def _pixels(picture: Any) -> Array:
    """A frame of a picture, uint8 [height, width, 3]."""
    return np.array(converted(picture, "RGB"))


def _film_frames(film: Path) -> Iterator[FilmFrame]:
    opencv = _needed("cv2", "opencv-python-headless")
    capture = opencv.VideoCapture(os.fspath(film))
    if not capture.isOpened():
        raise OSError(f"{film} is no film that OpenCV reads")
    try:
        rate, number = capture.get(opencv.CAP_PROP_FPS) or 1000 / _MILLISECONDS, 0
        while True:
            there, pixels = capture.read()
            if not there:
                return
            clean = np.ascontiguousarray(pixels[..., ::-1])
            yield FilmFrame(f"{number:06}", clean, round(number * 1000 / rate))
            number += 1
    finally:
        capture.release()


def _needed(module: str, package: str) -> Any:
    found = optional_module(module)
    if found is None:
        raise ImportError(f"this needs {package}: pip install {package}")
    return found


def drawer(
    bundle: Path, most: int = 2, providers: ProviderChoices | None = None
) -> Callable[[Any, FilmFrame], int]:
    """A function that draws on a picture of Pillow what a bundle finds in a frame, and tells how
    many that are.

    Args:
        bundle: of a hand, face or pose landmarker.
        most: that are looked for.

    Raises:
        ModelError: it is for nothing that can be drawn.
        BridgeError: it cannot be read or run.
    """
    opened = open_bundle(bundle)
    found = [known_kind(opened.model(e.name), opened.content(e.name)) for e in opened.models]
    names = [kind.name for kind in found if kind is not None and kind.name in _KINDS]
    if not names:
        raise ModelError(f"{bundle} has no landmarks of hands, faces or bodies")
    kind = _KINDS[names[0]]
    base = BaseOptions(model_asset_path=bundle, providers=providers)
    options = kind.options(base, RunningMode.VIDEO, **{kind.number: most})
    landmarker = kind.task.create_from_options(options)

    def draw(picture: Any, frame: FilmFrame) -> int:
        result = landmarker.detect_for_video(frame.pixels, frame.time_ms)
        things = getattr(result, kind.field)
        for points in things:
            draw_points(picture, points, kind.lines, kind.colour)
        return len(things)

    return draw


def draw_points(picture: Any, points: Sequence[Any], lines: Lines, colour: str) -> None:
    """Draw landmarks, and lines between them, on a picture of Pillow."""
    places = [(point.x * picture.width, point.y * picture.height) for point in points]
    pen = _needed("PIL.ImageDraw", "pillow").Draw(picture)
    thick = max(1, picture.width // 250)
    for line in lines:
        pen.line([places[index] for index in line], fill=colour, width=thick)
    radius = 1 if len(places) > 100 else 1.5 * thick
    for x, y in places:
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def drawn_film(
    film: Path,
    out: Path,
    bundles: Sequence[Path],
    most: int = 2,
    providers: ProviderChoices | None = None,
) -> Iterator[tuple[Path, Mapping[str, int]]]:
    """Write each frame as ``NAME.png`` with what is found drawn on it.

    Args:
        film: as of `frames_of`.
        out: a folder; made if it is not there.

    Yields:
        The picture written, and by the name of each bundle how many it has found.

    Raises:
        ImportError, OSError: as of `frames_of`.
        BridgeError: as of `drawer`.
    """
    drawers = {bundle.name: drawer(bundle, most, providers) for bundle in bundles}
    pillow = _needed("PIL.Image", "pillow")
    made_folder(out)
    for frame in frames_of(film):
        picture = pillow.fromarray(frame.pixels)
        found = {name: draw(picture, frame) for name, draw in drawers.items()}
        path = out / f"{frame.name}.png"
        with writing(path) as (stream,):
            picture.save(stream, "PNG")
        yield path, found
