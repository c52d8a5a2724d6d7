"""The verb ``run``: a model once, on files or random inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from tflite_ort.command.arrays import read_inputs, set_inputs
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
)
from tflite_ort.command.outputs import Output
from tflite_ort.command.terminal import say
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.metadata import Metadata
from tflite_ort.model.opening import holds_bundle
from tflite_ort.model.signature_model import absent
from tflite_ort.prediction.answers import AUTO, read_labels
from tflite_ort.prediction.pictures import pictures_of
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.tensors import InputColumn, described_inputs, unique_names
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
    shown = Shown.of(output or (), as_json=as_json_text)
    how = Reading(read_labels(labels), decode, top, min_score, raw=raw)
    choices = choices_of(provider, provider_option)
    if name is None and signature is None and holds_bundle(model):
        answerer = bundle_answers.bundle_answerer(model, limits, choices, threads)
        if answerer is not None:
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
    called = _Called.of(interpreter, signature)
    refuse_unused_preparation(context, preparation, called.columns)
    arrays = read_inputs(given, called.columns, preparation, shown.tell)
    if missing := called.missing(arrays):
        shown.tell(f"{', '.join(missing)}: random values, as no FILE gives others")
    drawn = called.drawn(seed)
    reader = how.reader(interpreter._model, called.metadata, called.subgraph, drawn=bool(missing))
    results = called.run(drawn | arrays)
    shown.show(answered(reader, results, given), results)


@dataclass(frozen=True)
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

    @cached_property
    def columns(self) -> Sequence[InputColumn]:
        """The inputs, with what is known of them."""
        pictures = pictures_of(lambda: self.interpreter._model, self.metadata, self.subgraph)
        return described_inputs(self.inputs, self.metadata.inputs, pictures)

    def missing(self, arrays: Mapping[int, Array]) -> list[str]:
        """The names of the inputs that `arrays`, by tensor index, have not."""
        return [each.name for each in self.columns if each.details["index"] not in arrays]

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
