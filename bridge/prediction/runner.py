"""Rows through one interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from tflite_ort.batching.sample_loop import STREAMS
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.prediction.array_files import Array, Details
from tflite_ort.prediction.tensors import InputColumn, OutputColumn
from tflite_ort.schema import Model, Op
from tflite_ort.versioning.resolver import OpResolver, operator_key

# Resetting variables does not touch what these, and `STREAMS`, keep, as in TFLite.
_RESOURCES = frozenset(
    {Op.VAR_HANDLE, Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL, Op.MULTINOMIAL}
)


class Memory(Enum):
    """What a model keeps from one invoke to the next."""

    NONE = 0
    VARIABLES = 1
    RESOURCES = 2


class Runner:
    """An interpreter that takes rows, for one thread at a time.

    Args:
        interpreter: of the model with a batch dimension of `size`, or of the model as it is, with
            a `size` of 1.
        memory: what the model keeps, which no row may see of another.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        size: int,
        inputs: Sequence[InputColumn],
        outputs: Sequence[OutputColumn],
        *,
        memory: Memory,
    ) -> None:
        self.size = size
        self._inputs, self._outputs = inputs, outputs
        self._memory, self._used = memory, False
        self._open(interpreter)
        self._given = [each["index"] for each in interpreter.get_input_details()]
        details = interpreter.get_output_details()
        self._made = [each["index"] for each in details]
        self._padded = _padded(details, len(outputs))

    def __call__(self, rows: Sequence[Array]) -> list[Array]:
        """The outputs [n, ...] for rows [n, ...] of the inputs.

        Raises:
            BridgeError: as `Interpreter.allocate_tensors` and `Interpreter.invoke`.
        """
        count = len(rows[0])
        if self.size == 1:
            singles = [self._single([column[i] for column in rows]) for i in range(count)]
            columns = zip(*singles, strict=True)
            return [out.joined(each) for out, each in zip(self._outputs, columns, strict=True)]
        parts = [
            self._batch([column[first : first + self.size] for column in rows])
            for first in range(0, count, self.size)
        ]
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _single(self, row: Sequence[Array]) -> list[Array]:
        given = zip(self._inputs, row, strict=True)
        return self._run([each[np.newaxis] if column.leads else each for column, each in given])

    def _batch(self, rows: Sequence[Array]) -> list[Array]:
        """At most `size` rows; the last one is repeated where there are fewer."""
        count = len(rows[0])
        missing = self.size - count
        if missing:
            rows = [np.concatenate([each, np.repeat(each[-1:], missing, axis=0)]) for each in rows]
        made = self._run(rows)
        results = [each[:count] for each in made[: len(self._outputs)]]
        for place, (sizes, axes) in self._padded.items():
            counts = made[sizes][:count].reshape(count, len(axes))
            results[place] = self._outputs[place].unpadded(results[place], counts, axes)
        return results

    def _run(self, inputs: Sequence[Array]) -> list[Array]:
        self._forget()
        interpreter = self._interpreter
        for index, array in zip(self._given, inputs, strict=True):
            if self._shapes[index] != array.shape:
                interpreter.resize_tensor_input(index, array.shape)
                self._shapes[index] = array.shape
        interpreter.allocate_tensors()
        for index, array in zip(self._given, inputs, strict=True):
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return [np.asarray(interpreter.get_tensor(index)) for index in self._made]

    def _forget(self) -> None:
        """Start from the first values of all variables."""
        if self._memory is Memory.NONE or not self._used:
            self._used = True
        elif self._memory is Memory.VARIABLES:
            self._interpreter.reset_all_variables()
        else:
            self._open(self._interpreter.copy())

    def _open(self, interpreter: Interpreter) -> None:
        interpreter.allocate_tensors()
        self._interpreter = interpreter
        self._shapes = {
            each["index"]: tuple(each["shape"].tolist()) for each in interpreter.get_input_details()
        }


def _padded(details: Sequence[Details], outputs: int) -> dict[int, tuple[int, list[int]]]:
    """The output with the sizes of each padded output, and the axes that they measure."""
    axes = [np.flatnonzero(each["shape_signature"][1:] < 0).tolist() for each in details[:outputs]]
    padded = [place for place, found in enumerate(axes) if found]
    counts = range(outputs, len(details))
    return {place: (sizes, axes[place]) for place, sizes in zip(padded, counts, strict=False)}


def memory_of(model: Model, resolver: OpResolver | None = None) -> Memory:
    """What a model keeps from one invoke to the next."""
    if resolver is not None and any(
        resolver.keeps_state(operator_key(code), code.version) for code in model.operator_codes
    ):
        return Memory.RESOURCES
    used = {code.builtin_code for code in model.operator_codes}
    if used & _RESOURCES or any(code.custom_code in STREAMS for code in model.operator_codes):
        return Memory.RESOURCES
    if Op.HASHTABLE_IMPORT in used and _imports_values(model):
        return Memory.RESOURCES
    tensors = (tensor for graph in model.subgraphs for tensor in graph.tensors)
    return Memory.VARIABLES if any(each.is_variable for each in tensors) else Memory.NONE


def _imports_values(model: Model) -> bool:
    """Whether a table is filled with what is no constant: it keeps that of the first invoke."""
    return any(
        model.buffers[graph.tensors[index].buffer].data is None
        for graph in model.subgraphs
        for operator in graph.operators
        if model.operator_codes[operator.opcode_index].builtin_code is Op.HASHTABLE_IMPORT
        for index in operator.inputs[1:]
        if index is not None
    )
