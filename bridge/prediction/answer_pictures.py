"""An answer drawn on its picture."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.answer_text import lines_of
from tflite_ort.prediction.answers import Answer, Box, Points
from tflite_ort.prediction.array_files import Array, InputError
from tflite_ort.prediction.map_pictures import palette

# Lines between the points of a body, as COCO numbers them.
_BODY = (
    *((0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10), (5, 11), (6, 12)),
    *((11, 12), (11, 13), (13, 15), (12, 14), (14, 16)),
)
_BODY_POINTS = 17
# Points below this score are left out.
_SURE = 0.2
_OPAQUE = 0.55
# By this share of the colour circle, neighbouring classes are far apart.
_TURN = 0.381966


def drawn(answer: Answer, pixels: Array) -> Any:
    """A picture of Pillow: the pixels [height, width, 3] with boxes, points, masks or names.

    Raises:
        InputError: Pillow is missing.
    """
    pillow, pens, fonts = (
        optional_module(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont")
    )
    if pillow is None or pens is None or fonts is None:
        raise InputError("drawing needs Pillow: pip install 'tflite-ort[images]'")
    picture = pillow.fromarray(pixels)
    if answer.mask is not None:
        picture = _masked(pillow, picture, answer)
    pen = pens.Draw(picture)
    height = max(11, min(picture.size) // 28)
    font = fonts.load_default(height)
    for points in answer.points:
        _draw_points(pen, points, picture.size)
    for box in reversed(answer.boxes):
        _draw_box(pen, box, picture.size, font)
    if not (answer.boxes or answer.points):
        _draw_lines(pen, lines_of(answer), font, height)
    return picture


def _masked(pillow: Any, picture: Any, answer: Answer) -> Any:
    mask = pillow.fromarray(np.ascontiguousarray(answer.mask)).resize(picture.size)
    shown = np.asarray(mask)
    mask.putpalette(palette())
    blended = pillow.blend(picture, mask.convert("RGB"), _OPAQUE)
    seen = pillow.fromarray(((shown > 0) * 255).astype(np.uint8))
    return pillow.composite(blended, picture, seen)


def _draw_box(pen: Any, box: Box, size: tuple[int, int], font: Any) -> None:
    scale = (*size, *size)
    left, top, right, bottom = (
        float(np.clip(np.nan_to_num(side), 0, 1)) * most
        for side, most in zip(box.sides, scale, strict=True)
    )
    colour = _colour(box.what.number)
    thick = max(2, min(size) // 200)
    pen.rectangle((left, top, max(left, right), max(top, bottom)), outline=colour, width=thick)
    text = f"{box.what.name} {100 * box.what.score:.0f} %"
    _label(pen, (left + thick, top + thick), text, font, colour)


def _draw_points(pen: Any, points: Points, size: tuple[int, int]) -> None:
    places = np.nan_to_num(points.places[:, :2]) * np.array(size)
    sure = np.ones(len(places)) if points.sure is None else points.sure
    thick = max(2, min(size) // 200)
    for start, end in _BODY if len(places) == _BODY_POINTS else ():
        if min(sure[start], sure[end]) >= _SURE:
            pen.line([*map(tuple, places[[start, end]])], fill=_colour(1), width=thick)
    radius = 1 if len(places) > 100 else 1.5 * thick
    for (x, y), score in zip(places, sure, strict=True):
        if score >= _SURE:
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_colour(4))


def _draw_lines(pen: Any, lines: list[str], font: Any, height: int) -> None:
    for number, line in enumerate(lines):
        _label(pen, (4, 4 + number * (height + 6)), line, font, (0, 0, 0))


def _label(pen: Any, at: tuple[float, float], text: str, font: Any, colour: Any) -> None:
    plain = text.encode("latin-1", "replace").decode("latin-1")
    left, top, right, bottom = pen.textbbox(at, plain, font=font)
    pen.rectangle((left - 2, top - 2, right + 2, bottom + 2), fill=colour)
    pen.text(at, plain, fill=(255, 255, 255), font=font)


def _colour(number: int) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb((number + 1) * _TURN % 1, 0.75, 0.75)
    return round(red * 255), round(green * 255), round(blue * 255)
