"""Times the lowerings of many layers, and fits the cost model that the library ships.

python -m benchmarks.lowerings measure --layers means --threads 1 --seconds 100 --out FILE.json
python -m benchmarks.lowerings fit FILE.json... --out opmap/graph/costs.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recurrent import Network
from tflite_ort.base.files import write_text
from tflite_ort.base.records import replace
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target, Translator, lower
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.costs import cheapest, kind_of_cpu
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Model,
    ModelBuilder,
    Op,
    OperatorView,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    SoftmaxOptions,
    SVDFOptions,
    TensorType,
    TransposeConvOptions,
    read_model,
)
from tflite_ort.specialize.specialization import specialize
from tflite_ort.tuning.timing import Effort, lowering_times
from tflite_ort.versioning.registry import Registry

FloatArray = npt.NDArray[np.float64]

_EFFORT = Effort(seconds=0.006, rounds=3)
_SEED = 20
_INT8 = TensorType.INT8
_MOST_LOWERINGS = 8


def convolution(rng: np.random.Generator) -> Model:
    """A drawn CONV_2D or DEPTHWISE_CONV_2D of int8 codes over few channels."""
    depthwise = rng.random() < 0.4
    channels = int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32]))
    outputs = channels if depthwise else int(rng.choice([4, 8, 12, 16, 24, 32, 48, 64]))
    most = int(2.5e5 / max(channels, outputs))
    width = int(rng.integers(4, min(225, max(5, most // 4))))
    height = int(rng.integers(1, min(225, max(2, most // width))))
    kernel = (
        (1, 1) if rng.random() < 0.25 and not depthwise else tuple(map(int, rng.integers(2, 6, 2)))
    )
    stride = int(rng.choice([1, 1, 2]))
    padding = Padding.SAME if min(height, width) < 6 or rng.random() < 0.7 else Padding.VALID
    shape = (1, *kernel, outputs) if depthwise else (outputs, *kernel, channels)
    lost = [k - 1 if padding == Padding.VALID else 0 for k in kernel]
    count = -(-(height - lost[0]) // stride), -(-(width - lost[1]) // stride)
    options = Conv2DOptions(padding=padding, stride_w=stride, stride_h=stride)
    if depthwise:
        options = DepthwiseConv2DOptions(
            padding=padding, stride_w=stride, stride_h=stride, depth_multiplier=1
        )
    affine = QuantizationParameters.affine
    scales = (rng.random(outputs) / 100 + 0.002).astype(np.float32)
    builder = ModelBuilder("layer")
    main = builder.subgraph("main")
    main.tensor("x", (1, height, width, channels), _INT8, affine(0.02, -3))
    codes = rng.integers(-127, 127, shape, np.int8, endpoint=True)
    axis = 3 if depthwise else 0
    main.constant("w", codes, _INT8, affine(scales.tolist(), [0] * outputs, axis))
    bias = rng.integers(-1000, 1000, outputs, np.int32)
    main.constant("b", bias, TensorType.INT32, affine((scales * 0.02).tolist(), [0] * outputs, 0))
    main.tensor("y", (1, *count, outputs), _INT8, affine(0.3, 3))
    op = Op.DEPTHWISE_CONV_2D if depthwise else Op.CONV_2D
    main.operator(op, ["x", "w", "b"], ["y"], options, version=3)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


def mean(rng: np.random.Generator) -> Model:
    """A drawn AVERAGE_POOL_2D of int8 codes whose windows reach over the edges."""
    channels = int(rng.choice([3, 8, 16, 24, 32, 64, 128, 256, 768]))
    most = int(3e5 / channels) ** 0.5
    height, width = (int(rng.integers(3, max(4, min(60, most)))) for _ in "hw")
    kernel, stride = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    codes, count = (
        QuantizationParameters.affine(0.02, -3),
        (-(-height // stride), -(-width // stride)),
    )
    options = Pool2DOptions(
        padding=Padding.SAME,
        stride_w=stride,
        stride_h=stride,
        filter_height=kernel,
        filter_width=kernel,
    )
    builder = ModelBuilder("layer")
    main = builder.subgraph("main")
    main.tensor("x", (1, height, width, channels), _INT8, codes)
    main.tensor("y", (1, *count, channels), _INT8, codes)
    main.operator(Op.AVERAGE_POOL_2D, ["x"], ["y"], options, version=2)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


def softmax(rng: np.random.Generator) -> Model:
    """A drawn SOFTMAX of int8 codes."""
    width = int(2 ** rng.uniform(1, 10.5))
    shape = (int(2 ** rng.uniform(0, min(10.0, 16 - np.log2(width)))), width)
    affine = QuantizationParameters.affine
    builder = ModelBuilder("layer")
    main = builder.subgraph("main")
    main.tensor("x", shape, _INT8, affine(0.1, 3)).tensor("y", shape, _INT8, affine(1 / 256, -128))
    main.operator(Op.SOFTMAX, ["x"], ["y"], SoftmaxOptions(beta=1.0), version=2)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


def product(rng: np.random.Generator) -> Model:
    """A drawn FULLY_CONNECTED of some rows of int8 codes."""
    depth, units = (int(2 ** rng.uniform(2, 10)) for _ in "du")
    if rng.random() < 0.6:
        depth, units = -(-depth // 16) * 16, -(-units // 16) * 16
    rows = int(2 ** rng.uniform(1, max(2.0, min(10.5, 24 - np.log2(depth * units)))))
    affine = QuantizationParameters.affine
    builder = ModelBuilder("layer")
    main = builder.subgraph("main").tensor("x", (rows, depth), _INT8, affine(0.02, -3))
    codes = rng.integers(-127, 127, (units, depth), np.int8, endpoint=True)
    main.constant("w", codes, _INT8, affine([0.01] * units, [0] * units, 0))
    bias = rng.integers(-1000, 1000, units, np.int32)
    main.constant("b", bias, TensorType.INT32, affine([0.0002] * units, [0] * units, 0))
    main.tensor("y", (rows, units), _INT8, affine(0.3, 3))
    options = FullyConnectedOptions()
    main.operator(Op.FULLY_CONNECTED, ["x", "w", "b"], ["y"], options, version=4)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


def transposed(rng: np.random.Generator) -> Model:
    """A drawn TRANSPOSE_CONV of int8 codes or of floats."""
    inputs, outputs = (int(2 ** rng.uniform(1, 6.5)) for _ in "io")
    most = max(3, int(2e5 / max(inputs, 4 * outputs)) ** 0.5)
    height, width = (int(rng.integers(2, min(40, most) + 1)) for _ in "hw")
    kernel, stride = int(rng.integers(2, 5)), int(rng.choice([1, 2, 2, 3]))
    of_codes = rng.random() < 0.6
    affine = QuantizationParameters.affine
    activations = (_INT8, affine(0.02, -3)) if of_codes else (TensorType.FLOAT32, None)
    builder = ModelBuilder("layer")
    main = builder.subgraph("main")
    output = (1, height * stride, width * stride, outputs)
    main.constant("size", np.array(output, np.int32))
    weights = rng.integers(-127, 127, (outputs, kernel, kernel, inputs), np.int8, endpoint=True)
    if of_codes:
        main.constant("w", weights, _INT8, affine(0.01, 0))
    else:
        main.constant("w", weights.astype(np.float32) / 100)
    main.tensor("x", (1, height, width, inputs), *activations)
    main.tensor("y", output, *activations)
    options = TransposeConvOptions(padding=Padding.SAME, stride_w=stride, stride_h=stride)
    main.operator(Op.TRANSPOSE_CONV, ["size", "w", "x"], ["y"], options, version=2)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


def cell(rng: np.random.Generator) -> Model:
    """A drawn UNIDIRECTIONAL_SEQUENCE_LSTM of integers."""
    units, steps = int(2 ** rng.uniform(3, 8)), int(2 ** rng.uniform(0, 5.5))
    return read_model(Network("integer", units, rng).model(steps, layers=1))


def state(rng: np.random.Generator) -> Model:
    """A drawn SVDF of int8 codes."""
    return read_model(svdf(rng, *(int(2 ** rng.uniform(2, most)) for most in (7, 8, 5.5))))


def svdf(rng: np.random.Generator, features: int, units: int, memory: int) -> bytes:
    """An SVDF of int8 codes."""
    affine, short = QuantizationParameters.affine, TensorType.INT16
    builder = ModelBuilder("layer")
    main = builder.subgraph("main").tensor("x", (1, features), _INT8, affine(0.05, -7))
    codes = rng.integers(-127, 127, (units, features), np.int8, endpoint=True)
    main.constant("feature", codes, _INT8, affine(0.006, 0))
    codes = rng.integers(-32767, 32767, (units, memory), np.int16, endpoint=True)
    main.constant("time", codes, short, affine(1 / 32767, 0))
    main.constant("b", rng.integers(-9, 9, units, np.int32), TensorType.INT32, affine(1e-5, 0))
    main.tensor("state", (1, units * memory), short, affine(2.0**-12, 0), is_variable=True)
    main.tensor("y", (1, units), _INT8, affine(0.03, -128))
    options = SVDFOptions(1, ActivationFunctionType.RELU)
    main.operator(Op.SVDF, ["x", "feature", "time", "b", "state"], ["y"], options, version=3)
    main.inputs("x").outputs("y")
    return builder.write()


# What is measured, by name.
_LAYERS = {
    "cells": cell,
    "convolutions": convolution,
    "means": mean,
    "products": product,
    "softmax": softmax,
    "states": state,
    "transposed": transposed,
}


def operators(model: Model) -> Iterator[OperatorView[Any]]:
    """The operators of a model, with all shapes."""
    resolver = BuiltinOpResolver()
    graph = specialize(model, 0, {}, resolver.kernels)
    for op in graph.operators:
        entry = resolver.translators.of(op)
        assert entry is not None
        yield entry.inputs.bind(op)


def measure(kind: str, threads: int, seconds: float) -> Iterator[Mapping[str, Any]]:
    """Rows of work and microseconds until the time is over."""
    rng, end = np.random.default_rng(_SEED), time.perf_counter() + seconds
    target = Target(exact_weight_type(), cpu_kernels=True, carried_boundary=True)
    translators = BuiltinOpResolver().translators
    while time.perf_counter() < end:
        for op in operators(_LAYERS[kind](rng)):
            lowerings = lowerings_of(op, target, translators)
            if len(lowerings) < 2:
                continue
            some = rng.choice(len(lowerings) - 1, min(_MOST_LOWERINGS, len(lowerings) - 1), False)
            kept = [lowerings[0], *(lowerings[1 + i] for i in some)]
            names = [each.name for each in kept]
            times = lowering_times(
                [op], names, target, translators, num_threads=threads, effort=_EFFORT
            )
            shapes = [tensor.shape for tensor in (*op.present_inputs(), op.output)]
            layer = f"{op.name} {shapes}"
            for each in kept:
                row = {"layer": layer, "lowering": each.name, "threads": threads}
                yield row | {"work": each.work, "us": times[each.name] * 1e6}


def fit(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Microseconds for one of each kind of work: the least relative errors, none below 0."""
    kinds = sorted({what for row in rows for what in row["work"]})
    work = np.array([[row["work"].get(what, 0.0) for what in kinds] for row in rows])
    work = np.column_stack([work, np.ones(len(rows))])  # what a session takes
    unit = work.max(axis=0)
    times = np.array([row["us"] for row in rows])
    costs = not_negative(work / unit / times[:, np.newaxis], np.ones(len(rows))) / unit
    return {what: float(f"{cost:.3g}") for what, cost in zip(kinds, costs, strict=False)}


