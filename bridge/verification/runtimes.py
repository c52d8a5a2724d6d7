"""What a model can be run in: one face for this library's interpreter, its kernels and LiteRT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.interpreter import Interpreter
from tflite_ort.plan.report import Placement
from tflite_ort.providers.delegates import OpResolverType, ProviderChoice
from tflite_ort.schema import BridgeError, Model, TensorType, write_model
from tflite_ort.verification.extraction import one_operator
from tflite_ort.verification.litert import LitertProcess
from tflite_ort.versioning.resolver import OpResolver

Array = npt.NDArray[Any]
# Tensors by index.
Tensors = Mapping[int, Array]
# Inputs of one run after the other, over which state lasts.
Sample = Sequence[Tensors]

_WITHOUT_VALUES = frozenset({TensorType.RESOURCE, TensorType.VARIANT})


class NotIsolated(BridgeError, ValueError):
    """An operator that cannot be run alone; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Isolated:
    """What an operator gave when it was fed given inputs.

    Args:
        outputs: of each sample, by tensor index.
        operators: those that ran; more than one where it could not be run alone.
    """

    outputs: Sequence[Tensors]
    operators: tuple[int, ...]


class Runtime(Protocol):
    """Runs one model. Every call starts from the first state."""

    name: str

    @property
    def outputs_only(self) -> str:
        """Why nothing but outputs can be compared; empty where more can."""
        ...

    def outputs(self, sample: Sample) -> Iterator[Tensors]:
        """Of each run of a sample, the outputs and variables that can be read."""
        ...

    def tensors(self, sample: Sample, reference: Tensors | None = None) -> Tensors:
        """All that can be read after the first run of a sample.

        Args:
            reference: the right values, for a runtime that has to find out in which form it has
                its own.
        """
        ...

    def isolated(self, operator: int, given: Sequence[Tensors]) -> Isolated:
        """An operator fed with tensors of each sample.

        Raises:
            NotIsolated: it cannot be.
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


def fed(model: Model, operator: int, given: Sequence[Tensors]) -> tuple[Model, list[int], Any]:
    """An operator as a model, its outputs, and its inputs in each sample.

    Raises:
        NotIsolated: an input has no value.
    """
    alone, inputs, outputs = one_operator(model, operator)
    graph = model.subgraphs[0]
    for index in inputs:
        if graph.tensors[index].type in _WITHOUT_VALUES:
            raise NotIsolated(f"it takes the resource {graph.tensors[index].name!r}")
        if any(index not in sample for sample in given):
            raise NotIsolated(f"the reference has no value of {graph.tensors[index].name!r}")
    if not set(outputs) <= set(results(model)):
        raise NotIsolated("it makes a resource")
    if not outputs:
        raise NotIsolated("it has no output")
    return alone, outputs, [[sample[index] for index in inputs] for sample in given]


# Ours --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How this library runs a model; as `Interpreter` takes them."""

    providers: Sequence[ProviderChoice] | None = None
    threads: int | None = None
    hybrid: str = "float"
    resolver: OpResolver | None = None
    kernels: bool = False


@dataclass
class OurInterpreter:
    """`Interpreter`, on execution providers or on its numpy kernels."""

    model: Model
    settings: Settings = field(default_factory=Settings)
    name: str = "interpreter"

    def opened(self, model: Model, *, keep_all: bool = False) -> Interpreter:
        kernels = OpResolverType.BUILTIN_REF if self.settings.kernels else OpResolverType.AUTO
        return Interpreter(
            model_content=write_model(replace(model, folder=None)),
            num_threads=self.settings.threads,
            experimental_op_resolver_type=kernels,
            experimental_preserve_all_tensors=keep_all,
            providers=None if self.settings.kernels else self.settings.providers,
            resolver=self.settings.resolver,
            hybrid=self.settings.hybrid,
            budgets=model.budgets,
        )

    def outputs(self, sample: Sample) -> Iterator[Tensors]:
        with closing(self.opened(self.model)) as interpreter:
            wanted = [*self.model.subgraphs[0].outputs, *variables(self.model)]
            for inputs in sample:
                invoke(interpreter, inputs)
                yield read(interpreter, wanted)

    def tensors(self, sample: Sample, reference: Tensors | None = None) -> Tensors:
        with closing(self.opened(self.model, keep_all=True)) as interpreter:
            invoke(interpreter, sample[0])
            return read(interpreter, results(self.model))

    def isolated(self, operator: int, given: Sequence[Tensors]) -> Isolated:
        alone, outputs, samples = fed(self.model, operator, given)
        found: list[Tensors] = []
        with closing(self.opened(alone)) as interpreter:
            for arrays in samples:
                if found:
                    interpreter.reset_all_variables()
                invoke(interpreter, dict(zip(alone.subgraphs[0].inputs, arrays, strict=True)))
                made = read(interpreter, alone.subgraphs[0].outputs)
                pairs = zip(outputs, alone.subgraphs[0].outputs, strict=True)
                found.append({old: made[new] for old, new in pairs if new in made})
        return Isolated(found, (operator,))

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

    outputs_only = ""

    def unreadable(self, tensor: int) -> str:
        return "the interpreter does not keep it"

    def close(self) -> None:
        pass


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
    """Those of the tensors that it keeps."""
    found = {}
    for index in wanted:
        try:
            found[index] = np.asarray(interpreter.get_tensor(index))
        except (BridgeError, ValueError):
            continue
    return found


# LiteRT ------------------------------------------------------------------------------------------


@dataclass
class Litert:
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
            outputs, state = self.process.run(arrays, kept)
            yield {**state, **dict(zip(graph.outputs, outputs, strict=True))}

    def tensors(self, sample: Sample, reference: Tensors | None = None) -> Tensors:
        """Made outputs, since what the delegate makes inside it leaves nowhere to read."""
        graph = self.model.subgraphs[0]
        exposed = replace(graph, outputs=tuple(results(self.model)))
        whole = replace(
            self.model,
            subgraphs=(exposed, *self.model.subgraphs[1:]),
            signature_defs=(),
        )
        self.process.load(whole, self.kernels)
        arrays = [sample[0][index] for index in graph.inputs]
        return dict(zip(exposed.outputs, self.process.run(arrays)[0], strict=True))

    def isolated(self, operator: int, given: Sequence[Tensors]) -> Isolated:
        alone, outputs, samples = fed(self.model, operator, given)
        found = []
        for arrays in samples:
            self.process.load(alone, self.kernels)
            found.append(dict(zip(outputs, self.process.run(arrays)[0], strict=True)))
        return Isolated(found, (operator,))

    outputs_only = ""

    def unreadable(self, tensor: int) -> str:
        return "LiteRT does not keep it"

    def close(self) -> None:
        pass
