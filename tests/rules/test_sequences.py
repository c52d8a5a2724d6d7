"""Layers over time stay images of one row, with the numbers of the single operators."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.oracle import litert
from tests.rules.builder import Builder
from tflite_ort import Interpreter, export_onnx
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    ConcatenationOptions,
    Conv2DOptions,
    ExpandDimsOptions,
    GeluOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    Padding,
    ReducerOptions,
    SqueezeOptions,
    TensorType,
)

Array = npt.NDArray[Any]
RULE = "sequences as images"
SEED = 5
STEPS = 12


class Network(Builder):
    """Layers over [1, steps, channels]; all weights are drawn."""

    def __init__(self) -> None:
        super().__init__()
        print(f"seed {SEED}")
        self.rng = np.random.default_rng(SEED)

    def drawn(self, *shape: int) -> str:
        return self.constant(self.rng.normal(0, 0.5, shape))

    def image(self, x: str) -> str:
        n, steps, channels = self.tensors[x].shape
        return self.reshape(x, (n, 1, steps, channels))

    def convolved(self, image: str, channels: int) -> str:
        n, _, steps, wide = self.tensors[image].shape
        weights = [self.drawn(channels, 1, 3, wide), self.drawn(channels)]
        options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
        return self.op(Op.CONV_2D, [image, *weights], (n, 1, steps - 2, channels), options)

    def sequence(self, image: str) -> str:
        n, _, steps, channels = self.tensors[image].shape
        return self.reshape(image, (n, steps, channels))

    def layer(self, x: str, channels: int) -> str:
        """As Keras's Conv1D."""
        return self.sequence(self.convolved(self.image(x), channels))

    def padded(self, x: str, before: int = 2) -> str:
        n, steps, channels = self.tensors[x].shape
        pads = self.constant([[0, 0], [before, 0], [0, 0]], np.int32)
        return self.op(Op.PAD, [x, pads], (n, steps + before, channels))

    def same(self, op: Op, x: str, *others: str, options: Any = None) -> str:
        return self.op(op, [x, *others], self.tensors[x].shape, options)

    def content(self, *outputs: str) -> bytes:
        return graph_model(self.tensors, self.nodes, outputs)


def start(steps: int = STEPS, channels: int = 8) -> tuple[Network, str]:
    network = Network()
    return network, network.input("x", 1, steps, channels)


def moves(content: bytes, *, on: bool = True) -> int:
    """The nodes of its export that only move elements."""
    with without(*([] if on else [RULE])):
        nodes = export_onnx(content).graph.node
    counted = Counter(node.op_type for node in nodes)
    return sum(counted[name] for name in ("Reshape", "Squeeze", "Unsqueeze", "Transpose"))


def check(content: bytes, *, exact: bool = False, steps: int = STEPS, channels: int = 8) -> None:
    """LiteRT's numbers, and those of the single operators."""
    given = np.random.default_rng(SEED).normal(0, 1, (1, steps, channels)).astype(np.float32)
    results = ours(content, [given])[0]
    with without(RULE):
        single = ours(content, [given])[0]
    for got, want, reference in zip(results, single, litert(content, [given]), strict=True):
        assert got.shape == want.shape == reference.shape
        limit = 0 if exact else 2e-6 * np.abs(want).max()
        np.testing.assert_allclose(got, want, rtol=0, atol=limit)
        np.testing.assert_allclose(got, reference, rtol=0, atol=2e-5 * np.abs(want).max())


def test_two_layers_with_padding_between_them() -> None:
    n, x = start()
    y = n.same(Op.GELU, n.layer(n.padded(x), 6), options=GeluOptions())
    content = n.content(n.layer(n.padded(y), 4))
    check(content)
    assert moves(content) == 4 < moves(content, on=False)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("op", [Op.MEAN, Op.SUM, Op.REDUCE_MAX, Op.REDUCE_MIN])
def test_reductions_over_time(op: Op, keep: bool) -> None:
    n, x = start()
    y = n.same(Op.TANH, n.layer(x, 6))
    axes, shape = n.constant([-2], np.int32), (1, 1, 6) if keep else (1, 6)
    reduced = n.op(op, [y, axes], shape, ReducerOptions(keep_dims=keep))
    ends = [n.same(Op.MUL, y, n.same(Op.LOGISTIC, reduced))] if keep else [reduced]
    content = n.content(*(n.layer(end, 5) if keep else n.same(Op.TANH, end) for end in ends))
    check(content)
    assert moves(content) < moves(content, on=False)


@pytest.mark.parametrize("shape", [(), (6,), (1, 6), (10, 6), (1, 10, 6), (1, 1, 6), (1, 10, 1)])
def test_constants_of_any_rank(shape: tuple[int, ...]) -> None:
    n, x = start()
    y = n.same(Op.MUL, n.layer(x, 6), n.drawn(*shape))
    content = n.content(n.layer(n.same(Op.ADD, y, n.drawn(*shape)), 4))
    check(content)  # ONNX Runtime takes factors into the weights
    assert moves(content) < moves(content, on=False)


@pytest.mark.parametrize("axis", [1, 2, -1, -2])
def test_branches_that_are_joined(axis: int) -> None:
    n, x = start()
    one, other = n.layer(x, 6), n.same(Op.ABS, n.layer(x, 6))
    shape = list(n.tensors[one].shape)
    shape[axis] *= 2
    joined = n.op(Op.CONCATENATION, [one, other], shape, ConcatenationOptions(axis=axis))
    check(n.content(n.layer(joined, 4)), exact=True)