def not_negative(matrix: FloatArray, wanted: FloatArray) -> FloatArray:
    """Least squares with no solution below 0, one coordinate at a time."""
    products, sums = matrix.T @ matrix, matrix.T @ wanted
    found = np.zeros(len(sums))
    for _ in range(2000):
        for i, sum_ in enumerate(sums):
            step = (products[i] @ found - sum_) / max(products[i, i], 1e-12)
            found[i] = max(0.0, found[i] - step)
    return found


def judge(rows: Sequence[Mapping[str, Any]], costs: Mapping[str, float]) -> str:
    """How good the choices by the model are: geometric means over the layers."""
    layers = defaultdict(list)
    for row in rows:
        layers[row["layer"]].append((Lowering(row["lowering"], row["work"], plain), row["us"]))
    chosen, best, worse = [], [], 0
    for tried in layers.values():
        times = {lowering.name: us for lowering, us in tried}
        first = tried[0][1]
        taken = times[cheapest([lowering for lowering, _ in tried], costs).name]
        chosen.append(taken / first)
        best.append(min(times.values()) / first)
        worse += taken > 1.05 * first
    means = [float(np.exp(np.mean(np.log(each)))) for each in (chosen, best)]
    return (
        f"{len(layers)} layers: times the first lowering's time, chosen {means[0]:.2f}, best "
        f"{means[1]:.2f}; {worse} are slower than the first by more than 5 %"
    )


def plain() -> None:
    """Stands for the nodes of a lowering."""


def lowerings_of(
    op: OperatorView[Any], target: Target, translators: Registry[Translator]
) -> list[Lowering]:
    """The lowerings that `op` can get; none where it has a single one.

    Raises:
        Untranslatable: with the reason.
    """
    found: list[Lowering] = []

    def noted(op: OperatorView[Any], lowerings: Sequence[Lowering]) -> str:
        found.extend(lowerings)
        return lowerings[0].name

    inputs = [tensor for tensor in op.present_inputs() if not tensor.is_constant]
    lower([op], inputs, op.outputs, translators, target=replace(target, choose=noted))
    return found


def main() -> None:
    """Measure, or fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure", "fit"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--layers", choices=_LAYERS, default="convolutions")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.what == "measure":
        rows = list(measure(arguments.layers, arguments.threads, arguments.seconds))
        write_text(arguments.out, json.dumps(rows))
        return
    rows = [row for file in arguments.files for row in json.loads(file.read_text())]
    costs = fit(rows)
    print(judge(rows, costs))
    known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    known.setdefault(kind_of_cpu(exact_weight_type()), {}).update(costs)
    write_text(arguments.out, json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()
