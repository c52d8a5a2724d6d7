"""What ONNX Runtime and its providers can do on this machine, found by trying."""

from __future__ import annotations

from functools import cache

import numpy as np

from tflite_ort.opmap.graph import ir
from tflite_ort.opmap.graph.lowering import OPSET
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.provider import DeviceMemory, Provider
from tflite_ort.schema import DelegateError


def known_options(provider: str) -> list[str]:
    """The options that a provider tells of in a session, where it does; needs its hardware."""
    try:
        session = model_session(identity(), Provider(provider))
    except DelegateError:
        return []
    return sorted(session.options())


def check_provider(provider: Provider) -> None:
    """See whether the provider takes its options.

    Raises:
        DelegateError: it could not be made ready, with what ONNX Runtime says.
    """
    model_session(identity(), provider)


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
        session = model_session(identity(), provider)
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
    """The fastest type of quantised weights that this CPU multiplies exactly, found by trying.

    Without VNNI, ONNX Runtime's x86 kernels add pairs of uint8 x int8 products in 16 bits, which
    saturates; uint8 x uint8 is exact but takes twice the time where VNNI is there.
    """
    depth, codes = 64, np.full((64, 32), 127, np.int8)
    activations = ir.Value("a", dtype=ir.DataType.UINT8, shape=(4, depth))
    weights = ir.Value("b", const_value=ir.Tensor(codes))
    result = ir.Value("y", dtype=ir.DataType.INT32)
    node = ir.Node("MatMulInteger", [activations, weights], [result])
    graph = ir.Graph([activations], [result], [node], initializers=[weights], name="products")
    session = model_session(ir.Model(graph, opset_imports={"": OPSET}), num_threads=1)
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
    session = model_session(ir.Model(graph, opset_imports=sets), num_threads=1)
    products = [np.zeros((1, units), np.float32) for _ in results]
    session.run(session.bind([row], products))
    return all((each == np.rint(row) @ (weights.T - 128.0)).all() for each in products)
