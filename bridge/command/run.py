"""The verb ``run``: a model once, on files or random inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from tflite_ort.command.arguments import (
    BudgetNumbers,
    ExternalRoots,
    Mean,
    ModelFile,
    ProviderOptions,
    Providers,
    ResolverName,
    Seed,
    Std,
    budgets,
    choices_of,
    normalization_of,
    resolver_of,
)
from tflite_ort.command.arrays import (
    read_inputs,
    set_inputs,
    top_scores,
    write_outputs,
)
from tflite_ort.command.terminal import new_console, new_table, say, shape_text
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter import Interpreter
from tflite_ort.prediction.tensors import unique_names

Array = npt.NDArray[Any]


def run(
    model: ModelFile,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="[NAME=]FILE",
            help="An .npy, .npz or image file, repeatable; inputs without one are random.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Save outputs: an .npz file, or a folder of .npy files.")
    ] = None,
    mean: Mean = None,
    std: Std = None,
    seed: Seed = 0,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Run a model once and print what comes out."""
    normalization = normalization_of(mean, std)
    providers = choices_of(provider, provider_option)
    interpreter = Interpreter(
        model,
        num_threads=threads,
        providers=providers,
        resolver=resolver_of(resolver),
        external_roots=external_root or (),
        budgets=budgets(budget),
    )
    details = interpreter.get_input_details()
    drawn = random_inputs(details, seed, limits=index_limits(interpreter._model))
    arrays = drawn | read_inputs(inputs or (), details, normalization)
    set_inputs(interpreter, arrays)
    interpreter.invoke()
    out = interpreter.get_output_details()
    results = [interpreter.get_tensor(each["index"]) for each in out]
    names = unique_names(out)
    _print_outputs(names, results, out)
    if output is not None:
        files = write_outputs(output, dict(zip(names, results, strict=True)))
        say(f"wrote {', '.join(map(str, files))}")


def _print_outputs(names: Sequence[str], results: Sequence[Array], details: list[Any]) -> None:
    table = new_table("output", "dtype", "shape", "min", "max", "mean")
    for name, array in zip(names, results, strict=True):
        dtype = "string" if array.dtype.kind in "OSU" else array.dtype.name
        table.add_row(name, dtype, shape_text(array.shape), *_statistics(array))
    console = new_console()
    console.print(table)
    for name, array, each in zip(names, results, details, strict=True):
        if scores := top_scores(array, each):
            console.print(f"top of {name}: {scores}")


def _statistics(array: Array) -> tuple[str, str, str]:
    if not array.size or array.dtype.kind in "OSUc":
        return "-", "-", "-"
    wide = array.astype(np.float64)
    return f"{wide.min():.6g}", f"{wide.max():.6g}", f"{wide.mean():.6g}"
