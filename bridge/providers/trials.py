"""What ONNX Runtime and its providers can do on this machine, found by trying."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowering import OPSET
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.providers.graph_session import graph_session
from tflite_ort.providers.provider import DeviceMemory, Provider
from tflite_ort.schema import DelegateError


def known_options(provider: str) -> list[str]:
    """The options that a provider tells of in a session, where it does; needs its hardware."""
    try:
        session = graph_session(identity(), Provider(provider))
    except DelegateError:
        return []
    return sorted(session.options())


def check_provider(provider: Provider) -> None:
    """See whether the provider takes its options.

    Raises:
        DelegateError: it could not be made ready, with what ONNX Runtime says.
    """
    graph_session(identity(), provider)


def device_memory(provider: Provider) -> DeviceMemory | None:
    """Where sessions of the provider can hand tensors on in its own memory, found by trying once;
    None where that is the host's memory, or ONNX Runtime cannot."""
    options = tuple(sorted((str(key), str(value)) for key, value in provider.options.items()))
    return _device_memory(provider.name, options, provider.plugin, provider.device)


@cache
def _device_memory(
    name: str, options: tuple[tuple[str, str], ...], plugin: bool, device: str
) -> DeviceMemory | None:
    provider = Provider(name, dict(options), plugin, device)
    try:
        session = graph_session(identity(), provider)
        place = session.output_place()
        if place is None:
            return None
        given, got = np.full(1, 3, np.float32), np.zeros(1, np.float32)
        between = DeviceTensor(place)
        session.run(session.bind([given], [between]))
        session.run(session.bind([between], [got]))
    except DelegateError:
        return None
    return place if got == given else None


def identity() -> ir.Model:
    """The smallest model there is."""
    x, y = (ir.Value(name, dtype=ir.DataType.FLOAT, shape=(1,)) for name in "xy")
    graph = ir.Graph([x], [y], [ir.Node("Identity", [x], [y])], name="identity")
    return ir.Model(graph, opset_imports={"": OPSET})


@cache
def exact_weight_type() -> str:
    """The fastest type of quantized weights that this CPU multiplies exactly, found by trying.

    Without VNNI, ONNX Runtime's x86 kernels add pairs of uint8 x int8 products in 16 bits, which
    saturates; uint8 x uint8 is exact but takes twice the time where VNNI is there.
    """
    depth, codes = 64, np.full((64, 32), 127, np.int8)
    activations = ir.Value("a", dtype=ir.DataType.UINT8, shape=(4, depth))
    weights = ir.Value("b", const_value=ir.Tensor(codes))
    result = ir.Value("y", dtype=ir.DataType.INT32)
    node = ir.Node("MatMulInteger", [activations, weights], [result])
    graph = ir.Graph([activations], [result], [node], initializers=[weights], name="products")
    session = graph_session(ir.Model(graph, opset_imports={"": OPSET}), num_threads=1)
    products = np.zeros((4, 32), np.int32)
    session.run(session.bind([np.full((4, depth), 255, np.uint8)], [products]))
    return "int8" if (products == depth * 255 * 127).all() else "uint8"


