"""Operands of convolutions and matrix products, in each way that TFLite quantises them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from tests.one_op import Case, T, assert_close, ours
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import (
    BlockwiseQuantization,
    QuantizationParameters,
    TensorType,
    read_model,
    write_model,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

Array = npt.NDArray[Any]
INPUT_SCALE = 0.02


@dataclass(frozen=True)
class Scheme:
    """The types of input and output, filter and bias, and their zero points.

    Args:
        per_channel: whether the filter has a scale for each output channel.
        zero_points: the zero points of input, filter and output.
    """

    activation: TensorType = TensorType.FLOAT32
    filter: TensorType = TensorType.FLOAT32
    bias: TensorType = TensorType.FLOAT32
    per_channel: bool = False
    zero_points: tuple[int, int, int] = (0, 0, 0)


_SIGNED = (-11, 0, -8)
SCHEMES = {
    "float": Scheme(),
    "uint8": Scheme(
        TensorType.UINT8, TensorType.UINT8, TensorType.INT32, zero_points=(117, 131, 120)
    ),
    "int8": Scheme(TensorType.INT8, TensorType.INT8, TensorType.INT32, zero_points=_SIGNED),
    "int8_channels": Scheme(TensorType.INT8, TensorType.INT8, TensorType.INT32, True, _SIGNED),
    "int4": Scheme(TensorType.INT8, TensorType.INT4, TensorType.INT32, True, _SIGNED),
    "int16": Scheme(TensorType.INT16, TensorType.INT8, TensorType.INT64, True),
    "hybrid": Scheme(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32),
    "hybrid_channels": Scheme(TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32, True),
}
# FULLY_CONNECTED and CONV_2D alone have these.
HYBRID_INT4 = Scheme(TensorType.FLOAT32, TensorType.INT4, TensorType.FLOAT32, True)
# FULLY_CONNECTED alone has these.
INT2 = Scheme(TensorType.INT8, TensorType.INT2, TensorType.INT32, True, _SIGNED)


def operands(
    scheme: Scheme,
    input: tuple[int, ...],
    filter: tuple[int, ...],
    output: tuple[int, ...],
    *,
    axis: int = 0,
    extreme: bool = False,
    seed: int = 0,
) -> tuple[T, T, T, T]:
    """(input, filter, bias, output). The output's scale spreads the results over its whole range.

    Args:
        axis: the axis of the filter with its channels.
        extreme: whether the filter has values from both ends of their range only.
    """
    rng = np.random.default_rng(seed)
    units = filter[axis]
    codes = _codes(scheme.filter, filter, extreme, rng)
    if scheme.filter is TensorType.FLOAT32:
        bias = T.constant(rng.normal(size=units).astype(np.float32))
        return T(input), T.constant(codes), bias, T(output)
    scales = rng.uniform(0.002, 0.01, units if scheme.per_channel else 1).astype(np.float32)
    weights = _weights(scheme, codes, scales, axis)
    if scheme.activation is TensorType.FLOAT32:
        return T(input), weights, T.constant(rng.normal(size=units).astype(np.float32)), T(output)
    zero, _, output_zero = scheme.zero_points
    reach = quantized_range(scheme.activation)[1] - quantized_range(scheme.activation)[0]
    depth = codes.size / units
    spread = reach / 3.5 * np.std(codes.astype(np.float64)) * np.sqrt(depth)  # of accumulators
    bias_codes = rng.normal(0, spread, units).astype(NUMPY_DTYPE[scheme.bias])
    output_scale = float(6 * spread * scales.mean() * INPUT_SCALE / reach)
    return (
        T(input, scheme.activation, INPUT_SCALE, zero),
        weights,
        T.constant(bias_codes, scale=(INPUT_SCALE * scales).tolist()),
        T(output, scheme.activation, output_scale, output_zero),
    )


def _codes(type_: TensorType, shape: Sequence[int], extreme: bool, rng: Any) -> Array:
    if type_ is TensorType.FLOAT32:
        return np.asarray(rng.normal(size=shape), np.float32)
    low, high = quantized_range(type_)
    low += low < 0  # TFLite's signed weights are symmetric
    ends = np.array([low, low + 1, high - 1, high])
    values = rng.choice(ends, shape) if extreme else rng.integers(low, high + 1, shape)
    return np.asarray(values, NUMPY_DTYPE[type_])


def _weights(scheme: Scheme, codes: Array, scales: Array, axis: int) -> T:
    return T.constant(
        codes, scheme.filter, scale=scales.tolist(), zero_point=scheme.zero_points[1], axis=axis
    )


def with_blocks(content: bytes, tensor: int, scales: int, size: int) -> bytes:
    """The model with a scale for each `size` elements of `tensor`, in the tensor `scales`."""
    model = read_model(content)
    (graph,), tensors = model.subgraphs, list(model.subgraphs[0].tensors)
    details = QuantizationParameters(details=BlockwiseQuantization(scales, -1, size))
    tensors[tensor] = replace(tensors[tensor], quantization=details)
    return write_model(replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)),)))


def extremes(input: T, seed: int = 0) -> Array:
    """Activations with values from both ends of their range only."""
    low, high = quantized_range(input.type)
    ends = np.array([low, low + 1, high - 1, high], NUMPY_DTYPE[input.type])
    return np.random.default_rng(seed).choice(ends, input.shape)


def check_hybrid(case: Case, filter: int, seed: int = 0) -> None:
    """Compare the numpy kernel with LiteRT's reference kernel: both round the input to 8 bits.

    With hybrid="float" ONNX Runtime does not round. It is compared with the float model.

    Args:
        filter: the position of the filter among the inputs.
    """
    print(f"{case.name}: seed {seed}")
    feeds = case.arrays(np.random.default_rng(seed))
    by_numpy, _ = ours(case.model(), feeds, providers=[])
    assert_close(by_numpy[0], litert(case.model(), feeds, "reference")[0], 0, 1e-5, case.name)
    dynamic, runners = ours(case.model(), feeds, hybrid="dynamic")
    assert runners == {"ort"}
    for got in (dynamic, exported(case.model(), feeds, hybrid="dynamic")):
        assert_close(got[0], by_numpy[0], 0, 1e-5, f"{case.name}: as TFLite rounds")
    by_ort, runners = ours(case.model(), feeds, hybrid="float")
    assert runners == {"ort"}
    inputs = list(case.inputs)
    inputs[filter] = _real(case.inputs[filter])
    expected = litert(replace(case, inputs=inputs).model(), feeds, "reference")
    assert_close(by_ort[0], expected[0], 0, 1e-5, case.name)


def _real(weights: T | None) -> T:
    assert weights is not None and weights.data is not None
    codes = weights.data
    scales = np.asarray(weights.scale, np.float32)
    shape = [1] * len(weights.shape)
    if scales.size > 1:
        shape[weights.axis] = -1
    return T.constant((codes.reshape(weights.shape) * scales.reshape(shape)).astype(np.float32))


def exported(model: bytes, feeds: Sequence[Array], **options: Any) -> list[Array]:
    """The outputs of the model on the CPU, exported with `options`."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.x64quantprecision", "1")
    settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    proto = export_onnx(model, **options).SerializeToString()
    session = onnxruntime.InferenceSession(proto, settings, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    return list(session.run(None, dict(zip(names, feeds, strict=True))))


def optimized_nodes(model: bytes, path: Any) -> list[str]:
    """The ONNX operators that are left after ONNX Runtime's optimisations on the CPU."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    proto = export_onnx(model).SerializeToString()
    onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(path).graph.node]
