"""Arguments and options that several verbs of the command have."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from tflite_ort.command.budget_choices import budgets_of
from tflite_ort.model.opening import is_model
from tflite_ort.model.resolvers import load_resolver
from tflite_ort.prediction.images import Normalization, takes_images
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.tensors import InputColumn
from tflite_ort.providers.delegates import AUTO, ProviderChoices
from tflite_ort.providers.names import known_short_names
from tflite_ort.providers.provider_choices import provider_choices
from tflite_ort.schema import Budgets
from tflite_ort.versioning.resolver import OpResolver

Given = TypeVar("Given")


class Hybrid(StrEnum):
    """How float activations meet integer weights."""

    AUTO = "auto"
    FLOAT = "float"
    DYNAMIC = "dynamic"
    XNNPACK = "xnnpack"


class Precision(StrEnum):
    """How providers compute floats."""

    FULL = "full"
    BF16 = "bf16"
    FP16 = "fp16"


def beginning(names: Sequence[str]) -> Callable[[str], list[str]]:
    """What a shell completes: those of `names` that begin as what is typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .tflite file.")]
ModelOrBundle = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A .tflite file, or a bundle (.task, .litertlm)."),
]
Providers = Annotated[
    list[str] | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        autocompletion=beginning(sorted([AUTO, "cpu", *known_short_names()])),
        help="Execution provider, repeatable; the first choice first. auto: the "
        "fastest device for the model, found by trying.",
    ),
]
ProviderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--provider-option",
        metavar="[PROVIDER:]KEY=VALUE",
        help="Option of the provider that is named, or of the first one; repeatable.",
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="How providers compute floats: full is float32; bf16 and fp16 are faster on some "
        "devices and less exact.",
    ),
]
Mean = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS",
        help="Pictures become (pixel - mean) / std, whatever the metadata say: a number, or "
        "one for each channel with commas between.",
    ),
]
Std = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="See --mean; without either, 0 and 255.")
]
Rate = Annotated[
    int | None,
    typer.Option(
        min=1, help="Samples a second of the sound that the model takes, whatever it says."
    ),
]
SignatureKey = Annotated[
    str | None,
    typer.Option(
        metavar="KEY", help="The signature to use; without, the model's primary subgraph."
    ),
]
BundledModel = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", help="The model of a bundle to use, if it has several."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads within an operator; without, 1.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")]
HybridOption = Annotated[
    Hybrid,
    typer.Option(
        "--hybrid",
        help="How floats meet integer weights: float makes the weights floats; dynamic and "
        "xnnpack round activations to 8 bits, as TFLite's reference kernels and LiteRT do; auto "
        "rounds where that is faster.",
    ),
]
ResolverName = Annotated[
    str | None,
    typer.Option(
        "--resolver",
        metavar="MODULE:NAME",
        help="An OpResolver with custom operators, or a function that returns one.",
    ),
]
ExternalRoots = Annotated[
    list[Path] | None,
    typer.Option(
        "--external-root",
        metavar="DIR",
        help="A folder in which the model may have constants besides its own; repeatable.",
    ),
]
BudgetNumbers = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=NUMBER",
        help="Let a model that you trust ask for more, such as folded_bytes=4000000000.",
    ),
]


def budgets(given: Sequence[str] | None) -> Budgets:
    """The budgets with these numbers in place of the defaults.

    Raises:
        BadParameter: there is no such budget, or it is no number.
    """
    try:
        return budgets_of(given or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from error


def resolver_of(reference: str | None) -> OpResolver | None:
    """The resolver that ``MODULE:NAME`` names; None for none.

    Raises:
        BadParameter: there is no such object, or it is no resolver.
    """
    try:
        return None if reference is None else load_resolver(reference)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--resolver") from error


def choices_of(
    names: Sequence[str] | None, options: Sequence[str] | None
) -> ProviderChoices | None:
    """What `provider_choices` makes of these options.

    Raises:
        BadParameter: an option reads otherwise, or is of no provider named.
    """
    try:
        return provider_choices(names, options)
    except ValueError as error:
        hint = "--provider" if AUTO in (names or ()) else "--provider-option"
        raise typer.BadParameter(str(error), param_hint=hint) from error


def normalization_of(mean: str | None, std: str | None) -> Normalization | None:
    """What ``--mean`` and ``--std`` say of images; None where neither is given.

    Raises:
        BadParameter: they are no numbers, or a deviation is 0.
    """
    if mean is None and std is None:
        return None
    means = _numbers("0" if mean is None else mean, "--mean")
    stds = _numbers("255" if std is None else std, "--std")
    if 0 in stds:
        raise typer.BadParameter("a standard deviation is 0", param_hint="--std")
    return Normalization(means, stds)


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        message = f"{text!r} is not a number, nor numbers with commas between"
        raise typer.BadParameter(message, param_hint=option)
    return numbers


def one_each(pairs: Iterable[tuple[str, Given]], option: str) -> dict[str, Given]:
    """What an option that is repeated says of each name.

    Raises:
        BadParameter: something else is said of one too.
    """
    found = dict[str, Given]()
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise typer.BadParameter(f"says two things of {name!r}", param_hint=option)
    return found


def refuse_unused(context: typer.Context, why: str, *names: str) -> None:
    """Refuse options that nothing reads.

    Args:
        why: what they need.
        names: of the verb's parameters.

    Raises:
        BadParameter: one of them is on the command line.
    """
    given = [
        each.opts[0]
        for each in context.command.params
        if each.name in names
        and (source := context.get_parameter_source(each.name)) is not None
        and source.name == "COMMANDLINE"
    ]
    if given:
        raise typer.BadParameter(why, param_hint=", ".join(given))


def refuse_unused_preparation(
    context: typer.Context, how: Preparation, columns: Sequence[InputColumn]
) -> None:
    """As `refuse_unused`, of ``--mean``, ``--std`` and ``--rate``, by the inputs of a model."""
    if not any(takes_images(each.details) for each in columns):
        refuse_unused(context, "no input of the model takes pictures", "mean", "std")
    if not any(map(how.hears, columns)):
        refuse_unused(context, "no input of the model takes sound", "rate")


def check_written(out: str | Path | None, option: str, *, over_models: bool = False) -> None:
    """Refuse a file that cannot be written now, not after the work; also one that would be lost.

    Args:
        over_models: whether the result may take the place of another model. If not, one may be
            meant as another input.

    Raises:
        BadParameter: `out` is a model or bundle.
        OSError: `out` is a folder, or its folder is not there.
    """
    if out is None:
        return
    path = Path(out)
    if not over_models and is_model(path):
        raise typer.BadParameter(f"{out} is a model, which would be lost", param_hint=option)
    fault = errno.EISDIR if path.is_dir() else errno.ENOENT
    if fault == errno.EISDIR or not path.parent.is_dir():
        raise OSError(fault, os.strerror(fault), str(out))
