"""Other ONNX nodes for the operators that have one lowering: what each takes, over some shapes.

    python benchmarks/alternatives.py [--rounds N]

All nodes of a row give the same numbers. A graph has each of them thirty times over one input, so
that what a run costs does not count. Prints microseconds of one: the rows of docs/tuning_study.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

Array = npt.NDArray[Any]

_COPIES = 30
_SECONDS = 3.0  # of a row, at most
_MICROSOFT = "com.microsoft"
_SCALE, _OUT, _ZERO = np.float32(0.02), np.float32(0.7), np.uint8(7)
_NONE = np.uint8(0)


@dataclass
class Graph:
    """Nodes over one input, each copy with a result of its own."""

    x: Array
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def constant(self, values: npt.ArrayLike) -> str:
        array = np.asarray(values)
        name = f"{array.dtype}{array.shape}{hash(array.tobytes())}"
        self.constants[name] = array
        return name

    def op(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], domain=domain, **attributes))
        return name

    def quantised(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node of codes, inputs of which have their scale and zero point behind them."""
        return self.op(op, *inputs, domain=_MICROSOFT, **attributes)

    def codes(self, value: str = "x") -> tuple[str, str, str]:
        """A value, its scale and its zero point."""
        return value, self.constant(_SCALE), self.constant(_ZERO)

    @property
    def output(self) -> tuple[str, str]:
        return self.constant(_OUT), self.constant(_ZERO)

    def real(self, value: str = "x") -> str:
        return self.op("DequantizeLinear", *self.codes(value))

    def rounded(self, value: str) -> str:
        return self.op("QuantizeLinear", value, *self.output)

    def bytes(self) -> bytes:
        type_ = helper.np_dtype_to_tensor_dtype(self.x.dtype)
        graph = helper.make_graph(
            self.nodes,
            "copies",
            [helper.make_tensor_value_info("x", type_, self.x.shape)],
            [ValueInfoProto(name=name) for name in self.results],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


Build = Callable[[Graph], str]
# Operator, shape, the input, and the nodes that give the same.
Case = tuple[str, str, Array, dict[str, Build]]


def fully_connected(rng: np.random.Generator) -> Iterator[Case]:
    for rows, inputs, outputs in (
        (1, 64, 64),
        (1, 512, 32),
        (1, 1024, 1024),
        (4, 256, 256),
        (16, 128, 128),
        (49, 64, 64),
        (128, 256, 256),
        (128, 256, 1024),
        (197, 192, 768),
        (750, 8, 48),
        (750, 48, 8),
        (1000, 64, 64),
        (49, 1024, 256),
    ):
        w = rng.integers(-127, 127, (inputs, outputs)).astype(np.int8)
        scale, zero = np.full(outputs, 0.01, np.float32), np.zeros(outputs, np.int8)
        bias = np.ones(outputs, np.int32)

        def gemm(g: Graph, weights: Sequence[Array] = (w, scale, zero, bias)) -> str:
            given = [g.constant(each) for each in weights]
            return g.quantised("QGemm", *g.codes(), *given, *g.output)

        def convolution(g: Graph, weights: Sequence[Array] = (w, scale, zero, bias)) -> str:
            *_, width = g.x.shape
            cells = g.op("Reshape", "x", g.constant(np.int64([1, 1, -1, width])))
            filter = g.constant(np.ascontiguousarray(weights[0].T)[:, :, np.newaxis, np.newaxis])
            given = [filter, *(g.constant(each) for each in weights[1:3]), *g.output]
            made = g.quantised(
                "QLinearConv", *g.codes(cells), *given, g.constant(weights[3]), channels_last=1
            )
            return g.op("Reshape", made, g.constant(np.int64([-1, len(weights[3])])))

        x = rng.integers(0, 255, (rows, inputs)).astype(np.uint8)
        shape = f"{rows} x {inputs} to {outputs}"
        yield "FULLY_CONNECTED", shape, x, {"QGemm": gemm, "QLinearConv": convolution}


def sums(rng: np.random.Generator) -> Iterator[Case]:
    def add(g: Graph) -> str:
        return g.quantised("QLinearAdd", *g.codes(), *g.codes(g.constant(g.x)), *g.output)

    def in_floats(g: Graph) -> str:
        return g.rounded(g.op("Add", g.real(), g.real(g.constant(g.x))))

    for shape in ((1, 4, 4, 24), (1, 30, 25, 8), (1, 32, 32, 16), (1, 56, 56, 64)):
        x = rng.integers(0, 255, shape).astype(np.uint8)
        yield "ADD", by(shape), x, {"QLinearAdd": add, "floats": in_floats}


def global_means(rng: np.random.Generator) -> Iterator[Case]:
    def pool(g: Graph) -> str:
        return g.quantised("QLinearGlobalAveragePool", *g.codes(), *g.output, channels_last=1)

    def ones(g: Graph) -> str:
        _, height, width, channels = g.x.shape
        filter = g.constant(np.ones((channels, 1, height, width), np.int8))
        given = [filter, g.constant(np.float32(1 / (height * width))), g.constant(np.int8(0))]
        group = {"group": channels, "channels_last": 1}
        return g.quantised("QLinearConv", *g.codes(), *given, *g.output, **group)

    def in_floats(g: Graph) -> str:
        return g.rounded(g.op("ReduceMean", g.real(), g.constant(np.int64([1, 2]))))

    for shape in ((1, 3, 3, 256), (1, 7, 7, 1024), (1, 25, 5, 64), (1, 14, 14, 256)):
        x = rng.integers(0, 255, shape).astype(np.uint8)
        names = {"QLinearGlobalAveragePool": pool, "sums": ones, "floats": in_floats}
        yield "MEAN, AVERAGE_POOL_2D of an image", by(shape), x, names


def maxima(rng: np.random.Generator) -> Iterator[Case]:
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}

    def pool(g: Graph) -> str:
        return g.quantised("NhwcMaxPool", "x", **window)

    def transposed(g: Graph) -> str:
        first = g.op("Transpose", "x", perm=[0, 3, 1, 2])
        return g.op("Transpose", g.op("MaxPool", first, **window), perm=[0, 2, 3, 1])

    for shape in ((1, 18, 18, 16), (1, 82, 82, 16), (1, 14, 14, 256)):
        x = rng.integers(0, 255, shape).astype(np.uint8)
        yield "MAX_POOL_2D", by(shape), x, {"NhwcMaxPool": pool, "MaxPool": transposed}


