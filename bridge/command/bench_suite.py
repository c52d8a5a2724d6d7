"""A folder of models measured: classes by LiteRT's time, as a table and as an HTML page."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from tflite_ort.base.guard import protect
from tflite_ort.command.benchmark import Result, Timing, as_record, machine
from tflite_ort.command.terminal import new_console, new_table
from tflite_ort.schema import Model, Op, TensorType, read_model
from tflite_ort.schema.values.resolve import tensor_views

# Milliseconds of LiteRT's invoke.
_BOUNDS = (0.0, 0.02, 0.2, 1.0, 5.0, math.inf)
_INT16 = "16x8"
_RECURRENT = ("LSTM", "RNN", "SVDF", "WHILE")
_WIDTH, _HEIGHT, _EDGE = 760, 340, 50
_SMALL = "font-size='12' fill='#888'"  # a grey that light and dark pages show
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b")
_TICKS_OF_TIME = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
_TICKS_OF_RATIO = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


@dataclass(frozen=True, slots=True)
class ModelKind:
    """What the classes distinguish: whether there is a recurrent operator, and the numbers."""

    recurrent: bool
    numbers: str


@dataclass(frozen=True, slots=True)
class Class:
    """The models of a class: LiteRT's time over ours, and what we take more, in microseconds."""

    name: str
    threads: int
    count: int
    mean: float
    worst: float
    most_more: float


def models_of(folder: Path) -> list[Path]:
    """The ``.tflite`` files of a folder and of those below it, in order.

    Raises:
        OSError: it is no folder.
    """
    os.listdir(folder)
    found = sorted(folder.rglob("*.tflite"))
    protect(found)
    return found


def kind_of(file: Path, **limits: Any) -> ModelKind:
    """The kind of a model.

    Args:
        limits: the external_roots and budgets of `read_model`.

    Raises:
        ModelError: it cannot be read.
    """
    model = read_model(file, **limits)
    names = {Op(code.builtin_code).name for code in model.operator_codes}
    recurrent = any(part in name for name in names for part in _RECURRENT)
    return ModelKind(recurrent, _numbers(model))


def _numbers(model: Model) -> str:
    """The element type of most activations and weights."""
    views = [view for i in range(len(model.subgraphs)) for view in tensor_views(model, i)]
    activations = Counter(view.type for view in views if not view.is_constant)
    weights = Counter(view.type for view in views if view.is_constant and view.rank > 1)
    if activations[TensorType.INT16] > activations[TensorType.INT8]:
        return _INT16
    for type_ in (TensorType.INT8, TensorType.UINT8):
        if activations[type_] > activations[TensorType.FLOAT32]:
            return type_.name.lower()
    if weights[TensorType.FLOAT16]:
        return "float16 weights"
    coded = (TensorType.INT8, TensorType.UINT8, TensorType.INT4)
    return "hybrid" if any(weights[type_] for type_ in coded) else "float32"


def suite_record(results: Sequence[Result], kinds: Mapping[str, ModelKind]) -> dict[str, Any]:
    """`as_record` with the kinds of the models."""
    return {**as_record(results), "kinds": {name: asdict(kind) for name, kind in kinds.items()}}


def read_suite(record: Mapping[str, Any]) -> tuple[list[Result], dict[str, ModelKind]]:
    """Results, without differences, and kinds as `suite_record` made them."""
    results = []
    for each in record["results"]:
        times = {name: each[name] and Timing(**each[name]) for name in ("ours", "litert")}
        results.append(Result(**{**each, **times, "differences": ()}))
    return results, {name: ModelKind(**kind) for name, kind in record["kinds"].items()}


def classes(results: Sequence[Result], kinds: Mapping[str, ModelKind]) -> list[Class]:
    """The classes with at least one model that LiteRT runs too."""
    measured = [each for each in results if each.litert is not None and each.ratio is not None]
    found = []
    for threads in sorted({each.threads for each in measured}):
        same = [each for each in measured if each.threads == threads]
        for name, some in grouped(same, kinds):
            if some:
                found.append(_class(name, threads, some))
    return found


def grouped(
    results: Sequence[Result], kinds: Mapping[str, ModelKind]
) -> Iterator[tuple[str, list[Result]]]:
    """The names of all classes and the results that belong to each, on one number of threads."""
    # Recurrent and 16x8 networks are far ahead or behind, and would hide the others.
    forward = [
        each
        for each in results
        if not kinds[each.model].recurrent and kinds[each.model].numbers != _INT16
    ]
    for low, high in pairwise(_BOUNDS):
        name = f"over {low:g} ms" if math.isinf(high) else f"{low:g} to {high:g} ms"
        yield (
            name,
            [each for each in forward if each.litert and low <= each.litert.invoke_ms < high],
        )
    yield "recurrent", [each for each in results if kinds[each.model].recurrent]
    for numbers in sorted({kind.numbers for kind in kinds.values()}):
        yield numbers, [each for each in results if kinds[each.model].numbers == numbers]


def _class(name: str, threads: int, results: Sequence[Result]) -> Class:
    ratios = [each.ratio for each in results if each.ratio is not None]
    more = [each.ours.invoke_ms - each.litert.invoke_ms for each in results if each.litert]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return Class(name, threads, len(ratios), mean, min(ratios), max(more) * 1e3)


