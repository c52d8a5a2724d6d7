"""The verb ``run``: a model once, on files or random inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
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
    refuse_unused_preparation,
    resolver_of,
)
from tflite_ort.command.arrays import Tell, read_inputs, set_inputs
from tflite_ort.command.found import (
    DecodeAs,
    Labels,
    MinScore,
    Raw,
    Reading,
    Top,
    answered,
    answered_by_task,
    checked_decoder,
    show_answer,
)
from tflite_ort.command.outputs import STDOUT, Output, check_target
from tflite_ort.command.terminal import say
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.metadata import Metadata
from tflite_ort.model.opening import holds_bundle
from tflite_ort.model.signature_model import absent
from tflite_ort.prediction.answers import AUTO, read_labels
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.pictures import Pictures, pictures_of
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.tensors import described_inputs, unique_names
from tflite_ort.schema import MalformedModel, TensorError

if TYPE_CHECKING:
    from tflite_ort.tasks import bundle_answers
else:
    bundle_answers = late("tflite_ort.tasks.bundle_answers")

Array = npt.NDArray[Any]

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]...",
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
    targets = [_target(text) for text in output or ()]
    _check_stdout([file for _, file in targets], as_json=as_json_text)
    quiet = as_json_text or any(target == STDOUT for _, target in targets)
    tell: Tell = lambda text: say(text, error=quiet)  # noqa: E731
    how = Reading(read_labels(labels), checked_decoder(decode), top, min_score, raw=raw)
    choices = choices_of(provider, provider_option)
    if name is None and signature is None and holds_bundle(model):
        answerer = bundle_answers.bundle_answerer(model, limits, choices, threads)
        if answerer is not None:
            found = answered_by_task(answerer, given)
            show_answer(found, [], targets, as_json_text=as_json_text, quiet=quiet)
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
    called = _Called.of(interpreter, signature)
    columns = described_inputs(called.inputs, called.metadata.inputs, called.pictures())
    refuse_unused_preparation(context, preparation, columns)
    arrays = read_inputs(given, columns, preparation, tell)
    drawn = called.drawn(seed)
    missing = [each.name for each in columns if each.details["index"] not in arrays]
    if missing:
        tell(f"{', '.join(missing)}: random values, as no FILE gives others")
    reader = how.reader(interpreter._model, called.metadata, called.subgraph, drawn=bool(missing))
    results = called.run(drawn | arrays)
    found = answered(reader, results, given)
    show_answer(found, results, targets, as_json_text=as_json_text, quiet=quiet)


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

    @property
    def subgraph(self) -> int:
        """The number of what is run."""
        keys = self.interpreter._signatures
        return 0 if self.signature is None else int(keys[self.signature].subgraph)

    def pictures(self) -> Pictures:
        """What pictures become for the inputs."""
        return pictures_of(lambda: self.interpreter._model, self.metadata, self.subgraph)

    def drawn(self, seed: int) -> dict[int, Array]:
        """Random values for all inputs, by tensor index."""
        model = self.interpreter._model
        limits = index_limits(model, self.subgraph)
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
