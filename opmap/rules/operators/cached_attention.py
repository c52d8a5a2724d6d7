"""Attention over a cache: the work grows with the tokens that are there, not with the cache's size.

A decoder multiplies queries by all rows of a cache of keys, adds a mask, and weighs all rows of a
cache of values. The mask hides the rows that no token was written to. Here the caches are cut to
the last row that the mask shows:

- Where a mask is -1e30 or less and another one of the same query is not, the softmax is exactly 0:
  the difference is at least 7e22, the distance of float32 numbers there, and scores are smaller.
- A query of which the mask hides all rows has no such other row. Then nothing is cut.

Where the mask is a row of a constant table, a table of numbers says how far it reaches.

Queries that share a head of the cache become rows of one product, so that nothing is repeated. The
caches are read where they are, whichever order their dimensions have: ONNX Runtime joins Transpose
and MatMul, which then reads rows in strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.cache_rows import table_row
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Producers, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View, shaped
from tflite_ort.opmap.rules.operators.views import Runs, Strided
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import is_known

_HIDDEN = -1e30
# Smaller caches are not cut: the nodes that find the last row take as long as what they save.
_LEAST = 1 << 14
# How many operators may stand between a cache and a product.
_REACH = 8

_Q, _K, _V, _MASK = Leaf(), Leaf(), Leaf(), Leaf()
_SCORES = node(Op.BATCH_MATMUL)(_Q, _K)
_MASKED = node(Op.ADD)(_SCORES, _MASK)
_SOFTMAX = node(Op.SOFTMAX)(_MASKED)
_RESULT = node(Op.BATCH_MATMUL)(_SOFTMAX, _V)

# Of a product's right-hand side [heads, rows, columns], the permutation that makes it of a cache
# whose dimensions (heads, tokens, elements) stand in this order.
Order = tuple[int, int, int]
_HEADS, _TOKENS, _ELEMENTS = 0, 1, 2
# What stands before heads, rows and elements: nothing, or a batch of one.
Lead = tuple[int, ...]


@record
class _Cache:
    """A cache as one of the products reads it.

    Args:
        source: where it stands, with no other elements.
        order: which of heads, tokens and elements each of its dimensions is.
        sizes: of heads, tokens and elements.
        shared: how many heads of queries share one of the cache.
        scale: a number by which it is multiplied.
    """

    source: TensorView
    order: Order
    sizes: tuple[int, int, int]
    shared: int
    scale: float

    @classmethod
    def of(cls, product: View, swapped: bool, producers: Producers) -> _Cache | None:
        """The cache behind the right-hand side [..., elements, tokens] of a product, or
        [..., tokens, elements] if `swapped`; None where there is none."""
        batch = product.output.shape[:-2]
        for source, view, scale in _sources(product["y"], producers):
            maker = producers.maker(source)
            if maker is not None and maker.op is Op.DYNAMIC_UPDATE_SLICE:
                whole = view.broadcast((*batch, *view.shape[-2:]))
                return None if whole is None else cls._read(source, whole, swapped, scale)
        return None

    @classmethod
    def _read(cls, source: TensorView, view: Strided, swapped: bool, scale: float) -> _Cache | None:
        rank = len(view.dimensions)
        last = (rank - 2, rank - 1) if swapped else (rank - 1, rank - 2)
        view = view.transposed((*range(rank - 2), *last))  # [..., tokens, elements]
        *batch, tokens, elements = view.shape
        count = prod(batch)
        for shared in sorted((n for n in range(1, count + 1) if count % n == 0), reverse=True):
            split = view.reshaped((count // shared, shared, tokens, elements))
            if split is None or any(stride for _, stride in split.dimensions[1]):
                continue
            heads, _, *others = split.dimensions
            order, sizes = _order((heads, *others)), (count // shared, tokens, elements)
            if order is not None and prod(sizes) == prod(source.shape):
                return cls(source, order, sizes, shared, scale)
        return None

    @property
    def is_batch(self) -> bool:
        """Whether it stands as a batch of one, heads first, as the products take it."""
        shape = tuple(self.sizes[each] for each in self.order)
        return self.order[0] == _HEADS and tuple(self.source.shape) == (1, *shape)

    def read(self, g: Graph, end: ir.Value | None, lead: Lead) -> ir.Value:
        """Its rows up to `end`, as they stand."""
        shape = tuple(self.sizes[each] for each in self.order)
        value = shaped(g, self.source, (*lead, *shape))
        if end is None:
            return value
        axis = g.ints([len(lead) + self.order.index(_TOKENS)])
        return g.op("Slice", value, g.ints([0]), end, axis)

    def factor(self, g: Graph, end: ir.Value | None, wanted: Order, lead: Lead) -> ir.Value:
        """The same with its dimensions in the order `wanted`."""
        value, perm = self.read(g, end, lead), [self.order.index(each) for each in wanted]
        if perm == [0, 1, 2]:
            return value
        count = len(lead)
        return g.op("Transpose", value, perm=[*range(count), *(count + each for each in perm)])


def _order(dimensions: Sequence[Runs]) -> Order | None:
    """The order in which three dimensions fill their memory without a gap; None if they do not."""
    if any(len(runs) > 1 for runs in dimensions):
        return None
    strides = {axis: runs[0] for axis, runs in enumerate(dimensions) if runs}
    moves = sorted(strides, key=lambda axis: strides[axis][1])
    expected = 1
    for axis in moves:
        size, stride = strides[axis]
        if stride != expected:
            return None
        expected *= size
    first, second, third = (*(axis for axis in range(3) if axis not in strides), *reversed(moves))
    return first, second, third


def _sources(
    tensor: TensorView, producers: Producers
) -> Iterator[tuple[TensorView, Strided, float]]:
    """The tensors from which moving, repeating and scaling elements makes `tensor`, nearest first,
    and where its elements are in each."""
    moves, scale = list[View](), 1.0
    for _ in range(_REACH):
        if not is_known(*tensor.shape) or 0 in tensor.shape or tensor.is_variable:
            return
        view: Strided | None = Strided.whole(tensor.shape)
        for op in reversed(moves):
            view = None if view is None else _moved(view, op)
        if view is None:
            return
        yield tensor, view, scale
        maker = producers.maker(tensor)
        if maker is None or maker.variables():
            return
        scaled = _scaled(maker) if maker.op is Op.MUL else None
        if scaled is not None:
            tensor, scale = scaled[0], scale * scaled[1]
        elif maker.op in RESHAPES or maker.op in (Op.TRANSPOSE, Op.BROADCAST_TO):
            moves.append(maker)
            tensor = maker.present_inputs()[0]
        else:
            return


def _moved(view: Strided, op: View) -> Strided | None:
    """`view` of the input of `op` as that of its output."""
    if op.op in RESHAPES:
        return view.reshaped(op.output.shape)
    if op.op is Op.BROADCAST_TO:
        return view.broadcast(op.output.shape)
    perm = op.present_inputs()[1].data
    if perm is None:
        return None
    rank = len(view.dimensions)
    return view.transposed([normalized_axis(int(axis), rank) for axis in perm.ravel()])


def _scaled(op: View) -> tuple[TensorView, float] | None:
    """The tensor that a MUL scales, and by how much; None where it does something else."""
    for tensor, other in ((op["input1"], op["input2"]), (op["input2"], op["input1"])):
        data = other.data
        plain = not op.options.fused_activation_function and tensor.shape == op.output.shape
        if plain and data is not None and data.size == 1:
            return tensor, float(data.reshape(()))
    return None


@record
class _Attention:
    """An attention that was found.

    Args:
        rows: how many queries share a head of the caches.
        queries: of so many rows, the mask has a row of its own for each.
        lookup: a constant table, and which of its rows the mask is; None where it is another one.
    """

    q: TensorView
    keys: _Cache
    values: _Cache
    mask: TensorView
    rows: int
    queries: int
    lookup: tuple[TensorView, TensorView] | None

    @classmethod
    def of(cls, found: Found, producers: Producers) -> _Attention | None:
        """None where operators are no attention over caches."""
        first, second = found.operator(_SCORES), found.operator(_RESULT)
        plain = not (first.options.adj_x or second.options.adj_x)
        if not plain or found.operator(_SOFTMAX).options.beta != 1 or not _are_floats(found):
            return None
        keys = _Cache.of(first, first.options.adj_y, producers)
        values = _Cache.of(second, not second.options.adj_y, producers)
        if keys is None or values is None or values.scale != 1 or keys.scale == 0:
            return None
        q, scale = _unscaled(first["x"], producers)
        keys = replace(keys, scale=keys.scale * scale)
        rows = keys.shared * first["x"].shape[-2]
        lookup = table_row(found[_MASK], producers)
        attention = cls(q, keys, values, found[_MASK], rows, found[_MASKED].shape[-2], lookup)
        return attention if attention._fits(found) else None

    def _fits(self, found: Found) -> bool:
        """Whether scores are rows of tokens, in the same order all the way, and one mask is for all
        heads."""
        heads, tokens, elements = self.keys.sizes
        second = found.operator(_RESULT)["x"]
        *others, queries, last = (1, 1, *self.mask.shape)
        scores = (*(found[part].shape for part in (_SCORES, _MASKED, _SOFTMAX)), second.shape)
        return (
            all(shape[-1] == tokens for shape in scores)
            and all(prod(shape) == heads * self.rows * tokens for shape in scores)
            and prod(self.q.shape) == heads * self.rows * elements
            and self.values.sizes[:2] == (heads, tokens)
            and self.values.shared * second.shape[-2] == self.rows
            and self.rows % self.queries == 0
            and set(others) == {1}
            and queries in (1, self.queries)
            and last == tokens
        )

    def emit(self, g: Graph, op: View) -> None:
        """The nodes, the last of which makes the output of `op`."""
        heads, _, elements = self.keys.sizes
        lead: Lead = (1,) if self.keys.is_batch and self.values.is_batch else ()
        end = self._end(g) if self._is_cut else None
        q = shaped(g, self.q, (*lead, heads, self.rows, elements))
        if self.keys.scale != 1:  # ONNX Runtime makes it a factor of the product
            q = g.op("Mul", q, g.constant(self.keys.scale, np.float32))
        scores = g.op("MatMul", q, self.keys.factor(g, end, (_HEADS, _ELEMENTS, _TOKENS), lead))
        scores = self._masked(g, scores, end, lead)
        weights = g.op("Softmax", scores, axis=-1)
        values = self.values.factor(g, end, (_HEADS, _TOKENS, _ELEMENTS), lead)
        result, shape = g.op("MatMul", weights, values), op.output.shape
        same = tuple(shape) == (*lead, heads, self.rows, elements)
        g.write(op.output, result if same else g.reshape(result, shape))

    @property
    def _is_cut(self) -> bool:
        return not self.mask.is_constant and prod(self.keys.sizes) >= _LEAST

    def _end(self, g: Graph) -> ir.Value:
        """How many tokens count, int64 [1]."""
        tokens = self.keys.sizes[1]
        if self.lookup is None or prod(self.lookup[0].shape[1:]) != tokens:
            return _end(g, self.mask, tokens)
        table, rows = self.lookup
        ends = g.constants.laid(table.constant, "ends", partial(_ends, table, tokens), "ends")
        found = g.op("Gather", ends, shaped(g, rows, (prod(rows.shape),)))
        return found if prod(rows.shape) == 1 else g.op("ReduceMax", found, g.ints([0]), keepdims=1)

    def _is_mask_of_ends(self) -> bool:
        """Whether the mask is one row of a table, and the end of it says all."""
        if self.lookup is None or prod(self.lookup[1].shape) != 1:
            return False
        tokens, table = self.keys.sizes[1], self.lookup[0]
        if table.data is None or prod(table.shape[1:]) != tokens:
            return False
        before = np.arange(tokens) < _ends(table, tokens)[:, np.newaxis]
        return not np.any(table.data.reshape(-1, tokens)[before])

    def _masked(self, g: Graph, scores: ir.Value, end: ir.Value | None, lead: Lead) -> ir.Value:
        """The scores [..., heads, rows, tokens] with the mask."""
        heads, tokens, _ = self.keys.sizes
        if end is not None and self._is_mask_of_ends():
            return scores
        each = 1 if prod(self.mask.shape) == tokens else self.queries
        plain = each in (1, self.rows)
        mask = shaped(g, self.mask, (*(lead if plain else ()), 1, each, tokens))
        if end is not None:
            mask = g.op("Slice", mask, g.ints([0]), end, g.ints([-1]))
        if plain:
            return g.op("Add", scores, mask)
        apart = g.op("Reshape", scores, g.ints([heads, self.rows // each, each, -1]))
        apart = g.op("Add", apart, mask)
        return g.op("Reshape", apart, g.ints([*lead, heads, self.rows, -1]))


def _unscaled(tensor: TensorView, producers: Producers) -> tuple[TensorView, float]:
    """A tensor with the elements of `tensor` but for a factor, and the factor."""
    scale = 1.0
    for _ in range(_REACH):
        maker = producers.maker(tensor)
        if maker is None or maker.variables():
            break
        scaled = _scaled(maker) if maker.op is Op.MUL else None
        if scaled is None and maker.op not in RESHAPES:
            break
        tensor, factor = scaled or (maker.present_inputs()[0], 1.0)
        scale *= factor
    return tensor, scale


def _end(g: Graph, mask: TensorView, tokens: int) -> ir.Value:
    """How many tokens count, int64 [1]: up to the last one that any row of the mask shows; all if a
    row shows none. Layers with one mask make the same nodes, of which ONNX Runtime keeps one."""
    rows = g.reshape(g.read(mask), (prod(mask.shape) // tokens, tokens))
    hidden = g.op("LessOrEqual", rows, g.constant(_HIDDEN, np.float32))
    numbers = g.constants.once(np.arange(1, tokens + 1), f"tokens_{tokens}")
    shown = g.op("Where", hidden, g.ints(0), numbers)
    ends = g.op("ReduceMax", shown, g.ints([1]), keepdims=0)
    if prod(mask.shape) > tokens:
        none = g.op("Equal", ends, g.ints(0))
        return g.op("ReduceMax", g.op("Where", none, g.ints(tokens), ends), g.ints([0]), keepdims=1)
    return g.op("Where", g.op("Equal", ends, g.ints(0)), g.ints(tokens), ends)


def _ends(table: TensorView, tokens: int) -> npt.NDArray[np.int64]:
    """Of each row of a mask, how many tokens count: up to the last one that it shows; all if it
    shows none."""
    assert table.data is not None
    shown = ~(table.data.reshape(-1, tokens) <= _HIDDEN)
    last = tokens - np.argmax(shown[:, ::-1], axis=1)
    return np.where(shown.any(axis=1), last, tokens).astype(np.int64)


def _are_floats(found: Found) -> bool:
    return all(
        tensor.type is TensorType.FLOAT32 and is_known(*tensor.shape) and 0 not in tensor.shape
        for tensor in found.tensors.values()
    )


def _plan(found: Found, around: Surroundings) -> Emit | None:
    attention = _Attention.of(found, around.producers) if around.target.cpu_kernels else None
    return None if attention is None else attention.emit


CACHED_ATTENTION = (Pattern("attention over a cache", _RESULT, _plan),)
