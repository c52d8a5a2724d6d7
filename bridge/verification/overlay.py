"""A verification's numbers for Model Explorer: node data, a file for each metric.

The keys are names of output tensors, which Model Explorer knows of ``.tflite`` files. Its adapter
for ONNX knows nodes by their names alone, so those of an exported file are keys too. Keys that a
graph lacks do no harm: one file fits both. Of a model with several subgraphs the keys stand under
the identifiers that Model Explorer gives these graphs.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx

from tflite_ort.base.files import made_folder, write_text
from tflite_ort.comparison.differences import Difference, Tolerance
from tflite_ort.verification.plots import size_of
from tflite_ort.verification.report import Report
from tflite_ort.verification.results import OperatorResult, RuntimeResult

Value = float | str

_EXACT, _WITHIN, _NEAR, _OFF = "#c8e6c9", "#fff9c4", "#ffcc80", "#ef9a9a"
_COLOURS = {"ort": "#bbdefb", "numpy": "#ffe0b2", "constant": "#e0e0e0"}
_OTHER_PLACE = "#ffffff"
_INK = "#1b1f24"
_LARGEST = 1e300
# Model Explorer takes node data with this key for those of several graphs.
_RESERVED = "results"


@dataclass(frozen=True, slots=True)
class Overlay:
    """Node data of one metric.

    Args:
        metric: such as ``"isolated-quanta"``, the end of its file name.
        name: as Model Explorer shows it.
        values: by key, a number or a text; of the primary subgraph.
        graphs: identifiers of the graphs that have these values; empty: of the graph that is open.
        called: by identifier of another subgraph, its values.
        colours: of texts, by value.
        thresholds: of numbers: up to which value which colour, rising.
    """

    metric: str
    name: str
    values: Mapping[str, Value]
    colours: Mapping[str, str] = field(default_factory=dict)
    thresholds: Sequence[tuple[float, str]] = ()
    graphs: Sequence[str] = ()
    called: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def to_json(self) -> str:
        """What Model Explorer reads."""
        record = self._record(self.values)
        if self.graphs:
            record = {
                **{name: self._record(values) for name, values in self.called.items()},
                **dict.fromkeys(self.graphs, record),
            }
        return json.dumps(record, indent=1, allow_nan=False) + "\n"

    def _record(self, values: Mapping[str, Value]) -> dict[str, Any]:
        """The data of one graph."""
        record: dict[str, Any] = {
            "name": self.name,
            "results": {key: self._node(value) for key, value in values.items()},
        }
        if self.thresholds:
            record["thresholds"] = [
                {"value": value, "bgColor": colour, "textColor": _INK}
                for value, colour in self.thresholds
            ]
        return record

    def _node(self, value: Value) -> dict[str, Value]:
        if isinstance(value, str):
            colour = self.colours.get(value, _OTHER_PLACE)
            return {"value": value, "bgColor": colour, "textColor": _INK}
        return {"value": value}


def overlays(
    report: Report, result: RuntimeResult, nodes: Sequence[str] = (), graph: str = ""
) -> list[Overlay]:
    """The metrics of one runtime that have a value: accumulated and isolated error, each of integer
    tensors in quanta and of floats relative to the largest value, the time, and where it ran.

    Args:
        nodes: the names of an exported file's nodes; see `node_names`.
        graph: the name of its graph.
    """
    last = {name.partition("/")[0]: name for name in nodes}
    tensors = {each.index: each for each in result.tensors}

    def keys(op: OperatorResult) -> list[str]:
        names = [tensors[index].name for index in op.outputs if index in tensors]
        return [*names, *([last[op.label]] if op.label in last else [])]

    found = [
        *_errors("accumulated", result, lambda each: each.accumulated, keys, report.tolerance),
        *_errors("isolated", result, lambda each: each.isolated, keys, report.tolerance),
        _times(result, keys),
        _places(report, result, keys),
    ]
    graphs = _graph_ids(report.subgraphs)
    if len(graphs) < 2:
        return [each for each in found if each.values]
    primary = tuple(name for name in (graphs[0], graph) if name and name != _RESERVED)
    return [replace(each, graphs=primary) for each in found if each.values or each.called]


def _graph_ids(names: Sequence[str]) -> list[str]:
    """What Model Explorer calls the subgraphs of a ``.tflite`` file."""
    return [name or (f"subgraph_{at}" if at else "main") for at, name in enumerate(names)]


def node_names(model: onnx.ModelProto) -> list[str]:
    """The names of an ONNX model's nodes, in its order."""
    return [each.name for each in model.graph.node if each.name]


