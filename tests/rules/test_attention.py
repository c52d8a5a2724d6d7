"""Softmax attention as one node, against the unfused graph and LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tflite_ort import export_onnx
from tflite_ort.opmap.rules.operators.views import Strided
from tflite_ort.schema import AddOptions, BatchMatMulOptions, MulOptions, Op, SoftmaxOptions

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Model:
    """Attention of `heads` heads over inputs [batch, tokens, heads * size].

    Args:
        keys: the number of tokens of keys and values; None: as many as queries.
        value_size: of a head of values; None: `size`.
        mask: the shape of what is added to the scores; None: nothing.
        fixed: it is a constant.
        scales: a number by which queries and keys are multiplied, and one for the scores.
        merged: batch and heads are one dimension in the products.
        adjoint: the second product has the transposed flag for the keys.
        heads_first: the inputs are [batch, heads, tokens, size], and so is the result.
        beta: of SOFTMAX.
        order: how the result is turned.
        packed: the order of q, k and v in one input, "x" for something else; those that are not
            named are inputs of their own.
        cut: where they stand in it: one after the other for each ``token``, so too but ``turned``
            before they are cut, as torch does it, or one after the other in the ``batch``.
    """

    batch: int = 1
    heads: int = 3
    tokens: int = 5
    size: int = 8
    keys: int | None = None
    value_size: int | None = None
    mask: tuple[int, ...] | None = None
    fixed: bool = False
    scales: tuple[float, float] | None = None
    merged: bool = False
    adjoint: bool = True
    heads_first: bool = False
    beta: float = 1.0
    order: tuple[int, ...] = (0, 2, 1, 3)
    also: Sequence[str] = ()
    packed: str = ""
    cut: str = "token"

    def content(self) -> bytes:
        """The model."""
        return _Builder(self).content()

    def inputs(self, seed: int = 0) -> list[Array]:
        """Random inputs; half of the mask is far below 0."""
        print(f"seed {seed}")
        rng, tensors = np.random.default_rng(seed), _Builder(self).tensors
        names = [
            *(name for name in "qkv" if name not in self.packed),
            *["packed"] * bool(self.packed),
        ]
        arrays = [rng.normal(0, 1, tensors[name].shape).astype(np.float32) for name in names]
        if self.mask is not None and not self.fixed:
            arrays.append(_random_mask(rng, self.mask))
        return arrays


def _random_mask(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.where(rng.random(shape) < 0.5, 0, -1e9).astype(np.float32)


class _Builder:
    def __init__(self, model: Model) -> None:
        self.model = model
        keys = model.tokens if model.keys is None else model.keys
        value_size = model.size if model.value_size is None else model.value_size
        self.rows = {
            "q": (model.tokens, model.size),
            "k": (keys, model.size),
            "v": (keys, value_size),
        }
        self.tensors: dict[str, T] = {}
        self.nodes: list[Node] = []
        for name, (tokens, size) in self.rows.items():
            shape = (model.batch, tokens, model.heads * size)
            if model.heads_first:
                shape = (model.batch, model.heads, tokens, size)
            if name not in model.packed:
                self.tensors[name] = T(shape)
        if model.packed:
            lead = (3 * model.batch if model.cut == "batch" else model.batch), keys
            row = model.heads * model.size
            self.tensors["packed"] = T((*lead, row if model.cut == "batch" else 3 * row))
        if model.mask is not None:
            drawn = _random_mask(np.random.default_rng(0), model.mask)
            self.tensors["mask"] = T.constant(drawn) if model.fixed else T(model.mask)

    def op(self, op: Op, inputs: Sequence[str], shape: Sequence[int], options: Any = None) -> str:
        name = f"t{len(self.nodes)}"
        self.tensors[name] = T(tuple(shape))
        self.nodes.append(Node(op, list(inputs), [name], options))
        return name

    def moved(self, op: Op, input: str, operand: Sequence[int], shape: Sequence[int]) -> str:
        name = f"c{len(self.nodes)}"
        self.tensors[name] = T.constant(np.int32(operand))
        return self.op(op, [input, name], shape)

    def scaled(self, input: str, number: float) -> str:
        name = f"c{len(self.nodes)}"
        self.tensors[name] = T.constant(np.float32(number))
        return self.op(Op.MUL, [input, name], self.tensors[input].shape, MulOptions())

    def operand(self, name: str) -> str:
        model, (tokens, size) = self.model, self.rows[name]
        value, shape = name, (model.batch, tokens, model.heads, size)
        if name in model.packed:
            value = self.part(model.packed.index(name))
        if model.scales is not None and name != "v":
            value = self.scaled(value, model.scales[0])
        if not model.heads_first:
            value = self.moved(Op.RESHAPE, value, shape, shape)
            value = self.moved(Op.TRANSPOSE, value, (0, 2, 1, 3), [shape[i] for i in (0, 2, 1, 3)])
        if name == "k" and not model.adjoint:
            swapped = (model.batch, model.heads, size, tokens)
            value = self.moved(Op.TRANSPOSE, value, (0, 1, 3, 2), swapped)
        if model.merged:
            *lead, rows, columns = self.tensors[value].shape
            shape3 = (int(np.prod(lead)), rows, columns)
            value = self.moved(Op.RESHAPE, value, shape3, shape3)
        return value

    def part(self, number: int) -> str:
        """Of what is packed, the part of this number."""
        model = self.model
        batch, tokens, row = model.batch, self.rows["k"][0], model.heads * model.size
        value, begin, shape = "packed", (0, 0, number * row), (batch, tokens, row)
        if model.cut == "batch":
            begin = (number * batch, 0, 0)
        elif model.cut == "turned":
            value = self.moved(Op.RESHAPE, value, four := (batch, tokens, 3, row), four)
            turned = (3, batch, tokens, row)
            value = self.moved(Op.TRANSPOSE, value, (2, 0, 1, 3), turned)
            begin, shape = (number, 0, 0, 0), (1, *shape)
        names = f"b{len(self.nodes)}", f"s{len(self.nodes)}"
        for name, numbers in zip(names, (begin, shape), strict=True):
            self.tensors[name] = T.constant(np.int32(numbers))
        return self.op(Op.SLICE, [value, *names], shape)

    def content(self) -> bytes:
        model = self.model
        q, k, v = (self.operand(name) for name in "qkv")
        lead = self.tensors[q].shape[:-2]
        tokens, (keys, value_size) = model.tokens, self.rows["v"]
        plain, adjoint = BatchMatMulOptions(), BatchMatMulOptions(adj_y=model.adjoint)
        scores = self.op(Op.BATCH_MATMUL, [q, k], (*lead, tokens, keys), adjoint)
        if model.scales is not None:
            scores = self.scaled(scores, model.scales[1])
        four = (model.batch, model.heads, tokens, keys)
        if model.merged:
            scores = self.moved(Op.RESHAPE, scores, four, four)
        if model.mask is not None:
            scores = self.op(Op.ADD, [scores, "mask"], four, AddOptions())
        weights = self.op(Op.SOFTMAX, [scores], four, SoftmaxOptions(beta=model.beta))
        if model.merged:
            shape = (*lead, tokens, keys)
            weights = self.moved(Op.RESHAPE, weights, shape, shape)
        y = self.op(Op.BATCH_MATMUL, [weights, v], (*lead, tokens, value_size), plain)
        if not model.heads_first:
            y = self.turned(y, (model.batch, model.heads, tokens, value_size))
        return graph_model(self.tensors, self.nodes, [y, *model.also])

    def turned(self, y: str, shape: tuple[int, ...]) -> str:
        order, model = self.model.order, self.model
        if model.merged:
            y = self.moved(Op.RESHAPE, y, shape, shape)
        y = self.moved(Op.TRANSPOSE, y, order, [shape[i] for i in order])
        rows = model.batch * model.tokens, model.heads * shape[-1]
        return self.moved(Op.RESHAPE, y, rows, rows)


PLAIN = Model()
ONE_NODE = {
    "plain": PLAIN,
    "batch": replace(PLAIN, batch=2),
    "merged": replace(PLAIN, batch=2, merged=True),
    "keys transposed": replace(PLAIN, batch=2, merged=True, adjoint=False),
    "keys of another length": replace(PLAIN, keys=7, mask=(1, 1, 5, 7)),
    "values of another size": replace(PLAIN, value_size=4),
    "one head": replace(PLAIN, heads=1, merged=True),
    "one query": replace(PLAIN, tokens=1, keys=9, mask=(1, 1, 1, 9)),
    "scaled": replace(PLAIN, scales=(0.5, 0.25), merged=True),
    "mask of all": replace(PLAIN, batch=2, mask=(1, 1, 5, 5)),
    "mask of a head": replace(PLAIN, batch=2, mask=(1, 3, 5, 5), scales=(0.5, 0.5)),
    "mask of a picture": replace(PLAIN, batch=2, mask=(2, 1, 5, 5)),
    "mask of two dimensions": replace(PLAIN, mask=(5, 5)),
    "mask of a row": replace(PLAIN, mask=(1, 1, 1, 5)),
    "mask of a row of a picture": replace(PLAIN, batch=2, mask=(2, 1, 1, 5), merged=True),
    "mask of a row, constant": replace(PLAIN, batch=2, mask=(2, 1, 1, 5), fixed=True),
    "mask of a row of a head": replace(PLAIN, batch=2, mask=(3, 1, 5), scales=(0.5, 0.5)),
    "heads first": replace(PLAIN, batch=2, heads_first=True),
    "heads first, masked": replace(PLAIN, heads_first=True, mask=(1, 1, 5, 5), adjoint=False),
}
PACKED = {
    "packed": replace(PLAIN, batch=2, packed="qkv"),
    "packed and turned": replace(PLAIN, packed="qkv", cut="turned", merged=True, adjoint=False),
    "packed and turned batch": replace(PLAIN, batch=3, packed="qkv", cut="turned"),
    "packed and scaled": replace(PLAIN, packed="qkv", cut="turned", scales=(0.5, 0.25)),
    "packed in another order": replace(PLAIN, batch=2, packed="vqk"),
    "keys and values packed": replace(PLAIN, batch=2, tokens=1, keys=4, packed="xkv", cut="turned"),
    "keys and values packed and scaled": replace(PLAIN, keys=4, packed="xkv", scales=(0.5, 0.25)),
    "packed by the batch": replace(PLAIN, batch=2, packed="qkv", cut="batch"),
}
NOT_ONE = {
    "mask of a query": replace(PLAIN, mask=(1, 1, 5, 1)),
    "beta": replace(PLAIN, beta=0.5),
    "negative scale": replace(PLAIN, scales=(0.5, -1.0)),
    "turned otherwise": replace(PLAIN, order=(0, 3, 1, 2), tokens=8, heads=4),
    "scores are an output": replace(PLAIN, also=("t6",)),
}


def compare(model: Model) -> None:
    content, inputs = model.content(), model.inputs()
    got, want, theirs = (f(content, inputs) for f in (answers, unfused, litert))
    for ours, plain, other in zip(got, want, theirs, strict=True):
        limit = 3e-6 * max(1.0, float(np.abs(plain).max()))
        np.testing.assert_allclose(ours, plain, rtol=0, atol=limit)
        np.testing.assert_allclose(ours, other, rtol=0, atol=limit)


@pytest.mark.parametrize("name", ONE_NODE)
def test_attention_is_one_node(name: str) -> None:
    model = ONE_NODE[name]
    counts = optimised_nodes(model.content())
    assert set(counts) <= {"Attention", "Expand", "Max", "Reshape"}, counts
    assert counts["Attention"] == 1
    compare(model)


@pytest.mark.parametrize("name", PACKED)
def test_operands_of_one_tensor_are_parted_once(name: str) -> None:
    counts = optimised_nodes(PACKED[name].content())
    assert set(counts) <= {"Attention", "Reshape", "Split"}, counts
    assert (counts["Attention"], counts["Split"]) == (1, 1)
    compare(PACKED[name])


@pytest.mark.parametrize("name", NOT_ONE)
def test_what_is_another_attention_stays(name: str) -> None:
    model = NOT_ONE[name]
    counts = optimised_nodes(model.content())
    turned = name == "turned otherwise"  # the products are an attention, and a Transpose follows
    assert not counts["Attention"] or turned
    compare(model)


@pytest.mark.parametrize("number", [-1e9, -1e38, np.finfo(np.float32).min])
def test_a_row_that_is_masked_out_has_equal_weights(number: float) -> None:
    """The lowest float, as transformers write it, is for Attention a score that is not there."""
    model = replace(PLAIN, mask=(1, 1, 5, 5))
    *inputs, mask = model.inputs()
    mask[mask < 0] = number
    mask[..., 2, :] = number
    content = model.content()
    for reference in (unfused, litert):
        want = reference(content, [*inputs, mask])[0]
        np.testing.assert_allclose(answers(content, [*inputs, mask])[0], want, rtol=0, atol=3e-6)


def test_exports_have_the_operators_one_by_one() -> None:
    model = export_onnx(PLAIN.content())
    assert "Attention" not in {node.op_type for node in model.graph.node}
    assert [each.version for each in model.opset_import] == [21]


@pytest.mark.parametrize("seed", range(30))
def test_strides_are_those_of_numpy(seed: int) -> None:
    """Random moves of an array, whose elements are their places."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, 4))
    array, view = np.arange(int(np.prod(shape))).reshape(shape), Strided.whole(shape)
    for _ in range(4):
        order = rng.permutation(array.ndim)
        array, view = array.transpose(order), view.transposed(order)
        cut = int(rng.integers(0, array.ndim + 1))
        wanted = (*array.shape[:cut], 1, *array.shape[cut:])
        if array.ndim > 2 and rng.random() < 0.5:
            wanted = (array.shape[0] * array.shape[1], *array.shape[2:])
        reshaped = view.reshaped(wanted)
        assert reshaped is not None
        array, view = array.reshape(wanted), reshaped
        axis = int(rng.integers(0, array.ndim))
        begin, shape = [0] * array.ndim, list(array.shape)
        begin[axis] = int(rng.integers(0, shape[axis]))
        shape[axis] -= begin[axis]
        sliced = view.sliced(begin, shape)
        if sliced is not None:
            array, view = array[tuple(map(slice, begin, np.add(begin, shape)))], sliced
    assert _places(view).tolist() == array.reshape(-1).tolist()


def _places(view: Strided) -> Array:
    places = np.full(1, view.offset)
    for runs in view.dimensions:
        for size, stride in runs:
            places = (places[:, None] + np.arange(size) * stride).reshape(-1)
    return places


def test_a_shape_that_cuts_runs_is_no_view() -> None:
    assert Strided.whole((2, 6)).transposed((1, 0)).reshaped((4, 3)) is None
    assert Strided.whole((6, 4)).reshaped((5, 5)) is None
