"""Attention over caches, cut to what the mask shows: the numbers of the unfused graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tflite_ort import Interpreter
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    BridgeError,
    ModelBuilder,
    MulOptions,
    Op,
    ReducerOptions,
    SoftmaxOptions,
    TensorType,
)
from tflite_ort.schema.builder import SubgraphBuilder

Array = npt.NDArray[Any]

TOKENS, SIZE = 280, 32
# Sums of the same products in another order, and a scale multiplied at another place.
RTOL = 3e-6
SEED = 4


@dataclass(frozen=True)
class Layer:
    """An attention of `heads` over caches of `kept` heads, of `queries` new tokens.

    Args:
        repeated: the heads of the cache are repeated, as litert-torch does it; else queries that
            share one are rows of one product, as the hub's exports do it.
        apart: the mask is added to the scores of each head apart, of several that share one.
        scaled: queries are multiplied by a number before they get their shape.
        flat: values of one head are [tokens, size].
        alone: all heads of the cache have the same queries.
        table: the mask is looked up in a table, as JAX's take does it.
        blind: the last row of the table hides all tokens.
        first: what the table says of the first token.
    """

    heads: int = 6
    kept: int = 2
    queries: int = 1
    repeated: bool = True
    apart: bool = False
    scaled: bool = False
    flat: bool = False
    alone: bool = False
    tokens: int = TOKENS
    table: bool = False
    blind: bool = True
    first: float = 0.0
    beta: float = 1.0
    activation: ActivationFunctionType = ActivationFunctionType.NONE

    @property
    def rows(self) -> int:
        """Of the mask."""
        return self.queries if self.repeated or self.apart else self.product_rows

    @property
    def product_rows(self) -> int:
        """Of a product's left-hand side."""
        return self.queries if self.repeated else self.queries * self.heads // self.kept

    def content(self) -> bytes:
        builder = ModelBuilder()
        graph = builder.subgraph()
        parts = self._repeated(graph) if self.repeated else self._grouped(graph)
        groups, product, mask = parts
        graph.tensor("mask", mask)
        if self.table:
            self._look_up(graph)
        (scores, adjoint), (values, adjoint_values) = product
        shape = (*groups, self.product_rows)
        apart = (self.heads, 1, self.queries) if self.apart else shape
        for name in ("scores", "masked0", "weights"):
            graph.tensor(name, (*shape, self.tokens))
        graph.tensor("scores0", (*apart, self.tokens)).tensor("masked", (*apart, self.tokens))
        graph.tensor("result", (*shape, SIZE))
        first, second = BatchMatMulOptions(adj_y=adjoint), BatchMatMulOptions(adj_y=adjoint_values)
        graph.operator(Op.BATCH_MATMUL, [self._queries(graph), scores], ["scores"], first)
        self._reshape(graph, "scores", "scores0")
        options = AddOptions(fused_activation_function=self.activation)
        graph.operator(Op.ADD, ["scores0", "mask"], ["masked"], options)
        self._reshape(graph, "masked", "masked0")
        graph.operator(Op.SOFTMAX, ["masked0"], ["weights"], SoftmaxOptions(beta=self.beta))
        graph.operator(Op.BATCH_MATMUL, ["weights", values], ["result"], second)
        graph.inputs("q", "new_k", "new_v", "k", "v", "x" if self.table else "mask", "at_k", "at_v")
        graph.outputs("result", "k_out", "v_out")
        return builder.write()

    def _repeated(self, graph: SubgraphBuilder) -> Any:
        """Caches [1, tokens, kept, size]; keys are scaled, turned and repeated."""
        cache, new = (1, self.tokens, self.kept, SIZE), (1, self.queries, self.kept, SIZE)
        share, groups = self.heads // self.kept, (self.heads,)
        graph.tensor("q", (*groups, self.queries, SIZE))
        for name in "kv":
            self._written(graph, name, cache, new)
            turned = (1, self.kept, self.tokens, SIZE)
            graph.tensor(f"{name}1", turned).tensor(f"{name}2", (*turned[:2], 1, *turned[2:]))
            graph.tensor(f"{name}3", (*turned[:2], share, *turned[2:]))
            graph.tensor(f"{name}4", (1, self.heads, *turned[2:]))
            graph.operator(Op.TRANSPOSE, [f"{name}_out", "0213"], [f"{name}1"])
            self._reshape(graph, f"{name}1", f"{name}2")
            shape = f"{name}_repeated"
            graph.constant(shape, np.int32(graph[f"{name}3"].shape))
            graph.operator(Op.BROADCAST_TO, [f"{name}2", shape], [f"{name}3"], version=2)
            self._reshape(graph, f"{name}3", f"{name}4")
        graph.tensor("k5", (1, self.heads, self.tokens, SIZE))
        graph.tensor("k6", (1, self.heads, SIZE, self.tokens))
        graph.tensor("k7", (self.heads, SIZE, self.tokens)).tensor(
            "v7", (self.heads, self.tokens, SIZE)
        )
        graph.constant("scale", np.float32(0.125)).constant("0132", np.int32([0, 1, 3, 2]))
        graph.operator(Op.MUL, ["k4", "scale"], ["k5"], MulOptions())
        graph.operator(Op.TRANSPOSE, ["k5", "0132"], ["k6"])
        self._reshape(graph, "k6", "k7")
        self._reshape(graph, "v4", "v7")
        if self.flat:
            graph.tensor("v8", (self.tokens, SIZE))
            self._reshape(graph, "v_out", "v8")
        values = "v8" if self.flat else "v7"
        return groups, (("k7", False), (values, False)), (1, self.queries, self.tokens)

    def _grouped(self, graph: SubgraphBuilder) -> Any:
        """Keys [1, kept, tokens, size] and values [1, kept, size, tokens], as they are."""
        groups = (1, self.kept)
        heads = (1, 1) if self.alone else groups
        graph.tensor("q", (*heads, self.product_rows, SIZE))
        self._written(graph, "k", (*groups, self.tokens, SIZE), (*groups, self.queries, SIZE))
        self._written(graph, "v", (*groups, SIZE, self.tokens), (*groups, SIZE, self.queries))
        return groups, (("k_out", True), ("v_out", True)), (1, 1, self.rows, self.tokens)

    def _look_up(self, graph: SubgraphBuilder) -> None:
        """Rows `x` of a table of masks."""
        queries, tokens = self.queries, self.tokens
        rows = causal(tokens, 0, -np.inf, tokens).astype(np.float32)
        rows[:, 0] = self.first
        if self.blind:
            rows[-1] = -1e38
        graph.constant("table", rows.reshape(tokens, 1, tokens))
        for name, number in (("zero", [0]), ("count", [tokens]), ("first", [[0]]), ("axis", [1])):
            graph.constant(name, np.int32(number))
        graph.constant("last", np.int32([[tokens - 1]])).tensor("x", (queries,), TensorType.INT32)
        for name in ("negative", "all"):
            graph.tensor(name, (queries,), TensorType.BOOL)
        for name in ("above", "below", "both"):
            graph.tensor(name, (queries, 1), TensorType.BOOL)
        for name in ("later", "wrapped"):
            graph.tensor(name, (queries,), TensorType.INT32)
        graph.tensor("index", (queries, 1), TensorType.INT32)
        graph.constant("index_shape", np.int32([queries, 1])).constant("nan", np.float32(np.nan))
        graph.tensor("filled", graph["mask"].shape).tensor("gathered", (queries, 1, tokens))
        graph.tensor("inside", (*graph["mask"].shape[:-1], 1), TensorType.BOOL)
        graph.constant("rows_shape", np.int32(graph["mask"].shape))
        graph.constant("inside_shape", np.int32(graph["inside"].shape))
        graph.operator(Op.LESS, ["x", "zero"], ["negative"])
        graph.operator(Op.ADD, ["x", "count"], ["later"], AddOptions())
        graph.operator(Op.SELECT, ["negative", "later", "x"], ["wrapped"])
        graph.operator(Op.RESHAPE, ["wrapped", "index_shape"], ["index"])
        graph.operator(Op.GREATER_EQUAL, ["index", "first"], ["above"])
        graph.operator(Op.LESS_EQUAL, ["index", "last"], ["below"])
        graph.operator(Op.LOGICAL_AND, ["above", "below"], ["both"])
        graph.operator(Op.REDUCE_ALL, ["both", "axis"], ["all"], ReducerOptions())
        graph.operator(Op.GATHER_ND, ["table", "index"], ["gathered"])
        graph.operator(Op.RESHAPE, ["gathered", "rows_shape"], ["filled"])
        graph.operator(Op.RESHAPE, ["all", "inside_shape"], ["inside"])
        graph.operator(Op.SELECT_V2, ["inside", "filled", "nan"], ["mask"])

    def _queries(self, graph: SubgraphBuilder) -> str:
        """What the first product reads."""
        if not self.scaled:
            return "q"
        shape = graph["q"].shape
        graph.tensor("q1", shape).tensor("q2", (1, *shape)).tensor("q3", shape)
        graph.constant("factor", np.float32(0.3))
        graph.operator(Op.MUL, ["q", "factor"], ["q1"], MulOptions())
        self._reshape(graph, "q1", "q2")
        self._reshape(graph, "q2", "q3")
        return "q3"

    def _written(self, graph: SubgraphBuilder, name: str, cache: Any, new: Any) -> None:
        graph.tensor(name, cache).tensor(f"new_{name}", new).tensor(f"{name}_out", cache)
        graph.tensor(f"at_{name}", (4,), TensorType.INT32)
        inputs = [name, f"new_{name}", f"at_{name}"]
        graph.operator(Op.DYNAMIC_UPDATE_SLICE, inputs, [f"{name}_out"])
        if name == "k" and self.repeated:
            graph.constant("0213", np.int32([0, 2, 1, 3]))

    def _reshape(self, graph: SubgraphBuilder, source: str, target: str) -> None:
        graph.constant(f"{target}_shape", np.int32(graph[target].shape))
        graph.operator(Op.RESHAPE, [source, f"{target}_shape"], [target])

    def inputs(self, mask: Array, start: int) -> list[Array]:
        """q, new_k, new_v, k, v, mask and the places."""
        rng = np.random.default_rng(SEED)
        model = self.content()
        places = np.int32([0, start, 0, 0])
        places = places if self.repeated else np.int32([0, 0, start, 0])
        values = places if self.repeated else np.int32([0, 0, 0, start])
        shapes = _shapes(model)
        drawn = [rng.normal(0, 1, shape).astype(np.float32) for shape in shapes[:5]]
        full = np.broadcast_to(mask, (self.rows, self.tokens)).reshape(shapes[5])
        return [*drawn, np.ascontiguousarray(full, np.float32), places, values]