def softmaxes(rng: np.random.Generator) -> Iterator[Case]:
    scale, zero = np.float32(1 / 256), np.uint8(0)

    def softmax(g: Graph) -> str:
        given = [*g.codes(), g.constant(scale), g.constant(zero)]
        return g.quantised("QLinearSoftmax", *given, axis=-1, opset=13)

    def in_floats(g: Graph) -> str:
        made = g.op("Softmax", g.real(), axis=-1)
        return g.op("QuantizeLinear", made, g.constant(scale), g.constant(zero))

    for shape in ((1, 10), (8, 8), (1, 256), (128, 128)):
        x = rng.integers(0, 255, shape).astype(np.uint8)
        yield "SOFTMAX", by(shape), x, {"QLinearSoftmax": softmax, "floats": in_floats}


def float_products(rng: np.random.Generator) -> Iterator[Case]:
    for rows, inputs, outputs in ((1, 64, 64), (1, 512, 512), (128, 256, 256)):
        w = rng.normal(size=(inputs, outputs)).astype(np.float32)
        b = np.ones(outputs, np.float32)

        def gemm(g: Graph, w: Array = w, b: Array = b) -> str:
            return g.op("Gemm", "x", g.constant(np.ascontiguousarray(w.T)), g.constant(b), transB=1)

        def product(g: Graph, w: Array = w, b: Array = b) -> str:
            return g.op("Add", g.op("MatMul", "x", g.constant(w)), g.constant(b))

        x = rng.normal(size=(rows, inputs)).astype(np.float32)
        shape = f"float, {rows} x {inputs} to {outputs}"
        yield "FULLY_CONNECTED", shape, x, {"Gemm": gemm, "MatMul, Add": product}


