"""The verb ``triton``: a model repository for Triton Inference Server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    ExternalRoots,
    Hybrid,
    HybridOption,
    ModelFile,
    ResolverName,
    budgets,
    refuse_unused,
    resolver_of,
)
from tflite_ort.command.found import Labels
from tflite_ort.command.terminal import say, say_json
from tflite_ort.prediction.accelerators import ACCELERATORS
from tflite_ort.prediction.answers import read_labels
from tflite_ort.prediction.triton import Serving, write_repository


def _accelerator(given: str) -> str:
    if given and given not in ACCELERATORS:
        raise typer.BadParameter(f"{given!r} is not one of {', '.join(ACCELERATORS)}")
    return given


Delay = Annotated[
    int,
    typer.Option(
        min=0, metavar="MICROSECONDS", help="How long a request waits for others to make a batch."
    ),
]
AcceleratorName = Annotated[
    str,
    typer.Option(
        metavar="|".join(ACCELERATORS),
        callback=_accelerator,
        help="What runs the model in Triton; without, ONNX Runtime's own provider.",
    ),
]


def triton(
    context: typer.Context,
    model: ModelFile,
    repository: Annotated[Path, typer.Argument(help="The folder of all models of a server.")],
    name: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of the model there; without, that of the file."),
    ] = "",
    max_batch: Annotated[
        int, typer.Option(min=0, help="The most samples in a batch; 0 makes no batches.")
    ] = 32,
    delay: Delay = 100,
    accelerator: AcceleratorName = "",
    instances: Annotated[
        int, typer.Option(min=0, help="Copies on each device; 0 leaves it to the server.")
    ] = 0,
    stateful: Annotated[
        bool,
        typer.Option(
            "--stateful/--stateless",
            help="The server keeps the state of a sequence, or each request starts anew.",
        ),
    ] = True,
    version: Annotated[int, typer.Option(min=1, help="Number of this version of the model.")] = 1,
    labels: Labels = None,
    hybrid: HybridOption = Hybrid.FLOAT,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    as_json: AsJson = False,
) -> None:
    """Write a model for Triton: the exported file, its configuration, and labels."""
    if not max_batch:
        refuse_unused(context, "needs a --max-batch above 0", "delay")
    arguments = {
        "hybrid": hybrid.value,
        "stateful": stateful,
        "resolver": resolver_of(resolver),
        "external_roots": external_root or (),
        "budgets": budgets(budget),
    }
    serving = Serving(max_batch, delay, accelerator, instances, version)
    try:
        written = write_repository(model, repository, name, serving, arguments, read_labels(labels))
    except ValueError as error:
        if type(error) is ValueError:
            raise typer.BadParameter(str(error), param_hint="--name") from error
        raise
    if as_json:
        said = {"folder": str(written.folder), "max_batch": written.max_batch}
        say_json({**said, "no_batches": written.refused, "states": list(written.states)})
        return
    batch = f"batches of up to {written.max_batch}" if written.max_batch else "one at a time"
    say(f"wrote {written.folder}: {batch}")
    if written.refused and max_batch:
        say(f"no batches: {written.refused}")
    if written.states:
        say(f"sequences, with the state {', '.join(written.states)}")