_HEADS = ("class", "threads", "models", "LiteRT / ours", "worst", "most more, µs")


def _cells(row: Class) -> tuple[str, ...]:
    numbers = (f"{row.mean:.2f}", f"{row.worst:.2f}", f"{row.most_more:.0f}")
    return (row.name, str(row.threads), str(row.count), *numbers)


def print_classes(found: Sequence[Class]) -> None:
    """Print a row for each class: the geometric mean of the ratios, and the worst."""
    table = new_table(*_HEADS)
    for row in found:
        table.add_row(*_cells(row))
    new_console().print(table)


def to_html(results: Sequence[Result], kinds: Mapping[str, ModelKind]) -> str:
    """The classes, a plot of all models and a table of them, as a page that needs no network."""
    rows = "".join(_row(_cells(each)) for each in classes(results, kinds))
    models = "".join(_row(_model_cells(each, kinds)) for each in results)
    plots = "".join(
        f"<h2>{threads} thread{'s' * (threads > 1)}</h2>{speed_plot(results, kinds, threads)}"
        for threads in sorted({each.threads for each in results})
    )
    style = "body{font:15px sans-serif;margin:2em;max-width:60em}td,th{padding:2px 10px;"
    style += "text-align:right}td:first-child,th:first-child{text-align:left}"
    where = escape(json.dumps(machine(), indent=1))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Benchmark</title>"
        f"<style>{style}</style><h1>Invoke times beside LiteRT</h1>"
        f"<p>LiteRT / ours is above 1 where this library is faster.</p>"
        f"<table>{_row(_HEADS, 'th')}{rows}</table>{plots}"
        f"<h2>Models</h2><table>{_row(_MODEL_HEADS, 'th')}{models}</table>"
        f"<h2>Machine</h2><pre>{where}</pre></html>\n"
    )


_MODEL_HEADS = ("model", "numbers", "threads", "ours, ms", "LiteRT, ms", "LiteRT / ours")


def _model_cells(result: Result, kinds: Mapping[str, ModelKind]) -> tuple[str, ...]:
    cells = (result.model, kinds[result.model].numbers, str(result.threads))
    ours = f"{result.ours.invoke_ms:.4f}"
    if result.litert is None or result.ratio is None:
        return (*cells, ours, "-", "-")
    return (*cells, ours, f"{result.litert.invoke_ms:.4f}", f"{result.ratio:.2f}")


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def speed_plot(results: Sequence[Result], kinds: Mapping[str, ModelKind], threads: int) -> str:
    """LiteRT's time across, the ratio upwards, both logarithmic; a colour for each kind of
    numbers."""
    names = sorted({kind.numbers for kind in kinds.values()})
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    marks = [_axis()]
    for each in results:
        if each.threads != threads or each.litert is None or each.ratio is None:
            continue
        x, y = _across(each.litert.invoke_ms), _up(each.ratio)
        title = escape(f"{each.model}: {each.litert.invoke_ms:.4f} ms, {each.ratio:.2f}")
        colour = colours[kinds[each.model].numbers]
        marks.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'>"
            f"<title>{title}</title></circle>"
        )
    for i, (name, colour) in enumerate(colours.items()):
        place = f"x='{_EDGE + 10}' y='{20 + 16 * i}'"
        marks.append(f"<text {place} fill='{colour}' font-size='13'>{escape(name)}</text>")
    across = f"an invoke of LiteRT, {threads} thread{'s' * (threads > 1)}"
    titles = (
        f"<text x='5' y='-8' {_SMALL}>LiteRT's time / ours: above 1 this library is faster</text>",
        f"<text x='{_WIDTH}' y='{_HEIGHT + 14}' text-anchor='end' {_SMALL}>{across}</text>",
    )
    marks += titles
    box = f"xmlns='http://www.w3.org/2000/svg' viewBox='0 -22 {_WIDTH} {_HEIGHT + 44}'"
    return f"<svg {box} role='img' font-family='sans-serif'>{''.join(marks)}</svg>"


def _axis() -> str:
    marks = []
    for ratio in _TICKS_OF_RATIO:
        y, width = _up(ratio), 2 if ratio == 1 else 0.3
        line = f"x1='{_EDGE}' x2='{_WIDTH}' y1='{y:.1f}' y2='{y:.1f}' stroke='#888'"
        text = f"<text x='5' y='{y + 4:.1f}' {_SMALL}>{ratio:g}</text>"
        marks.append(f"<line {line} stroke-width='{width}' />{text}")
    for time in _TICKS_OF_TIME:
        x = _across(time)
        marks.append(f"<text x='{x:.1f}' y='{_HEIGHT - 5}' {_SMALL}>{time:g} ms</text>")
    return "".join(marks)


def _across(time: float) -> float:
    return _position(time, _TICKS_OF_TIME) * (_WIDTH - _EDGE - 60) + _EDGE


def _up(ratio: float) -> float:
    return (1 - _position(ratio, _TICKS_OF_RATIO)) * (_HEIGHT - _EDGE) + 10


def _position(value: float, ticks: Sequence[float]) -> float:
    """Where a value is between the first and the last tick, 0 to 1."""
    inside = min(max(value, ticks[0]), ticks[-1])
    return math.log(inside / ticks[0]) / math.log(ticks[-1] / ticks[0])
