"""The interpreter: a model specialised, partitioned, and invoked again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.delegates import Delegate, ExecutionProviderDelegate
from tflite_ort.details import tensor_details
from tflite_ort.plan import LoadTimes, Placement, Plan
from tflite_ort.resolution import check_operators, check_versions
from tflite_ort.resolvers import BuiltinOpResolver
from tflite_ort.runner import Runtime, SubgraphRunner
from tflite_ort.schema import DelegateError, Model, StateError, TensorError, read_model
from tflite_ort.session import Provider, available_providers
from tflite_ort.specialization import Shape
from tflite_ort.versioning.resolver import OpResolver

Array = npt.NDArray[Any]


class Interpreter:
    """Runs a TFLite model on ONNX Runtime, with the methods of ``tf.lite.Interpreter``.

    Args:
        model_path: a ``.tflite`` file.
        model_content: the bytes of one, instead of a path.
        num_threads: threads within an operator; None leaves it to ONNX Runtime.
        providers: ONNX Runtime execution providers, the first choice first, as names or
            (name, options) pairs; default the CPU. Operators that none takes run in
            numpy; an empty list runs all of them there. A `Delegate` may stand in the list too.
        resolver: where translators and kernels are looked up; default `BuiltinOpResolver`.

    Raises:
        ModelError: the file is not a valid TFLite model.
        VersionError: operators or versions that TFLite does not have; lists all of them.
        DelegateError: the installed onnxruntime has no such provider.
        ValueError: neither or both of `model_path` and `model_content` are given.

    Not safe to use from several threads at a time.

    Example:
        >>> from tflite_ort.demo import digits_model
        >>> interpreter = Interpreter(digits_model("float32"))
        >>> interpreter.allocate_tensors()
        >>> image = np.zeros(interpreter.get_input_details()[0]["shape"], np.float32)
        >>> interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        >>> interpreter.invoke()
        >>> interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape
        (1, 10)
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | memoryview | None = None,
        *,
        num_threads: int | None = None,
        providers: Sequence[Provider | Delegate] | None = None,
        resolver: OpResolver | None = None,
    ) -> None:
        if (model_path is None) == (model_content is None):
            raise ValueError("`model_path` or `model_content` must be specified, and not both")
        if num_threads is not None and num_threads < 1:
            raise ValueError("num_threads should >= 1")
        started = time.perf_counter()
        source = model_path if model_path is not None else model_content
        assert source is not None
        self._model: Model = read_model(source)
        resolver = BuiltinOpResolver() if resolver is None else resolver
        check_versions(self._model, resolver)
        self._read_seconds = time.perf_counter() - started
        if not self._model.subgraphs:
            raise TensorError("No subgraph in the model.")
        self._runtime = Runtime(_delegates(providers), resolver, num_threads or 0)
        self._runner = SubgraphRunner(self._model, 0, self._runtime)

    # Life cycle ------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Make the model ready for its present input shapes; does nothing when it is.

        Raises:
            UnresolvedOperator: operators that nothing here runs; the message lists all of them.
            ModelError: an operator cannot take the shapes that reach it; names the operator.
            Untranslatable: operators that neither translate nor have a kernel; lists all.
            DelegateError: ONNX Runtime could not load what was translated for it.
        """
        if self._runner.plan is None:
            check_operators(self._model, self._runtime.resolver)
            self._runner.allocate()

    def invoke(self) -> None:
        """Run the model once.

        Raises:
            StateError: `allocate_tensors` was not called, or not since an input was resized.
            DelegateError, KernelError: an operator failed.
        """
        plan = self._runner.plan
        if plan is None:
            raise StateError("Invoke called on model that is not ready.")
        plan.run()

    def resize_tensor_input(
        self, input_index: int, tensor_size: Sequence[int] | Array, strict: bool = False
    ) -> None:
        """Give an input a new shape; `allocate_tensors` has to follow.

        Args:
            strict: only dimensions that are -1 in the input's ``shape_signature`` may change.

        Raises:
            TensorError: the index is no input's, or `strict` forbids the shape.
        """
        shape = tuple(int(size) for size in tensor_size)
        self._check_resize(input_index, shape, strict)
        self._runner.resize(input_index, shape)

    # Tensors -----------------------------------------------------------------------------------

    def get_input_details(self) -> list[dict[str, Any]]:
        """One dictionary per input: name, index, shape, shape_signature, dtype, quantization,
        quantization_parameters, sparsity_parameters."""
        return [self._details(index) for index in self._runner.graph.inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """As `get_input_details`, per output."""
        return [self._details(index) for index in self._runner.graph.outputs]

    def get_tensor_details(self) -> list[dict[str, Any]]:
        """As `get_input_details`, per tensor of the primary subgraph."""
        return [self._details(index) for index in range(len(self._runner.declared_tensors))]

    def set_tensor(self, tensor_index: int, value: npt.ArrayLike) -> None:
        """Copy `value` into an input; strings as an array of bytes or text.

        Raises:
            StateError: `allocate_tensors` was not called.
            TensorError: the index is no input's, or dtype or shape are not the input's.
        """
        array = np.asarray(value)
        buffer = self._input_buffer(tensor_index)
        if buffer.dtype == np.object_:
            array = _strings(array)
        name = self._runner.graph.tensors[tensor_index].name
        if array.dtype != buffer.dtype:
            raise TensorError(
                f"Cannot set tensor: Got value of type {array.dtype} but expected type "
                f"{buffer.dtype} for input {tensor_index}, name: {name}"
            )
        if array.shape != buffer.shape:
            raise TensorError(
                f"Cannot set tensor: Dimension mismatch. Got {array.shape} but expected "
                f"{buffer.shape} for input {tensor_index}, name: {name}"
            )
        np.copyto(buffer, array)

    def get_tensor(self, tensor_index: int) -> Array:
        """A copy of an input, output or constant.

        Raises:
            StateError: `allocate_tensors` was not called.
            TensorError: the tensor is not kept (an intermediate result) or does not exist.
        """
        if not 0 <= tensor_index < len(self._runner.graph.tensors):
            raise TensorError(f"Invalid tensor index {tensor_index}")
        tensor = self._runner.graph.tensors[tensor_index]
        array = self._runner.value(tensor_index)
        if array is None and self._runner.plan is None:
            raise StateError("get_tensor called on model that is not ready.")
        if array is None:
            raise TensorError(
                f"Tensor data is null: {tensor.name!r} ({tensor_index}) is an intermediate result"
            )
        return array.copy()

    # What is ours ------------------------------------------------------------------------------

    def delegation(self) -> tuple[Placement, ...]:
        """Where each operator runs and, where a delegate refused it, why.

        Raises:
            StateError: `allocate_tensors` was not called.
        """
        return self._ready().placements

    @property
    def load_times(self) -> LoadTimes:
        """Seconds spent on reading, translating and making sessions, of the last allocation."""
        self._ready()
        return self._runner.load_times(self._read_seconds)

    def _ready(self) -> Plan:
        if self._runner.plan is None:
            raise StateError("The model is not ready: call allocate_tensors() first.")
        return self._runner.plan

    def _details(self, index: int) -> dict[str, Any]:
        return tensor_details(self._runner.declared_tensors[index], self._runner.view(index))

    def _input_buffer(self, index: int) -> Array:
        if index not in self._runner.graph.inputs:
            raise TensorError(f"Cannot set tensor: tensor {index} is not an input")
        if self._runner.plan is None:
            raise StateError(
                "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
            )
        return self._runner.plan.arrays[index]

    def _check_resize(self, index: int, shape: Shape, strict: bool) -> None:
        if index not in self._runner.graph.inputs:
            raise TensorError(f"Cannot resize tensor {index}: it is not an input")
        if any(size < 0 for size in shape):
            raise TensorError(f"Cannot resize tensor {index} to {shape}: a size is negative")
        if not strict:
            return
        tensor = self._runner.declared_tensors[index]
        signature = tensor.shape_signature or tensor.shape
        if len(signature) != len(shape) or any(
            declared not in (-1, size) for declared, size in zip(signature, shape, strict=True)
        ):
            raise TensorError(
                f"Cannot resize tensor {index} to {shape}: only unknown dimensions of "
                f"{tuple(signature)} may change in strict mode"
            )


def _strings(array: Array) -> Array:
    """An array of text or bytes as one of bytes objects, text in UTF-8."""
    if array.dtype.kind not in "SUO":
        raise TensorError(f"Cannot set tensor: Got value of type {array.dtype}, expected strings")
    strings = np.empty(array.shape, np.object_)
    for position, item in np.ndenumerate(array):
        strings[position] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


def _delegates(providers: Sequence[Provider | Delegate] | None) -> list[Delegate]:
    available = available_providers()
    delegates: list[Delegate] = []
    for provider in ("CPUExecutionProvider",) if providers is None else providers:
        if isinstance(provider, Delegate):
            delegate = provider
        else:
            name, options = (provider, {}) if isinstance(provider, str) else provider
            delegate = ExecutionProviderDelegate(name, options)
        if delegate.name not in available:
            raise DelegateError(
                f"no provider {delegate.name!r} in this onnxruntime, which has {available}"
            )
        delegates.append(delegate)
    return delegates
