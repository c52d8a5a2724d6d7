"""What translators, kernels and shape rules see of one operator: read-only, resolved, by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.enums import BuiltinOperator, TensorType
from tflite_ort.schema.errors import MalformedModel
from tflite_ort.schema.model import Model, QuantizationParameters, Tensor
from tflite_ort.schema.operators import options_of
from tflite_ort.schema.semantics import (
    NUMPY_DTYPE,
    PACKED_BITS,
    densify,
    unpack_int2,
    unpack_int4,
)

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
O = TypeVar("O")  # noqa: E741 - the options type of an operator

_INTEGER_CODES = frozenset(
    {
        TensorType.INT2,
        TensorType.INT4,
        TensorType.UINT4,
        TensorType.INT8,
        TensorType.UINT8,
        TensorType.INT16,
        TensorType.UINT16,
        TensorType.INT32,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """Affine quantisation, real = scale * (stored - zero_point).

    Args:
        scale: float32 [1], or [n] along `axis`.
        zero_point: int64, the same length.
        axis: the quantised dimension; meaningless when there is one scale.
    """

    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.int64]
    axis: int = 0

    @property
    def per_channel(self) -> bool:
        return self.scale.size > 1

    @property
    def scalar_scale(self) -> float:
        """The single scale; the first one when there are several."""
        return float(self.scale[0])

    @property
    def scalar_zero_point(self) -> int:
        return int(self.zero_point[0])

    def equals(self, other: Quantization | None) -> bool:
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
            and (not self.per_channel or self.axis == other.axis)
        )


@dataclass(frozen=True, slots=True, eq=False)
class TensorView:
    """A tensor as its graph declares it.

    Args:
        index: position in the subgraph's tensors.
        shape: the static shape the model is specialised for.
        data: the constant's values (dense, typed, read-only; 4-bit ones as int8), else None.
        quantization: None when the tensor carries no scale.
        dynamic: the shape depends on data, so `shape` is only what the file says.
    """

    index: int
    name: str
    type: TensorType
    shape: Shape
    data: Array | None = None
    quantization: Quantization | None = None
    is_variable: bool = False
    dynamic: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        return NUMPY_DTYPE[self.type]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_constant(self) -> bool:
        return self.data is not None

    @property
    def is_quantized(self) -> bool:
        """Integer codes that stand for real values."""
        return self.quantization is not None and self.type in _INTEGER_CODES


@dataclass(frozen=True, slots=True, eq=False)
class OperatorView(Generic[O]):
    """One operator in its graph.

    ``op["filter"]`` is the input declared under that name, ``op.get("bias")`` an optional one.
    `options` is never None: an operator without an options table has the zeroed C struct TFLite
    gives its kernels, not the schema's defaults.
    """

    op: BuiltinOperator
    version: int
    index: int
    inputs: tuple[TensorView | None, ...]
    outputs: tuple[TensorView, ...]
    options: O
    names: tuple[str, ...] = ()
    custom_code: str | None = None
    custom_options: Array | None = None
    subgraph: int = 0
    intermediates: tuple[TensorView, ...] = ()

    @property
    def name(self) -> str:
        """Such as ``CONV_2D``; the custom name for a custom operator."""
        return self.custom_code if self.custom_code is not None else self.op.name

    @property
    def label(self) -> str:
        """Such as ``CONV_2D_12``: the operator and its index in the graph."""
        return f"{self.name}_{self.index}"

    @property
    def output(self) -> TensorView:
        return self.outputs[0]

    def get(self, name: str) -> TensorView | None:
        """The input declared as `name`, None where the model leaves it out."""
        position = self.names.index(name)
        return self.inputs[position] if position < len(self.inputs) else None

    def __getitem__(self, name: str) -> TensorView:
        tensor = self.get(name)
        if tensor is None:
            raise KeyError(f"{self.label} has no input {name!r}")
        return tensor

    def present_inputs(self) -> Sequence[TensorView]:
        return [tensor for tensor in self.inputs if tensor is not None]


def tensor_view(model: Model, tensor: Tensor, index: int) -> TensorView:
    """`tensor` as its graph declares it, with a constant's data dense and typed."""
    return TensorView(
        index,
        tensor.name,
        tensor.type,
        tensor.shape,
        None if tensor.is_variable else constant_data(model, tensor),
        _quantization(tensor.quantization),
        tensor.is_variable,
    )


def operator_view(
    model: Model, subgraph: int, index: int, tensors: Sequence[TensorView]
) -> OperatorView[Any]:
    """Operator `index` of a subgraph over `tensors`, the views of that subgraph's tensors."""
    operator = model.subgraphs[subgraph].operators[index]
    code = model.operator_codes[operator.opcode_index]
    return OperatorView(
        op=code.builtin_code,
        version=code.version,
        index=index,
        inputs=tuple(None if i is None else tensors[i] for i in operator.inputs),
        outputs=tuple(tensors[i] for i in operator.outputs),
        options=options_of(code.builtin_code, operator.options),
        custom_code=code.custom_code if code.builtin_code is BuiltinOperator.CUSTOM else None,
        custom_options=operator.custom_options,
        subgraph=subgraph,
        intermediates=tuple(tensors[i] for i in operator.intermediates or ()),
    )


def _quantization(parameters: QuantizationParameters | None) -> Quantization | None:
    """The affine part; None for a tensor without a scale."""
    if parameters is None or parameters.scale is None or parameters.scale.size == 0:
        return None
    zero_point = parameters.zero_point
    if zero_point is None or zero_point.size != parameters.scale.size:
        zero_point = np.zeros(parameters.scale.size, np.int64)
    return Quantization(parameters.scale, zero_point, parameters.quantized_dimension)


def constant_data(model: Model, tensor: Tensor) -> Array | None:
    """A constant's values as a read-only array of its shape; None for a tensor without data.

    4-bit and 2-bit values come as int8 (uint8), sparse ones dense, strings as their bytes.
    """
    data = model.buffers[tensor.buffer].data if tensor.buffer else None
    if data is None:
        return None
    if tensor.type is TensorType.STRING:
        return data
    if tensor.sparsity is not None:
        dense = densify(_typed(data, tensor, data.nbytes), tensor.shape, tensor.sparsity)
    else:
        dense = _dense(data, tensor)
    dense.flags.writeable = False
    return dense


def _dense(data: Array, tensor: Tensor) -> Array:
    count, bits = math.prod(tensor.shape), PACKED_BITS.get(tensor.type)
    if bits is None:
        return _typed(data, tensor, count * NUMPY_DTYPE[tensor.type].itemsize)
    if bits == 2:
        return unpack_int2(data, count).reshape(tensor.shape)
    signed = tensor.type is not TensorType.UINT4
    return unpack_int4(data, count, signed=signed).reshape(tensor.shape)


def _typed(data: Array, tensor: Tensor, nbytes: int) -> Array:
    """The first `nbytes` of `data` in the tensor's type; in its shape unless it is sparse."""
    dtype = NUMPY_DTYPE[tensor.type]
    if data.nbytes < nbytes:
        raise MalformedModel(f"tensor {tensor.name!r} needs {nbytes} bytes, has {data.nbytes}")
    flat = data[: nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
    return flat if tensor.sparsity is not None else flat.reshape(tensor.shape)
