"""What lasts from one invoke to the next: variables, and which initialisers have run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.overlaps import Calls
from tflite_ort.base.records import record
from tflite_ort.schema import StateError, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import VariableKey

Array = npt.NDArray[Any]
_INT8, _UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
_TOP_BIT = np.array(128, np.uint8)


class KeptTensors:
    """What is kept of one interpreter, which its signatures share by name.

    Attributes:
        arrays: by name, the present values.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._inputs: dict[int, dict[int, str]] = {}
        self._outputs: dict[int, dict[int, int]] = {}

    def add(self, subgraph: int, names: Mapping[str, tuple[int, int]]) -> bool:
        """Keep tensors of a subgraph from now on.

        Args:
            names: by name, the input and the output that is its next value.

        Returns:
            Whether any of them was not kept before.

        Raises:
            StateError: one of the inputs is kept as another output already.
        """
        inputs = self._inputs.setdefault(subgraph, {})
        outputs = self._outputs.setdefault(subgraph, {})
        new = {
            name: (source, target)
            for name, (source, target) in names.items()
            if inputs.get(source) != name or outputs.get(target) != source
        }
        for name, (source, target) in new.items():
            if source in inputs and outputs.get(target) != source:
                raise StateError(f"{name!r} is kept as another output by another runner")
        inputs.update({source: name for name, (source, _) in new.items()})
        outputs.update({target: source for source, target in new.values()})
        return bool(new)

    def place(self, subgraph: int, arrays: dict[int, Array]) -> Mapping[int, int]:
        """Put the kept arrays in place of those that were made for a subgraph's inputs.

        Returns:
            By output, the input that it is the next value of.

        Raises:
            StateError: another signature keeps one of another shape or type.
        """
        for index, name in self._inputs.get(subgraph, {}).items():
            own = arrays.get(index)
            if own is None:
                continue
            kept = self.arrays.setdefault(name, own)
            if (kept.shape, kept.dtype) != (own.shape, own.dtype):
                raise StateError(
                    f"{name!r} is kept as {kept.dtype}{list(kept.shape)}, this signature has "
                    f"{own.dtype}{list(own.shape)}"
                )
            arrays[index] = kept
        return self._outputs.get(subgraph, {})

    def carry(self, subgraph: int, arrays: Mapping[int, Array]) -> None:
        """Copy the next values that did not come into being in place.

        Raises:
            StateError: one has another shape than the input.
        """
        for target, source in self._outputs.get(subgraph, {}).items():
            made, kept = arrays.get(target), arrays.get(source)
            if made is None or kept is None or made is kept:
                continue
            if made.shape != kept.shape:
                name = self._inputs[subgraph][source]
                raise StateError(
                    f"{name!r} has become {list(made.shape)}, it is kept as {list(kept.shape)}"
                )
            np.copyto(kept, made)

    def reset(self) -> None:
        """Make all of them zero again."""
        for array in self.arrays.values():
            array[...] = np.zeros((), array.dtype)


def moved(codes: Array, out: Array | None = None) -> Array:
    """int8 codes as uint8 moved by 128, and back: the top bit flipped."""
    target = _UINT8 if codes.dtype == _INT8 else _INT8
    view = None if out is None else out.view(np.uint8)
    made = np.bitwise_xor(codes.view(np.uint8), _TOP_BIT, out=view)
    return np.asarray(made).view(target)  # numpy makes scalars of single elements


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


