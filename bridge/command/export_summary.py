"""What the verb ``export`` says of a file that it has written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import onnx
import typer

from tflite_ort.command.terminal import count_text, new_console, new_table, say, size_text
from tflite_ort.providers.exported_state import first_state

Verbose = Annotated[bool, typer.Option("--verbose", help="Also count the nodes of each kind.")]


def print_summary(
    exported: onnx.ModelProto,
    target: Path,
    size: int,
    checked: Mapping[str, str],
    *,
    verbose: bool,
) -> None:
    """Print what was written: inputs, outputs, what is open, and what comes next.

    Args:
        size: of its files, in bytes.
        checked: by output, how it compares with the interpreter's; empty where that is not known.
    """
    nodes = Counter(node.op_type for node in exported.graph.node)
    opset = exported.opset_import[0].version
    say(f"wrote {target}: {size_text(size)}, opset {opset}, {count_text(nodes.total(), 'node')}")
    table = new_table("", "name", "type", "shape")
    for side, values in (("input", exported.graph.input), ("output", exported.graph.output)):
        for value in values:
            table.add_row(side, value.name, _type(value), " x ".join(_sizes(value)) or "scalar")
    new_console().print(table)
    if names := _open(exported):
        say(f"open: {', '.join(names)}, any size in each run")
    if state := first_state(exported):
        say(
            f"state, which each run is fed: {', '.join(state)}; tflite_ort.first_state says what "
            "the first one is fed, --stateless leaves it out"
        )
    if verbose:
        counts = new_table("node", "count")
        for name, count in nodes.most_common():
            counts.add_row(name, str(count))
        new_console().print(counts)
    for name, text in checked.items():
        say(f"checked {name}: {text}")
    if checked:
        say(f"next: onnxruntime.InferenceSession({str(target)!r}) in Python")
    else:
        say("next: the same command with --check compares the results")


def _type(value: onnx.ValueInfoProto) -> str:
    return str(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name)


def _sizes(value: onnx.ValueInfoProto) -> Iterator[str]:
    for size in value.type.tensor_type.shape.dim:
        yield size.dim_param or (str(size.dim_value) if size.HasField("dim_value") else "?")


def _open(exported: onnx.ModelProto) -> list[str]:
    """The names of the sizes that inputs leave open."""
    names = [
        f"{size.dim_param or '?'} of {value.name}"
        for value in exported.graph.input
        for size in value.type.tensor_type.shape.dim
        if size.dim_param or not size.HasField("dim_value")
    ]
    return list(dict.fromkeys(names))
