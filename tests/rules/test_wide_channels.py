"""Depthwise layers between convolutions, whose channels are no multiple of 16."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.optimised import optimised_nodes
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target, lower
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    ModelBuilder,
    Op,
    Padding,
    QuantizationParameters,
    TensorType,
    read_model,
)
from tflite_ort.schema.builder import SubgraphBuilder
from tflite_ort.specialize.specialization import specialize

_affine = QuantizationParameters.affine
_INT8 = TensorType.INT8
exact_only = pytest.mark.skipif(
    exact_weight_type() != "int8", reason="this CPU does not multiply uint8 by int8 exactly"
)


def block(
    channels: int,
    *,
    padded: bool,
    outputs: tuple[str, ...],
    clipped: bool = False,
    padded_first: bool = False,
) -> bytes:
    """A 1x1 convolution, a depthwise one behind a PAD or not, and a 1x1 convolution; int8.

    Args:
        padded_first: the first convolution is one of 3x3 cells behind a PAD.
    """
    rng, builder = np.random.default_rng(5), ModelBuilder()
    main = builder.subgraph("main").tensor("x", (1, 14, 15, 8), _INT8, _affine(0.02, 3))

    def constants(name: str, shape: tuple[int, ...], axis: int) -> list[str]:
        count = shape[axis]
        scales = rng.uniform(0.002, 0.01, count).astype(np.float32)
        codes = rng.integers(-127, 127, shape, np.int8, endpoint=True)
        main.constant(f"{name}/w", codes, _INT8, _affine(scales.tolist(), [0] * count, axis))
        bias = rng.integers(-900, 900, count, np.int32)
        units = _affine((scales * np.float32(0.02)).tolist(), [0] * count, 0)
        main.constant(f"{name}/b", bias, TensorType.INT32, units)
        return [f"{name}/w", f"{name}/b"]

    activation = ActivationFunctionType.RELU6 if clipped else ActivationFunctionType.NONE
    one: dict[str, Any] = {"stride_w": 1, "stride_h": 1, "fused_activation_function": activation}
    shape = (1, 14, 15, channels)
    main.tensor("a", shape, _INT8, _affine(0.02, -9)).tensor("b", shape, _INT8, _affine(0.02, 4))
    main.tensor("c", (1, 14, 15, 8), _INT8, _affine(0.1, 0))
    image, size = (pad(main, "x", (1, 16, 17, 8), 3), 3) if padded_first else ("x", 1)
    main.operator(
        Op.CONV_2D,
        [image, *constants("a", (channels, size, size, 8), 0)],
        ["a"],
        Conv2DOptions(padding=Padding.VALID, **one),
        version=3,
    )
    source = pad(main, "a", (1, 16, 17, channels), -9) if padded else "a"
    padding = Padding.VALID if padded else Padding.SAME
    main.operator(
        Op.DEPTHWISE_CONV_2D,
        [source, *constants("b", (1, 3, 3, channels), 3)],
        ["b"],
        DepthwiseConv2DOptions(padding=padding, depth_multiplier=1, **one),
        version=3,
    )
    main.operator(
        Op.CONV_2D,
        ["b", *constants("c", (8, 1, 1, channels), 0)],
        ["c"],
        Conv2DOptions(**one),
        version=3,
    )
    main.inputs("x").outputs(*outputs)
    return builder.write()


def pad(main: SubgraphBuilder, source: str, shape: tuple[int, ...], zero_point: int) -> str:
    """The name of what a PAD by one row and column makes of `source`, of this shape."""
    main.constant(f"{source}/edges", np.int32([(0, 0), (1, 1), (1, 1), (0, 0)]))
    main.tensor(f"{source}/padded", shape, _INT8, _affine(0.02, zero_point))
    main.operator(Op.PAD, [source, f"{source}/edges"], [f"{source}/padded"])
    return f"{source}/padded"


def results(model: bytes, target: Target, image: npt.NDArray[np.int8]) -> list[npt.NDArray[Any]]:
    resolver = BuiltinOpResolver()
    graph = specialize(read_model(model), 0, {}, resolver.kernels)
    inputs, outputs = ([graph.tensors[i] for i in each] for each in (graph.inputs, graph.outputs))
    lowered = lower(graph.operators, inputs, outputs, resolver.translators, target=target)
    assert not lowered.refusals
    return model_session(lowered.model, num_threads=1).call([image])


@exact_only
@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("outputs", [("c",), ("c", "b"), ("a", "c"), ("a", "b", "c")])
@pytest.mark.parametrize("channels", [17, 24, 40])
def test_more_channels_give_the_same_codes(
    channels: int, outputs: tuple[str, ...], padded: bool, clipped: bool
) -> None:
    model = block(channels, padded=padded, outputs=outputs, clipped=clipped)
    image = np.random.default_rng(1).integers(-128, 127, (1, 14, 15, 8), np.int8, endpoint=True)
    plain = results(model, Target(), image)
    wide = results(model, Target("int8", cpu_kernels=True), image)
    for expected, given in zip(plain, wide, strict=True):
        np.testing.assert_array_equal(given, expected)


@exact_only
def test_a_convolution_behind_a_pad_is_padded_with_more_channels_too() -> None:
    model = block(24, padded=False, outputs=("c",), padded_first=True)
    image = np.random.default_rng(2).integers(-128, 127, (1, 14, 15, 8), np.int8, endpoint=True)
    (plain,) = results(model, Target(), image)
    (wide,) = results(model, Target("int8", cpu_kernels=True), image)
    np.testing.assert_array_equal(wide, plain)


@exact_only
@pytest.mark.parametrize("padded", [False, True])
def test_nothing_is_copied(padded: bool) -> None:
    nodes = optimised_nodes(block(24, padded=padded, outputs=("c",)))
    assert nodes - Counter({"Reshape": 2}) == Counter({"QLinearConv": 3})
