"""What an interpreter shows of itself: as text, and as HTML in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tflite_ort.plan.placements import Placement

_LONGEST = 60
_PLACES = {"numpy": "numpy", "constant": "done at load"}


def summary(
    name: str,
    source: object,
    sides: Mapping[str, Sequence[Mapping[str, Any]]],
    placements: Sequence[Placement] | None,
) -> str:
    """The model, its inputs and outputs, and where it runs.

    Args:
        sides: details of the tensors, by what they are.
        placements: None where it is not allocated.
    """
    lines = [f"{name}({_source(source)})"]
    for side, tensors in sides.items():
        lines += [f"  {side:6}  {_tensor(each)}" for each in tensors]
    return "\n".join([*lines, *(f"  {'runs':6}  {text}" for text in _places(placements))])


def html(
    name: str,
    source: object,
    sides: Mapping[str, Sequence[Mapping[str, Any]]],
    placements: Sequence[Placement] | None,
) -> str:
    """As `summary`, as a table."""
    rows = [
        (side, str(each["name"]), np.dtype(each["dtype"]).name, _shape(each))
        for side, tensors in sides.items()
        for each in tensors
    ]
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    places = "<br>".join(escape(text) for text in _places(placements))
    return (
        f"<b>{escape(f'{name}({_source(source)})')}</b>"
        f"<table><tr><th></th><th>name</th><th>type</th><th>shape</th></tr>{body}</table>"
        f"<p>{places}</p>"
    )


def _source(source: object) -> str:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return f"{memoryview(source).nbytes} bytes"
    return repr(str(source))


def _tensor(details: Mapping[str, Any]) -> str:
    name = str(details["name"])
    shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    return f"{shown!r} {np.dtype(details['dtype']).name} {_shape(details)}"


def _shape(details: Mapping[str, Any]) -> str:
    sizes = ("?" if size < 0 else str(size) for size in details["shape_signature"].tolist())
    return f"[{', '.join(sizes)}]"


def _places(placements: Sequence[Placement] | None) -> Iterator[str]:
    if placements is None:
        yield "not allocated yet: allocate_tensors()"
        return
    counts = Counter(
        _PLACES.get(each.runs_on) or f"ONNX Runtime ({each.provider or each.delegate})"
        for each in placements
    )
    for place, count in counts.most_common():
        yield f"{count} operator{'s' * (count != 1)} in {place}"
