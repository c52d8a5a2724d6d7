"""A verification's report as one HTML file, which needs no network."""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflite_ort.base.optional import optional_module
from tflite_ort.base.shipped import shipped
from tflite_ort.comparison.differences import Difference, Tolerance
from tflite_ort.schema import BridgeError
from tflite_ort.verification.pictures import Picture, picture_of
from tflite_ort.verification.plots import Plot, Sample, histogram, size_of, size_plot
from tflite_ort.verification.results import (
    OperatorResult,
    OutputResult,
    Results,
    RuntimeResult,
    TensorResult,
    Values,
)

_LONGEST_NAME = 300
_LONGEST_LIST = 16
_KINDS_SHOWN = 12
_PICTURES_SHOWN = 4

PLACES = {
    "ort": "ONNX Runtime",
    "numpy": "numpy",
    "constant": "computed at load",
    "": "unknown",
}


def to_html(report: Results) -> str:
    """A report as one HTML file that needs no network.

    Raises:
        BridgeError: Jinja2 is not installed.
    """
    templates = environment()
    sources = {name: templates.get_template(f"report.{name}").render() for name in ("css", "js")}
    html: str = templates.get_template("report.html").render(
        report=report,
        sections=[_section(at, each, report.tolerance) for at, each in enumerate(report.runtimes)],
        hashes={name: _hash(source) for name, source in sources.items()},
        places=PLACES,
    )
    return html


def _jinja2() -> Any:
    jinja2 = optional_module("jinja2")
    if jinja2 is None:
        raise BridgeError("an HTML report needs Jinja2: pip install 'tflite-ort[report]'")
    return jinja2


def environment() -> Any:
    """Jinja2 with the templates; all that they say is escaped.

    Raises:
        BridgeError: Jinja2 is not installed.
    """
    jinja2 = _jinja2()
    templates = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        brief=_brief,
        difference=difference_text,
        key=sort_key,
        number=_number,
        percent=_percent,
        shape=_shape,
        some=_some,
    )
    return templates


def _template(name: str) -> str:
    return shipped("tflite_ort.verification", f"templates/{name}").decode()


@dataclass(frozen=True, slots=True)
class _Row:
    """One operator in the table; its tensors' names and the first output's type and shape."""

    operator: OperatorResult
    outputs: tuple[TensorResult, ...]

    @property
    def milliseconds(self) -> float:
        """For sorting: unknown times come last."""
        found = self.operator.milliseconds
        return -1.0 if found is None else found


@dataclass(frozen=True, slots=True)
class _Kind:
    """All operators of one name: how many there are, their time and its share of the longest."""

    name: str
    count: int
    milliseconds: float
    share: float


@dataclass(frozen=True, slots=True)
class _Section:
    """What the template shows of one runtime."""

    id: str
    result: RuntimeResult
    worst: OutputResult | None
    rows: tuple[_Row, ...]
    plots: tuple[Plot, ...]
    steps: tuple[Plot, ...]
    histograms: tuple[Plot, ...]
    pictures: tuple[tuple[str, Picture], ...]
    more_pictures: int
    kinds: tuple[_Kind, ...]
    places: Mapping[str, int]
    unreadable: tuple[TensorResult, ...]
    tensors: Mapping[int, TensorResult]


def _section(at: int, result: RuntimeResult, tolerance: Tolerance) -> _Section:
    tensors = {each.index: each for each in result.tensors}
    worst = _worst(result)
    outputs = {each.index for each in result.outputs}
    values = [each for each in result.values if each.index in outputs or each is worst]
    pictures = _pictures(values)
    rows = [
        _Row(op, tuple(tensors[each] for each in op.outputs if each in tensors))
        for op in result.operators
    ]
    return _Section(
        f"runtime-{at}",
        result,
        max(result.outputs, key=lambda each: sort_key(each.difference), default=None),
        tuple(rows),
        tuple(_error_plots(result.operators, tolerance)),
        tuple(_step_plots((*result.outputs, *result.variables))),
        tuple(_histograms(worst)) if worst else (),
        tuple(pictures[:_PICTURES_SHOWN]),
        max(0, len(pictures) - _PICTURES_SHOWN),
        tuple(_kinds(result.operators)),
        Counter(each.runs_on for each in result.operators if each.runs_on),
        tuple(each for each in result.tensors if each.unreadable),
        tensors,
    )


def _errors(operators: Sequence[OperatorResult]) -> dict[str, dict[str, list[Sample]]]:
    """The points of a plot by unit and by the name of what was measured."""
    measures: tuple[tuple[str, Callable[[OperatorResult], Difference | None]], ...] = (
        ("accumulated", lambda each: each.accumulated),
        ("isolated", lambda each: each.isolated),
    )
    found: dict[str, dict[str, list[Sample]]] = {"quanta": {}, "relative": {}}
    for name, measure in measures:
        for op in operators:
            error = measure(op)
            if error is not None:
                unit, size = size_of(error)
                text = f"{op.label}: {name} {difference_text(error)}"
                found[unit].setdefault(name, []).append(Sample(op.index, size, text))
    return found


