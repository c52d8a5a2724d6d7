"""The tensors that enter and leave a session: which arrays it reads and writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.plan.memory import Memory, unassigned
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.schema import DelegateError, StateError, TensorView
from tflite_ort.schema.values.complex_pairs import is_complex
from tflite_ort.state import Variable, Whole, Window, moved

Array = npt.NDArray[Any]


@record
class BoundaryTensor:
    """A tensor where it enters or leaves a session, which carries int8 codes moved by 128.

    Args:
        dtype: its type in the session.
        variable: the variable that it is, if it is one.
        array: the array in which the interpreter keeps it; None for a variable, for a tensor of
            unknown shape, and for one that a kernel makes anew at each run.
        bound: the array that the session reads or writes; `array` itself where the types are the
            same.
        place: where a tensor is that stays on a device; it has no array.
        whole: what the session has in its place: the same elements in another shape, or what it
            makes where the variable's next value is a part of that.
        window: the rows that it has in place of a variable; `dtype` is theirs.
    """

    tensor: TensorView
    dtype: np.dtype[Any]
    variable: Variable | None
    array: Array | None = None
    bound: Array | None = None
    place: DeviceTensor | None = None
    whole: Whole | None = None
    window: Window | None = None

    @classmethod
    def of(
        cls,
        tensor: TensorView,
        dtype: np.dtype[Any],
        memory: Memory,
        place: DeviceTensor | None = None,
    ) -> BoundaryTensor:
        """`tensor` at the boundary of a session in which it has `dtype`."""
        if place is not None:
            return cls(tensor, dtype, None, place=place)
        variable = memory.variables.get(tensor.index)
        array = memory.arrays.get(tensor.index)
        if variable is not None or tensor.dynamic or array is None:
            return cls(tensor, dtype, variable)
        bound = array if array.dtype == dtype else np.zeros(array.shape, dtype)
        return cls(tensor, dtype, None, array, bound)

    def as_rows(self, window: Window) -> BoundaryTensor:
        """This variable where a session keeps rows of it."""
        return replace(self, dtype=np.dtype(window.dtype), window=window)

    @property
    def moved(self) -> tuple[Array, Array]:
        """The codes, and the same moved by 128 as the session carries them."""
        assert self.array is not None and self.bound is not None
        return self.array, self.bound

    @property
    def fixed(self) -> bool:
        """Whether a session can be bound to it once."""
        return self.bound is not None or self.place is not None

    def source(self, memory: Memory) -> Array:
        """The array that the session reads at its next run.

        Raises:
            StateError: a variable has no value yet, or one of another shape or type.
        """
        array = self._source(memory) if self.bound is None else self.bound
        if self.window is not None:
            return array[1:]
        return array if self.whole is None else array.reshape(self.whole.shape)

    def _source(self, memory: Memory) -> Array:
        if self.variable is None:
            array = np.asarray(memory.arrays[self.tensor.index], order="C")
            return array if array.dtype == self.dtype else moved(array)
        if self.window is None:
            value, shape = self.variable.carried(self.dtype), self.tensor.shape
        else:
            value, shape = self.variable.keep_as(self.window), self.window.shape
        if value is None:
            raise unassigned(self.tensor)
        unfit = not self.tensor.dynamic and value.shape != shape
        if unfit or value.dtype != self.dtype:
            raise StateError(
                f"variable {self.tensor.name!r} has {value.dtype}{list(value.shape)}, the model "
                f"was made ready for {self.dtype}{list(self.tensor.shape)}"
            )
        return value

    def target(self) -> Array:
        """The array that the session writes at its next run; its shape has to be known."""
        if self.variable is not None:
            return self.variable.target(self.tensor, self.dtype, self.whole)
        assert self.bound is not None
        return self.bound

    def written(self) -> Array:
        """`target`, or the whole array of which it is a part: as the session makes it."""
        target = self.target() if self.bound is None else self.bound
        if self.whole is None:
            return target
        if self.variable is None:
            return target.reshape(self.whole.shape)
        assert target.base is not None
        return target.base.reshape(self.whole.shape)

    def store(self, result: Array, memory: Memory) -> None:
        """Put down what the session made in an array of its own."""
        if self.bound is not None:
            fits = result.dtype == self.bound.dtype
            self.bound[...] = result if fits else _in_file_type(result, self.tensor)
            return
        own = result if result.dtype == self.tensor.dtype else _in_file_type(result, self.tensor)
        if self.variable is not None:
            self.variable.set(own)
        else:
            memory.hold(self.tensor, own)


def _in_file_type(result: Array, tensor: TensorView) -> Array:
    """What a session made with the element type that `tensor` has in the file."""
    if is_complex(tensor):
        if result.shape[-1:] != (2,):
            raise DelegateError(f"{tensor.name!r} is {tensor.type.name}: {result.shape} of reals")
        return np.ascontiguousarray(result).view(tensor.dtype).reshape(result.shape[:-1])
    return moved(result)
