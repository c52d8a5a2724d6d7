"""Plain functions that a user registered: those that compute, and those that say shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from inspect import Parameter, signature
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import KernelError, OperatorView, TensorView, Untranslatable
from tflite_ort.versioning.registration import Function, ShapeFunction, reported

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Outputs = Sequence[TensorView]


class PlainFunction:
    """``function(*arrays, **options)`` as a kernel.

    It gets the options that it names; all of them where it takes any keyword.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._named, self._takes_any = _keywords_of(function)

    def kernel(
        self, op: OperatorView[Any], inputs: Sequence[Array | None], state: None
    ) -> tuple[Array, ...]:
        """Its results, which are the outputs, then the new values of variables.

        Raises:
            KernelError: it raised, or they are not as many, or of another dtype or shape.
        """
        results = self._results(op, inputs)
        expected = (*op.outputs, *op.variables())
        if len(results) != len(expected):
            raise KernelError(f"it returned {len(results)} results, expected {len(expected)}")
        return tuple(
            checked_result(i, result, tensor.dtype, None if tensor.dynamic else tensor.shape)
            for i, (result, tensor) in enumerate(zip(results, expected, strict=True))
        )

    def tried(self, op: OperatorView[Any]) -> Outputs | None:
        """The outputs as it makes them of zeros; None where their shapes depend on data."""
        if is_dynamic(op):
            return None
        try:
            with reported(KernelError):
                zeros = [None if view is None else _sample(view) for view in op.inputs]
            results = self._results(op, zeros)
        except KernelError:  # zeros are not what it is for
            return None
        if len(results) < len(op.outputs):
            return None  # the invoke reports it
        return with_shapes(op, [np.shape(result) for result in results[: len(op.outputs)]])

    def _results(self, op: OperatorView[Any], inputs: Sequence[Array | None]) -> Sequence[Any]:
        arrays = [None if array is None else read_only(array) for array in inputs]
        options = _options(op.options)
        given = {k: v for k, v in options.items() if self._takes_any or k in self._named}
        with reported(KernelError):
            made = self._function(*arrays, **given)
        return made if isinstance(made, tuple | list) else (made,)


def shaped(op: OperatorView[Any], function: ShapeFunction) -> Outputs | None:
    """The outputs of `op` with the shapes that `function` says; None where they depend on data.

    Raises:
        KernelError: it raised, or the shapes are not as many.
    """
    try:
        with reported(KernelError, f"{op.label}: its shapes failed", Untranslatable):
            return with_shapes(op, function(op))
    except Untranslatable:  # it asked for a size that is not known
        return None


def with_shapes(op: OperatorView[Any], shapes: Sequence[Sequence[int]]) -> Outputs:
    """The outputs of `op` with these shapes, one for each.

    Raises:
        KernelError: there are more shapes than outputs, or fewer.
    """
    if len(shapes) != len(op.outputs):
        raise KernelError(f"{len(shapes)} shapes for {len(op.outputs)} outputs")
    pairs = zip(op.outputs, shapes, strict=True)
    return [replace(output, shape=tuple(shape), ranked=True) for output, shape in pairs]


def is_dynamic(op: OperatorView[Any]) -> bool:
    """Whether the shape of an input depends on data."""
    return any(tensor.dynamic for tensor in op.present_inputs())


def read_only(array: Array) -> Array:
    """A view of `array` that cannot be written to; the array itself still can."""
    view = array.view()
    view.flags.writeable = False
    return view


def checked_result(position: int, result: Any, dtype: np.dtype[Any], shape: Shape | None) -> Array:
    """`result` as an array of its own; of any shape where None is expected.

    Raises:
        KernelError: it is no array of `dtype` and `shape`.
    """
    if not isinstance(result, np.ndarray | np.generic):
        raise KernelError(f"result {position} is {type(result).__name__}, expected an array")
    array = np.asarray(result)
    if array.dtype != dtype:
        raise KernelError(f"result {position} is {array.dtype}, expected {dtype}")
    if shape is not None and array.shape != shape:
        raise KernelError(f"result {position} has shape {array.shape}, expected {shape}")
    # An input handed on would change with it.
    return array if array.flags.writeable else array.copy()


def _keywords_of(function: Function) -> tuple[frozenset[str], bool]:
    """The keywords that `function` names, and whether it takes any other."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # built in
        return frozenset(), False
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return (
        frozenset(parameter.name for parameter in parameters if parameter.kind in named),
        any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters),
    )


def _options(options: Any) -> Mapping[str, Any]:
    """The options of an operator by name; bytes as `custom_options`."""
    if isinstance(options, Mapping):
        return options
    if is_dataclass(options):
        return {field.name: getattr(options, field.name) for field in fields(options)}
    return {} if options is None else {"custom_options": options}


def _sample(view: TensorView) -> Array:
    if view.data is not None:
        return view.data
    return np.full(view.shape, b"" if view.dtype == np.object_ else 0, view.dtype)
