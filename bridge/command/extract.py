"""The verb ``extract``: a part of a model as a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflite_ort.base.files import write_bytes
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    ExternalRoots,
    ModelFile,
    budgets,
    check_written,
)
from tflite_ort.command.terminal import count_text, say, say_json, size_text
from tflite_ort.schema import read_model, write_model
from tflite_ort.verification.extraction import extract as extracted


def extract(
    model: ModelFile,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .tflite file to write.")],
    start: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Where the part begins: a tensor (name or index), or an operator such as "
            "CONV_2D_12, with what it reads; repeatable; without, the model's inputs.",
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="NAME",
            help="Where the part ends: a tensor (name or index), or an operator, with what it "
            "makes; repeatable; without, the model's outputs.",
        ),
    ] = None,
    subgraph: Annotated[int, typer.Option(min=0, help="Which subgraph it is cut from.")] = 0,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    as_json: AsJson = False,
) -> None:
    """Write the part of a model that leads from some tensors to others, as a model."""
    check_written(out, "OUT", over_models=True)
    source = read_model(model, external_roots=external_root or (), budgets=budgets(budget))
    part = extracted(source, start or (), stop or (), subgraph)
    content = write_model(part)
    write_bytes(out, content)
    graph = part.subgraphs[0]
    if as_json:
        sizes = {name: len(getattr(graph, name)) for name in ("operators", "inputs", "outputs")}
        say_json({"file": str(out), "bytes": len(content), **sizes})
        return
    counts = [
        count_text(len(graph.operators), "operator"),
        count_text(len(graph.inputs), "input"),
        count_text(len(graph.outputs), "output"),
    ]
    say(f"wrote {out}: {', '.join([size_text(len(content)), *counts])}")
