"""An answer as lines for people, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tflite_ort.prediction.answers import Answer, Box, Points, Scored, Size

# Of how many points each is told by itself where they have no names.
_FEW_POINTS = 8
_MOST_BOXES = 50


def lines_of(answer: Answer) -> list[str]:
    """What is found, a line each."""
    names = [f"names: {answer.names}"] if answer.names else []
    return [*_answer_lines(answer), *names, *([f"lacks: {answer.lacks}"] if answer.lacks else [])]


def _answer_lines(answer: Answer) -> Iterator[str]:
    yield from answer.texts
    if answer.classes:
        rows = [(each.name, *_scores([each], answer.classes)) for each in answer.classes]
        yield from _columns(rows, left=1)
    if answer.shares:
        rows = [(each.name, _percent(each.score)) for each in answer.shares]
        yield from (f"{line} of the picture" for line in _columns(rows, left=1))
    if answer.boxes:
        yield from _box_lines(answer.boxes, answer.size)
    elif not (answer.classes or answer.shares or answer.points or answer.texts or answer.lacks):
        yield "nothing found: a lower --min-score shows what is less sure"
    for thing in () if answer.boxes else answer.points:
        yield from _point_lines(thing, answer.size)


def _box_lines(boxes: Sequence[Box], size: Size | None) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("what", "score", "left", "top", "width", "height")]
    for box in boxes[:_MOST_BOXES]:
        (score,) = _scores([box.what], [each.what for each in boxes])
        rows.append((box.what.name, score, *map(str, _placed(box.sides, size))))
    yield from _columns(rows, left=1)
    if len(boxes) > _MOST_BOXES:
        yield f"and {len(boxes) - _MOST_BOXES} more"


def _placed(sides: Sequence[float], size: Size | None) -> Iterable[float | int]:
    """Left, top, width and height: in pixels, or in parts of the picture."""
    left, top, right, bottom = sides
    numbers = (left, top, right - left, bottom - top)
    if size is None:
        return [round(number, 3) for number in numbers]
    scale = (*size, *size)
    return [_rounded(number * side) for number, side in zip(numbers, scale, strict=True)]


def _rounded(number: float) -> int:
    return round(number) if math.isfinite(number) else 0


def _point_lines(thing: Points, size: Size | None) -> Iterator[str]:
    yield f"{thing.what} {_percent(thing.score)}, {len(thing.places)} points"
    if not thing.names and len(thing.places) > _FEW_POINTS:
        return
    rows = []
    for number, place in enumerate(thing.places.tolist()):
        name = thing.names[number] if thing.names else f"point {number}"
        x, y = (
            (round(place[0], 3), round(place[1], 3))
            if size is None
            else (_rounded(place[0] * size[0]), _rounded(place[1] * size[1]))
        )
        sure = "" if thing.sure is None else _percent(float(thing.sure[number]))
        rows.append((f"  {name}", str(x), str(y), sure))
    yield from _columns(rows, left=1)


def _columns(rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """Rows as lines; the first columns begin, and the others end, below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _scores(shown: Sequence[Scored], all_of_them: Sequence[Scored]) -> list[str]:
    """Scores as parts of a hundred where all are from 0 to 1, else as they are."""
    parts = all(0 <= each.score <= 1 for each in all_of_them)
    return [_percent(each.score) if parts else f"{each.score:.4g}" for each in shown]


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


# JSON --------------------------------------------------------------------------------------------


def record_of(answer: Answer) -> dict[str, Any]:
    """An answer as JSON; what is empty is left out, and a mask too."""
    found: dict[str, Any] = {
        "kind": answer.kind,
        "picture": list(answer.size or ()),
        "classes": [_scored(each) for each in answer.classes],
        "shares": [_scored(each) for each in answer.shares],
        "boxes": [{**_scored(box.what), "box": _numbers(box.sides)} for box in answer.boxes],
        "points": [_points(each) for each in answer.points],
        "texts": list(answer.texts),
        "names": answer.names,
        "lacks": answer.lacks,
    }
    return {name: value for name, value in found.items() if value}


def _scored(each: Scored) -> dict[str, Any]:
    label = {"label": each.label} if each.label else {}
    return {"index": each.number, **label, "score": _number(each.score)}


def _points(each: Points) -> dict[str, Any]:
    rows = [_numbers(place) for place in each.places.tolist()]
    sure = {} if each.sure is None else {"scores": _numbers(each.sure.reshape(-1).tolist())}
    names = {"names": list(each.names)} if each.names else {}
    return {"what": each.what, "score": _number(each.score), **names, "places": rows, **sure}


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
