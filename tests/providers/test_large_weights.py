"""Large float weights of large models are read in place, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model, one_op_model, ours
from tests.optimised import optimised_graphs
from tflite_ort import Interpreter
from tflite_ort.providers import large_weights
from tflite_ort.providers.session import Session
from tflite_ort.schema import (
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    GatherOptions,
    Op,
    Padding,
    TensorType,
)

SEED = 14
RNG = np.random.default_rng(SEED)
WEIGHTS = {name: RNG.standard_normal((64, 64), np.float32) for name in ("e", "w", "m", "a")}
NODES = [
    Node(Op.GATHER, ["e", "i"], ["x"], GatherOptions()),
    Node(Op.FULLY_CONNECTED, ["x", "w", "b"], ["y"], FullyConnectedOptions()),
    Node(Op.BATCH_MATMUL, ["y", "m"], ["z"], BatchMatMulOptions()),
    Node(Op.ADD, ["z", "a"], ["r"], AddOptions()),
]


def model(rows: int) -> bytes:
    constants = {name: T.constant(array) for name, array in WEIGHTS.items()}
    constants |= {"b": T.constant(np.ones(64, np.float32))}
    tensors = {"i": T((rows,), TensorType.INT32), **constants}
    return graph_model(tensors | {name: T((rows, 64)) for name in "xyzr"}, NODES, ["r"])


def results(content: bytes, rows: int) -> list[Any]:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    found = []
    for first in (0, 40):
        interpreter.set_tensor(0, np.arange(first, first + rows, dtype=np.int32) % 64)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return found


@pytest.mark.parametrize("rows", [1, 64])
def test_weights_in_place_give_the_same(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    content, seen, bind = model(rows), set[str](), Session.bind
    expected = results(content, rows)

    def noted(self: Session, *arguments: Any) -> Any:
        seen.update(self.in_place)
        return bind(self, *arguments)

    monkeypatch.setattr(Session, "bind", noted)
    results(content, rows)
    assert not seen  # a small model's are handed over to be packed
    monkeypatch.setattr(large_weights, "LARGE_MODEL_BYTES", 1 << 14)
    monkeypatch.setattr(large_weights, "_LARGE_BYTES", 1 << 12)
    for found, wanted in zip(results(content, rows), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
    # What is added is no factor: fusions may look at it.
    assert {name.removeprefix("const/") for name in seen} == {"e", "w", "m"}


@pytest.mark.parametrize("channels", [1, 3])
def test_few_channels_of_large_maps_are_not_made_in_blocks(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime would make a map of 16 channels."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    weights = T.constant(rng.normal(size=(channels, 3, 3, 2)).astype(np.float32))
    options = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    inputs = [T((1, 20, 30, 2)), weights, T.constant(np.ones(channels, np.float32))]
    content = one_op_model(Op.CONV_2D, inputs, [T((1, 20, 30, channels))], options)
    image = rng.normal(size=(1, 20, 30, 2)).astype(np.float32)
    (plain,) = ours(content, [image])[0]
    monkeypatch.setattr(large_weights, "_LARGE_MAP", 16 * 20 * 30)
    (graph,) = optimised_graphs(content, num_threads=1)
    assert "com.microsoft.nchwc" not in {node.domain for node in graph.graph.node}
    (bounded,) = ours(content, [image])[0]
    np.testing.assert_allclose(bounded, plain, rtol=0, atol=1e-6 * np.abs(plain).max())
