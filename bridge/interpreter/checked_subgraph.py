"""One subgraph as ``tf.lite.Interpreter`` shows it: calls are checked and refused in its way."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.interpreter.details import copied_details, tensor_details
from tflite_ort.interpreter.executor import Shared, SubgraphExecutor
from tflite_ort.interpreter.tensor_values import given, is_plain, stored
from tflite_ort.model.opened_model import DeclaredSubgraph, OpenedModel
from tflite_ort.schema import (
    AllocationError,
    BridgeError,
    BudgetExceeded,
    InsufficientMemory,
    ModelError,
    ResizeError,
    StateError,
    TensorError,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.file.errors import AbsentSizeError, OversizedError
from tflite_ort.schema.values.sizes import LARGEST_SIZE

with late:
    from tflite_ort.interpreter import intermediate

if TYPE_CHECKING:
    from tflite_ort.plan.placements import Placement
    from tflite_ort.schema import Tensor, TensorType

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class CheckedSubgraph:
    """The tensors of a subgraph by index, and its executor.

    Args:
        compress_zero_points: see `tensor_details`.
        batch: of a model that was made for one, how large it is: other sizes were not looked at.

    Attributes:
        calls: those of the interpreter, which the calls of this class are parts of.
    """

    def __init__(
        self,
        opened: OpenedModel,
        index: int,
        shared: Shared,
        *,
        compress_zero_points: bool = False,
        batch: int | None = None,
    ) -> None:
        self.executor = SubgraphExecutor(index, opened, shared)
        self._opened, self._index, self._state = opened, index, shared.state
        self._choice, self.calls = shared.choice, shared.state.calls
        self._compress_zero_points, self._batch = compress_zero_points, batch
        self._plain: set[int] = set()
        self._constants: dict[int, Array] = {}  # plain ones of the file
        self._told: dict[int, tuple[Shape, TensorType, dict[str, Any]]] = {}
        self._computed = False  # since its inputs were set
        self._postponed = ""  # why it cannot run with the sizes of the file

    @property
    def declared(self) -> DeclaredSubgraph:
        """What the file says of the subgraph."""
        return self._opened.declared(self._index)

    def details(self, index: SupportsIndex) -> dict[str, Any]:
        """What `tensor_details` says of a tensor with the shape it has now."""
        checked, tensors = self._checked(index), self.declared.tensors
        shape, kind = self.executor.shape(checked), self.executor.element_type(checked)
        told = self._told.get(checked)
        if told is None or told[0] != shape or told[1] is not kind:
            details = tensor_details(
                tensors[checked],
                checked,
                shape,
                kind,
                lambda other: self._opened.constant(tensors[other]),
                compress_zero_points=self._compress_zero_points,
            )
            self._told[checked] = told = shape, kind, details
        return copied_details(told[2])

    def resize(self, index: SupportsIndex, shape: npt.ArrayLike, strict: bool = False) -> None:
        """Give a tensor another shape; `allocate` has to follow unless it has it already.

        Args:
            strict: only dimensions that are -1 in the tensor's shape signature may change.

        Raises:
            ResizeError: it is a constant or no tensor, a size is negative, beyond 32 bits or no
                whole number, or `strict` forbids it.
            TensorError: `shape` has not one dimension.
        """
        checked = _whole_index(index)
        if not strict and isinstance(shape, tuple) and self.executor.has_shape(checked, shape):
            return
        target = _sizes(shape)
        if not 0 <= checked < len(self.declared.tensors):
            raise ResizeError(
                f"Tensor {checked} cannot be resized: there are {len(self.declared.tensors)}"
            )
        if strict or self._batch is not None:
            self._check_unknown(checked, target)
        if min(target, default=0) < 0:
            raise ResizeError(f"Tensor {checked} cannot be resized to {target}: a negative size")
        if self._is_constant(checked):
            constant = self._constant_named(checked)
            raise ResizeError(f"Attempting to resize a fixed-size tensor: {constant}")
        self._postponed = ""
        self.executor.resize(checked, target)

    def keep(self, names: Mapping[str, tuple[int, int]]) -> None:
        """Let inputs have the values of outputs at the next invoke; `allocate` has to follow.

        Args:
            names: by name, the input and the output. A signature of another subgraph that keeps
                the same name shares its value.
        """
        self.executor.keep(names)

    @property
    def kept(self) -> Mapping[str, Array]:
        """The arrays of all kept inputs by name, of all subgraphs."""
        return self._state.kept.arrays

    def ready(self) -> Self:
        """Itself, allocated by a call of its own unless it is allocated."""
        if self.executor.plan is None:
            self.calls.alone(self.allocate)
        return self

    def allocate_or_wait(self) -> None:
        """As `ready`; but sizes that the file leaves open mean nothing before they are given: where
        an operator cannot take them, an invoke says so.

        Raises: see `allocate`.
        """
        try:
            self.ready()
        except AllocationError as error:
            tensors = [self.declared.tensors[index] for index in self.declared.inputs]
            if self.executor.resized or not any(-1 in (t.shape_signature or ()) for t in tensors):
                raise
            self._postponed = str(error)

    def allocate(self) -> None:
        """Make the subgraph ready for its present input shapes; does nothing when it is.

        Raises:
            UnresolvedOperator: operators that nothing here runs; the message lists all of them.
            AllocationError: an operator cannot take the shapes that reach it; names the operator.
            BudgetExceeded: the model asks for more than a limit of its `Budgets`.
            InsufficientMemory: there is not as much memory.
        """
        if self.executor.plan is not None:
            return
        self._plain.clear()
        self._computed = False
        try:
            self.executor.allocate()
        except (BudgetExceeded, InsufficientMemory):
            raise
        except ModelError as error:
            raise AllocationError(f"{error}{self._given()}") from error
        except MemoryError as error:
            raise InsufficientMemory(f"the model's tensors cannot be allocated: {error}") from error

    def _given(self) -> str:
        """The shapes of inputs that were resized, for an error that names an operator alone; and
        how a batch is run, if they were resized to one."""
        tensors = [(self.declared.tensors[index], index) for index in self.declared.inputs]
        resized = [
            (tensor, self.executor.resized[index])
            for tensor, index in tensors
            if index in self.executor.resized
            and self.executor.resized[index] != tuple(tensor.shape)
        ]
        if not resized:
            return ""
        sizes = ", ".join(f"{tensor.name!r} to {list(shape)}" for tensor, shape in resized)
        rows = {shape[0] for tensor, shape in resized if _is_batch(shape, tuple(tensor.shape))}
        batch = f"; Interpreter(..., batch={rows.pop()}) makes a batch" if len(rows) == 1 else ""
        return f" (inputs were resized: {sizes}{batch})"

    def _not_ready(self, error: BridgeError) -> BridgeError:
        """What is said where there is no plan: `error`, or why there is none."""
        return AllocationError(self._postponed) if self._postponed else error

    def invoke(self) -> None:
        """Run the subgraph once over its tensors; where that fails, its state is as before."""
        plan = self.executor.plan
        if plan is None:
            raise self._not_ready(StateError("Invoke called on model that is not ready."))
        state, failed = self._state, True
        try:
            plan.run()
            if self.executor.carries:
                state.kept.carry(self._index, (self.executor.plan or plan).arrays)
            failed = False
        except MemoryError as error:
            raise InsufficientMemory(f"the model cannot be run: {error}") from error
        finally:
            if state.journal or state.begun:
                state.settle(failed=failed)
        self._computed, state.last = True, self._index

    def placements(self) -> tuple[Placement, ...]:
        """Where each operator runs.

        Raises:
            StateError: the subgraph is not allocated.
        """
        if self.executor.plan is None:
            raise StateError("The model is not ready: call allocate_tensors() first.")
        rows, choice = self.executor.plan.placements, self._choice
        return tuple(replace(row, choice=choice) for row in rows) if choice else rows

    def set(self, index: SupportsIndex, value: npt.ArrayLike) -> None:
        """Copy `value` into an input, a variable, or another tensor that is kept."""
        self._computed = False
        kept = self.plain_array(index)
        if kept is not None and type(value) is np.ndarray and _is_like(value, kept):
            kept[...] = value
            return
        checked = self._checked(index)
        tensor = self._tensor(checked)
        self._note(checked, tensor)
        array = stored(value, tensor, checked, self.executor.shape(checked))
        if self.executor.array(checked) is not None:
            self.executor.assign(checked, array)
        elif self._is_constant(checked):
            raise TensorError(f"Cannot set tensor: {self._constant_named(checked)}")
        elif self.executor.plan is not None:
            name = self.declared.tensors[checked].name
            raise TensorError(f"Cannot set tensor: {name!r} ({checked}) is set by an invoke")
        elif array.size:
            said = "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
            raise self._not_ready(TensorError(said))

    def get(self, index: SupportsIndex) -> Any:
        """A copy of a tensor that is kept, or of a constant; of a sparse one what is stored."""
        kept = self.plain_array(index)
        try:
            if kept is None and type(index) is int:
                kept = self._constants.get(index)
            if kept is not None and kept.ndim:
                return kept.copy()
            checked = self._checked(index)
            tensor = self._tensor(checked)
            self._note(checked, tensor)
            data = None if tensor.sparsity is None else self._opened.constant(tensor)
            if data is not None:
                dtype = NUMPY_DTYPE[tensor.type]
                whole = data[: data.size // dtype.itemsize * dtype.itemsize]
                return given(whole.view(dtype), tensor)
            array = self.buffer(checked)
            if checked in self._plain and self._is_constant(checked):
                self._constants[checked] = array
            return given(array, tensor)
        except MemoryError as error:
            raise InsufficientMemory(f"tensor {index} cannot be copied: {error}") from error

    def buffer(self, index: SupportsIndex) -> Array:
        """The memory of a tensor that is kept, of a constant, or of an intermediate result.

        Raises:
            TensorError: it has none: nothing is allocated yet, no operator makes it, or what it
                was computed from is not there any more.
        """
        checked = self._checked(index)
        array = self.executor.array(checked)
        if array is None:
            array = self.executor.constant(checked)
        if array is None and 0 in self.executor.shape(checked):
            dtype = NUMPY_DTYPE[self.executor.element_type(checked)]
            array = np.zeros(self.executor.shape(checked), dtype)
        if array is None and self.executor.plan is None:
            raise self._not_ready(TensorError("Tensor data is null. Run allocate_tensors() first"))
        if array is None and checked not in self.declared.outputs:
            array = intermediate.intermediate(self.executor, checked, self._state, self._computed)
        if array is None:
            what = f"{self.declared.tensors[checked].name!r} ({checked})"
            why = "is made by no operator"
            if checked in self.declared.outputs:
                why = "is an output whose shape depends on data: it has no value before an invoke"
            raise TensorError(f"Tensor data is null: {what} {why}")
        return array

    def view(self, index: SupportsIndex) -> Array:
        """As `buffer`, for one who may write into an input."""
        array = self.buffer(index)
        if index in self.declared.inputs:
            self._computed = False
        return array

    def plain_array(self, index: SupportsIndex) -> Array | None:
        """The array of a tensor of which all is known that `set` and `get` ask; None of others."""
        if type(index) is not int or index not in self._plain:
            return None
        return self.executor.plain_array(index)

    def _note(self, index: int, tensor: Tensor) -> None:
        """Note that the dtype and the shape of a tensor's array say all of its values."""
        if is_plain(tensor.type) and tensor.sparsity is None:
            self._plain.add(index)

    def _tensor(self, index: int) -> Tensor:
        """A tensor with the element type it has now."""
        tensor, kind = self.declared.tensors[index], self.executor.element_type(index)
        return tensor if tensor.type is kind else replace(tensor, type=kind)

    def _checked(self, index: SupportsIndex) -> int:
        checked, count = _whole_index(index), len(self.declared.tensors)
        if not 0 <= checked < count:
            raise TensorError(f"Invalid tensor index {checked} exceeds max tensor index {count}")
        return checked

    def _check_unknown(self, index: int, target: Shape) -> None:
        shape = self.executor.shape(index)
        signature = self.declared.tensors[index].shape_signature or shape
        if len(shape) != len(target) or len(signature) < len(target):
            raise ResizeError(f"Tensor {index} has {len(shape)} dimensions, not {len(target)}")
        for axis, (declared, size) in enumerate(zip(signature, target, strict=False)):
            if declared not in (-1, size):
                mode = "in strict mode" if self._batch is None else f"with batch={self._batch}"
                raise ResizeError(
                    f"Attempting to resize dimension {axis} of tensor {index} with value "
                    f"{declared} to {size}: {mode} only unknown dimensions, -1 in the "
                    "shape signature, may change"
                )

    def _is_constant(self, index: int) -> bool:
        tensor = self.declared.tensors[index]
        return self._opened.constant(tensor) is not None or tensor.external_buffer > 0

    def _constant_named(self, index: int) -> str:
        return f"{self.declared.tensors[index].name!r} ({index}) is a constant"


