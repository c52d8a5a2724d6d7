"""Operators whose kernel has TFLite's life cycle: each from `init` to `free`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.custom.functions import checked_result, read_only, shaped
from tflite_ort.custom.nodes import Context, KernelTensor, Node, zeros
from tflite_ort.schema import KernelError, OperatorView, TensorType, TensorView
from tflite_ort.schema.file.element_types import type_of
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.versioning.registration import Registration, reported

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class LifeCycleNode:
    """One operator, from `init` to `free`.

    Args:
        label: the operator's name and index, for messages.

    Raises:
        KernelError: `init` raised.
    """

    def __init__(
        self, registration: Registration, label: str, custom_options: bytes, num_threads: int = 0
    ) -> None:
        self._registration, self._label = registration, label
        self._custom_options, self._num_threads = custom_options, num_threads
        self._prepared: _Prepared | None = None
        self._state = self._call("init", "initialize", custom_options)

    def prepare(self, op: OperatorView[Any], occasion: object) -> Sequence[TensorView]:
        """The outputs of `op` with the shapes and dtypes that `prepare` gives them.

        Args:
            occasion: on one and the same, `prepare` is called once for the same shapes.

        Raises:
            KernelError: `prepare` raised.
        """
        last, self._prepared = self._prepared, None
        if last is None or last.occasion is not occasion or last.shapes != _shapes(op.inputs):
            last = self._newly_prepared(op, occasion)
        self._prepared = last
        return [_view(*pair) for pair in zip(op.outputs, last.node.outputs, strict=True)]

    def _newly_prepared(self, op: OperatorView[Any], occasion: object) -> _Prepared:
        inputs = [None if view is None else _kernel_tensor(view) for view in op.inputs]
        outputs = [_kernel_tensor(view) for view in op.outputs]
        node = Node(
            op.name,
            op.index,
            op.version,
            self._custom_options,
            op.options,
            self._state,
            inputs,
            outputs,
        )
        context = Context(node, self._num_threads)
        shapes = self._registration.shapes
        given = None if shapes is None else shaped(op, shapes)
        for tensor, view in zip(outputs, given or (), strict=False):
            context.resize_tensor(tensor, view.shape)
        self._call("prepare", "prepare", context, node)
        context.end_prepare()
        for tensor in outputs:
            tensor.is_dynamic |= not is_known(*tensor.shape)
        with reported(KernelError, f"{op.label} failed to prepare"):
            arrays = [None if tensor.is_dynamic else zeros(tensor) for tensor in outputs]
        return _Prepared(node, context, arrays, _shapes(inputs), occasion)

    def invoke(self, op: OperatorView[Any], inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        """The outputs, then the new values of variables; prepares anew for other shapes.

        Raises:
            KernelError: `invoke` raised, or left an output of another dtype or shape.
        """
        prepared = self._prepared
        if prepared is None or prepared.shapes != _shapes(inputs):
            self._prepared = None
            prepared = self._prepared = self._newly_prepared(_with_shapes_of(op, inputs), None)
        node = prepared.node
        for tensor, array in zip(node.inputs, inputs, strict=True):
            if tensor is not None and array is not None:
                tensor.data = array.copy() if tensor.is_variable else read_only(array)
        for tensor, made in zip(node.outputs, prepared.arrays, strict=True):
            tensor.data = made
        with reported(KernelError):
            returned = self._registration.kernel.invoke(prepared.context, node)
        if returned is not None:
            raise KernelError(f"invoke returned {type(returned).__name__}, and fills its outputs")
        variables = [tensor for tensor in node.inputs if tensor is not None and tensor.is_variable]
        return tuple(
            checked_result(i, each.data, each.dtype, None if each.is_dynamic else each.shape)
            for i, each in enumerate((*node.outputs, *variables))
        )

    def free(self) -> None:
        """Call the kernel's `free`.

        Raises:
            KernelError: it raised.
        """
        self._prepared = None
        self._call("free", "free", self._state)

    def _call(self, function: str, what: str, *arguments: Any) -> Any:
        called = getattr(self._registration.kernel, function, None)
        with reported(KernelError, f"{self._label} failed to {what}"):
            return None if called is None else called(*arguments)


@record(eq=False)
class _Prepared:
    """What `prepare` made, for inputs of `shapes`."""

    node: Node
    context: Context
    arrays: Sequence[Array | None]
    shapes: Sequence[Shape | None]
    occasion: object


def _with_shapes_of(op: OperatorView[Any], arrays: Sequence[Array | None]) -> OperatorView[Any]:
    """`op` with inputs of the shapes of `arrays`."""
    inputs = (
        view if view is None or array is None else replace(view, shape=array.shape, ranked=True)
        for view, array in zip(op.inputs, arrays, strict=True)
    )
    return replace(op, inputs=tuple(inputs))


def _kernel_tensor(view: TensorView) -> KernelTensor:
    return KernelTensor(
        view.name, view.shape, view.dtype, view.quantization, view.data, view.is_variable
    )


def _view(view: TensorView, tensor: KernelTensor) -> TensorView:
    """The output `view` as `prepare` left it."""
    type = view.type if view.dtype == tensor.dtype else _tensor_type(tensor.dtype)
    shape = view.shape if tensor.is_dynamic else tensor.shape
    return replace(view, shape=shape, type=type, ranked=not tensor.is_dynamic)


def _tensor_type(dtype: np.dtype[Any]) -> TensorType:
    type = type_of(dtype)
    if type is None:
        raise KernelError(f"no tensor has dtype {dtype}")
    return type


def _shapes(tensors: Sequence[KernelTensor | TensorView | Array | None]) -> list[Shape | None]:
    return [None if tensor is None else tensor.shape for tensor in tensors]
