"""What a model can be run in: one face for this library's interpreter, its kernels and LiteRT."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.plan.placements import Placement
from tflite_ort.providers.delegates import OpResolverType, ProviderChoices
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import BridgeError, Model, TensorType, write_model
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.verification.extraction import Singles
from tflite_ort.verification.litert import LitertProcess
from tflite_ort.versioning.resolver import OpResolver

Array = npt.NDArray[Any]
# Tensors by index.
Tensors = Mapping[int, Array]
# Inputs of one run after the other, over which state lasts.
Sample = Sequence[Tensors]

# Of the tensors of a network that are there at the same time.
AT_A_TIME = 16 << 20
_WITHOUT_VALUES = frozenset({TensorType.RESOURCE, TensorType.VARIANT})


class NotIsolated(BridgeError, ValueError):
    """An operator that cannot be run alone; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Isolated:
    """What an operator gives when it is fed given inputs.

    Args:
        outputs: of each sample, by tensor index; it runs when they are asked for.
        operators: those that ran; more than one where it could not be run alone.
    """

    outputs: Iterator[Tensors]
    operators: tuple[int, ...]


class Runtime(Protocol):
    """Runs one model. Every call starts from the first state."""

    name: str

    @property
    def outputs_only(self) -> str:
        """Why nothing but outputs can be compared; empty where more can."""
        ...

    def outputs(self, sample: Sample) -> Iterator[Tensors]:
        """The readable outputs and variables after each run of a sample."""
        ...

    def tensors(
        self, sample: Sample, reference: Tensors | None = None
    ) -> Iterator[tuple[int, Array]]:
        """All that can be read after the first run of a sample; of one that comes again the last
        counts.

        Args:
            reference: the right values, for a runtime that has to find out in which form it has
                its own.
        """
        ...

    def isolated(self, operator: int, given: Sequence[Tensors]) -> Isolated:
        """An operator fed with tensors of each sample.

        Raises:
            NotIsolated: it cannot be. Errors of the run come when outputs are asked for.
        """
        ...

    def unreadable(self, tensor: int) -> str:
        """Why `tensors` has no such tensor."""
        ...

    def close(self) -> None: ...


def results(model: Model) -> list[int]:
    """The tensors that operators of the primary subgraph make and that have values."""
    graph = model.subgraphs[0]
    made = dict.fromkeys(index for op in graph.operators for index in op.outputs)
    return [index for index in made if graph.tensors[index].type not in _WITHOUT_VALUES]


def variables(model: Model) -> list[int]:
    """The variable tensors of the primary subgraph."""
    graph = model.subgraphs[0]
    return [index for index, tensor in enumerate(graph.tensors) if tensor.is_variable]


def grouped(model: Model, tensors: Iterable[int], limit: int = AT_A_TIME) -> Iterator[list[int]]:
    """`tensors` of the primary subgraph in groups of about `limit` bytes, as the file declares
    them."""
    group, size = list[int](), 0
    for index in tensors:
        tensor = model.subgraphs[0].tensors[index]
        own = math.prod(max(1, size) for size in tensor.shape) * NUMPY_DTYPE[tensor.type].itemsize
        if group and size + own > limit:
            yield group
            group, size = [], 0
        group.append(index)
        size += own
    if group:
        yield group


def with_outputs(model: Model, outputs: Sequence[int]) -> Model:
    """The model with other outputs."""
    first = replace(model.subgraphs[0], outputs=tuple(outputs))
    return replace(model, subgraphs=(first, *model.subgraphs[1:]), signature_defs=())


def fed(
    singles: Singles, operator: int, given: Sequence[Tensors], among: Sequence[int] = ()
) -> tuple[Model, list[int], Iterator[list[Array]]]:
    """An operator as a model, its outputs, and its inputs in each sample.

    Args:
        among: operators that lead to it and run with it.

    Raises:
        NotIsolated: an input has no value.
    """
    alone, inputs, outputs = singles.model(operator, among)
    graph = singles.graph
    for index in inputs:
        if graph.tensors[index].type in _WITHOUT_VALUES:
            raise NotIsolated(f"it takes the resource {graph.tensors[index].name!r}")
        if any(index not in sample for sample in given):
            raise NotIsolated(f"the reference has no value of {graph.tensors[index].name!r}")
    if any(graph.tensors[index].type in _WITHOUT_VALUES for index in outputs):
        raise NotIsolated("it makes a resource")
    if not outputs:
        raise NotIsolated("it has no output")
    return alone, outputs, ([sample[index] for index in inputs] for sample in given)


class _OfFiles:
    """A runtime that reads TFLite files. An operator runs alone as a model of its own."""

    model: Model
    outputs_only = ""

    @cached_property
    def _singles(self) -> Singles:
        return Singles(self.model)

    def isolated(
        self, operator: int, given: Sequence[Tensors], among: Sequence[int] = ()
    ) -> Isolated:
        alone, outputs, samples = fed(self._singles, operator, given, among)
        return Isolated(self._runs(alone, outputs, samples), tuple(sorted({operator, *among})))

    def _runs(
        self, alone: Model, outputs: Sequence[int], samples: Iterable[Sequence[Array]]
    ) -> Iterator[Tensors]:
        """The results of the model `alone` for each sample, by index of `outputs`."""
        raise NotImplementedError

    def close(self) -> None:
        pass