def _shapes(model: bytes) -> list[tuple[int, ...]]:
    details = Interpreter(model_content=model).get_input_details()
    return [tuple(each["shape"]) for each in details]


def causal(rows: int, start: int, hidden: float, tokens: int = TOKENS) -> Array:
    return np.where(np.arange(tokens) <= start + np.arange(rows)[:, None], 0, hidden)


LAYERS = {
    "repeated": Layer(),
    "repeated, many": Layer(queries=5),
    "one head": Layer(heads=4, kept=1, queries=2, tokens=540),
    "as many heads": Layer(heads=4, kept=4, queries=3),
    "grouped": Layer(heads=4, repeated=False),
    "grouped, many": Layer(heads=4, queries=3, repeated=False),
    "grouped, masked apart": Layer(heads=4, repeated=False, apart=True, scaled=True),
    "many, masked apart": Layer(heads=4, queries=3, repeated=False, apart=True),
    "flat values": Layer(heads=4, kept=1, tokens=540, scaled=True, flat=True),
}


def check(layer: Layer, inputs: list[Array], *, theirs: bool = True) -> None:
    print(f"seed {SEED}")
    model = layer.content()
    got, want = answers(model, inputs), unfused(model, inputs)
    others = [want, litert(model, inputs)] if theirs else [want]
    for other in others:
        for mine, each in zip(got, other, strict=True):
            limit = RTOL * np.nanmax(np.abs(each), initial=1)
            np.testing.assert_allclose(mine, each, rtol=0, atol=limit)


