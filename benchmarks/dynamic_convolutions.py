"""Convolutions of floats by int8 weights: the ways that ONNX Runtime has for them, beside LiteRT.

    python -m benchmarks.dynamic_convolutions [--seconds S]

LiteRT rounds the input of such a layer to 8 bits and multiplies codes, as the library does where
that is faster. Shapes are those of InceptionV3 and ResNet. One thread, microseconds, the shortest
turn; each way runs alone, with its layout. Floats: `blocks` is what a layer in the middle of a
network takes, `Conv` the same with both changes of layout. Codes, with what makes them:
`ConvInteger` and the factor behind it; `rows`, the cells of windows as rows and one product, which
the library writes; `product`, the product of such rows alone, which is the floor. Prints the rows
of docs/tuning_study.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt
import onnxruntime

from benchmarks.alternatives import Graph
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import Conv2DOptions, ModelBuilder, Op, QuantizationParameters, TensorType
from tflite_ort.tuning.timing import Effort, shortest_turns

Array = npt.NDArray[Any]
Run = Callable[[], object]

# Cells of a side, channels of input and output, cells of the window.
SHAPES = [
    (35, 192, 64, 1),
    (35, 48, 64, 5),
    (17, 768, 192, 1),
    (8, 1280, 320, 1),
    (8, 384, 384, 3),
    (56, 64, 64, 3),
    (14, 256, 256, 3),
    (14, 1024, 256, 1),
    (7, 512, 512, 3),
]
_COPIES = 4  # convolutions in a row, of which the changes of layout at both ends are a small part


def weights(channels: int, outputs: int, side: int) -> Array:
    """[outputs, side, side, channels]"""
    rng = np.random.default_rng(0)
    return rng.integers(-127, 128, (outputs, side, side, channels), np.int8)


def of_litert(size: int, filter: Array) -> Run:
    """LiteRT's run of the layer."""
    builder = ModelBuilder()
    outputs, _, _, channels = filter.shape
    scales = QuantizationParameters(
        scale=np.full(outputs, 0.01, np.float32),
        zero_point=np.zeros(outputs, np.int64),
        quantized_dimension=0,
    )
    main = builder.subgraph("main").tensor("x", (1, size, size, channels))
    main.constant("w", filter, TensorType.INT8, scales).constant("b", np.ones(outputs, np.float32))
    main.tensor("y", (1, size, size, outputs))
    options = Conv2DOptions(stride_w=1, stride_h=1)
    main.operator(Op.CONV_2D, ["x", "w", "b"], ["y"], options, version=5)
    main.inputs("x").outputs("y")
    interpreter = litert.Interpreter(model_content=builder.write(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, image(size, channels))
    return interpreter.invoke


def image(size: int, channels: int) -> Array:
    shape = (1, size, size, channels)
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def in_floats(size: int, filter: Array, copies: int) -> Run:
    """Conv; several one after the other where channels of input and output are as many."""
    g = Graph(image(size, filter.shape[3]).transpose(0, 3, 1, 2).copy())
    value, kernel = "x", filter.transpose(0, 3, 1, 2).astype(np.float32) * np.float32(0.01)
    for _ in range(copies):
        value = g.op("Conv", value, g.constant(kernel), **_window(filter.shape[1]))
    return run_of(g, value)


def in_codes(size: int, filter: Array) -> Run:
    """DynamicQuantizeLinear, ConvInteger and the factor."""
    side, g = filter.shape[1], Graph(image(size, filter.shape[3]).transpose(0, 3, 1, 2).copy())
    codes, scale, zero = _codes(g)
    kernel = g.constant(filter.transpose(0, 3, 1, 2).copy())
    sums = g.op("ConvInteger", codes, kernel, zero, **_window(side))
    factor = g.op("Mul", scale, g.constant(np.full((len(filter), 1, 1), 0.01, np.float32)))
    return run_of(g, g.op("Mul", g.op("Cast", sums, to=1), factor))


def of_rows(size: int, filter: Array) -> Run:
    """As the library does: the cells of each window as a row of codes, and one product."""
    _, side, _, channels = filter.shape
    g = Graph(image(size, channels).reshape(-1, channels))
    codes, scale, zero = _codes(g)
    if side > 1:
        codes = g.op("Pad", codes, g.constant(np.array([0, 0, 1, 0])), zero)
        codes = g.op("Gather", codes, g.constant(_places(size, side)), axis=0)
        shape = np.array([size * size, side * side * channels])
        codes = g.op("Reshape", codes, g.constant(shape))
    return run_of(g, _product(g, codes, filter, scale, zero))


def of_collected_rows(size: int, filter: Array) -> Run:
    """The product alone."""
    rng, depth = np.random.default_rng(1), math.prod(filter.shape[1:])
    g = Graph(rng.integers(0, 256, (size * size, depth), np.uint8))
    one, zero = g.constant(np.float32(1)), g.constant(np.uint8(128))
    return run_of(g, _product(g, "x", filter, one, zero))


def _places(size: int, side: int) -> Array:
    """The cell that each part of each window reads; the last cell is padding."""
    reach = size + 2 * (side // 2)
    cells, inside = np.full((reach, reach), size * size, np.int32), slice(side // 2, -(side // 2))
    cells[inside, inside] = np.arange(size * size).reshape(size, size)
    windows = np.lib.stride_tricks.sliding_window_view(cells, (side, side))
    return windows.reshape(size * size, side * side)


def _product(g: Graph, codes: str, filter: Array, scale: str, zero: str) -> str:
    outputs = len(filter)
    matrix, middle = filter.reshape(outputs, -1).T.copy(), ""
    if exact_weight_type() == "uint8":
        matrix, middle = matrix.view(np.uint8) ^ np.uint8(128), g.constant(np.uint8(128))
    scales, bias = (g.constant(np.full(outputs, each, np.float32)) for each in (0.01, 1))
    operands = codes, g.constant(matrix), scale, scales, zero, middle, bias
    return g.op("MatMulIntegerToFloat", *operands, domain="com.microsoft")


def _codes(g: Graph) -> tuple[str, str, str]:
    codes = g.op("DynamicQuantizeLinear", "x")
    node = g.nodes[-1]
    node.output.extend([f"{codes}_scale", f"{codes}_zero"])
    return codes, f"{codes}_scale", f"{codes}_zero"


def _window(side: int) -> dict[str, list[int]]:
    return {"kernel_shape": [side, side], "pads": [side // 2] * 4}


def run_of(g: Graph, result: str) -> Run:
    g.results.append(result)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(g.bytes(), options, ["CPUExecutionProvider"])
    bound = session.io_binding()
    bound.bind_cpu_input("x", g.x)
    bound.bind_output(result)
    return lambda: session.run_with_iobinding(bound)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.1, help="of each way")
    seconds = parser.parse_args().seconds
    ways = "LiteRT | blocks | Conv | ConvInteger | rows | product"
    print(f"| cells | channels | window | {ways} |")
    print("| --- " * 9 + "|")
    for size, channels, outputs, side in SHAPES:
        filter = weights(channels, outputs, side)
        square = weights(outputs, outputs, side)
        runs = [of_litert(size, filter), in_floats(size, filter, 1), in_codes(size, filter)]
        runs += [of_rows(size, filter), of_collected_rows(size, filter)]
        runs += [in_floats(size, square, 1), in_floats(size, square, 1 + _COPIES)]
        times = [each * 1e6 for each in shortest_turns(runs, Effort(seconds))]
        theirs, conv, integer, rows, product, one, many = times
        # The layer has other channels than the copies: by the products of one.
        blocks = (many - one) / _COPIES * channels / outputs
        print(
            f"| {size} x {size} | {channels} to {outputs} | {side} x {side} | {theirs:.0f} "
            f"| {blocks:.0f} | {conv:.0f} | {integer:.0f} | {rows:.0f} | {product:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