def write_overlays(
    report: Report,
    folder: str | os.PathLike[str],
    nodes: Sequence[str] = (),
    graph: str = "",
) -> list[Path]:
    """Write the overlays of every runtime, such as ``interpreter-isolated-quanta.json``.

    Args:
        folder: is made if it is missing.
        nodes, graph: as `overlays` takes them.

    Returns:
        The files.

    Raises:
        OSError: they cannot be written.
    """
    target = made_folder(folder)
    written: list[Path] = []
    for result in report.runtimes:
        name = _file_name(result.runtime, written)
        for each in overlays(report, result, nodes, graph):
            path = target / f"{name}-{each.metric}.json"
            write_text(path, each.to_json())
            written.append(path)
    return written


def _errors(
    kind: str,
    result: RuntimeResult,
    measure: Callable[[OperatorResult], Difference | None],
    keys: Callable[[OperatorResult], list[str]],
    tolerance: Tolerance,
) -> Iterable[Overlay]:
    """In quanta and relative to the largest value, which have no common measure."""
    values: dict[str, dict[str, float]] = {"quanta": {}, "relative": {}}
    for op in result.operators:
        error = measure(op)
        if error is not None:
            unit, size = size_of(error)
            _put_worst(values[unit], keys(op), min(size, _LARGEST))
    limits = {"quanta": tolerance.quanta, "relative": tolerance.relative}
    for unit, found in values.items():
        yield Overlay(
            f"{kind}-{unit}",
            f"{result.runtime}: {kind} error ({unit})",
            found,
            thresholds=_thresholds(limits[unit]),
        )


def _thresholds(limit: float) -> list[tuple[float, str]]:
    """Exact, within the tolerance, within ten times it, more."""
    steps = ((0.0, _EXACT), (limit, _WITHIN), (10 * limit, _NEAR), (_LARGEST, _OFF))
    rising: dict[float, str] = {}
    for value, colour in steps:
        if math.isfinite(value):
            rising.setdefault(value, colour)
    return sorted(rising.items())


def _times(result: RuntimeResult, keys: Callable[[OperatorResult], list[str]]) -> Overlay:
    values: dict[str, float] = {}
    for op in result.operators:
        if op.milliseconds is not None:
            _put_worst(values, keys(op), float(f"{op.milliseconds:.3g}"))
    longest = max(values.values(), default=0.0)
    shares = ((0.05, _EXACT), (0.25, _WITHIN), (0.5, _NEAR), (1.0, _OFF))
    thresholds = [(share * longest, colour) for share, colour in shares]
    return Overlay("time", f"{result.runtime}: time (ms)", values, thresholds=thresholds)


def _places(
    report: Report, result: RuntimeResult, keys: Callable[[OperatorResult], list[str]]
) -> Overlay:
    """Where each operator ran, also in subgraphs that others call."""
    values = {key: op.runs_on for op in result.operators if op.runs_on for key in keys(op)}
    values.pop(_RESERVED, None)
    called: dict[str, dict[str, Value]] = {}
    graphs = _graph_ids(report.subgraphs)
    for op in result.called:
        if graphs[op.subgraph] != _RESERVED:
            found = called.setdefault(graphs[op.subgraph], {})
            found.update((name, op.runs_on) for name in op.outputs if name and name != _RESERVED)
    name = f"{result.runtime}: where it ran"
    return Overlay("place", name, values, colours=_COLOURS, called=called)


def _put_worst(values: dict[str, float], keys: Iterable[str], value: float) -> None:
    """Names need not be unique: the larger value stays."""
    for key in keys:
        if key and key != _RESERVED:
            values[key] = max(value, values.get(key, value))


def _file_name(runtime: str, taken: Sequence[Path]) -> str:
    """A runtime's name without what file systems refuse; a number tells two apart."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(runtime).name)[:80].lstrip(".") or "runtime"
    used = [path.name for path in taken]
    number, free = 1, name
    while any(each.startswith(f"{free}-") for each in used):
        number += 1
        free = f"{name}-{number}"
    return free
