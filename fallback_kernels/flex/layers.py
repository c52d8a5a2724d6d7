"""TensorFlow's layers of neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.elementwise import computed
from tflite_ort.fallback_kernels.idioms.windows import Span, windows
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.layers import format_places, per_channel
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _log_softmax(x: Array) -> Array:
    less = x - x.max(axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(less - np.log(np.exp(less).sum(axis=-1, keepdims=True)))


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(x), x)


def _selu(x: Array) -> Array:
    number = x.dtype.type
    low = number(SELU_SCALE * SELU_ALPHA) * np.expm1(x)
    return np.asarray(np.where(x < 0, low, number(SELU_SCALE) * x))


_UNARY: dict[str, Callable[[Array], Array]] = {
    "Elu": _elu,
    "LogSoftmax": _log_softmax,
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Relu6": lambda x: np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6)),
    "Selu": _selu,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softmax": _softmax,
    "Softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "Softsign": lambda x: x / (np.abs(x) + 1),
}


@flex_kernel(*_UNARY)
def activation(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `_UNARY`, element by element or row by row."""
    return (computed(_UNARY[op.name.removeprefix("Flex")], inputs[0]),)


@flex_kernel("LeakyRelu")
def leaky_relu(op: View, inputs: Inputs, state: State) -> Outputs:
    """Numbers below 0 times a slope."""
    slope = node_of(op)["alpha"]
    return (computed(lambda x: np.where(x > 0, x, x * x.dtype.type(slope)), inputs[0]),)


@flex_kernel("BiasAdd", "BiasAddV1")
def bias_add(op: View, inputs: Inputs, state: State) -> Outputs:
    """A number more for each channel."""
    value, bias = inputs
    return (computed(np.add, value, bias.reshape(per_channel(op, value.ndim))),)


@flex_kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each channel normalized by moments that are given, or by its own; then what the averages of
    these are, and the moments."""
    node, (x, scale, offset, mean, variance) = node_of(op), inputs
    wide = x.astype(np.float32)
    shape = per_channel(op, x.ndim)
    used, averages = (mean, variance), (mean, variance)
    if node["is_training"]:
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
        count = wide.size // max(scale.size, 1)
        centre = wide.mean(axis=axes, dtype=np.float64)
        spread = np.square(wide - centre.reshape(shape)).mean(axis=axes)
        used = centre.astype(np.float32), spread.astype(np.float32)
        sample = spread * (count / max(count - 1, 1))
        averages = _averaged(node["exponential_avg_factor"], (centre, sample), (mean, variance))
    centre, spread = (each.astype(np.float32) for each in used)
    factor = scale.astype(np.float32) / np.sqrt(spread + np.float32(node["epsilon"]))
    result = (wide - centre.reshape(shape)) * factor.reshape(shape)
    result = result + offset.astype(np.float32).reshape(shape)
    results = [result, *averages, *used, np.zeros((), np.float32)][: len(op.outputs)]
    return tuple(
        np.array(each).astype(output.dtype)
        for each, output in zip(results, op.outputs, strict=True)
    )


def _averaged(share: float, new: tuple[Array, Array], old: tuple[Array, Array]) -> Any:
    """The moments, or their running averages."""
    if share == 1:
        return new
    return tuple(b + (a - b) * np.float32(share) for a, b in zip(new, old, strict=True))


@flex_kernel("LRN")
def local_response(op: View, inputs: Inputs, state: State) -> Outputs:
    """A number by a power of the sum of squares of its neighbors along the channels."""
    node = node_of(op)
    radius = min(node["depth_radius"], inputs[0].shape[-1])

    def normalized(x: Array) -> Array:
        span = Span(x.shape[-1], 2 * radius + 1, 1, 1, radius, radius)
        sums = windows(x * x, 3, span).sum(axis=-1)
        number = x.dtype.type
        base = number(node["bias"]) + number(node["alpha"]) * sums
        return np.asarray(x * base ** number(-node["beta"]))

    return (computed(normalized, inputs[0]),)


@flex_kernel("SoftmaxCrossEntropyWithLogits")
def cross_entropy(op: View, inputs: Inputs, state: State) -> Outputs:
    """The loss of each row, and its gradient."""
    features, labels = np.broadcast_arrays(*inputs)

    def loss(x: Array, labels: Array) -> Array:
        rows = -_log_softmax(x)
        return np.asarray(np.where(labels == 0, x.dtype.type(0), labels * rows).sum(axis=-1))

    gradient = computed(lambda x, labels: _softmax(x) - labels, features, labels)
    return computed(loss, features, labels), gradient


@flex_kernel("InTopK", "InTopKV2")
def in_top_k(op: View, inputs: Inputs, state: State) -> Outputs:
    """Whether fewer than `k` predictions are above that of the target; not in rows that are not
    finite."""
    predictions, targets = inputs[:2]
    count = node_of(op)["k"] if op.name == "FlexInTopK" else int(inputs[2].item())
    there = (targets >= 0) & (targets < predictions.shape[1])
    place = np.where(there, targets, 0).astype(np.int64)
    if not predictions.shape[1]:
        return (np.zeros(targets.shape, np.bool_),)
    own = np.take_along_axis(predictions, place[:, None], 1)
    above = (predictions > own).sum(axis=1) < count
    return (there & above & np.isfinite(predictions).all(axis=1),)


@flex_kernel("TopK", "TopKV2")
def top_k(op: View, inputs: Inputs, state: State) -> Outputs:
    """The best of each row, of equal ones the first."""
    x = inputs[0]
    count = node_of(op)["k"] if op.name == "FlexTopK" else int(inputs[1].item())
    if not 0 <= count <= x.shape[-1]:
        raise KernelError(f"the best {count} of {x.shape[-1]}")
    backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = (x.shape[-1] - 1 - backwards)[..., :count]
    return np.take_along_axis(x, order, -1), order.astype(op.outputs[1].dtype)


@flex_kernel("DataFormatDimMap")
def dimension_map(op: View, inputs: Inputs, state: State) -> Outputs:
    """Where dimensions of the old format are in the new one."""
    places, (x,) = format_places(op), inputs
    if ((x < -len(places)) | (x >= len(places))).any():
        raise KernelError(f"dimensions of {len(places)} that are not there")
    return (np.argsort(places)[x % len(places)].astype(x.dtype),)


@flex_kernel("DataFormatVecPermute")
def permutation(op: View, inputs: Inputs, state: State) -> Outputs:
    """The rows of the old format in the order of the new one."""
    return (inputs[0][format_places(op)],)
