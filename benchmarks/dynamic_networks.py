"""Whole networks of convolutions by int8 weights over floats, beside LiteRT.

    python -m benchmarks.dynamic_networks [--seconds S] [NAME...]

Networks of the form of ResNet 18 and 50, InceptionV3 and MobileNet V2, with random weights. One
thread, milliseconds, medians of calls in turns: LiteRT, the library as it is by default
(`hybrid="auto"`), with floats, and as LiteRT's default rounds (`"xnnpack"`). `off` is the largest
difference from the results with floats, as a part of their largest magnitude, of LiteRT's default,
of its own kernels without delegates, and of the library. Prints the rows of docs/tuning_study.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt

from tflite_ort import Interpreter
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    ModelBuilder,
    Op,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    ReducerOptions,
    TensorType,
)

Array = npt.NDArray[Any]
RELU, RELU6, NONE = (
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.NONE,
)


class Network:
    """A network under construction over an image `x`; layers return the name of their result."""

    def __init__(self, size: int) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {"x": (1, size, size, 3)}
        self._builder = ModelBuilder()
        self._main = self._builder.subgraph("main").tensor("x", self.shapes["x"])
        self._rng = np.random.default_rng(0)

    def _layer(self, op: Op, names: list[str], shape: tuple[int, ...], options: Any, v: int) -> str:
        result = f"t{len(self.shapes)}"
        self.shapes[result] = shape
        self._main.tensor(result, shape).operator(op, names, [result], options, version=v)
        return result

    def _weights(self, shape: tuple[int, ...], axis: int = 0) -> list[str]:
        """Codes, which make sums about as large as what is summed, and a bias."""
        name, units = f"w{len(self.shapes)}", shape[axis]
        deep = np.prod(shape) / units
        scales = QuantizationParameters(
            scale=np.full(units, 0.02 / np.sqrt(deep), np.float32),
            zero_point=np.zeros(units, np.int64),
            quantized_dimension=axis,
        )
        codes = self._rng.integers(-127, 128, shape, np.int8)
        self._main.constant(name, codes, TensorType.INT8, scales)
        self._main.constant(f"{name}/bias", np.zeros(units, np.float32))
        return [name, f"{name}/bias"]

    def _windows(self, x: str, outputs: int, stride: int) -> tuple[int, ...]:
        _, height, width, _ = self.shapes[x]
        return (1, -(-height // stride), -(-width // stride), outputs)

    def conv(self, x: str, outputs: int, side: int, stride: int = 1, activation: Any = RELU) -> str:
        options = Conv2DOptions(
            padding=Padding.SAME,
            stride_w=stride,
            stride_h=stride,
            fused_activation_function=activation,
        )
        names = [x, *self._weights((outputs, side, side, self.shapes[x][3]))]
        return self._layer(Op.CONV_2D, names, self._windows(x, outputs, stride), options, 5)

    def depthwise(self, x: str, stride: int) -> str:
        options = DepthwiseConv2DOptions(
            padding=Padding.SAME,
            stride_w=stride,
            stride_h=stride,
            depth_multiplier=1,
            fused_activation_function=RELU6,
        )
        channels = self.shapes[x][3]
        names = [x, *self._weights((1, 3, 3, channels), 3)]
        shape = self._windows(x, channels, stride)
        return self._layer(Op.DEPTHWISE_CONV_2D, names, shape, options, 6)

    def pool(self, x: str, stride: int, op: Op = Op.MAX_POOL_2D) -> str:
        options = Pool2DOptions(
            padding=Padding.SAME,
            stride_w=stride,
            stride_h=stride,
            filter_width=3,
            filter_height=3,
        )
        return self._layer(op, [x], self._windows(x, self.shapes[x][3], stride), options, 1)

    def add(self, a: str, b: str, activation: Any = NONE) -> str:
        options = AddOptions(fused_activation_function=activation)
        return self._layer(Op.ADD, [a, b], self.shapes[a], options, 1)

    def joined(self, *parts: str) -> str:
        channels = sum(self.shapes[part][3] for part in parts)
        shape = (*self.shapes[parts[0]][:3], channels)
        return self._layer(Op.CONCATENATION, [*parts], shape, ConcatenationOptions(axis=3), 1)

    def content(self, x: str) -> bytes:
        """The file, with a mean and 1,000 classes behind `x`."""
        channels = self.shapes[x][3]
        self._main.constant("axes", np.array([1, 2], np.int32))
        mean = self._layer(Op.MEAN, [x, "axes"], (1, channels), ReducerOptions(), 1)
        names = [mean, *self._weights((1000, channels))]
        classes = self._layer(Op.FULLY_CONNECTED, names, (1, 1000), FullyConnectedOptions(), 9)
        self._main.inputs("x").outputs(classes)
        return self._builder.write()


def resnet(counts: tuple[int, ...], *, deep: bool) -> bytes:
    """Blocks of two convolutions, or of three, the outer ones 1x1, where `deep`."""
    n = Network(224)
    x = n.pool(n.conv("x", 64, 7, 2), 2)
    for stage, count in enumerate(counts):
        wide = 64 << stage
        for number in range(count):
            stride = 2 if stage and not number else 1
            if deep:
                y = n.conv(n.conv(n.conv(x, wide, 1), wide, 3, stride), 4 * wide, 1, 1, NONE)
            else:
                y = n.conv(n.conv(x, wide, 3, stride), wide, 3, 1, NONE)
            outputs = n.shapes[y][3]
            same = n.shapes[x] == n.shapes[y]
            x = n.add(y, x if same else n.conv(x, outputs, 1, stride, NONE), RELU)
    return n.content(x)


def inception() -> bytes:
    """The towers of InceptionV3, with 3x3 windows for those of 1x7 and 7x1."""
    n = Network(299)
    x = n.pool(n.conv(n.conv(n.conv("x", 32, 3, 2), 32, 3), 64, 3), 2)
    x = n.pool(n.conv(n.conv(x, 80, 1), 192, 3), 2)
    for wide, inner, last, count in ((64, 48, 64, 3), (192, 128, 192, 4), (320, 384, 768, 2)):
        for _ in range(count):
            towers = [n.conv(x, wide, 1), n.conv(n.conv(x, inner, 1), last, 3)]
            towers.append(n.conv(n.conv(n.conv(x, inner, 1), inner, 3), last, 3))
            x = n.joined(*towers, n.conv(n.pool(x, 1, Op.AVERAGE_POOL_2D), wide, 1))
        if wide < 320:
            x = n.joined(n.conv(x, 320, 3, 2), n.pool(x, 2))
    return n.content(x)


def mobilenet(size: int) -> bytes:
    """MobileNet V2."""
    n = Network(size)
    x, stages = n.conv("x", 32, 3, 2, RELU6), ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2))
    for outputs, count, first in (*stages, (96, 3, 1), (160, 3, 2), (320, 1, 1)):
        for number in range(count):
            channels = n.shapes[x][3]
            y = x if channels == 32 and outputs == 16 else n.conv(x, 6 * channels, 1, 1, RELU6)
            y = n.conv(n.depthwise(y, 1 if number else first), outputs, 1, 1, NONE)
            x = n.add(x, y) if n.shapes[x] == n.shapes[y] else y
    return n.content(n.conv(x, 1280, 1, 1, RELU6))


NETWORKS: dict[str, Callable[[], bytes]] = {
    "ResNet 18": partial(resnet, (2, 2, 2, 2), deep=False),
    "ResNet 50": partial(resnet, (3, 4, 6, 3), deep=True),
    "InceptionV3": inception,
    "MobileNet V2": partial(mobilenet, 224),
    "MobileNet V2, 96 x 96": partial(mobilenet, 96),
}


def measured(content: bytes, seconds: float) -> tuple[list[float], list[float]]:
    """The medians in milliseconds and the differences from floats, of the runtimes in order."""
    runs: list[Any] = [litert.Interpreter(model_content=content, num_threads=1)]
    runs += [Interpreter(model_content=content, hybrid=each) for each in ("auto", "float")]
    runs.append(Interpreter(model_content=content, hybrid="xnnpack"))
    own = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runs.append(litert.Interpreter(model_content=content, experimental_op_resolver_type=own))
    times: list[list[float]] = [[] for _ in runs[:-1]]
    results = []
    for run in runs:
        run.allocate_tensors()
        place = run.get_input_details()[0]
        x = np.random.default_rng(0).standard_normal(place["shape"]).astype(np.float32)
        run.set_tensor(place["index"], x)
        run.invoke()
        results.append(run.get_tensor(run.get_output_details()[0]["index"]))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for run, taken in zip(runs[:-1], times, strict=True):
            started = time.perf_counter()
            run.invoke()
            taken.append(time.perf_counter() - started)
    exact = results[2]
    off = [float(np.abs(each - exact).max() / np.abs(exact).max()) for each in results]
    return [float(np.median(each)) * 1e3 for each in times], off


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5, help="of each network")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print(
        "| network | LiteRT | auto | floats | xnnpack | ratio | LiteRT off | own off | auto off |"
    )
    print("| --- " * 9 + "|")
    for name, make in NETWORKS.items():
        if given.names and not any(each.lower() in name.lower() for each in given.names):
            continue
        medians, parts = measured(make(), given.seconds)
        theirs, ours, floats, rounded = medians
        print(
            f"| {name} | {theirs:.2f} | {ours:.2f} | {floats:.2f} | {rounded:.2f} "
            f"| {theirs / ours:.2f} | {parts[0]:.1e} | {parts[4]:.1e} | {parts[1]:.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
