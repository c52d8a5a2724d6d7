"""What lasts from one invoke to the next: variables, and which initialisers have run."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.kept import KeptTensors
from tflite_ort.records import field, record
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import VariableKey

Array = npt.NDArray[Any]
_INT8, _UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
_TOP_BIT = np.array(128, np.uint8)


def moved(codes: Array, out: Array | None = None) -> Array:
    """int8 codes as uint8 moved by 128, and back: the top bit flipped."""
    target = _UINT8 if codes.dtype == _INT8 else _INT8
    view = None if out is None else out.view(np.uint8)
    return np.bitwise_xor(codes.view(np.uint8), _TOP_BIT, out=view).view(target)


def mover(codes: Array, out: Array) -> Callable[[], object]:
    """A function that moves `codes` by 128 into `out`; both are contiguous, of 8 bits."""
    source, target = (each.reshape(-1).view(np.uint8) for each in (codes, out))
    return partial(np.bitwise_xor, source, _TOP_BIT, target)


@record
class Whole:
    """A larger tensor of which a session makes a variable a part.

    Args:
        start: the number of elements before the value's, which follow each other.
    """

    shape: tuple[int, ...]
    start: int

    def part(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A view of `shape` of a new array, which is its `base`."""
        return self.part_of(np.zeros(math.prod(self.shape), dtype), shape)

    def part_of(self, whole: Array, shape: tuple[int, ...]) -> Array:
        """The part, a value of `shape`, as a view."""
        return whole.reshape(-1)[self.start : self.start + math.prod(shape)].reshape(shape)


class Variable:
    """A value that lasts from one invoke to the next.

    A session writes the new value to `spare`, which then changes places with `array`: nothing is
    copied, and no node reads what another has written already.

    Args:
        initial: what it is at first and after a reset; None for one that has to be assigned
            before it is read, and that no reset touches.
        journal: where it notes the value that it had when the present invoke began.

    Attributes:
        array: where the value stands; int8 codes as uint8 moved by 128 once a session that
            carries them so has used them.
        spare: an array like it, or None.
        kept: what `array` was when the present invoke began, once that has set the variable.
    """

    __slots__ = ("_dtype", "_journal", "array", "initial", "kept", "spare")

    def __init__(self, initial: Array | None = None, journal: Journal | None = None) -> None:
        self.initial = initial
        self.array: Array | None = None
        self.spare: Array | None = None
        self.kept: Array | None = None
        self._journal: Journal = {} if journal is None else journal
        self._dtype: np.dtype[Any] | None = None
        self.reset()

    @property
    def value(self) -> Array | None:
        """The value in its own type: `array` itself, or a copy; None before the first one."""
        array = self.array
        return array if array is None or array.dtype == self._dtype else moved(array)

    def assign(self, value: Array) -> None:
        """Copy `value`; in place where the variable has its shape and type already."""
        array = self.array
        if array is None or value.shape != array.shape or value.dtype != self._dtype:
            self.array, self.spare, self._dtype = value.copy(), None, value.dtype
        elif array.dtype == value.dtype:
            array[...] = value
        else:
            moved(value, out=array)

    def reset(self) -> None:
        """Give it its first value again, if it has one."""
        if self.initial is not None:
            self.assign(self.initial)

    def set(self, value: Array) -> None:
        """Copy `value` as an invoke does: the value that was there stays until it has ended."""
        if self in self._journal:
            self.assign(value)
            return
        self.note()
        array, spare, is_carried = self.array, self.spare, False
        if array is not None and value.dtype == self._dtype:
            is_carried = array.dtype != value.dtype
        dtype = array.dtype if array is not None and is_carried else value.dtype
        if spare is None or spare.shape != value.shape or spare.dtype != dtype:
            spare = np.empty(value.shape, dtype)
        if is_carried:
            moved(value, out=spare)
        else:
            spare[...] = value
        self.array, self.spare, self._dtype = spare, array, value.dtype

    def note(self) -> None:
        """Keep the value until the present invoke has ended, unless an earlier one is kept."""
        if self not in self._journal:
            self._journal[self] = self.array, self._dtype
            self.kept = self.array

    def settle(self, before: tuple[Array | None, np.dtype[Any] | None] | None) -> None:
        """The invoke has ended; `before` is the value to go back to, None for none."""
        self.kept = None
        if before is not None and self.array is not before[0]:
            self.spare, (self.array, self._dtype) = self.array, before

    def carried(self, dtype: np.dtype[Any]) -> Array | None:
        """`array`, from now on with this dtype if it holds 8-bit codes."""
        if self.array is not None and {self.array.dtype, dtype} == {_INT8, _UINT8}:
            self.array, self.spare = moved(self.array), None
        return self.array

    def target(self, tensor: TensorView, dtype: np.dtype[Any], whole: Whole | None = None) -> Array:
        """The array for the next value, which is of the type of `tensor` and carried as `dtype`;
        the part of a larger one where there is a `whole`."""
        self._dtype = tensor.dtype
        shape, spare = tensor.shape, self.spare
        if spare is not None and spare is not self.kept:
            fits = (spare.shape, spare.dtype) == (shape, dtype)
            if fits and (whole is None or _is_part(spare, whole)):
                return spare
        self.spare = np.zeros(shape, dtype) if whole is None else whole.part(shape, dtype)
        return self.spare


