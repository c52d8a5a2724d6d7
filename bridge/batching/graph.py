"""The batched subgraph under construction: tensors in two forms, and operators over them.

Of a tensor whose samples have the shape ``[a, b, c]`` a batch of N stands in one of two forms:

* *stacked*: ``[N, a, b, c]``, with an axis of its own for the samples;
* *rows*: ``[N * a, b, c]``, the samples one after the other along the first axis.

Both hold the same elements in the same order, so a RESHAPE turns one into the other. A tensor that
is the same for all samples has neither: it stands as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.batching.parts import Parts
from tflite_ort.batching.plain import PlainGraph, Sizes, sized
from tflite_ort.schema import (
    ExpandDimsOptions,
    MulOptions,
    Op,
    OperatorView,
    ReshapeOptions,
    ShapeOptions,
    Specialized,
    SqueezeOptions,
    Table,
    Tensor,
    TensorType,
    TensorView,
    Unbatchable,
)
from tflite_ort.schema.file.tables import Array
from tflite_ort.schema.values.sizes import has_roots, has_zero, is_known, is_one, same_elements

Shape = tuple[int, ...]


def batch_shape(shape: Sizes, batch: Any) -> tuple[Any, ...]:
    """The shape of a batch of inputs or outputs of one shape: a leading 1 becomes the batch, before
    any other size it is put.

    >>> batch_shape((1, 224, 224, 3), 8), batch_shape((5,), "N"), batch_shape((), 2)
    ((8, 224, 224, 3), ('N', 5), (2,))
    """
    return (batch, *shape[1:]) if shape and is_one(shape[0]) else (batch, *shape)


def leads(tensor: TensorView) -> bool:
    """Whether the first size of a sample is 1, which is where a batch has its samples."""
    return tensor.rank > 0 and is_one(tensor.shape[0])


def known_values(tensor: TensorView | None, what: str) -> Array:
    """The values of a constant.

    Raises:
        Unbatchable: it is computed.
    """
    if tensor is None or tensor.data is None:
        raise Unbatchable(f"its {what} is computed")
    return tensor.data


def _check_scales(tensor: TensorView, least_axis: int) -> None:
    """Refuses a batch of a tensor in whose form the scales would stand for something else.

    Args:
        least_axis: the axes from here on are those of the form too.
    """
    found = tensor.quantization
    if found is not None and found.per_channel and found.axis < least_axis:
        raise Unbatchable(f"the scales of {tensor.name!r} go along an axis that the batch moves")


class BatchedGraph(PlainGraph):
    """A subgraph for a batch, built operator by operator from the subgraph for one sample.

    Args:
        parts: what it shares with the other subgraphs of the model.
        sample: the subgraph for one sample, every tensor with its shape.
        size: of the batch; None for an open one.
        open_sizes: unknown sizes that all samples have; others depend on data.

    Attributes:
        counts: by index of a tensor that is padded, the place of the sizes of its samples.
    """

    def __init__(
        self, parts: Parts, sample: Specialized, size: int | None, open_sizes: Sequence[int] = ()
    ) -> None:
        super().__init__(parts)
        self.sample, self.size, self.open_sizes = sample, size, open_sizes
        self.counts: dict[int, int] = {}
        self.source = parts.model.subgraphs[sample.subgraph]
        self.tensors = list(self.source.tensors)
        self._rows: dict[int, int] = {}
        self._stacked: dict[int, int] = {}
        self._padded: dict[tuple[int, int], int] = {}
        self._first: int | None = None
        self._count: int | None = None

    # What there is ---------------------------------------------------------------------------

    def is_batched(self, tensor: TensorView | None) -> bool:
        """Whether `tensor` has a value for each sample."""
        return tensor is not None and (tensor.index in self._rows or tensor.index in self._stacked)

    def has_rows(self, tensor: TensorView) -> bool:
        """Whether `tensor` stands in rows already."""
        return tensor.index in self._rows

    def forget(self, tensors: Sequence[TensorView]) -> None:
        """These have no value yet."""
        for tensor in tensors:
            self._rows.pop(tensor.index, None)
            self._stacked.pop(tensor.index, None)

    def same(self, tensor: TensorView | None) -> int:
        """A tensor that is the same for all samples."""
        if tensor is None:
            raise Unbatchable("an input is left out")
        if self.is_batched(tensor):
            raise Unbatchable(f"{tensor.name!r} differs between the samples")
        if tensor.data is not None and not self._is_stored(tensor.index):
            self.tensors[tensor.index] = self.with_data(tensor)
        return tensor.index

    def all_same(self, tensors: Sequence[TensorView | None]) -> list[int | None]:
        """Tensors that are the same for all samples, None for those that are left out."""
        return [None if tensor is None else self.same(tensor) for tensor in tensors]

    def with_data(self, tensor: TensorView) -> Tensor:
        """The table of a constant, with its data."""
        table = self.source.tensors[tensor.index]
        if tensor.data is None or self._is_stored(tensor.index):
            return table
        buffer = self.parts.buffer(tensor.data)
        return sized(replace(table, buffer=buffer, type=tensor.type), tensor.data.shape)

    def _is_stored(self, index: int) -> bool:
        table = self.source.tensors[index]
        in_file = table.buffer and self.parts.model.buffers[table.buffer].data is not None
        return bool(in_file or table.external_buffer)

    def rows(self, tensor: TensorView) -> int:
        """`tensor` in rows, [N * first, *others]; stacked if a sample is a scalar. What is the same
        for all samples is repeated."""
        if tensor.index not in self._rows:
            whole = self.stacked(tensor)
            if not tensor.rank:
                return whole
            if not self.is_batched(tensor):
                out = self.temporary(tensor, self.rows_shape(tensor.shape), "rows")
                return self._merged(whole, tensor, out)
            self._rows[tensor.index] = self._merged(whole, tensor, self._own_rows(tensor))
        return self._rows[tensor.index]

    def _merged(self, whole: int, tensor: TensorView, out: int) -> int:
        """The rows of a stacked tensor, which become tensor `out`."""
        if leads(tensor):
            self.emit(Op.SQUEEZE, [whole], [out], SqueezeOptions(squeeze_dims=(1,)))
        else:
            self._reshape(whole, out, tensor.shape, self.rows_shape(tensor.shape))
        return out

    def stacked(self, tensor: TensorView, rank: int | None = None) -> int:
        """`tensor` stacked, [N, *shape], with ones after N until the samples have `rank`. What is
        the same for all samples is repeated."""
        if not self.is_batched(tensor):
            return self._padded_to(self._spread(tensor), tensor, rank)
        if tensor.index not in self._stacked:
            self._stacked[tensor.index] = self._split(self._rows[tensor.index], tensor)
        return self._padded_to(self._stacked[tensor.index], tensor, rank)

    def _split(self, rows: int, tensor: TensorView) -> int:
        out = self._own_stacked(tensor)
        if leads(tensor):
            self.emit(Op.EXPAND_DIMS, [rows, self.constant(1)], [out], ExpandDimsOptions())
        else:
            self._reshape(rows, out, tensor.shape, self.stacked_shape(tensor.shape))
        return out

    def _padded_to(self, whole: int, tensor: TensorView, rank: int | None) -> int:
        if rank is None or rank <= tensor.rank:
            return whole
        key = (whole, rank)
        if key not in self._padded:
            shape = (*[1] * (rank - tensor.rank), *tensor.shape)
            self._padded[key] = self.reshaped(whole, tensor, shape, self.stacked_shape(shape))
        return self._padded[key]

    def _spread(self, tensor: TensorView) -> int:
        """A tensor that is the same for all samples, once for each."""
        if not is_known(*tensor.shape) or not tensor.ranked:
            raise Unbatchable(f"the size of {tensor.name!r} depends on data")
        _check_scales(tensor, least_axis=tensor.rank)
        source, dims = self.same(tensor), self.dims(tensor.shape)
        out = self.temporary(tensor, self.stacked_shape(tensor.shape), "spread")
        self.emit(Op.BROADCAST_TO, [source, dims], [out])
        return out

    def boundary(self, tensor: TensorView) -> int:
        """`tensor` as the batched subgraph takes or gives it."""
        return self.rows(tensor) if leads(tensor) else self.stacked(tensor)

    # What is made ----------------------------------------------------------------------------

    def take(self, tensor: TensorView) -> int:
        """The place of an input of which there is one for each sample."""
        out = self.result(tensor)
        self._first = out if self._first is None else self._first
        return out

    def take_variable(self, tensor: TensorView) -> None:
        """Let a variable have its rows for each sample."""
        sizes = self.rows_shape(tensor.shape) if tensor.rank else self.stacked_shape(())
        place = self._own(tensor, sizes)
        (self._rows if tensor.rank else self._stacked)[tensor.index] = place

    def result(self, tensor: TensorView) -> int:
        """The place of a result, as the batched subgraph would give it."""
        return self.result_rows(tensor) if leads(tensor) else self.result_stacked(tensor)

    def result_rows(self, tensor: TensorView) -> int:
        """The place of a result in rows."""
        if not tensor.rank:
            return self.result_stacked(tensor)
        self._rows[tensor.index] = self._own_rows(tensor)
        return self._rows[tensor.index]

    def result_stacked(self, tensor: TensorView) -> int:
        """The place of a stacked result."""
        self._stacked[tensor.index] = self._own_stacked(tensor)
        return self._stacked[tensor.index]

    def result_same(self, tensor: TensorView) -> int:
        """The place of a result that is the same for all samples."""
        table = self.source.tensors[tensor.index]
        self.tensors[tensor.index] = sized(replace(table, type=tensor.type), tensor.shape)
        return tensor.index

    def _own_rows(self, tensor: TensorView) -> int:
        sizes = self.rows_shape(tensor.shape)
        _check_scales(tensor, least_axis=1)
        own = leads(tensor) and not tensor.is_constant
        return self._own(tensor, sizes) if own else self.temporary(tensor, sizes, "rows")

    def _own_stacked(self, tensor: TensorView) -> int:
        sizes = self.stacked_shape(tensor.shape)
        _check_scales(tensor, least_axis=tensor.rank)
        own = not leads(tensor) and not tensor.is_constant
        return self._own(tensor, sizes) if own else self.temporary(tensor, sizes, "stacked")

    def _own(self, tensor: TensorView, sizes: Sizes) -> int:
        """The tensor's own place in the file, where it stands as the subgraph would give it."""
        table = self.source.tensors[tensor.index]
        self.tensors[tensor.index] = sized(replace(table, type=tensor.type), sizes)
        return tensor.index

    def temporary(self, like: TensorView, sizes: Sizes, what: str) -> int:
        """A further tensor of shape `sizes`, of the type and scale of `like`."""
        return self.like(replace(self.source.tensors[like.index], type=like.type), sizes, what)

    def copy(
        self,
        op: OperatorView[Any],
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        options: Table | None = None,
    ) -> None:
        """Add `op` over other tensors, with other options if there are any."""
        own = self.source.operators[op.index]
        if options is not None and options != own.options:
            own = replace(own, opcode_index=self.parts.code(op.op), options=options)
        self.operators.append(replace(own, inputs=tuple(inputs), outputs=tuple(outputs)))

    # Sizes -----------------------------------------------------------------------------------

    def rows_shape(self, shape: Sizes) -> Shape:
        """[N * first, *others], -1 for an open size."""
        first = shape[0]
        many = -1 if self.size is None or not is_known(first) else self.size * first
        return (many, *shape[1:])

    def stacked_shape(self, shape: Sizes) -> Shape:
        """[N, *shape], -1 for an open size."""
        return (-1 if self.size is None else self.size, *shape)

    def reshape(self, source: TensorView, target: TensorView) -> None:
        """Make `target` of the elements of `source`, both of which have them in the same order."""
        place = self.rows(source) if self.has_rows(source) else self.stacked(source)
        self.reshape_place(place, target, may_misfit=not same_elements(source.shape, target.shape))

    def reshape_place(self, place: int, target: TensorView, *, may_misfit: bool = False) -> None:
        """Make `target` of tensor `place`, which has its elements in the same order; with
        `may_misfit`, which may have another number of them."""
        shape = target.shape
        sizes = self.rows_shape(shape) if leads(target) else self.stacked_shape(shape)
        self._reshape(place, self.result(target), shape, sizes, infers=not may_misfit)

    def reshaped(self, place: int, like: TensorView, shape: Sizes, sizes: Sizes) -> int:
        """Tensor `place` with the `sizes`, in which a sample has `shape`; -1 for an open size."""
        out = self.temporary(like, sizes, "reshaped")
        self._reshape(place, out, shape, sizes)
        return out

    def _reshape(
        self, place: int, out: int, shape: Sizes, sizes: Sizes, *, infers: bool = True
    ) -> None:
        """Tensor `out` of the elements of `place`, of these `sizes`.

        Args:
            shape: of a sample.
            infers: the number of elements tells the size of an open batch.
        """
        if not has_roots(shape, self.open_sizes):
            raise Unbatchable("a size that depends on data meets the batch in a RESHAPE")
        if self.size is None and has_zero(*shape):
            raise Unbatchable("a tensor without elements does not tell the size of a batch")
        given = tuple(size if is_known(size) else -1 for size in sizes)
        leads_open = is_known(sizes[0]) and given[0] == -1
        if given.count(-1) > 1 + leads_open:
            raise Unbatchable("several open sizes meet in a RESHAPE")
        if leads_open and (given.count(-1) > 1 or not infers):
            lead = self.count() if len(sizes) > len(shape) else self._row_count(shape[0])
            rest = [self.constant(given[1:])] if given[1:] else []
            wanted, options = self.concatenated([lead, *rest]), ReshapeOptions()
        else:
            wanted, options = self.constant(given), ReshapeOptions(given)
        self.emit(Op.RESHAPE, [place, wanted], [out], options)

    def transposed(self, place: int, like: TensorView, sizes: Sizes) -> int:
        """Tensor `place` with its first two axes exchanged, which gives it these sizes."""
        return self.permuted(place, like, (1, 0, *range(2, len(sizes))), sizes)

    def permuted(self, place: int, like: TensorView, order: Sizes, sizes: Sizes) -> int:
        """Tensor `place` with its axes in another order, which gives it these sizes."""
        out = self.temporary(like, sizes, "transposed")
        self.emit(Op.TRANSPOSE, [place, self.constant(order)], [out])
        return out

    def count(self) -> int:
        """How many samples there are, as an int32 list of one."""
        if self._count is None:
            self._count = self._counted() if self.size is None else self.constant([self.size])
        return self._count

    def _counted(self) -> int:
        if self._first is None:
            raise Unbatchable("no input tells the size of the batch")
        sizes = self.new(TensorType.INT32, (len(self.tensors[self._first].shape),), "sizes")
        self.emit(Op.SHAPE, [self._first], [sizes], ShapeOptions(out_type=TensorType.INT32))
        out = self.new(TensorType.INT32, (1,), "count")
        self.emit(Op.SLICE, [sizes, self.constant([0]), self.constant([1])], [out])
        return out

    def dims(self, shape: Sizes) -> int:
        """The list ``[N, *shape]`` as int32."""
        if self.size is not None:
            return self.constant([self.size, *shape])
        return self.concatenated([self.count(), self.constant(shape)] if shape else [self.count()])

    def row_dims(self, shape: Sizes) -> int:
        """The list ``[N * first, *others]`` as int32."""
        if self.size is not None:
            return self.constant(self.rows_shape(shape))
        count = self._row_count(shape[0])
        return self.concatenated([count, self.constant(shape[1:])] if shape[1:] else [count])

    def _row_count(self, first: int) -> int:
        """The list ``[N * first]`` as int32."""
        if is_one(first):
            return self.count()
        product = self.new(TensorType.INT32, (1,), "rows")
        self.emit(Op.MUL, [self.count(), self.constant([first])], [product], MulOptions())
        return product

    def numbers(self) -> int:
        """The numbers of the samples, int32 [N] from 0."""
        if self.size is not None:
            return self.constant(np.arange(self.size))
        limit, out = self.new(TensorType.INT32, ()), self.new(TensorType.INT32, (-1,), "numbers")
        self.emit(Op.SQUEEZE, [self.count()], [limit], SqueezeOptions(squeeze_dims=(0,)))
        self.emit(Op.RANGE, [self.constant(0), limit, self.constant(1)], [out])
        return out

    def prefixed(self, tensor: TensorView, value: int) -> int:
        """A list that is the same for all samples, with `value` before it."""
        if tensor.data is not None:
            return self.constant([value, *tensor.data.tolist()], tensor.dtype)
        return self.concatenated([self.constant([value], tensor.dtype), self.same(tensor)])