def _error_plots(operators: Sequence[OperatorResult], tolerance: Tolerance) -> Sequence[Plot]:
    """Errors along the network: of quantized tensors, and of floats."""
    found = _errors(operators)
    along = "Error along the network"
    plots = (
        size_plot(
            f"{along}, integer tensors",
            ("operator", "quanta"),
            list(found["quanta"].items()),
            tolerance.quanta,
        ),
        size_plot(
            f"{along}, float tensors",
            ("operator", "relative to the largest value"),
            list(found["relative"].items()),
            tolerance.relative,
        ),
    )
    return [each for each in plots if each is not None]


def _step_plots(outputs: Sequence[OutputResult]) -> Sequence[Plot]:
    plots = []
    for output in outputs:
        if len(output.steps) > 1:
            samples = [
                Sample(step, size_of(each)[1], f"step {step}: {difference_text(each)}")
                for step, each in enumerate(output.steps)
            ]
            unit = size_of(output.difference)[0]
            title = f"Error over the steps of {_brief(output.name)}"
            plots.append(size_plot(title, ("step", unit), [("error", samples)]))
    return [each for each in plots if each is not None]


def _histograms(values: Values) -> Sequence[Plot]:
    """The values on both sides, and their differences."""
    want, got = np.asarray(values.reference), np.asarray(values.got)
    if want.dtype.kind not in "fiubV" or got.dtype.kind not in "fiubV" or want.shape != got.shape:
        return []
    name = _brief(values.name)
    both = [("reference", want), ("this runtime", got)]
    with np.errstate(invalid="ignore", over="ignore"):
        apart = got.astype(np.float64) - want.astype(np.float64)
    plots = (
        histogram(f"Values of {name}", "value", both),
        histogram(f"Differences of {name}", "this runtime less the reference", [("", apart)]),
    )
    return [each for each in plots if each is not None]


def _worst(result: RuntimeResult) -> Values | None:
    """The values of the tensor that differs most; None where none differs or it is not known.

    They are the last ones. An output that is the worst tensor is there twice.
    """
    indices = [each.index for each in result.values]
    outputs = {each.index for each in result.outputs}
    if not indices or (indices[-1] in outputs and indices.count(indices[-1]) == 1):
        return None
    worst = result.values[-1]
    same = np.array_equal(np.asarray(worst.got), np.asarray(worst.reference))
    return None if same else worst


def _pictures(values: Sequence[Values]) -> Sequence[tuple[str, Picture]]:
    """Pictures of the values, one for each tensor: the worst one may be an output too."""
    by_index = {each.index: each for each in values}
    found = [
        (each.name, picture_of(np.asarray(each.reference), np.asarray(each.got)))
        for each in by_index.values()
    ]
    return [(name, picture) for name, picture in found if picture is not None]


def _kinds(operators: Sequence[OperatorResult]) -> Sequence[_Kind]:
    """The kinds of operators that take the most time, the longest first."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for op in operators:
        if op.milliseconds is not None:
            times[op.name].append(op.milliseconds)
    order = sorted(times.items(), key=lambda pair: -sum(pair[1]))[:_KINDS_SHOWN]
    longest = max((sum(found) for _, found in order), default=0.0) or 1.0
    return [_Kind(name, len(each), sum(each), sum(each) / longest) for name, each in order]


def sort_key(found: Difference | None) -> float:
    """A larger one is worse; unknown ones come last."""
    if found is None:
        return -1.0
    return found.relative if found.finite else math.inf


def difference_text(found: Difference | None) -> str:
    """A few words on how large a difference is."""
    if found is None:
        return "unknown"
    if found.problem:
        return found.problem
    if found.exact:
        return "exact"
    unit, _ = size_of(found)
    size = found.relative if found.quanta is None else found.quanta
    said = [f"{_number(size)} {unit}"]
    said += [f"{found.nan} NaN"] * bool(found.nan)
    said += [f"{found.infinite} infinite"] * bool(found.infinite)
    return ", ".join(said)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _percent(share: float) -> str:
    """No share but none is 0 %."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.3g} %"


def _shape(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) or "scalar"


def _some(values: Sequence[float]) -> str:
    """The first of many numbers."""
    said = ", ".join(f"{each:.6g}" for each in values[:_LONGEST_LIST])
    more = len(values) - _LONGEST_LIST
    return f"{said} and {more} more" if more > 0 else said


def _harmless(value: Any) -> Any:
    """Text from a file without what would upset a page: control characters, marks that reorder
    text, halves of characters. Escaping comes after this."""
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isprintable():
        return value
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in value)


def _brief(text: str, longest: int = _LONGEST_NAME) -> str:
    """A text whose end is cut if it is very long, as names in a file can be."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _hash(source: str) -> str:
    """What a content security policy calls an inline script or style."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