def _is_part(array: Array, whole: Whole) -> bool:
    """Whether `array` is one that `whole` made."""
    base = array.base
    if base is None or base.size != math.prod(whole.shape):
        return False
    start: int = array.ctypes.data - base.ctypes.data
    return start == whole.start * array.itemsize


# What variables were when the present invoke began, of those that it has set.
Journal = dict[Variable, tuple[Array | None, np.dtype[Any] | None]]


@record
class State:
    """The state of one interpreter, which its subgraphs share.

    Args:
        initialized: the subgraphs that run once and have run.
        journal: what the present invoke has changed so far.
        kept: what callers of signatures leave inside.
        begun: the subgraphs that run once and have run in the present invoke.
    """

    variables: dict[VariableKey, Variable] = field(default_factory=dict)
    initialized: set[int] = field(default_factory=set)
    journal: Journal = field(default_factory=dict)
    kept: KeptTensors = field(default_factory=KeptTensors)
    begun: set[int] = field(default_factory=set)

    def initialize(self, subgraph: int) -> None:
        """Note that `subgraph` has run."""
        self.initialized.add(subgraph)
        self.begun.add(subgraph)

    def settle(self, *, failed: bool) -> None:
        """An invoke has ended; what it changed is taken back if it has failed."""
        if self.journal:
            for variable, before in self.journal.items():
                variable.settle(before if failed else None)
            self.journal.clear()
        if self.begun:
            self.initialized.difference_update(self.begun if failed else ())
            self.begun.clear()

    def variable(self, key: VariableKey, tensor: TensorView) -> Variable:
        """The variable of this key; a resource has no value at first, anything else starts as
        `tensor` says."""
        if key not in self.variables:
            of_subgraph = isinstance(key[0], int)
            variable = Variable(initial_value(tensor) if of_subgraph else None, self.journal)
            if tensor.type is TensorType.VARIANT:
                variable.assign(np.array(None, np.object_))
            self.variables[key] = variable
        return self.variables[key]

    def reset(self, subgraph: int | None = None) -> None:
        """Give variable tensors their first value again: of one subgraph, whose random numbers
        start anew too, or of all. Resources keep theirs, as in TFLite."""
        for key, variable in self.variables.items():
            if subgraph == key[0] or (subgraph is None and isinstance(key[1], int)):
                variable.reset()


def initial_value(tensor: TensorView) -> Array:
    """Of a variable tensor: zeros; of int8 the code that stands for zero. A size that is unknown
    is 1."""
    shape = tuple(size if is_known(size) else 1 for size in tensor.shape)
    quantization = tensor.quantization
    if tensor.dtype.hasobject:
        return np.full(shape, b"", tensor.dtype)
    if tensor.type is not TensorType.INT8 or quantization is None:
        return np.zeros(shape, tensor.dtype)
    zero = np.asarray(quantization.scalar_zero_point).astype(tensor.dtype)  # wraps, as in TFLite
    return np.full(shape, zero)
