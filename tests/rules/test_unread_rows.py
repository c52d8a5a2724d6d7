"""Rows that nothing reads are not computed, and what is read stays the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.one_op import graph_model, ours
from tests.optimised import optimised_graphs
from tests.oracle import litert
from tests.rules.builder import Builder
from tflite_ort.opmap import Graph
from tflite_ort.opmap.rules.operators import unread_rows
from tflite_ort.opmap.rules.operators.needed_rows import Rows
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    BatchMatMulOptions,
    BridgeError,
    FullyConnectedOptions,
    GeluOptions,
    Op,
    ReducerOptions,
    SoftmaxOptions,
    StridedSliceOptions,
)

Array = npt.NDArray[Any]
SEED = 8
TOKENS, WIDTH, HEADS = 24, 48, 4


class Network(Builder):
    """Layers over [batch, tokens, width]; all weights are drawn."""

    def __init__(self, batch: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng, self.batch = rng, batch
        self.whole = (batch, TOKENS, WIDTH)

    def drawn(self, *shape: int) -> str:
        return self.constant(self.rng.normal(0, shape[-1] ** -0.5, shape))

    def dense(self, x: str, units: int = WIDTH, *, keep: bool = True) -> str:
        shape = self.tensors[x].shape
        shape = (*shape[:-1], units) if keep else (int(np.prod(shape[:-1])), units)
        weights = [self.drawn(units, self.tensors[x].shape[-1]), self.drawn(units)]
        options = FullyConnectedOptions(keep_num_dims=keep)
        return self.op(Op.FULLY_CONNECTED, [x, *weights], shape, options)

    def heads(self, x: str) -> str:
        split = self.reshape(x, (self.batch, TOKENS, HEADS, WIDTH // HEADS))
        order = self.constant([0, 2, 1, 3], np.int32)
        shape = (self.batch, HEADS, TOKENS, WIDTH // HEADS)
        return self.op(Op.TRANSPOSE, [split, order], shape)

    def attention(self, x: str, *, masked: bool = False) -> str:
        q, k, v = (self.heads(self.dense(x)) for _ in range(3))
        square = (self.batch, HEADS, TOKENS, TOKENS)
        scores = self.op(Op.BATCH_MATMUL, [q, k], square, BatchMatMulOptions(adj_y=True))
        if masked:
            scores = self.op(Op.ADD, [scores, self.drawn(1, 1, TOKENS, TOKENS)], square)
        weights = self.op(Op.SOFTMAX, [scores], square, SoftmaxOptions(beta=1.0))
        mixed = self.op(Op.BATCH_MATMUL, [weights, v], self.tensors[v].shape)
        order = self.constant([0, 2, 1, 3], np.int32)
        shape = (self.batch, TOKENS, HEADS, WIDTH // HEADS)
        return self.reshape(self.op(Op.TRANSPOSE, [mixed, order], shape), self.whole)

    def norm(self, x: str) -> str:
        shape, last = self.tensors[x].shape, self.constant([-1], np.int32)
        mean = self.op(Op.MEAN, [x, last], (*shape[:-1], 1))
        return self.op(Op.SUB, [x, mean], shape)

    def layer(self, x: str, *, masked: bool = False) -> str:
        y = self.dense(self.attention(self.norm(x), masked=masked), keep=False)
        x = self.op(Op.ADD, [self.reshape(y, self.whole), x], self.whole)
        wide = self.op(Op.GELU, [self.dense(x, 96)], (*self.whole[:2], 96), GeluOptions())
        return self.op(Op.ADD, [self.dense(wide), x], self.whole)

    def cut(self, x: str, begin: Sequence[int], size: Sequence[int]) -> str:
        bounds = [self.constant(each, np.int32) for each in (begin, size)]
        return self.op(Op.SLICE, [x, *bounds], size)

    def content(self, *outputs: str) -> bytes:
        return graph_model(self.tensors, self.nodes, outputs)


def whole_products(content: bytes, batch: int = 1) -> int:
    """How many of the products that ONNX Runtime runs have rows of all tokens."""
    found = 0
    with without("fewer reshapes"):  # it writes products that have no rows
        graphs = optimised_graphs(content)
    for graph in graphs:
        inferred = onnx.shape_inference.infer_shapes(graph).graph
        known = {each.name: each.type.tensor_type.shape.dim for each in inferred.value_info}
        found += sum(
            node.op_type in {"Gemm", "FusedGemm"}
            and known[node.output[0]][0].dim_value == batch * TOKENS
            for node in graph.graph.node
            if node.output[0] in known
        )
    return found


def first_token(n: Network, x: str) -> str:
    return n.dense(n.cut(x, (0, 0, 0), (n.batch, 1, WIDTH)))


def last_token_dropped_axis(n: Network, x: str) -> str:
    bounds = [(0, -1, 0), (n.batch, 0, WIDTH), (1, 1, 1)]
    inputs = [x, *(n.constant(each, np.int32) for each in bounds)]
    options = StridedSliceOptions(begin_mask=5, end_mask=5, shrink_axis_mask=2)
    return n.dense(n.op(Op.STRIDED_SLICE, inputs, (n.batch, WIDTH), options))


def every_third_token(n: Network, x: str) -> str:
    bounds = [(0, 2, 0), (n.batch, TOKENS, WIDTH), (1, 3, 1)]
    inputs = [x, *(n.constant(each, np.int32) for each in bounds)]
    shape = (n.batch, len(range(2, TOKENS, 3)), WIDTH)
    return n.dense(n.op(Op.STRIDED_SLICE, inputs, shape, StridedSliceOptions()))


def of_rows(n: Network, x: str) -> str:
    """A row of all tokens of all sequences."""
    flat = n.reshape(x, (n.batch * TOKENS, WIDTH))
    return n.dense(n.cut(flat, (5, 0), (1, WIDTH)))


ENDS: dict[str, Callable[[Network, str], str]] = {
    each.__name__: each for each in (first_token, last_token_dropped_axis, every_third_token)
}


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "masked"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_last_layer_computes_what_is_read(
    end: Callable[[Network, str], str], batch: int, masked: bool
) -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    n = Network(batch, rng)
    x = n.input("x", *n.whole)
    for _ in range(2):
        x = n.layer(x, masked=masked)
    content = n.content(end(n, x))
    check(content, rng.normal(0, 1, n.whole))
    # Of two layers with six products each, all but the keys and the values of the second one.
    assert whole_products(content, batch) == 8


def check(content: bytes, x: Array) -> None:
    x = x.astype(np.float32)
    (want,), ((got,), runners) = litert(content, [x]), ours(content, [x])
    assert runners == {"ort"}
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_what_something_else_reads_is_computed_whole() -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    n = Network(1, rng)
    x = n.layer(n.layer(n.input("x", *n.whole)))
    content = n.content(first_token(n, x), x)
    assert whole_products(content) == 12
    given = rng.normal(0, 1, n.whole).astype(np.float32)
    for got, want in zip(ours(content, [given])[0], litert(content, [given]), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def test_two_tokens_of_two_readers_are_computed_whole() -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    n = Network(1, rng)
    x = n.layer(n.input("x", *n.whole))
    ends = [n.dense(n.cut(x, (0, place, 0), (1, 1, WIDTH))) for place in (0, 7)]
    content = n.content(n.op(Op.ADD, ends, (1, 1, WIDTH)))
    assert whole_products(content) == 6
    check(content, rng.normal(0, 1, n.whole))


def test_a_row_of_all_sequences() -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    n = Network(2, rng)
    x = n.layer(n.input("x", *n.whole))
    check(n.content(of_rows(n, x)), rng.normal(0, 1, n.whole))


def any_step(n: Network, x: str) -> str:
    """A layer of any kind, of as many numbers."""
    shape = n.tensors[x].shape
    kind = int(n.rng.integers(0, 9))
    if kind == 0:
        return n.dense(x)
    if kind == 1:
        return n.reshape(n.dense(x, keep=False), shape)
    if kind == 2:
        return n.op(Op.ADD, [x, n.drawn(*shape[1:])], shape)
    if kind == 3:
        return n.op(Op.TANH, [n.op(Op.MUL, [x, n.drawn(1, shape[1], 1)], shape)], shape)
    if kind == 4:
        parts = [n.cut(x, (0, 0, first), (*shape[:2], WIDTH // 2)) for first in (0, WIDTH // 2)]
        return n.op(Op.CONCATENATION, parts[::-1], shape)
    if kind == 5:
        return n.attention(x)
    if kind == 6:
        return n.op(Op.SOFTMAX, [x], shape, SoftmaxOptions(beta=1.0))
    if kind == 7:
        flat = n.norm(n.reshape(x, (shape[0] * shape[1], WIDTH)))
        return n.reshape(n.dense(flat), shape)
    turned = (shape[0], WIDTH, shape[1])
    moved = n.op(Op.TRANSPOSE, [x, n.constant([0, 2, 1], np.int32)], turned)
    product = n.op(Op.BATCH_MATMUL, [n.drawn(WIDTH, WIDTH), moved], turned)
    return n.op(Op.TRANSPOSE, [product, n.constant([0, 2, 1], np.int32)], shape)


def test_any_network(monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")
    monkeypatch.setattr(unread_rows, "_COSTS", unread_rows._COSTS._replace(slice=0.0))
    cut, emit = list[int](), unread_rows.Cut.emit
    for seed in range(40):

        def noted(self: unread_rows.Cut, g: Graph, seed: int = seed) -> None:
            cut.append(seed)
            emit(self, g)

        monkeypatch.setattr(unread_rows.Cut, "emit", noted)
        rng = np.random.default_rng([SEED, seed])
        n = Network(int(rng.integers(1, 4)), rng)
        made = [n.dense(n.input("x", *n.whole))]
        for _ in range(int(rng.integers(2, 7))):
            made.append(any_step(n, made[-1]))
            if rng.random() < 0.3:
                made.append(n.op(Op.ADD, [made[-1], made[int(rng.integers(len(made)))]], n.whole))
        end = list(ENDS.values())[int(rng.integers(len(ENDS)))]
        check(n.content(end(n, made[-1])), rng.normal(0, 1, n.whole))
    assert len(set(cut)) > 30


@pytest.mark.parametrize("op", [Op.TANH, Op.MEAN, Op.TRANSPOSE, Op.SLICE, Op.STRIDED_SLICE])
def test_inputs_that_no_operator_has_are_refused(op: Op) -> None:
    n = Network(1, np.random.default_rng(SEED))
    x, lasts = n.dense(n.input("x", *n.whole)), n.constant([2], np.int32)
    order, zeros = n.constant([0, 1, 2], np.int32), n.constant([0, 0, 0], np.int32)
    size, ones = n.constant(n.whole, np.int32), n.constant([1, 1, 1], np.int32)
    more = {Op.MEAN: [lasts], Op.TRANSPOSE: [order], Op.SLICE: [zeros, size]}
    operands = {**more, Op.STRIDED_SLICE: [zeros, size, ones]}.get(op, [])
    options = {Op.MEAN: ReducerOptions(keep_dims=True), Op.STRIDED_SLICE: StridedSliceOptions()}
    shape = (*n.whole[:2], 1) if op is Op.MEAN else n.whole
    y = n.op(op, [x, *operands, ones], shape, options.get(op))
    bounds = [n.constant(each, np.int32) for each in ((0, 0, 0), (1, 1, shape[2]))]
    content = n.content(n.op(Op.SLICE, [y, *bounds, zeros], (1, 1, shape[2])))
    with pytest.raises(BridgeError, match="inputs, expected"):
        ours(content, [np.zeros(n.whole, np.float32)])


def test_rows_of_another_shape_are_the_same_elements() -> None:
    print(f"seed {SEED}")
    rng, seen = np.random.default_rng(SEED), 0
    for _ in range(400):
        sizes = [int(size) for size in rng.choice([1, 2, 3, 4, 6], 4)]
        shape, other = (joined(sizes, rng) for _ in range(2))
        axis = int(rng.integers(len(shape)))
        first, step = int(rng.integers(shape[axis])), int(rng.integers(1, 4))
        count = len(range(first, shape[axis], step))
        rows = Rows(axis, first, step, int(rng.integers(1, count + 1)))
        found = rows.reshaped(shape, other)
        if found is not None:
            seen += 1
            assert np.array_equal(elements(found, other), elements(rows, shape))
    assert seen > 200


def joined(sizes: Sequence[int], rng: np.random.Generator) -> tuple[int, ...]:
    """A shape of as many elements in as good an order."""
    shape = [1]
    for size in sizes:
        if rng.random() < 0.4:
            shape[-1] *= size
        else:
            shape.append(size)
    return tuple(shape)


def elements(rows: Rows, shape: tuple[int, ...]) -> Array:
    whole = np.arange(int(np.prod(shape))).reshape(shape)
    return whole[(*((slice(None),) * rows.axis), rows.taken)].ravel()
