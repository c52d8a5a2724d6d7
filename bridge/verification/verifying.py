"""A model in several runtimes on the same inputs, held against one that counts as right."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from tflite_ort.base.suggestions import suggestion
from tflite_ort.comparison.differences import Difference, Tolerance, difference, largest
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.export.exporting import export_onnx
from tflite_ort.metadata import Metadata, model_metadata
from tflite_ort.schema import (
    BridgeError,
    Budgets,
    ExportError,
    MalformedModel,
    Model,
    OperatorView,
    read_model,
)
from tflite_ort.schema.values.resolve import operator_view, tensor_views
from tflite_ort.verification.comparing import Comparing, Progress, Reference
from tflite_ort.verification.litert import LitertError, LitertProcess, litert_installed
from tflite_ort.verification.onnx_runtime import MismatchedFile, OnnxRuntime
from tflite_ort.verification.reading import as_verified
from tflite_ort.verification.real_numbers import in_floats
from tflite_ort.verification.report import Report
from tflite_ort.verification.runtimes import (
    Litert,
    OurInterpreter,
    Runtime,
    Sample,
    Settings,
)
from tflite_ort.verification.samples import RANDOM, Given, Random, given_samples, random_samples

# The versions of the packages that take part.

_PACKAGES = ("tflite-ort", "onnxruntime", "onnx", "numpy", "ai-edge-litert")


def package_versions() -> dict[str, str]:
    """The versions of the packages that are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


Source = str | os.PathLike[str] | bytes | memoryview | Model

_LITERT = {"litert": "default", "litert-optimized": "optimized", "litert-reference": "reference"}
NAMES = ("interpreter", "export", "kernels", *_LITERT)


class VerificationError(BridgeError, ValueError):
    """A model that cannot be verified as it was asked for."""


def verify(
    model: Source,
    *,
    runtimes: Sequence[str] | None = None,
    onnx_file: str | os.PathLike[str] | onnx.ModelProto | None = None,
    mapping: Mapping[str, str | int] | None = None,
    reference: str | None = None,
    inputs: Random | Sequence[Given] | Sequence[Sequence[Given]] = RANDOM,
    tolerance: Tolerance | None = None,
    settings: Settings | None = None,
    profiled_runs: int = 0,
    progress: Progress | None = None,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    budgets: Budgets | None = None,
) -> Report:
    """Run a model in several runtimes on the same inputs, and compare every tensor.

    Args:
        model: a ``.tflite`` file, its bytes, or a model read before.
        runtimes: of `NAMES`: ``"interpreter"`` (this library's), ``"export"`` (what `export_onnx`
            makes, in plain ONNX Runtime), ``"kernels"`` (the numpy kernels), ``"litert"``,
            ``"litert-optimized"``, ``"litert-reference"``. Default: the first two, or none besides
            `onnx_file`.
        onnx_file: an ONNX file that anybody made from the model, or such a model.
        mapping: of `onnx_file`, by name of a value, the name or index of its tensor; other values
            are matched by name.
        reference: the runtime that counts as right; default LiteRT, or ``"kernels"`` where that is
            not installed or cannot run the model.
        inputs: `Random`, or arrays by input name or index: one mapping a sample; for sequences a
            list of mappings a sample, one a step.
        settings: how this library runs the model.
        profiled_runs: invokes from which the interpreter's times are taken; 0: none.
        progress: told of each piece of work: what, how much is done, how much there is.
        external_roots, budgets: as `Interpreter` takes them; a model read before has its own.

    Returns:
        A report; after KeyboardInterrupt one of what was done so far.

    Raises:
        ModelError, VersionError: the model cannot be read.
        VerificationError: no such runtime, none but the reference, or that cannot run the model.
        MismatchedFile: `onnx_file` was not made from this model.
        TensorError: `inputs` do not fit.
    """
    default = () if onnx_file is not None else ("interpreter", "export")
    choice = _Choice(runtimes or default, bool(runtimes), onnx_file, mapping or {}, reference)
    choice.check()
    settings = settings or Settings()
    source = _read(model, external_roots, budgets)
    with closing(LitertProcess(settings.threads or 1)) as process:
        job = _Job(
            as_verified(source),
            _metadata(source, model),
            settings,
            tolerance or Tolerance(),
            progress or _silent,
            profiled_runs,
            process,
        )
        return job.run(_name(model), choice, inputs)