@record
class Window:
    """How sessions keep a value [1, width * steps], the steps of a number side by side: as rows of
    `width` numbers, one a step, of the type `dtype`. They read all rows but the oldest."""

    width: int
    steps: int
    dtype: str

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the rows."""
        return self.steps, self.width

    def fits(self, value: Array) -> bool:
        """Whether `value` can be kept so."""
        return value.shape == (1, self.width * self.steps)

    def rows(self, value: Array) -> Array:
        """`value` as sessions keep it."""
        return np.ascontiguousarray(value.reshape(self.width, self.steps).T, self.dtype)

    def value(self, rows: Array, dtype: np.dtype[Any]) -> Array:
        """The value that is kept as `rows`."""
        return np.ascontiguousarray(rows.T, dtype).reshape(1, -1)


class Turns:
    """Whether the two arrays of some variables have changed places: all of them at once, at each
    run of the session that sets them.

    Attributes:
        odd: changes at each run.
        valid: no variable has got another array since this was set.
    """

    __slots__ = ("odd", "valid")

    def __init__(self) -> None:
        self.odd, self.valid = 0, False


class Variable:
    """A value that lasts from one invoke to the next.

    A session writes the new value to `spare`, which then changes places with `array`: nothing is
    copied, and no node reads what another has written already.

    Args:
        initial: what it is at first and after a reset; None for one that has to be assigned
            before it is read, and that no reset touches.
        journal: where it notes the value that it had when the present invoke began.

    `array` has int8 codes as uint8 moved by 128 once a session that carries them so has used them.
    `spare` is an array like it, or None.

    Attributes:
        kept: what `array` was when the present invoke began, once that has set the variable.
        window: how `array` and `spare` hold values, where a session keeps rows; None otherwise.
    """

    __slots__ = (
        *("_arrays", "_dtype", "_journal", "_odd", "_turns"),
        *("initial", "kept", "window"),
    )

    def __init__(self, initial: Array | None = None, journal: Journal | None = None) -> None:
        self.initial = initial
        self._arrays: tuple[Array | None, Array | None] = None, None
        self._turns, self._odd = Turns(), 0
        self.kept: Array | None = None
        self.window: Window | None = None
        self._journal: Journal = {} if journal is None else journal
        self._dtype: np.dtype[Any] | None = None
        self.reset()

    @property
    def array(self) -> Array | None:
        """Where the value stands."""
        return self._arrays[self._odd ^ self._turns.odd]

    @property
    def spare(self) -> Array | None:
        """Where the next value goes."""
        return self._arrays[self._odd ^ self._turns.odd ^ 1]

    def place(self, array: Array | None, spare: Array | None) -> None:
        """Give it other arrays."""
        self._turns.valid = False
        self._arrays, self._odd = (array, spare), self._turns.odd

    def take_turns(self, turns: Turns) -> None:
        """From now on its arrays change places with those of others."""
        self.place(self.array, self.spare)
        self._turns, self._odd = turns, turns.odd

    @property
    def value(self) -> Array | None:
        """The value in its own type: `array` itself, or a copy; None before the first one."""
        array = self.array
        if array is None or self._dtype is None:
            return array
        if self.window is not None:
            return self.window.value(array, self._dtype)
        return array if array.dtype == self._dtype else moved(array)

    def assign(self, value: Array) -> None:
        """Copy `value`; in place where the variable has its shape and type already."""
        array, window = self.array, self.window
        if array is None or not self._is_like(value):
            self.place(value.copy(), None)
            self._dtype, self.window = value.dtype, None
        elif window is not None:
            array[...] = window.rows(value)
        elif array.dtype == value.dtype:
            array[...] = value
        else:
            moved(value, out=array)

    def _is_like(self, value: Array) -> bool:
        """Whether a new value has the shape and type of the present one."""
        array, window = self.array, self.window
        if array is None or value.dtype != self._dtype:
            return False
        return value.shape == array.shape if window is None else window.fits(value)

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
        self.keep_as(None)
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
        self.place(spare, array)
        self._dtype = value.dtype

    def note(self) -> None:
        """Keep the value until the present invoke has ended, unless an earlier one is kept."""
        if self not in self._journal:
            self._journal[self] = self.array, self._dtype, self.window
            self.kept = self.array

    def settle(self, before: Before | None) -> None:
        """The invoke has ended; `before` is the value to go back to, None for none."""
        self.kept = None
        if before is not None and self.array is not before[0]:
            array, self._dtype, window = before
            self.place(array, self.array if self.window == window else None)
            self.window = window

    def keep_as(self, window: Window | None) -> Array | None:
        """`array`, from now on as rows of `window`; as it is where these do not fit it."""
        if self.array is not None and self.window != window:
            value = self.value
            assert value is not None
            if window is None or window.fits(value):
                self.place(value if window is None else window.rows(value), None)
                self.window = window
        return self.array

    def carried(self, dtype: np.dtype[Any]) -> Array | None:
        """`array`, from now on with this dtype if it holds 8-bit codes."""
        self.keep_as(None)
        if self.array is not None and {self.array.dtype, dtype} == {_INT8, _UINT8}:
            self.place(moved(self.array), None)
        return self.array

    def target(self, tensor: TensorView, dtype: np.dtype[Any], whole: Whole | None = None) -> Array:
        """The array for the next value, which is of the type of `tensor` and carried as `dtype`;
        the part of a larger one where there is a `whole`."""
        self._dtype = tensor.dtype
        shape = tensor.shape if self.window is None else self.window.shape
        spare = self.spare
        if spare is not None and spare is not self.kept:
            fits = (spare.shape, spare.dtype) == (shape, dtype)
            if fits and (whole is None or _is_part(spare, whole)):
                return spare
        made = np.zeros(shape, dtype) if whole is None else whole.part(shape, dtype)
        self.place(self.array, made)
        return made


def _is_part(array: Array, whole: Whole) -> bool:
    """Whether `array` is one that `whole` made."""
    base = array.base
    if base is None or base.size != math.prod(whole.shape):
        return False
    start: int = array.ctypes.data - base.ctypes.data
    return start == whole.start * array.itemsize


# What a variable was when the present invoke began: its array, type and window.
Before = tuple[Array | None, np.dtype[Any] | None, Window | None]
# Of those that it has set.
Journal = dict[Variable, Before]


class State:
    """The state of one interpreter, which its subgraphs share.

    Attributes:
        initialized: the subgraphs that run once and have run.
        journal: what the present invoke has changed so far.
        kept: what callers of signatures leave inside.
        begun: the subgraphs that run once and have run in the present invoke.
        last: the subgraph that has run last; None after a reset.
        calls: which calls of the interpreter have not ended.
    """

    def __init__(self) -> None:
        self.variables: dict[VariableKey, Variable] = {}
        self.initialized: set[int] = set()
        self.journal: Journal = {}
        self.kept = KeptTensors()
        self.begun: set[int] = set()
        self.last: int | None = None
        self.calls = Calls()

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
        self.last = None
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
