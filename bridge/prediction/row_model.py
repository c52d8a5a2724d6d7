"""A model that takes any number of rows."""

from __future__ import annotations

import math
import os
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.base.warned import warn_caller
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.metadata import Metadata, TensorDescription
from tflite_ort.model.opening import opened_model
from tflite_ort.prediction.array_files import Array, Details
from tflite_ort.prediction.pictures import pictures_of
from tflite_ort.prediction.pool import cores, spread
from tflite_ort.prediction.runner import Runner, memory_of
from tflite_ort.prediction.tensors import (
    InputColumn,
    OutputColumn,
    described_inputs,
    output_column,
    ragged,
    unique_names,
)
from tflite_ort.providers.delegates import AUTO, OpResolverType, ProviderChoices, chosen_delegates
from tflite_ort.providers.traits import traits_of
from tflite_ort.schema import BatchWarning, Model, TensorError, Unbatchable
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

with late:
    from tflite_ort.interpreter import device_choice

ModelSource = str | os.PathLike[str] | bytes | memoryview

LARGEST_BATCH = 32
# What the largest result of an operator may have at a batch that is chosen here: with more, rows
# leave the caches between two operators.
_CACHED_BYTES = 1 << 20
# Parts for each thread, so that none waits long for the others at the end.
_PARTS = 4