@dataclass(frozen=True)
class _Choice:
    """Which runtimes are wanted."""

    runtimes: Sequence[str]
    named: bool
    onnx_file: str | os.PathLike[str] | onnx.ModelProto | None
    mapping: Mapping[str, str | int]
    reference: str | None

    @property
    def wanted_reference(self) -> str:
        """The one that is tried first."""
        return self.reference or ("litert" if litert_installed() else "kernels")

    def check(self) -> None:
        for name in (*self.runtimes, *([self.reference] if self.reference else [])):
            if name not in NAMES:
                near = suggestion(name, NAMES)
                raise VerificationError(f"no runtime {name!r}; there are {', '.join(NAMES)}{near}")
        if isinstance(self.onnx_file, str | os.PathLike):
            with open(self.onnx_file, "rb"):  # which is read after the reference has run
                pass


@dataclass
class _Job:
    """One verification."""

    model: Model
    metadata: Metadata | None
    settings: Settings
    tolerance: Tolerance
    progress: Progress
    profiled_runs: int
    process: LitertProcess
    skipped: dict[str, str] = field(default_factory=dict)

    def _samples(
        self, inputs: Random | Sequence[Given | Sequence[Given]]
    ) -> tuple[list[Sample], str]:
        """What the model is fed, and how a report calls it."""
        if isinstance(inputs, Random):
            limits = index_limits(self.model)
            budgets = self.model.budgets
            fed = random_samples(self.details(), self.metadata, inputs, limits, budgets)
            return fed, f"{inputs.samples} random samples from seed {inputs.seed}"
        runs = [[each] if isinstance(each, Mapping) else each for each in inputs]
        count = len(inputs)
        said = f"{count} given sample{'s' * (count != 1)}"
        return given_samples(self.model, runs), said

    def run(
        self, name: str, choice: _Choice, inputs: Random | Sequence[Given | Sequence[Given]]
    ) -> Report:
        """The report, as far as it comes."""
        with ExitStack() as stack:
            return self._report(name, choice, inputs, stack)

    def _report(
        self,
        name: str,
        choice: _Choice,
        inputs: Random | Sequence[Given | Sequence[Given]],
        stack: ExitStack,
    ) -> Report:
        fed, said = self._samples(inputs)
        done: list[Comparing] = []
        complete = False
        with suppress(KeyboardInterrupt):
            self._compare(choice, fed, done, stack)
            complete = True
        return Report(
            name,
            done[0].reference.name if done else choice.wanted_reference,
            said,
            self.tolerance,
            len(fed),
            max(map(len, fed), default=0),
            tuple(each.result() for each in done),
            self.skipped,
            complete,
            package_versions(),
            tuple(each.name or "" for each in self.model.subgraphs),
        )

    def _compare(
        self, choice: _Choice, fed: Sequence[Sample], done: list[Comparing], stack: ExitStack
    ) -> None:
        """Add to `done` a comparison of each runtime."""
        reference, spread, kernels = self._reference(choice, fed, stack)
        views = tensor_views(self.model, 0)
        count = len(self.model.subgraphs[0].operators)
        operators = [operator_view(self.model, 0, index, views) for index in range(count)]
        for runtime in self._runtimes(choice, reference.name):
            stack.enter_context(closing(runtime))
            comparing = Comparing(
                self.model,
                views,
                operators,
                runtime,
                reference,
                self.tolerance,
                spread,
                kernels,
                partial(self._in_floats, reference.name),
            )
            done.append(comparing)
            comparing.run(self.progress, self.profiled_runs)

    def _in_floats(
        self, reference: str, operators: Sequence[OperatorView[Any]]
    ) -> Litert | OurInterpreter | None:
        """What multiplies floats in hybrid layers among `operators`, of the reference's kind."""
        model = in_floats(self.model, operators)
        if model is None:
            return None
        if reference in _LITERT:
            return Litert(model, self.process, _LITERT[reference], "floats")
        return OurInterpreter(model, replace(self.settings, kernels=True), "floats")

    def details(self) -> list[dict[str, Any]]:
        """The details of the inputs, as `Interpreter` returns them.

        Raises:
            BudgetExceeded: the model asks for more than its budgets. LiteRT has none.
        """
        with closing(OurInterpreter(self.model, self.settings).opened(self.model)) as interpreter:
            interpreter.allocate_tensors()
            return interpreter.get_input_details()

    # Which runtimes ----------------------------------------------------------------------------

    def _runtimes(self, choice: _Choice, reference: str) -> list[Runtime]:
        found: list[Runtime] = []
        for name in choice.runtimes:
            if name == reference:
                continue
            try:
                found.append(self._runtime(name))
            except ExportError as error:
                if choice.named:
                    raise
                self.skipped[name] = str(error)
        if choice.onnx_file is not None:
            found.append(_file_runtime(self.model, choice.onnx_file, choice.mapping, self.settings))
        if not found and not self.skipped:
            raise VerificationError(f"nothing is compared: {reference} is the reference")
        return found

    def _runtime(self, name: str) -> Runtime:
        settings = self.settings
        if name in _LITERT:
            return Litert(self.model, self.process, _LITERT[name], name)
        if name == "export":
            hybrid, resolver = settings.hybrid, settings.resolver
            proto = export_onnx(self.model, hybrid=hybrid, resolver=resolver, stateful=True)
            return OnnxRuntime(self.model, proto, threads=settings.threads or 1)
        return OurInterpreter(self.model, replace(settings, kernels=name == "kernels"), name)

    def _reference(
        self, choice: _Choice, fed: Sequence[Sample], stack: ExitStack
    ) -> tuple[Reference, dict[int, Difference], list[Litert]]:
        """The reference after its runs; how far LiteRT's other kernels are from it; and these."""
        name = choice.wanted_reference
        try:
            reference = self._ran(name, fed, stack)
        except BridgeError as error:
            if choice.reference or name == "kernels":
                raise VerificationError(f"the reference {name} cannot run it: {error}") from error
            self.skipped[name] = str(error)
            return self._ran("kernels", fed, stack), {}, []
        if name not in _LITERT:
            return reference, {}, []
        others = [other for other in _LITERT if other != name]
        kernels = [Litert(self.model, self.process, _LITERT[other], other) for other in others]
        return reference, self._spread(reference, kernels), kernels

    def _ran(self, name: str, fed: Sequence[Sample], stack: ExitStack) -> Reference:
        runtime = stack.enter_context(closing(self._runtime(name)))
        reference = stack.enter_context(closing(Reference(name, fed)))
        for number, sample in enumerate(fed):
            self.progress(f"{name}: network", number, len(fed))
            reference.add(runtime, sample)
        self.progress(f"{name}: network", len(fed), len(fed))
        return reference

    def _spread(self, reference: Reference, kernels: Sequence[Litert]) -> dict[int, Difference]:
        """The largest difference of other kernels from the reference, by output."""
        views, found = tensor_views(self.model, 0), dict[int, list[Difference]]()
        for each in kernels:
            try:
                for sample, runs in zip(reference.samples, reference.outputs, strict=True):
                    for got, right in zip(each.outputs(sample), runs, strict=True):
                        for index in got.keys() & right.keys():
                            view = views[index]
                            codes = view.quantization if view.is_quantized else None
                            apart = difference(got[index], right[index], codes)
                            found.setdefault(index, []).append(apart)
            except LitertError as error:
                self.skipped[each.name] = str(error)
        pairs = ((index, largest(differences)) for index, differences in found.items())
        return {index: each for index, each in pairs if each is not None}