@cache
def exact_runs() -> bool:
    """Whether MatMulNBits of 8-bit weights rounds the runs of a single row and multiplies their
    codes exactly, found by trying.

    Kernels without VNNI may add pairs of products in 16 bits, which the largest codes show. Where
    there is no kernel of 8 bits, activations stay floats, and it takes many times as long.
    """
    depth, units = 128, 4
    row, weights = np.full((1, depth), 127, np.float32), np.zeros((units, depth), np.uint8)
    row[:, 2::4], row[:, 3::4], row[:, 7::8] = -127, -127, 0.25  # which becomes 0
    weights[1], weights[2, ::2], weights[3, 1::2] = 255, 255, 255
    x = ir.Value("x", dtype=ir.DataType.FLOAT, shape=row.shape)
    results, nodes, initializers = list[ir.Value](), list[ir.Node](), list[ir.Value]()
    for run in (32, 64, 128):
        shape = units, depth // run, run
        codes = ir.Value(f"codes_{run}", const_value=ir.Tensor(weights.reshape(shape)))
        ones = np.ones(units * depth // run, np.float32)
        scales = ir.Value(f"scales_{run}", const_value=ir.Tensor(ones))
        results.append(ir.Value(f"y_{run}", dtype=ir.DataType.FLOAT))
        sizes = {"K": depth, "N": units, "bits": 8, "block_size": run, "accuracy_level": 4}
        operands, made = [x, codes, scales], [results[-1]]
        nodes.append(
            ir.Node("MatMulNBits", operands, made, domain="com.microsoft", attributes=sizes)
        )
        initializers += [codes, scales]
    graph = ir.Graph([x], results, nodes, initializers=initializers, name="runs")
    sets = {"": OPSET, "com.microsoft": 1}
    session = graph_session(ir.Model(graph, opset_imports=sets), num_threads=1)
    products = [np.zeros((1, units), np.float32) for _ in results]
    session.run(session.bind([row], products))
    return all((each == np.rint(row) @ (weights.T - 128.0)).all() for each in products)


# Weights of two neighbouring channels whose products with codes of 255 sum to as much as 16 bits
# hold, or to less.
_PAIRS = np.array([(127, 1), (-127, -1), (64, 64), (-128, 0), (127, -128), (1, 127)], np.int8)
_CHANNELS, _SIDE, _MIDDLE = 16, 4, 128


@cache
def multiplies_in_pairs() -> bool:
    """Whether convolutions of codes by int8 weights are exact where no sum of the products of two
    neighbouring channels exceeds 16 bits, and depthwise ones with any weights; found by trying.

    ONNX Runtime has two kernels for dense layers, one of them for multiples of 8 channels. The bias
    takes the exact sums off, so that a single quantum shows.
    """
    shape = (1, _CHANNELS, _SIDE, _SIDE)
    codes = ir.Value("x", dtype=ir.DataType.UINT8, shape=shape)
    graph, found = ir.Graph([codes], [], [], name="layers"), []
    unit = graph.add_initializer("unit", np.array(1, np.float32))
    zero = graph.add_initializer("zero", np.array(0, np.uint8))
    signed_zero = graph.add_initializer("signed_zero", np.array(0, np.int8))
    middle = graph.add_initializer("middle", np.array(_MIDDLE, np.uint8))
    for number, weights in enumerate(_largest_weights()):
        own = graph.add_initializer(f"weights{number}", weights)
        sums = 255 * weights.sum(axis=(1, 2, 3), dtype=np.int32)
        bias = graph.add_initializer(f"bias{number}", -sums)
        inputs = [codes, unit, zero, own, unit, signed_zero, unit, middle, bias]
        result = ir.Value(f"y{number}", dtype=ir.DataType.UINT8)
        groups = {"group": _CHANNELS // weights.shape[1]}
        graph.nodes.append(ir.Node("QLinearConv", inputs, [result], attributes=groups))
        graph.outputs.append(result)
        side = _SIDE + 1 - weights.shape[2]
        found.append(np.zeros((1, len(weights), side, side), np.uint8))
    session = graph_session(ir.Model(graph, opset_imports={"": OPSET}), num_threads=1)
    session.run(session.bind([np.full(shape, 255, np.uint8)], found))
    return all((each == _MIDDLE).all() for each in found)


def _largest_weights() -> Iterator[npt.NDArray[np.int8]]:
    """Weights [out, in / groups, kh, kw] of dense layers and of a depthwise one."""
    pairs = np.resize(_PAIRS, (_CHANNELS, 2))
    # Each pair, then itself in the other order: no sum of two others would fit.
    pairs = np.tile(np.hstack([pairs, pairs[:, ::-1]]), (1, _CHANNELS // 4))
    few = _CHANNELS - 4
    for channels, kernel in ((_CHANNELS, 1), (_CHANNELS, 3), (few, 1), (few, 3), (few, _SIDE)):
        yield np.tile(pairs[:channels, :, None, None], (1, 1, kernel, kernel))
    depthwise = np.empty((_CHANNELS, 1, 3, 3), np.int8)
    depthwise[::2], depthwise[1::2] = 127, -128
    yield depthwise
