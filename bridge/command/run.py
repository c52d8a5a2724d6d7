"""The verb ``run``: a model once, on files or random inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from tflite_ort.base.suggestions import suggestion
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
    refuse_unused_preparation,
    resolver_of,
)
from tflite_ort.command.arrays import Tell, read_inputs, set_inputs
from tflite_ort.command.outputs import STDOUT, Output, as_json, check_target, save, text_of
from tflite_ort.command.terminal import new_console, new_table, say, say_json, shape_text
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.metadata import Metadata
from tflite_ort.model.signature_model import absent
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.tensors import described_inputs, unique_names
from tflite_ort.schema import MalformedModel, TensorError

Array = npt.NDArray[Any]

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]FILE",
        help="A picture, .wav, .npy or .npz file, repeatable; inputs without one are random.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="[NAME=]FILE",
        help="Save the outputs, or the one named: .npy, .npz, .json, .png of a map, a folder that "
        "is there, or - for standard output; repeatable.",
    ),
]


def run(
    context: typer.Context,
    model: ModelOrBundle,
    inputs: Inputs = None,
    output: Targets = None,
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
    """Run a model once and print what comes out. Pictures and sounds are prepared as the model's
    metadata say, and results have its labels."""
    preparation = Preparation(normalization=normalization_of(mean, std), rate=rate)
    targets = [_target(text) for text in output or ()]
    _check_stdout([file for _, file in targets], as_json=as_json_text)
    interpreter = Interpreter(
        model,
        num_threads=threads,
        providers=choices_of(provider, provider_option),
        precision=precision.value,
        resolver=resolver_of(resolver),
        hybrid=hybrid.value,
        external_roots=external_root or (),
        budgets=budgets(budget),
        model=name,
    )
    called = _Called.of(interpreter, signature)
    quiet = as_json_text or any(target == STDOUT for _, target in targets)
    tell: Tell = lambda text: say(text, error=quiet)  # noqa: E731
    columns = described_inputs(called.inputs, called.metadata.inputs)
    refuse_unused_preparation(context, preparation, columns)
    given = read_inputs(inputs or (), columns, preparation, tell)
    drawn = called.drawn(seed)
    if names := [each.name for each in columns if each.details["index"] not in given]:
        tell(f"{', '.join(names)}: random values, as no --input gives others")
    results = called.run(drawn | given)
    if as_json_text:
        say_json(as_json(results))
    elif not quiet:
        _print_outputs(results)
    for which, target in targets:
        if written := save(target, _chosen(results, which)):
            say(f"wrote {', '.join(written)}", error=quiet)


@dataclass(frozen=True, slots=True)
class _Called:
    """What is run: the primary subgraph, or a signature.

    Args:
        signature: its key; None for the primary subgraph.
        inputs, outputs: their details, by the names that are used.
    """

    interpreter: Interpreter
    signature: str | None
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]
    metadata: Metadata

    @classmethod
    def of(cls, interpreter: Interpreter, signature: str | None) -> _Called:
        """The signature of this key, or the primary subgraph.

        Raises:
            TensorError: there is no such signature.
        """
        if signature is None:
            found = interpreter.get_input_details(), interpreter.get_output_details()
            return cls(interpreter, None, *found, _metadata(interpreter))
        keys = list(interpreter.get_signature_list())
        if signature not in keys:
            raise TensorError(absent(signature, keys))
        runner = interpreter.get_signature_runner(signature)
        inputs, outputs = (
            [{**each, "name": name} for name, each in details.items()]
            for details in (runner.get_input_details(), runner.get_output_details())
        )
        return cls(interpreter, signature, inputs, outputs, Metadata())

    def drawn(self, seed: int) -> dict[int, Array]:
        """Random values for all inputs, by tensor index."""
        keys = self.interpreter._signatures
        subgraph = 0 if self.signature is None else keys[self.signature].subgraph
        model = self.interpreter._model
        limits = index_limits(model, subgraph)
        return random_inputs(self.inputs, seed, limits=limits, budgets=model.budgets)

    def run(self, arrays: Mapping[int, Array]) -> list[Output]:
        """The outputs for inputs by tensor index."""
        if self.signature is None:
            set_inputs(self.interpreter, arrays)
            self.interpreter.invoke()
            details = self.interpreter.get_output_details()
            values = [self.interpreter.get_tensor(each["index"]) for each in details]
        else:
            runner = self.interpreter.get_signature_runner(self.signature)
            found = runner(**{each["name"]: arrays[each["index"]] for each in self.inputs})
            details = [dict(each) for each in self.outputs]
            values = [found[each["name"]] for each in details]
        described: Sequence[Any] = self.metadata.outputs
        if len(described) != len(details):
            described = [None] * len(details)
        rows = zip(unique_names(details), map(np.asarray, values), details, described, strict=True)
        return [Output(*row) for row in rows]


def _metadata(interpreter: Interpreter) -> Metadata:
    """What the model says of itself; nothing, with a warning, where that is damaged."""
    try:
        return interpreter.metadata
    except MalformedModel as error:
        say(f"warning: {error}", error=True)
        return Metadata()


def _check_stdout(files: Sequence[str], *, as_json: bool) -> None:
    """Refuse what would stand on standard output beside something else.

    Raises:
        InputError: it would.
    """
    if files.count(STDOUT) + as_json > 1:
        raise InputError("standard output takes one: --json, or one --output -")


def _target(text: str) -> tuple[str, str]:
    """The output that ``[NAME=]FILE`` names, or none, and the file."""
    name, equals, file = text.rpartition("=")
    target = file if equals else text
    check_target(target)
    return name, target


def _chosen(outputs: Sequence[Output], name: str) -> Sequence[Output]:
    if not name:
        return outputs
    found = [each for each in outputs if each.name == name]
    if not found:
        names = [each.name for each in outputs]
        raise InputError(
            f"no output {name!r}; outputs: {', '.join(names)}{suggestion(name, names)}"
        )
    return found


def _print_outputs(outputs: Sequence[Output]) -> None:
    table = new_table("output", "dtype", "shape", "min", "max", "mean")
    for each in outputs:
        dtype = "string" if each.text else each.value.dtype.name
        numbers = each.statistics()
        shown = ("-",) * 3 if numbers is None else (f"{number:.6g}" for number in numbers)
        table.add_row(each.name, dtype, shape_text(each.value.shape), *shown)
    console = new_console()
    console.print(table)
    for each in outputs:
        if text := text_of(each):
            console.print(text)