def _read(model: Source, roots: Sequence[str | os.PathLike[str]], budgets: Budgets | None) -> Model:
    if isinstance(model, Model):
        source = model
    else:
        source = read_model(model, external_roots=roots, budgets=budgets)
    if not source.subgraphs:
        raise VerificationError("The model has no subgraph.")
    return source


def _metadata(read: Model, model: Source) -> Metadata | None:
    try:
        return model_metadata(read, None if isinstance(model, Model) else model)
    except MalformedModel:  # of the metadata: the model itself was read before
        return None


def _name(model: Source) -> str:
    if isinstance(model, (str, os.PathLike)):
        return os.path.basename(os.fspath(model))
    return (model.subgraphs[0].name if isinstance(model, Model) else "") or "model"


def _file_runtime(
    model: Model,
    file: str | os.PathLike[str] | onnx.ModelProto,
    mapping: Mapping[str, str | int],
    settings: Settings,
) -> OnnxRuntime:
    threads = settings.threads or 1
    if isinstance(file, onnx.ModelProto):
        return OnnxRuntime(model, file, "onnx", None, mapping, threads)
    path = Path(file)
    try:
        proto = onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise MismatchedFile(f"{path} is no ONNX file: {error}") from error
    return OnnxRuntime(model, proto, path.name, path.absolute().parent, mapping, threads)


def _silent(what: str, done: int, count: int) -> None:
    pass
