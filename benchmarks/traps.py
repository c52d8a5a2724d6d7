"""Layers that ONNX Runtime once ran far slower than LiteRT, as they are now.

    python -m benchmarks.traps [--seconds S]

PRELU over large maps, and normalisation and rotary embeddings written as MUL, SUB, MEAN and
CONCATENATION over large float tensors. One thread, microseconds of an invoke, the shortest turn, as
the rows of docs/tuning_study.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.by_operator import network
from tflite_ort.schema import (
    AddOptions,
    ConcatenationOptions,
    ModelBuilder,
    MulOptions,
    Op,
    ReducerOptions,
    SubgraphBuilder,
    SubOptions,
)
from tflite_ort.tuning.timing import Effort

Sizes = tuple[int, ...]


def started(shape: Sizes) -> tuple[ModelBuilder, SubgraphBuilder]:
    builder = ModelBuilder()
    return builder, builder.subgraph("main").tensor("x", shape).tensor("y", shape)


def prelu(shape: Sizes, slopes: Sizes) -> bytes:
    builder, main = started(shape)
    drawn = np.random.default_rng(0).uniform(0.05, 0.3, slopes)
    main.constant("slopes", drawn.astype(np.float32))
    main.operator(Op.PRELU, ["x", "slopes"], ["y"])
    main.inputs("x").outputs("y")
    return builder.write()


def normalised(shape: Sizes) -> bytes:
    """(x - mean) / sqrt(mean of squares + epsilon) * factor + term"""
    builder, main = started(shape)
    single = (*shape[:-1], 1)
    main.constant("axis", np.int32([len(shape) - 1])).constant("epsilon", np.float32(1e-6))
    main.constant("factor", np.full(shape[-1], 1.5, np.float32))
    main.constant("term", np.full(shape[-1], 0.5, np.float32))
    for name in ("centred", "squares", "unit", "scaled"):
        main.tensor(name, shape)
    for name in ("mean", "variance", "positive", "inverse"):
        main.tensor(name, single)
    keep = ReducerOptions(keep_dims=True)
    main.operator(Op.MEAN, ["x", "axis"], ["mean"], keep)
    main.operator(Op.SUB, ["x", "mean"], ["centred"], SubOptions())
    main.operator(Op.MUL, ["centred", "centred"], ["squares"], MulOptions())
    main.operator(Op.MEAN, ["squares", "axis"], ["variance"], keep)
    main.operator(Op.ADD, ["variance", "epsilon"], ["positive"], AddOptions())
    main.operator(Op.RSQRT, ["positive"], ["inverse"])
    main.operator(Op.MUL, ["centred", "inverse"], ["unit"], MulOptions())
    main.operator(Op.MUL, ["unit", "factor"], ["scaled"], MulOptions())
    main.operator(Op.ADD, ["scaled", "term"], ["y"], AddOptions())
    main.inputs("x").outputs("y")
    return builder.write()


def rotated(shape: Sizes) -> bytes:
    """x * cos + (-second half, first half) * sin"""
    builder, main = started(shape)
    half = (*shape[:-1], shape[-1] // 2)
    angles = np.random.default_rng(0).standard_normal(shape[-2:]).astype(np.float32)
    main.constant("cos", np.cos(angles)).constant("sin", np.sin(angles))
    begin = np.zeros(len(shape), np.int32)
    middle = np.int32([*begin[:-1], half[-1]])
    main.constant("size", np.int32(half)).constant("begin", begin).constant("middle", middle)
    for name in ("first", "second", "negative"):
        main.tensor(name, half)
    for name in ("turned", "a", "b"):
        main.tensor(name, shape)
    main.operator(Op.SLICE, ["x", "begin", "size"], ["first"])
    main.operator(Op.SLICE, ["x", "middle", "size"], ["second"])
    main.operator(Op.NEG, ["second"], ["negative"])
    last = ConcatenationOptions(axis=len(shape) - 1)
    main.operator(Op.CONCATENATION, ["negative", "first"], ["turned"], last)
    main.operator(Op.MUL, ["x", "cos"], ["a"], MulOptions())
    main.operator(Op.MUL, ["turned", "sin"], ["b"], MulOptions())
    main.operator(Op.ADD, ["a", "b"], ["y"], AddOptions())
    main.inputs("x").outputs("y")
    return builder.write()


def cases() -> Iterator[tuple[str, str, bytes]]:
    for shape in ((1, 128, 128, 64), (1, 64, 64, 128), (1, 112, 112, 32)):
        yield "PRELU, a slope a channel", by(shape), prelu(shape, (1, 1, shape[3]))
    yield "PRELU, a slope a cell", by((1, 64, 64, 32)), prelu((1, 64, 64, 32), (64, 64, 32))
    yield "PRELU, one slope", by((1, 128, 128, 32)), prelu((1, 128, 128, 32), (1, 1, 1))
    for shape in ((1, 512, 1024), (1, 128, 256)):
        yield "normalisation", by(shape), normalised(shape)
    for shape in ((1, 16, 512, 64), (1, 8, 64, 64)):
        yield "rotary embedding", by(shape), rotated(shape)


def by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.03, help="of each")
    effort = Effort(parser.parse_args().seconds)
    print("| layers | shape | LiteRT | ours |\n| --- | --- | --- | --- |")
    for name, shape, content in cases():
        theirs, ours = network(content, 1, effort)
        print(f"| {name} | {shape} | {theirs:.0f} | {ours:.0f} |", flush=True)


if __name__ == "__main__":
    main()
