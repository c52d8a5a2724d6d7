"""What the verb ``inspect`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from rich.console import Console
from rich.table import Table

from tflite_ort.bundles import Bundle
from tflite_ort.command.inspected import Inspected
from tflite_ort.command.placements import Row
from tflite_ort.command.provider_advice import provider_advice
from tflite_ort.command.terminal import count_text, new_console, new_table, say, shape_text
from tflite_ort.metadata import Metadata
from tflite_ort.schema import SubGraph, Tensor, TensorType

_MOST_FILES = 50
# Where operators are that no provider runs.
_PLACES = {"numpy": "numpy", "constant": "advance, at load"}


def print_model(found: Inspected, *, whole: bool) -> None:
    """Print what a model takes, gives, says, costs, and how it would run, the most important first.

    Args:
        whole: also the subgraphs that others call.
    """
    console = new_console()
    console.print(_summary(found))
    graphs = found.model.subgraphs
    for number, graph in enumerate(graphs if whole else graphs[:1]):
        console.print(_tensor_table(graph, number))
    if more := len(graphs) - 1 if not whole else 0:
        say(f"and {count_text(more, 'more subgraph')}, which --all shows")
    if found.model.signature_defs:
        console.print(_signature_table(found))
    for line in _cost_lines(found):
        console.print(line)
    if isinstance(found.metadata, Metadata):
        _print_metadata(console, found.metadata)
    console.print(_operator_table(found.rows))
    for sentence in provider_advice(found.rows):
        say(sentence)
    if found.choice:
        say(f"auto: {found.choice}")
    for warning in found.warnings:
        say(f"warning: {warning}")
    if found.problem:
        say(f"cannot run: {found.problem}")


def _summary(found: Inspected) -> str:
    """Whether a model runs here, and what it takes and gives, in a line."""
    total = found.rows.total()
    if found.problem:
        runs = f"cannot run here, {count_text(total, 'operator')}"
    else:
        places = Counter[str]()
        for (_, _, place, _), count in found.rows.items():
            places[_PLACES.get(place, "ONNX Runtime")] += count
        runs = ", ".join(
            f"{'all ' if count == total > 1 else ''}{count_text(count, 'operator')} "
            f"{'runs' if count == 1 else 'run'} in {place}"
            for place, count in places.most_common()
        )
    sides = (_side(found, "input"), _side(found, "output"))
    return "; ".join([runs or "no operators", _bytes(found.size), *sides])


def _side(found: Inspected, side: str) -> str:
    if not found.model.subgraphs:
        return f"no {side}s"
    graph = found.model.subgraphs[0]
    indices = graph.inputs if side == "input" else graph.outputs
    text = count_text(len(indices), side)
    if len(indices) != 1:
        return text
    tensor = graph.tensors[indices[0]]
    shape = shape_text(tensor.shape_signature or tensor.shape)
    return f"{text} {shape} {TensorType(tensor.type).name.lower()}"


def _cost_lines(found: Inspected) -> Iterator[str]:
    cost = found.costs
    yield (
        f"{_bytes(found.size)}, {_short(cost.parameters)} parameters, "
        f"{_short(cost.multiply_adds)} multiply-adds"
    )
    arena = "" if cost.arena is None else f"arena {_bytes(cost.arena)} as TFLite plans it, "
    at = ""
    if cost.peak_at is not None:
        operator = found.model.subgraphs[0].operators[cost.peak_at]
        code = found.model.operator_codes[operator.opcode_index]
        at = f" ({code.custom_code or code.builtin_code.name}_{cost.peak_at})"
    yield f"memory: {arena}at most {_bytes(cost.peak)} at one time{at}"


def _short(count: int, unit: str = "", plain: str = "") -> str:
    """A number with three digits, of the largest unit in which it is 1 or more when rounded."""
    for letter, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size * 0.9995:
            number = max(count / size, 1.0)
            return (
                f"{number:.3g} {letter}{unit}" if number < 999.5 else f"{number:.0f} {letter}{unit}"
            )
    return f"{count}{plain}"


def _bytes(count: int) -> str:
    return _short(count, "B", " bytes")


def _signature_table(found: Inspected) -> Table:
    lacks = ["cannot run, lacks"] if found.lacking else []
    table = new_table("signature", "subgraph", "inputs", "outputs", *lacks)
    for each in found.model.signature_defs:
        sides = (", ".join(e.name for e in entries) for entries in (each.inputs, each.outputs))
        missing = found.lacking.get(each.signature_key, ())
        lacking = [", ".join(f"{row.name} version {row.version}" for row in missing)]
        cells = (each.signature_key, str(each.subgraph_index), *sides)
        table.add_row(*cells, *(lacking if lacks else ()))
    return table


def print_bundle(bundle: Bundle) -> None:
    """What is in it, with the inputs and outputs of the models."""
    console = new_console()
    table = new_table("entry", "kind", "offset", "bytes", "unpacked", "says")
    for entry in bundle.entries:
        said = ", ".join(f"{key}={value}" for key, value in entry.properties.items())
        size = str(entry.size) if entry.packed else ""
        table.add_row(entry.name, entry.kind, str(entry.offset), str(entry.stored), size, said)
    console.print(table)
    for key, value in bundle.properties.items():
        say(f"{key}: {value}")
    for entry in bundle.models:
        say(f"model {entry.name}:")
        for number, graph in enumerate(bundle.model(entry.name).subgraphs):
            console.print(_tensor_table(graph, number))


def _print_metadata(console: Console, metadata: Metadata) -> None:
    """What the author says of the model and its tensors, and the files that come with it."""
    for name in ("name", "description", "version", "author", "license"):
        if text := getattr(metadata, name):
            console.print(f"{name}: {text}")
    for name, content in islice(metadata.files.items(), _MOST_FILES):
        console.print(f"file: {name}, {len(content)} bytes")
    if (more := len(metadata.files) - _MOST_FILES) > 0:
        console.print(f"and {more} more files")
    if not (metadata.inputs or metadata.outputs):
        return
    table = new_table("metadata", "name", "mean", "std", "labels", "description")
    for role, tensors in (("input", metadata.inputs), ("output", metadata.outputs)):
        for each in tensors:
            numbers = (" ".join(f"{n:g}" for n in values) for values in (each.mean, each.std))
            labels = f"{len(each.labels)}: {each.labels[0]}, ..." if each.labels else ""
            table.add_row(role, each.name, *numbers, labels, each.description)
    console.print(table)


def _operator_table(rows: Counter[Row]) -> Table:
    table = new_table("operator", "version", "count", "runs on", "refused because")
    for (operator, version, place, reason), count in rows.items():
        table.add_row(operator, str(version), str(count), place, reason)
    return table


def _tensor_table(graph: SubGraph, number: int) -> Table:
    table = new_table(f"subgraph {number}", "name", "type", "shape", "scale", "zero point")
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            tensor = graph.tensors[index]
            shape = shape_text(tensor.shape_signature or tensor.shape)
            name = TensorType(tensor.type).name.lower()
            table.add_row(role, tensor.name, name, shape, *_quantization(tensor))
    return table


def _quantization(tensor: Tensor) -> tuple[str, str]:
    quantization = tensor.quantization
    if quantization is None or quantization.scale is None or not len(quantization.scale):
        return "", ""
    points = quantization.zero_point
    point = int(points[0]) if points is not None and len(points) else 0
    return f"{float(quantization.scale[0]):.6g}", str(point)