@pytest.mark.parametrize("hidden", [-np.inf, -0.7 * np.finfo(np.float32).max, -1e30, -1e9, -10.0])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_a_causal_mask(layer: Layer, hidden: float) -> None:
    for start in (0, 17, layer.tokens - layer.queries):
        check(layer, layer.inputs(causal(layer.rows, start, hidden, layer.tokens), start))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_masks_of_any_kind(layer: Layer) -> None:
    rng, shape = np.random.default_rng(SEED), (layer.rows, layer.tokens)
    lowest = np.finfo(np.float32).min
    holes = np.where(rng.random(shape) < 0.3, 0, lowest)
    holes[:, 5] = 0
    check(layer, layer.inputs(holes, 3))
    check(layer, layer.inputs(np.zeros(shape), 3))
    check(layer, layer.inputs(rng.normal(0, 3, shape), 3))
    none = causal(layer.rows, 2, -1e38, layer.tokens)
    none[-1] = -1e38  # then all rows of the caches have the same weight
    check(layer, layer.inputs(none, 3))


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_caches_are_read_where_they_are(layer: Layer) -> None:
    counts = optimised_nodes(layer.content())
    assert counts["FusedMatMul"] + counts["MatMul"] == 2
    assert counts["Softmax"] == 1
    assert counts["Transpose"] == counts["Expand"] == 0
    assert counts["Slice"] >= 3