# Ours --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How this library runs a model; as `Interpreter` takes them."""

    providers: ProviderChoices | None = None
    threads: int | None = None
    hybrid: str = "auto"
    resolver: OpResolver | None = None
    kernels: bool = False
    precision: str = FULL_PRECISION


@dataclass
class OurInterpreter(_OfFiles):
    """`Interpreter`, on execution providers or on its numpy kernels."""

    model: Model
    settings: Settings = field(default_factory=Settings)
    name: str = "interpreter"

    def opened(self, model: Model) -> Interpreter:
        kernels = OpResolverType.BUILTIN_REF if self.settings.kernels else OpResolverType.AUTO
        return Interpreter(
            model_content=write_model(replace(model, folder=None)),
            num_threads=self.settings.threads,
            experimental_op_resolver_type=kernels,
            providers=None if self.settings.kernels else self.settings.providers,
            precision=FULL_PRECISION if self.settings.kernels else self.settings.precision,
            resolver=self.settings.resolver,
            hybrid=self.settings.hybrid,
            budgets=model.budgets,
            cache=False,  # parts of models are not asked for again
        )

    def outputs(self, sample: Sample) -> Iterator[Tensors]:
        with closing(self.opened(self.model)) as interpreter:
            wanted = [*self.model.subgraphs[0].outputs, *variables(self.model)]
            for inputs in sample:
                invoke(interpreter, inputs)
                yield read(interpreter, wanted)

    def tensors(
        self, sample: Sample, reference: Tensors | None = None
    ) -> Iterator[tuple[int, Array]]:
        for group in grouped(self.model, results(self.model)):
            with closing(self.opened(with_outputs(self.model, group))) as interpreter:
                invoke(interpreter, sample[0])
                for index in group:
                    yield from read(interpreter, [index]).items()

    def _runs(
        self, alone: Model, outputs: Sequence[int], samples: Iterable[Sequence[Array]]
    ) -> Iterator[Tensors]:
        graph = alone.subgraphs[0]
        with closing(self.opened(alone)) as interpreter:
            for number, arrays in enumerate(samples):
                if number:
                    interpreter.reset_all_variables()
                invoke(interpreter, dict(zip(graph.inputs, arrays, strict=True)))
                made = read(interpreter, graph.outputs)
                pairs = zip(outputs, graph.outputs, strict=True)
                yield {old: made[new] for old, new in pairs if new in made}

    def placements(self, inputs: Tensors) -> Sequence[Placement]:
        """Where each operator runs."""
        with closing(self.opened(self.model)) as interpreter:
            shape_inputs(interpreter, inputs)
            return interpreter.delegation()

    def times(self, inputs: Tensors, runs: int) -> Mapping[str, float]:
        """Milliseconds of an invoke, by operator such as ``CONV_2D_12``."""
        with closing(self.opened(self.model)) as interpreter:
            invoke(interpreter, inputs)
            rows = interpreter.profile(runs)
            return {row.operator: row.seconds / runs * 1e3 for row in rows}

    def unreadable(self, tensor: int) -> str:
        return "the interpreter does not keep it"


def shape_inputs(interpreter: Interpreter, inputs: Tensors) -> None:
    for detail in interpreter.get_input_details():
        if tuple(detail["shape"]) != inputs[detail["index"]].shape:
            interpreter.resize_tensor_input(detail["index"], inputs[detail["index"]].shape)
    interpreter.allocate_tensors()


def invoke(interpreter: Interpreter, inputs: Tensors) -> None:
    shape_inputs(interpreter, inputs)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], inputs[detail["index"]])
    interpreter.invoke()


def read(interpreter: Interpreter, wanted: Sequence[int]) -> Tensors:
    """The wanted tensors that the interpreter keeps."""
    found = {}
    for index in wanted:
        try:
            found[index] = np.asarray(interpreter.get_tensor(index))
        except (BridgeError, ValueError):
            continue
    return found


# LiteRT ------------------------------------------------------------------------------------------


@dataclass
class Litert(_OfFiles):
    """LiteRT in a process of its own.

    Args:
        process: may be shared; who makes it closes it.
        kernels: ``"default"`` (XNNPACK), ``"optimized"`` or ``"reference"``.
    """

    model: Model
    process: LitertProcess
    kernels: str = "default"
    name: str = "litert"

    def outputs(self, sample: Sample) -> Iterator[Tensors]:
        self.process.load(self.model, self.kernels)
        graph, kept = self.model.subgraphs[0], variables(self.model)
        for inputs in sample:
            arrays = [inputs[index] for index in graph.inputs]
            self.process.invoke(arrays)
            outputs = dict(zip(graph.outputs, self.process.outputs(), strict=True))
            yield {**self.process.read(kept), **outputs}

    def tensors(
        self, sample: Sample, reference: Tensors | None = None
    ) -> Iterator[tuple[int, Array]]:
        """Made outputs, since what the delegate makes inside it leaves nowhere to read."""
        exposed = results(self.model)
        self.process.load(with_outputs(self.model, exposed), self.kernels)
        self.process.invoke([sample[0][index] for index in self.model.subgraphs[0].inputs])
        for index in exposed:
            yield from self.process.read([index]).items()

    def _runs(
        self, alone: Model, outputs: Sequence[int], samples: Iterable[Sequence[Array]]
    ) -> Iterator[Tensors]:
        for arrays in samples:
            self.process.load(alone, self.kernels)
            self.process.invoke(arrays)
            yield dict(zip(outputs, self.process.outputs(), strict=True))

    def unreadable(self, tensor: int) -> str:
        return "LiteRT does not keep it"
