"""What writes a trained network as a TFLite model: tensors, operators, int8 quantization."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from digits_network import Array, Arrays
from tflite_ort.schema import Op, QuantizationParameters, SubgraphBuilder, TensorType


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator, with its output's name and shape."""

    name: str
    shape: tuple[int, ...]
    op: Op
    options: Any


def add_activation(
    graph: SubgraphBuilder,
    name: str,
    shape: tuple[int, ...],
    quantization: QuantizationParameters | None,
    kind: TensorType = TensorType.INT8,
    is_variable: bool = False,
) -> str:
    """The name of a tensor that is computed: of `kind` if it is quantized, else float32."""
    kind = TensorType.FLOAT32 if quantization is None else kind
    graph.tensor(name, shape, kind, quantization, is_variable=is_variable)
    return name


def add_layer(
    graph: SubgraphBuilder,
    layer: Layer,
    inputs: Sequence[str | None],
    quantization: QuantizationParameters | None,
    intermediates: Sequence[str] = (),
) -> str:
    """The name of the output of one more operator."""
    output = add_activation(graph, layer.name, layer.shape, quantization)
    graph.operator(layer.op, inputs, [output], layer.options, intermediates=intermediates)
    return output


def affine(values: Array) -> QuantizationParameters:
    """The int8 scale and zero point that cover the range of `values` and zero."""
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    scale = np.float32((high - low) / 255)
    return QuantizationParameters.affine(scale, np.round(-128 - low / scale))


def symmetric(filter: Array, axis: int | None) -> QuantizationParameters:
    """int8 scales for a filter, one for each index of `axis` or one for all; zero points 0."""
    others = tuple(i for i in range(filter.ndim) if i != axis)
    scale = np.abs(filter).max(axis=None if axis is None else others) / np.float32(127)
    return QuantizationParameters.affine(scale, np.zeros_like(scale), axis or 0)


def stored(array: Array, quantization: QuantizationParameters, dtype: type) -> Array:
    """round(array / scale) + zero point, with per-channel scales along their dimension."""
    shape = np.ones(array.ndim, int)
    shape[quantization.quantized_dimension] = -1
    scale, zero_point = (p.reshape(shape) for p in (quantization.scale, quantization.zero_point))
    limits = np.iinfo(dtype)
    return np.clip(np.round(array / scale) + zero_point, limits.min, limits.max).astype(dtype)


def activation_parameters(seen: Arrays) -> dict[str, QuantizationParameters]:
    """Quantization of every layer's output, from the activations seen on the training images."""
    found = {name: affine(values) for name, values in seen.items()}
    # TFLite fixes the output of an int8 SOFTMAX.
    found["probabilities"] = QuantizationParameters.affine(1 / 256, -128)
    return found


def add_weights(
    graph: SubgraphBuilder,
    name: str,
    values: tuple[Array, Array],
    input: QuantizationParameters | None,
    axis: int | None = None,
) -> list[str]:
    """The names of a filter and its bias, quantized when the input is; per index of `axis` if it is
    given."""
    names = [f"{name}/filter", f"{name}/bias"]
    filter, bias = values
    if input is None:
        graph.constant(names[0], filter).constant(names[1], bias)
        return names
    of_filter = symmetric(filter, axis)
    of_bias = QuantizationParameters.affine(of_filter.scale * input.scale)
    graph.constant(names[0], stored(filter, of_filter, np.int8), quantization=of_filter)
    graph.constant(names[1], stored(bias, of_bias, np.int32), quantization=of_bias)
    return names