def test_a_residual_sum() -> None:
    n, x = start()
    y = n.layer(n.padded(x), 8)
    content = n.content(n.layer(n.same(Op.ADD, y, x), 4))
    check(content)
    assert moves(content) < moves(content, on=False)


def test_other_paddings() -> None:
    n, x = start()
    y = n.layer(x, 6)
    pads = n.constant([[0, 0], [1, 2], [0, 1]], np.int32)
    y = n.op(Op.PADV2, [y, pads, n.constant(0.5)], (1, 13, 7))
    pads, mode = n.constant([[0, 0], [3, 1], [0, 0]], np.int32), MirrorPadMode.REFLECT
    y = n.op(Op.MIRROR_PAD, [y, pads], (1, 17, 7), MirrorPadOptions(mode=mode))
    check(n.content(n.layer(y, 4)), exact=True)


def test_results_and_other_readers_get_sequences() -> None:
    n, x = start()
    middle = n.same(Op.ABS, n.layer(x, 6))
    image = n.image(n.same(Op.NEG, middle))
    order = n.constant([0, 2, 1], np.int32)
    turned = n.op(Op.TRANSPOSE, [middle, order], (1, 6, 10))
    check(n.content(n.sequence(n.convolved(image, 4)), middle, image, turned), exact=True)


def test_expand_dims_and_squeeze_of_a_result() -> None:
    n, x = start()
    axis = n.constant(1, np.int32)
    image = n.op(Op.EXPAND_DIMS, [x, axis], (1, 1, 12, 8), ExpandDimsOptions())
    y = n.op(Op.SQUEEZE, [n.convolved(image, 6)], (1, 10, 6), SqueezeOptions(squeeze_dims=(1,)))
    image = n.op(Op.EXPAND_DIMS, [n.same(Op.ABS, y), axis], (1, 1, 10, 6), ExpandDimsOptions())
    check(n.content(image, n.sequence(n.convolved(image, 3))), exact=True)


def test_any_reshape_may_read_an_image() -> None:
    n, x = start()
    y = n.same(Op.TANH, n.layer(x, 6))
    flat = n.reshape(y, (1, 60))
    check(n.content(flat, n.layer(y, 3)), exact=True)


def test_a_single_layer_stays_as_it_is() -> None:
    n, x = start()
    content = n.content(n.same(Op.TANH, n.layer(x, 6)))
    assert export_onnx(content) == _without(content)


def _without(content: bytes) -> onnx.ModelProto:
    with without(RULE):
        return export_onnx(content)


def test_codes_keep_their_means() -> None:
    """TFLite computes means over rows and columns of codes otherwise than those over time."""
    print(f"seed {SEED}")
    rng, code = np.random.default_rng(SEED), TensorType.INT8
    tensors = {"x": T((1, 10, 8), code, 0.05, 3), "shape": T.constant(np.int32([1, 1, 10, 8]))}
    tensors["w"] = T.constant(rng.integers(-99, 99, (6, 1, 3, 8)).astype(np.int8), scale=0.01)
    tensors["b"] = T.constant(rng.integers(-999, 999, 6).astype(np.int32), scale=0.0005)
    tensors["v"] = T.constant(rng.integers(-99, 99, (6, 1, 3, 6)).astype(np.int8), scale=0.01)
    tensors |= {"i": T((1, 1, 10, 8), code, 0.05, 3), "c": T((1, 1, 8, 6), code, 0.1, -7)}
    tensors |= {"s": T((1, 8, 6), code, 0.1, -7), "three": T.constant(np.int32([1, 8, 6]))}
    tensors |= {"t": T((1, 8, 6), code, 0.1, -7), "four": T.constant(np.int32([1, 1, 8, 6]))}
    tensors |= {"j": T((1, 1, 8, 6), code, 0.1, -7), "d": T((1, 1, 6, 6), code, 0.2, 5)}
    tensors |= {"m": T((1, 6), code, 0.03, 1), "axis": T.constant(np.int32([1]))}
    options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
    nodes = [
        Node(Op.RESHAPE, ["x", "shape"], ["i"]),
        Node(Op.CONV_2D, ["i", "w", "b"], ["c"], options, 3),
        Node(Op.RESHAPE, ["c", "three"], ["s"]),
        Node(Op.RELU, ["s"], ["t"], None, 2),
        Node(Op.MEAN, ["t", "axis"], ["m"], ReducerOptions(), 2),
        Node(Op.RESHAPE, ["t", "four"], ["j"]),
        Node(Op.CONV_2D, ["j", "v", "b"], ["d"], options, 3),
    ]
    content = graph_model(tensors, nodes, ["m", "d"])
    given = rng.integers(-128, 127, (1, 10, 8), endpoint=True).astype(np.int8)
    for got, want in zip(ours(content, [given])[0], litert(content, [given]), strict=True):
        assert np.array_equal(got, want)


def test_open_batches() -> None:
    n, x = start()
    y = n.same(Op.GELU, n.layer(n.padded(x), 6), options=GeluOptions())
    content = n.content(n.layer(n.padded(y), 4))
    given = np.random.default_rng(SEED).normal(0, 1, (3, STEPS, 8)).astype(np.float32)
    together = Interpreter(model_content=content, batch=3)
    together.allocate_tensors()
    together.set_tensor(0, given)
    together.invoke()
    found = together.get_tensor(together.get_output_details()[0]["index"])
    single = np.concatenate([ours(content, [each[None]])[0][0] for each in given])
    np.testing.assert_allclose(found, single, rtol=0, atol=1e-6)