def transposed(rng: np.random.Generator) -> Iterator[Case]:
    """Stride 2 of 2x2 windows, which do not overlap: four phases are four times the channels."""
    for side, channels in ((8, 32), (32, 16)):
        w = rng.normal(size=(channels, channels, 2, 2)).astype(np.float32)

        def one(g: Graph, w: Array = w) -> str:
            return g.op("ConvTranspose", "x", g.constant(w), strides=[2, 2])

        def phases(g: Graph, w: Array = w) -> str:
            filter = w.transpose(2, 3, 1, 0).reshape(-1, len(w), 1, 1)
            made = g.op("Conv", "x", g.constant(np.ascontiguousarray(filter)))
            order = g.op("DepthToSpace", made, blocksize=2, mode="DCR")
            return order

        x = rng.normal(size=(1, channels, side, side)).astype(np.float32)
        names = {"ConvTranspose": one, "Conv, DepthToSpace": phases}
        yield "TRANSPOSE_CONV", f"float, {by(x.shape)}", x, names


def kept_cells(rng: np.random.Generator) -> Iterator[Case]:
    """A streaming layer reads the cells that it kept and new ones, and keeps the last of these.

    Each way gives the joined cells. What is kept is a view of them, or made by a node.
    """
    for kept, new, channels in ((2, 3, 40), (4, 1, 30), (20, 1, 60), (64, 1, 256), (512, 1, 64)):
        for dtype in (np.uint8, np.float32):
            x = rng.integers(0, 255, (1, kept, 1, channels)).astype(dtype)
            cells = rng.integers(0, 255, (1, new, 1, channels)).astype(dtype)

            def view(g: Graph, cells: Array = cells) -> str:
                return g.op("Concat", "x", g.constant(cells), axis=1)

            def sliced(g: Graph, cells: Array = cells) -> str:
                joined = g.op("Concat", "x", g.constant(cells), axis=1)
                count = len(cells[0])
                bounds = (count, count + len(g.x[0]), 1)
                g.op("Slice", joined, *(g.constant(np.int64([bound])) for bound in bounds))
                return joined

            def gathered(g: Graph, cells: Array = cells) -> str:
                joined = g.op("Concat", "x", g.constant(cells), axis=1)
                places = np.arange(len(cells[0]), len(cells[0]) + len(g.x[0]))
                g.op("Gather", joined, g.constant(places), axis=1)
                return joined

            kind = "codes" if dtype == np.uint8 else "float"
            shape = f"{kind}, {kept} cells and {new} of {channels}"
            names = {"Concat": view, "Concat, Slice": sliced, "Concat, Gather": gathered}
            yield "CONCATENATION and STRIDED_SLICE of a state", shape, x, names


def slopes_of_channels(rng: np.random.Generator) -> Iterator[Case]:
    """PRELU of floats; a RELU shows what one pass over the map takes."""
    for shape in ((1, 128, 128, 64), (1, 112, 112, 32)):
        *_, width, channels = shape
        slopes = rng.uniform(0.05, 0.3, channels).astype(np.float32)

        def row(g: Graph, slopes: Array = slopes, width: int = width) -> str:
            return g.op("Max", "x", g.op("Mul", "x", g.constant(np.tile(slopes, (width, 1)))))

        def channel(g: Graph, slopes: Array = slopes) -> str:
            return g.op("Max", "x", g.op("Mul", "x", g.constant(slopes)))

        def prelu(g: Graph, slopes: Array = slopes) -> str:
            return g.op("PRelu", "x", g.constant(slopes))

        x = rng.normal(size=shape).astype(np.float32)
        ways = {"Mul by a row, Max": row, "Mul, Max": channel, "PRelu": prelu}
        yield "PRELU", by(shape), x, ways
        yield "RELU", by(shape), x, {"Relu": lambda g: g.op("Relu", "x")}


