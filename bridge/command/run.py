"""The verb ``run``: a model once, on files or random inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from tflite_ort.base.optional import late
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    BundledModel,
    ExternalRoots,
    Hybrid,
    HybridOption,
    Mean,
    ModelOrBundle,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    Rate,
    ResolverName,
    Seed,
    SignatureKey,
    Std,
    Threads,
    budgets,
    choices_of,
    normalization_of,
    refuse_unused,
    refuse_unused_preparation,
    resolver_of,
)
from tflite_ort.command.arrays import read_inputs
from tflite_ort.command.called_model import CalledModel
from tflite_ort.command.found import (
    DecodeAs,
    Labels,
    MinScore,
    Raw,
    Reading,
    Shown,
    Top,
    answered,
    answered_by_task,
    names_text,
)
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.opening import holds_bundle
from tflite_ort.prediction.answers import AUTO, read_labels
from tflite_ort.prediction.preparation import Preparation

with late:
    from tflite_ort.tasks import bundle_answers


# What a bundle's task does not take.
_OF_MODELS = ("labels", "top", "min_score", "decode", "raw", "mean", "std", "rate", "hybrid")

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="Pictures, .wav, .npy or .npz files: one for each input, in their order.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]FILE",
        help="As FILE, for the input that is named; repeatable. Inputs without one are random.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="[NAME=]FILE",
        help="Save the outputs, or the one named: .npy, .npz, .json, .png of a map, a folder that "
        "is there, or - for standard output; .png or .jpg without a name is the picture with what "
        "was found drawn on it. Repeatable.",
    ),
]


def run(
    context: typer.Context,
    model: ModelOrBundle,
    files: Files = None,
    inputs: Inputs = None,
    output: Targets = None,
    labels: Labels = None,
    top: Top = 5,
    min_score: MinScore = None,
    decode: DecodeAs = AUTO,
    raw: Raw = False,
    signature: SignatureKey = None,
    name: BundledModel = None,
    as_json_text: AsJson = False,
    mean: Mean = None,
    std: Std = None,
    rate: Rate = None,
    seed: Seed = 0,
    threads: Threads = None,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    resolver: ResolverName = None,
    hybrid: HybridOption = Hybrid.AUTO,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Run a model once on files and say what it finds: classes, boxes, points, masks. Pictures and
    sounds are prepared as the model's metadata say, or as the model shows."""
    given, limits = [*(files or ()), *(inputs or ())], budgets(budget)
    shown = Shown.of(output or (), as_json=as_json_text)
    how = Reading(read_labels(labels), decode, top, min_score, raw=raw)
    choices = choices_of(provider, provider_option)
    if name is None and signature is None and holds_bundle(model):
        answerer = bundle_answers.bundle_answerer(model, limits, choices, threads)
        if answerer is not None:
            refuse_unused(context, "is of a model, not of a task", *_OF_MODELS)
            shown.show(answered_by_task(answerer, given), [])
            return
    interpreter = Interpreter(
        model,
        num_threads=threads,
        providers=choices,
        precision=precision.value,
        resolver=resolver_of(resolver),
        hybrid=hybrid.value,
        external_roots=external_root or (),
        budgets=limits,
        model=name,
    )
    preparation = Preparation(normalization=normalization_of(mean, std), rate=rate)
    called = CalledModel.of(interpreter, signature)
    refuse_unused_preparation(context, preparation, called.columns)
    arrays = read_inputs(given, called.columns, preparation, shown.tell)
    if missing := called.missing(arrays):
        shown.tell(f"{names_text(missing)}: random values, as no FILE gives others")
    drawn = called.drawn(seed)
    reader = how.reader(called, model, drawn=bool(missing))
    results = called.run(drawn | arrays)
    shown.show(answered(reader, results, given, missing), results)