@pytest.mark.parametrize("queries", [1, 3])
def test_a_mask_that_is_looked_up(queries: int) -> None:
    """How far it reaches is looked up too; the last row of the table shows no token."""
    layer = Layer(queries=queries, table=True)
    rng, model = np.random.default_rng(SEED), layer.content()
    drawn = [rng.normal(0, 1, shape).astype(np.float32) for shape in _shapes(model)[:5]]
    for start in (0, 17, TOKENS - 1 - queries, TOKENS - queries, -9):
        rows = start + np.arange(queries, dtype=np.int32)
        place = np.int32([0, max(start, 0), 0, 0])
        check(layer, [*drawn, rows, place, place])
    counts = optimised_nodes(model)
    assert counts["LessOrEqual"] == counts["Where"] == 0
    assert (counts["Gather"], counts["ReduceMax"]) == (2, 0 if queries == 1 else 1)


@pytest.mark.parametrize(("blind", "first"), [(False, 0.0), (True, 0.0), (False, -1.5)])
def test_a_mask_that_is_known_by_its_end_is_not_added(blind: bool, first: float) -> None:
    """Other masks add something to a token that they show, or hide all tokens."""
    layer = Layer(table=True, blind=blind, first=first)
    rng, model = np.random.default_rng(SEED), layer.content()
    drawn = [rng.normal(0, 1, shape).astype(np.float32) for shape in _shapes(model)[:5]]
    for row in (0, 1, 17, TOKENS - 2, TOKENS - 1, -1, -9):
        place = np.int32([0, max(row, 0), 0, 0])
        check(layer, [*drawn, np.int32([row]), place, place])
    counts = optimised_nodes(model)
    is_added = blind or bool(first)
    # Two more clip the places of the caches.
    assert (counts["Gather"], counts["Add"] - 2) == ((2, 1) if is_added else (1, 0))
    with pytest.raises(BridgeError):
        answers(model, [*drawn, np.int32([TOKENS]), place, place])


def test_small_caches_are_not_cut() -> None:
    counts = optimised_nodes(Layer(tokens=40).content())
    assert (counts["FusedMatMul"], counts["ReduceMax"]) == (2, 0)
    check(Layer(tokens=40), Layer(tokens=40).inputs(causal(1, 4, -np.inf, 40), 4))


OTHERS = {
    "beta": Layer(beta=0.5),
    "activation": Layer(activation=ActivationFunctionType.RELU),
    "the same queries for all heads": Layer(heads=2, repeated=False, alone=True),
}


@pytest.mark.parametrize("layer", OTHERS.values(), ids=OTHERS)
def test_other_layers_are_left_as_they_are(layer: Layer) -> None:
    assert optimised_nodes(layer.content())["ReduceMax"] == 0
    check(layer, layer.inputs(causal(1, 9, -np.inf), 9), theirs=False)


def test_what_stands_behind_the_last_token_does_not_matter() -> None:
    """LiteRT multiplies it by 0; a NaN there becomes a NaN."""
    layer = LAYERS["grouped"]
    inputs = layer.inputs(causal(layer.rows, 9, -np.inf, layer.tokens), 9)
    (want, *_), behind = answers(layer.content(), inputs), [each.copy() for each in inputs]
    behind[3][:, :, 60:], behind[4][..., 60:] = np.nan, np.inf
    (got, *_) = answers(layer.content(), behind)
    np.testing.assert_array_equal(got, want)