class RowModel:
    """Runs rows in batches and on several threads; the order of the rows is kept.

    Args:
        model: a ``.tflite`` file or the bytes of one.
        batch_size: the most rows that the model takes at once; None chooses.
        threads: the most parts in work at a time; None: as many as there are cores on the CPU,
            and one on other providers.
        arguments: of each `Interpreter`.

    Raises:
        ModelError, VersionError, DelegateError: as of `Interpreter`.
        ValueError: `batch_size` or `threads` is below 1.
    """

    def __init__(
        self,
        model: ModelSource,
        batch_size: int | None = None,
        threads: int | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("threads", threads)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be 1 or more, got {value}")
        self._source = (None, model) if isinstance(model, bytes | memoryview) else (model, None)
        self._arguments: dict[str, Any] = dict(arguments or {})
        if self._arguments.get("providers") == AUTO:
            of = dict(zip(("model_path", "model_content"), self._source, strict=True))
            self._arguments["providers"] = device_choice.resolved(AUTO, self._arguments | of)
            self._arguments.pop("precision", None)
        self.on_cpu = _on_cpu(self._arguments.get("providers"))
        self.threads = threads or (cores() if self.on_cpu else 1)
        read = self._read()
        self._memory = memory_of(read, self._arguments.get("resolver"))
        single = self._interpreter(1)
        single.allocate_tensors()
        self.inputs = input_columns(single)
        self.outputs = _output_columns(single, self.inputs)
        self.output_details = single.get_output_details()
        self.placements = single.delegation
        self._metadata = single.metadata
        self._idle: dict[int, deque[Runner]] = defaultdict(deque)
        self._idle[1].append(self._runner(single, 1))
        wanted = batch_size or (_cached_rows(read) if self.on_cpu else LARGEST_BATCH)
        self.batch_size = self._provable(wanted)

    @property
    def described(self) -> tuple[Model, Metadata]:
        """The model as its file has it, which is read anew, and what it says of itself."""
        return self._read(), self._metadata

    def run(self, columns: Sequence[Array | list[Array]]) -> list[Array]:
        """The outputs for rows [n, ...] of the inputs.

        Args:
            columns: arrays, or lists of arrays where rows have different shapes.

        Raises:
            BridgeError: as `Interpreter.invoke`.
            ValueError: the inputs have not the same number of rows.
        """
        count = len(columns[0]) if columns else 0
        if any(len(each) != count for each in columns):
            raise ValueError(f"inputs have {[len(each) for each in columns]} rows")
        if not count:
            return [_no_rows(each) for each in self.outputs]
        size = self.batch_size if all(isinstance(each, np.ndarray) for each in columns) else 1
        share = math.ceil(count / (self.threads * _PARTS) / size) * size
        parts = (
            [each[first : first + share] for each in columns] for first in range(0, count, share)
        )
        made = spread(lambda part: self._part(part, size), parts, self.threads)
        return [np.concatenate(each) for each in zip(*made, strict=True)]

    def _part(self, columns: Sequence[Any], size: int) -> list[Array]:
        """As `run`, on this thread."""
        count = len(columns[0])
        whole = count // size * size
        made = []
        if whole:
            with self._borrowed(size) as runner:
                made.append(runner([each[:whole] for each in columns]))
        if whole < count:  # the fewer rows at the end are padded to a power of two
            with self._borrowed(min(size, 1 << (count - whole - 1).bit_length())) as runner:
                made.append(runner([each[whole:] for each in columns]))
        return [np.concatenate(each) for each in zip(*made, strict=True)]

    @contextmanager
    def _borrowed(self, size: int) -> Iterator[Runner]:
        """A runner that no other thread has; made where there is none."""
        try:
            runner = self._idle[size].pop()
        except IndexError:
            runner = self._runner(self._interpreter(size), size)
        yield runner
        self._idle[size].append(runner)  # one that has failed is not used again

    def _runner(self, interpreter: Interpreter, size: int) -> Runner:
        return Runner(interpreter, size, self.inputs, self.outputs, memory=self._memory)

    def _interpreter(self, size: int) -> Interpreter:
        path, content = self._source
        batch = None if size == 1 else size
        return Interpreter(path, content, num_threads=1, batch=batch, **self._arguments)

    def _provable(self, size: int) -> int:
        """`size`, or 1 with a warning where a batch is refused."""
        if size == 1:
            return 1
        if any(-1 in each.row for each in self.inputs):
            refused = "an input takes any size"
        else:
            try:
                interpreter = self._interpreter(size)
            except Unbatchable as error:
                refused = str(error)
            else:
                self._idle[size].append(self._runner(interpreter, size))
                return size
        warn_caller(f"rows run one at a time: {refused}", BatchWarning)
        return 1

    def _read(self) -> Model:
        path, content = self._source
        roots, budgets = self._arguments.get("external_roots"), self._arguments.get("budgets")
        return opened_model(path, content, budgets, roots or ())


def input_columns(interpreter: Interpreter) -> list[InputColumn]:
    """The inputs of a model, with what its metadata say of them."""
    metadata = interpreter.metadata
    pictures = pictures_of(lambda: interpreter._model, metadata)
    return described_inputs(interpreter.get_input_details(), metadata.inputs, pictures)


def _output_columns(interpreter: Interpreter, inputs: Sequence[InputColumn]) -> list[OutputColumn]:
    details = interpreter.get_output_details()
    described = _descriptions(interpreter.metadata.outputs, len(details))
    fixed = all(min(each.row, default=1) >= 0 for each in inputs)
    return [
        output_column(name, each, description, fixed=fixed and _is_kept(interpreter, each))
        for name, each, description in zip(unique_names(details), details, described, strict=True)
    ]


def _descriptions(
    described: Sequence[TensorDescription], count: int
) -> Sequence[TensorDescription | None]:
    return described if len(described) == count else [None] * count


def _is_kept(interpreter: Interpreter, details: Details) -> bool:
    """Whether an output has its memory before the model runs: its shape depends on no data. Of one
    that is declared without elements nothing tells."""
    try:
        return bool(interpreter.get_tensor(details["index"]).size)
    except TensorError:
        return False


def _on_cpu(providers: ProviderChoices | None) -> bool:
    """Whether all providers, if any are named, work on the cores and in the memory of the host."""
    delegates = chosen_delegates(OpResolverType.AUTO, (), providers)
    return all(traits_of(each.name).host_memory for each in delegates)


def _cached_rows(model: Model) -> int:
    """How many rows stay in the caches, as a power of two: by the largest result of an operator."""
    graph = model.subgraphs[0]
    sizes = (
        math.prod(max(size, 1) for size in graph.tensors[index].shape)
        * np.dtype(NUMPY_DTYPE[graph.tensors[index].type]).itemsize
        for operator in graph.operators
        for index in operator.outputs
    )
    rows = _CACHED_BYTES // max(sizes, default=1) or 1
    return min(LARGEST_BATCH, 1 << rows.bit_length() - 1)


def _no_rows(column: OutputColumn) -> Array:
    return ragged([]) if column.row is None else np.zeros((0, *column.row), column.dtype)
