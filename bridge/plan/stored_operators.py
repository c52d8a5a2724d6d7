"""Steps of numpy kernels, made of what `operator_rows` wrote when they first run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.plan.calls import called, once
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.runs import Run
from tflite_ort.plan.steps import Kernels, kernel_step
from tflite_ort.plan.stored_rows import (
    RESULTS,
    Row,
    StaleEntry,
    StoredArrays,
    Surroundings,
    tensor_of,
)
from tflite_ort.schema import KernelError, Op, OperatorView, Specialized, TensorType, TensorView
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR
from tflite_ort.schema.file.fields import Scalar, Vector, View
from tflite_ort.schema.file.operators import options_table
from tflite_ort.schema.file.strings import decoded
from tflite_ort.schema.file.tables import Table, fields_of
from tflite_ort.schema.values.operators import INPUTS, key_of
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import Blocks, Packed
from tflite_ort.specialize.called_subgraphs import CALLERS

with late:
    from tflite_ort.fallback_kernels import state
    from tflite_ort.schema.file import custom_options

if TYPE_CHECKING:
    from tflite_ort.fallback_kernels.control_flow import Call

Array = npt.NDArray[Any]


class StoredOperators:
    """The operators of one subgraph that numpy runs.

    Args:
        row: what was stored of them.
        arrays: where constants are.
        meter: counts what is decoded of custom options.
    """

    def __init__(self, row: Mapping[str, Any], arrays: StoredArrays, meter: Meter) -> None:
        self._arrays, self._meter = arrays, meter
        self._unknown: dict[int, int] = {}
        self.tensors = [self._tensor(each) for each in row["views"]]

    def operator(self, row: Row) -> OperatorView[Any]:
        """The operator that a row describes."""
        number, code, version, index, subgraph, *views, options, custom, bodies, origin = row
        inputs, outputs, inner = views
        _check(int, version, index, subgraph)
        given = None if custom is None else self._arrays.octets(custom)
        op = OperatorView[Any](
            op=Op(number),
            version=version,
            index=index,
            inputs=tuple(None if each is None else self.tensors[each] for each in inputs),
            outputs=tuple(self.tensors[each] for each in outputs),
            options=None,
            custom_code=code,
            custom_options=given,
            subgraph=subgraph,
            intermediates=tuple(self.tensors[each] for each in inner),
            bodies=tuple(_body(*each) for each in bodies),
            origin=str(origin),
        )
        if code is None:
            made: Any = self._options(options_table(op.op), options)
        else:
            octets = b"" if given is None else given.tobytes()
            made = custom_options.custom_options(octets, self._meter)
        declared = INPUTS.get(key_of(op))
        return replace(op, options=made, names=() if declared is None else declared.names)

    def _tensor(self, row: Row) -> TensorView:
        *plain, constant, blocks = row
        tensor = tensor_of(plain)
        _check(int, tensor.index, *tensor.shape)
        _check(bool, tensor.is_variable, tensor.ranked)
        tensor = replace(tensor, shape=tuple(map(self._size, tensor.shape)))
        if constant is not None:
            tensor = replace(tensor, constant=self._constant(tensor, constant))
        if blocks is not None:
            *place, shape, size = blocks
            scale = self._arrays.octets(place).view(np.float16).reshape(shape)
            tensor = replace(tensor, blocks=Blocks(scale, size))
        return tensor

    def _size(self, size: int) -> int:
        return size if size >= 0 else self._unknown.setdefault(size, unknown_size())

    def _constant(self, tensor: TensorView, row: Row) -> Array | Packed:
        if tensor.type is TensorType.VARIANT:
            return self._table(*row)
        place, how = row[:3], row[3:]
        octets = self._arrays.octets(place)
        if how:
            bits, signed = how
            return Packed(octets, bits, tensor.shape, signed=signed)
        if not tensor.dtype.hasobject:
            return octets.view(tensor.dtype).reshape(tensor.shape)
        texts = decoded(octets, tensor.shape)
        texts.flags.writeable = False
        return texts

    def _table(self, texts: Row, numbers: Row, count: int, of_texts: bool) -> Array:
        sides = [decoded(self._arrays.octets(texts), (count,))]
        sides.append(self._arrays.octets(numbers).view(np.int64))
        keys, values = sides if of_texts else sides[::-1]
        return state.hash_table(keys, values)

    def _options(self, table: type[Table], row: Row) -> Table:
        values: list[Any] = []
        for field, value in zip(fields_of(table).values(), row, strict=True):
            if value is None:
                values.append(None)
            elif isinstance(field, View):
                values.append(self._arrays.octets(value).view(field.number.dtype))
            elif isinstance(field, Scalar):
                values.append(value if field.enum is None else field.enum(value))
            elif isinstance(value, list):
                kind = field.enum if isinstance(field, Vector) else None
                values.append(tuple(value if kind is None else map(kind, value)))
            else:
                values.append(value)
        return table(*values)


class StoredKernels:
    """What an entry has of the operators that numpy runs; read once, when the first one runs.

    Args:
        read: gives what was stored, by place of a plan.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, Any]], arrays: StoredArrays, around: Surroundings
    ) -> None:
        self.around = around
        self._read, self._arrays = read, arrays
        self._scopes: Mapping[str, Any] | None = None
        self._made: dict[str, tuple[StoredOperators, Kernels]] = {}

    def row(self, place: str) -> Mapping[str, Any]:
        """What was stored of a plan."""
        if self._scopes is None:
            self._scopes = self._read()
        row: Mapping[str, Any] = self._scopes[place]
        return row

    def made(self, place: str) -> tuple[StoredOperators, Kernels]:
        """The operators of a plan, and what they need."""
        if place not in self._made:
            row, around = self.row(place), self.around
            free = {RESULTS: row["free"]}
            _check(int, *free.values())
            meter = Meter(around.budgets, lambda: free)
            kernels = Kernels(around.kernels(), around.state, meter)
            self._made[place] = StoredOperators(row, self._arrays, meter), kernels
        return self._made[place]