def short_rows(rng: np.random.Generator) -> Iterator[Case]:
    """A product of rows and a constant row, which may be repeated for each of them."""
    for rows, width in ((256, 16), (64, 32), (16, 48), (64, 128)):
        x = rng.normal(size=(rows, width)).astype(np.float32)
        row = rng.normal(size=width).astype(np.float32)

        def repeated(g: Graph, row: Array = row, rows: int = rows) -> str:
            return g.op("Mul", "x", g.constant(np.tile(row, (rows, 1))))

        def once(g: Graph, row: Array = row) -> str:
            return g.op("Mul", "x", g.constant(row))

        yield "MUL by a row", by(x.shape), x, {"repeated row": repeated, "row": once}


def patches(rng: np.random.Generator) -> Iterator[Case]:
    """The cells of an image as patches of 2 x 2, as converters from PyTorch write it."""
    for side, channels in ((8, 32), (16, 32), (4, 48)):
        x, half = rng.normal(size=(1, side, side, channels)).astype(np.float32), side // 2

        def shaped(g: Graph, value: str, shape: Sequence[int]) -> str:
            return g.op("Reshape", value, g.constant(np.int64(shape)))

        def one(g: Graph, half: int = half) -> str:
            cut = shaped(g, "x", (half, 2, half, 2, g.x.shape[3]))
            return shaped(g, g.op("Transpose", cut, perm=[1, 3, 0, 2, 4]), (4, half**2, -1))

        def three(g: Graph, half: int = half) -> str:
            count = g.x.shape[3]
            first = g.op("Transpose", "x", perm=[0, 3, 1, 2])
            cut = shaped(g, first, (count * half, 2, half, 2))
            second = shaped(g, g.op("Transpose", cut, perm=[0, 2, 1, 3]), (1, count, half**2, 4))
            return shaped(g, g.op("Transpose", second, perm=[0, 3, 2, 1]), (4, half**2, count))

        ways = {"one Transpose": one, "three Transposes": three}
        yield "TRANSPOSE into patches", by(x.shape), x, ways


CASES = (
    *(fully_connected, sums, global_means, maxima, softmaxes, float_products, transposed),
    *(kept_cells, slopes_of_channels, short_rows, patches),
)


def by(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def runner(x: Array, build: Build) -> tuple[Callable[[], None], Array]:
    """A run of all copies, and the result of one."""
    graph = Graph(x)
    graph.results = [build(graph) for _ in range(_COPIES)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    # Equal copies would become one.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(graph.bytes(), options)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    for name in graph.results:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    result: Array = binding.copy_outputs_to_cpu()[0]
    return lambda: session.run_with_iobinding(binding), result


def measured(case: Case, rounds: int) -> dict[str, float]:
    """Microseconds of one copy, by name; the shortest of the turns that they take."""
    *_, x, builds = case
    made = {name: runner(x, build) for name, build in builds.items()}
    first, *others = (result for _, result in made.values())
    for other in others:
        np.testing.assert_allclose(other.astype(float), first.astype(float), atol=1, rtol=1e-4)
    shortest = dict.fromkeys(made, float("inf"))
    end = time.perf_counter() + _SECONDS
    for turn in range(rounds):
        if turn and time.perf_counter() > end:
            break
        for name, (run, _) in made.items():
            started = time.perf_counter()
            run()
            shortest[name] = min(shortest[name], time.perf_counter() - started)
    return {name: seconds * 1e6 / _COPIES for name, seconds in shortest.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(0)
    print("| operator | shape | µs |\n| --- | --- | --- |")
    for cases in CASES:
        for case in cases(rng):
            times = measured(case, rounds)
            told = ", ".join(f"{name} {us:.2f}" for name, us in times.items())
            print(f"| {case[0]} | {case[1]} | {told} |", flush=True)


if __name__ == "__main__":
    main()
