"""What writes a trained network as a TFLite model: tensors, operators, int8 quantisation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from digits_network import Array, Arrays
from tflite_ort.schema import (
    Buffer,
    Model,
    Op,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    SubGraph,
    Tensor,
    TensorMap,
    TensorType,
)

TENSOR_TYPE = {
    np.dtype(np.float32): TensorType.FLOAT32,
    np.dtype(np.int8): TensorType.INT8,
    np.dtype(np.int16): TensorType.INT16,
    np.dtype(np.int32): TensorType.INT32,
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator, with its output's name and shape."""

    name: str
    shape: tuple[int, ...]
    op: Op
    options: Any


@dataclass(slots=True)
class GraphWriter:
    """Collects tensors, buffers and operators of one subgraph."""

    tensors: list[Tensor] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=lambda: [Buffer()])
    codes: list[OperatorCode] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    def activation(
        self,
        name: str,
        shape: tuple[int, ...],
        quantization: QuantizationParameters | None,
        kind: TensorType = TensorType.INT8,
        is_variable: bool = False,
    ) -> int:
        """Of `kind` if it is quantised."""
        kind = TensorType.FLOAT32 if quantization is None else kind
        self.tensors.append(Tensor(shape, kind, 0, name, quantization, is_variable=is_variable))
        return len(self.tensors) - 1

    def constant(
        self, name: str, array: Array, quantization: QuantizationParameters | None = None
    ) -> int:
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.buffers.append(Buffer(data))
        kind = TENSOR_TYPE[array.dtype]
        self.tensors.append(Tensor(array.shape, kind, len(self.buffers) - 1, name, quantization))
        return len(self.tensors) - 1

    def layer(
        self,
        layer: Layer,
        inputs: Sequence[int | None],
        quantization: QuantizationParameters | None,
        intermediates: tuple[int, ...] = (),
    ) -> int:
        """The index of the output of one more operator."""
        output = self.activation(layer.name, layer.shape, quantization)
        code = OperatorCode(builtin_code=layer.op)
        if code not in self.codes:
            self.codes.append(code)
        index = self.codes.index(code)
        operator = Operator(
            index, tuple(inputs), (output,), layer.options, intermediates=intermediates
        )
        self.operators.append(operator)
        return output

    def model(self, first: int, last: int) -> Model:
        graph = SubGraph(tuple(self.tensors), (first,), (last,), tuple(self.operators), "main")
        signature = SignatureDef(
            inputs=(TensorMap("image", first),),
            outputs=(TensorMap("probabilities", last),),
            signature_key="serving_default",
        )
        return Model(
            version=3,
            operator_codes=tuple(self.codes),
            subgraphs=(graph,),
            buffers=tuple(self.buffers),
            signature_defs=(signature,),
        )


def affine(values: Array) -> QuantizationParameters:
    """The int8 scale and zero point that cover the range of `values` and zero."""
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    scale = np.float32((high - low) / 255)
    return parameters(scale, np.round(-128 - low / scale))


def symmetric(filter: Array, axis: int | None) -> QuantizationParameters:
    """int8 scales for a filter, one for each index of `axis` or one for all; zero points 0."""
    others = tuple(i for i in range(filter.ndim) if i != axis)
    scale = np.abs(filter).max(axis=None if axis is None else others) / np.float32(127)
    return parameters(scale, np.zeros_like(scale), axis or 0)


def parameters(scale: Any, zero_point: Any, axis: int = 0) -> QuantizationParameters:
    return QuantizationParameters(
        scale=np.atleast_1d(scale).astype(np.float32),
        zero_point=np.atleast_1d(zero_point).astype(np.int64),
        quantized_dimension=axis,
    )


def stored(array: Array, quantization: QuantizationParameters, dtype: type) -> Array:
    """round(array / scale) + zero point, with per-channel scales along their dimension."""
    shape = np.ones(array.ndim, int)
    shape[quantization.quantized_dimension] = -1
    scale, zero_point = (p.reshape(shape) for p in (quantization.scale, quantization.zero_point))
    limits = np.iinfo(dtype)
    return np.clip(np.round(array / scale) + zero_point, limits.min, limits.max).astype(dtype)


def activation_parameters(seen: Arrays) -> dict[str, QuantizationParameters]:
    """Quantisation of every layer's output, from the activations seen on the training images."""
    found = {name: affine(values) for name, values in seen.items()}
    # TFLite fixes the output of an int8 SOFTMAX.
    found["probabilities"] = parameters(1 / 256, -128)
    return found


def weight_tensors(
    writer: GraphWriter,
    name: str,
    values: tuple[Array, Array],
    input: QuantizationParameters | None,
    axis: int | None = None,
) -> list[int]:
    """A filter and its bias, quantised when the input is; per index of `axis` if it is given."""
    filter, bias = values
    if input is None:
        return [writer.constant(f"{name}/filter", filter), writer.constant(f"{name}/bias", bias)]
    of_filter = symmetric(filter, axis)
    scale = of_filter.scale * input.scale
    of_bias = parameters(scale, np.zeros_like(scale))
    return [
        writer.constant(f"{name}/filter", stored(filter, of_filter, np.int8), of_filter),
        writer.constant(f"{name}/bias", stored(bias, of_bias, np.int32), of_bias),
    ]