# Makes the plan of a called subgraph, of its place and row.
Inner = Callable[[str, Mapping[str, Any]], tuple[Run, Memory]]


def kernels_run(
    stored: StoredKernels, place: str, number: int, memory: Memory, inner: Inner
) -> Run:
    """A step of kernels.

    Args:
        place: of its plan.
        number: its own.

    Raises:
        KernelError: what was stored is no such step.
    """
    try:
        views, kernels = stored.made(place)
        operators = [views.operator(row) for row in stored.row(place)["kernels"][str(number)]]
        _check_tensors(operators, memory)
        calls = {op.index: _calls(op, place, stored, inner) for op in operators if op.op in CALLERS}
        return kernel_step(operators, memory, calls, kernels)
    except (StaleEntry, OSError, *MALFORMED_OPERATOR) as error:
        raise KernelError(f"the cache's plan cannot be used: {error}") from error


def _calls(op: OperatorView[Any], place: str, stored: StoredKernels, inner: Inner) -> list[Call]:
    """What the kernel of `op` is given to run each subgraph that it calls."""
    calls, state_of_all = [], stored.around.state
    for number, body in enumerate(op.bodies):
        within = f"{place}/{op.index}.{number}"
        row, views = stored.row(within), stored.made(within)[0].tensors
        inputs, outputs = ([views[each] for each in side] for side in row["passed"])
        run, memory = inner(within, row["plan"])
        call = called(run, memory, inputs, outputs)
        calls.append(once(call, body.subgraph, state_of_all) if op.op is Op.CALL_ONCE else call)
    return calls


def _check(kind: type, *values: object) -> None:
    """
    Raises:
        ValueError: one of the values is of another type.
    """
    if not all(type(value) is kind for value in values):
        raise ValueError(f"{kind.__name__} is expected")


def _check_tensors(operators: Sequence[OperatorView[Any]], memory: Memory) -> None:
    """See whether operators have what they read, and what they make fits.

    Args:
        memory: with what the steps before have made.

    Raises:
        LookupError: nothing makes a tensor; ValueError where it has another shape or type.
    """
    made = {*memory.arrays, *memory.variables}
    for op in operators:
        for tensor in op.present_inputs():
            if not tensor.is_constant and tensor.index not in made:
                raise LookupError(f"nothing makes tensor {tensor.index}")
        for tensor in op.outputs:
            kept = None if tensor.dynamic else memory.arrays.get(tensor.index)
            if kept is not None and (kept.shape, kept.dtype) != (tensor.shape, tensor.dtype):
                raise ValueError(f"tensor {tensor.index} has another shape or type")
            made.add(tensor.index)


def _body(subgraph: int, operators: Sequence[int]) -> Specialized:
    """A subgraph of which a kernel asks which it is and what its operators are called."""
    views = [OperatorView[Any](Op(op), 1, i, (), (), None) for i, op in enumerate(operators)]
    return Specialized(subgraph, (), views, (), (), ())