def _is_batch(shape: Shape, declared: Shape) -> bool:
    """Whether `shape` has several samples in the place of one."""
    return declared[:1] == (1,) and shape[1:] == declared[1:] and shape[0] > 1


def _is_like(value: Array, kept: Array) -> bool:
    return value.dtype == kept.dtype and value.shape == kept.shape


def _whole_index(index: SupportsIndex) -> int:
    """The index of a tensor as a plain number."""
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(
            "a tensor is named by its index, such as get_input_details()[0]['index'], "
            f"got {type(index).__name__}"
        ) from None


def _as_integers(sizes: Array) -> Array:
    """Floats and truth values as integers, where they are whole numbers."""
    if sizes.dtype.kind not in "bf":
        return sizes
    numbers = sizes.astype(np.float64)
    whole = (np.abs(numbers) <= LARGEST_SIZE) & (numbers == np.rint(numbers))
    return numbers.astype(np.int64) if whole.all() else sizes


def _sizes(shape: npt.ArrayLike) -> Shape:
    """`shape` as whole numbers of 32 bits."""
    try:
        sizes = np.asarray(shape)
    except ValueError as error:
        raise TensorError(f"Shape should be 1D: {error}") from error
    if None in sizes.ravel().tolist():
        raise AbsentSizeError("Shape should be 1D, of whole numbers instead of None.")
    if sizes.ndim != 1:
        raise TensorError(f"Shape should be 1D instead of {sizes.ndim}.")
    sizes = _as_integers(sizes)
    if sizes.size and sizes.dtype.kind not in "iu":
        raise ResizeError(f"Tensor cannot be resized to {sizes.tolist()}: sizes are whole numbers")
    if sizes.size and sizes.max() > LARGEST_SIZE:
        raise OversizedError(
            f"Tensor cannot be resized to {sizes.tolist()}: sizes end at {LARGEST_SIZE}"
        )
    return tuple(sizes.tolist())
