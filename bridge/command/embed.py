"""The verb ``embed``: texts as vectors."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tflite_ort.base.files import writing
from tflite_ort.command.arguments import (
    BudgetNumbers,
    Hybrid,
    HybridOption,
    ModelOrBundle,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    Threads,
    budgets,
    check_written,
    choices_of,
)
from tflite_ort.command.terminal import say
from tflite_ort.generation import EmbeddingModel


class Pooling(StrEnum):
    """Which vector is taken."""

    OUTPUT = "output"
    MEAN = "mean"
    FIRST = "first"


Texts = Annotated[
    list[str],
    typer.Argument(metavar="TEXT", help="What is embedded; - reads a text from each input line."),
]
TokenizerFile = Annotated[
    Path | None,
    typer.Option(help="A tokenizer.json or a SentencePiece model; without, the bundle's own."),
]
PoolingOption = Annotated[
    Pooling | None,
    typer.Option(
        help="output: the vector that the model gives for a text; mean, first: of those that it "
        "gives for tokens."
    ),
]
Dimensions = Annotated[
    int | None, typer.Option(min=1, help="Keep so many numbers of each vector, the first ones.")
]
Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Write the vectors as a .npy; without, a line of JSON each."),
]


def embed(
    model: ModelOrBundle,
    texts: Texts,
    tokenizer: TokenizerFile = None,
    pooling: PoolingOption = None,
    dimensions: Dimensions = None,
    out: Out = None,
    threads: Threads = None,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    hybrid: HybridOption = Hybrid.FLOAT,
    budget: BudgetNumbers = None,
) -> None:
    """Make vectors of texts with a text encoder: each is 1 long, so products of two are cosines."""
    check_written(out, "--out")
    said = sys.stdin.read().splitlines() if texts == ["-"] else texts
    choices: dict[str, Any] = {} if pooling is None else {"pooling": pooling.value}
    encoder = EmbeddingModel(
        model,
        tokenizer,
        providers=choices_of(provider, provider_option),
        precision=precision.value,
        num_threads=threads,
        hybrid=hybrid.value,
        budgets=budgets(budget),
        **choices,
    )
    try:
        vectors = encoder(said, dimensions=dimensions)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--dimensions") from error
    if out is None:
        say(*(json.dumps(vector) for vector in vectors.tolist()), whole=True)
        return
    with writing(out) as (stream,):
        np.save(stream, vectors)
