"""What the inputs of an exported model are shaped like, and the model whose inputs they are.

Where a shape makes a batch of one sample, the model is transformed into that of a batch, or it is
refused: resized alone, its samples could run into each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tflite_ort.base.records import record, replace
from tflite_ort.base.suggestions import suggestion
from tflite_ort.batching.samples import has_one_sample, left_open
from tflite_ort.batching.transformation import batched
from tflite_ort.model.batch import batch_shape, checked_batch
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ExportError, Model, ModelError
from tflite_ort.schema.values.sizes import is_known, multiple, unknown_size
from tflite_ort.specialize.resources import same_size
from tflite_ort.specialize.specialization import Shape
from tflite_ort.versioning.resolver import OpResolver

Given = Mapping[str, Sequence[int | str | None]]


@record
class Shaped:
    """A model with the shapes of its inputs.

    Args:
        model: as the file has it, or for a batch.
        shapes: by tensor, where they are not those of `model`.
    """

    model: Model
    shapes: Mapping[int, Shape]


def shaped(
    model: Model,
    given: Given,
    batch: int | str | None,
    resolver: OpResolver,
    *,
    as_signed: bool = False,
) -> Shaped:
    """`model` for a batch, or with inputs of other shapes.

    Args:
        given: by name of an input, its shape, of one sample if there is a `batch`; a size that is
            None or a name is open.
        batch: a number of samples, or the name of any number; None for no batch.
        as_signed: sizes that the signatures of other inputs leave open are open.

    Raises:
        Unbatchable: the shapes make a batch, and an operator cannot run over it.
        ExportError: there is no such input.
    """
    sizes = _Sizes()
    shapes = _by_index(model, given, sizes)
    signed = left_open(model, given, of_sample=batch is not None) if as_signed else {}
    if batch is not None:
        checked_batch(batch)
        lead, shapes = sizes.size(batch), {**shapes, **signed}
        return _batch(model, shapes, lead, resolver, all_inputs=True)
    changed = [shapes[index][0] for index in shapes if _makes_batch(model, index, shapes[index])]
    if changed:
        if not all(same_size(changed[0], size) or _unnamed(size) for size in changed):
            raise ExportError(f"inputs of batches of {changed}: give all of them one size")
        made = _batch(model, shapes, changed[0], resolver, all_inputs=False)
        return replace(made, shapes={**made.shapes, **signed})
    return Shaped(model, {**shapes, **signed})


def as_exported(model: Model, given: Given, batch: int | str | None, resolver: OpResolver) -> Model:
    """The model that an exported file is compared with: see `shaped`."""
    try:
        return shaped(model, given, batch, resolver, as_signed=True).model
    except (ExportError, ModelError):  # then the file has its sizes fixed
        return shaped(model, given, batch, resolver).model


def name_batch(graph: ir.Graph, model: Model, name: str) -> None:
    """Call the first size of each output `name` that has a row for each sample of a batch.

    Args:
        model: that of the batch.
    """
    rows = {
        tensor.name
        for tensor in model.subgraphs[0].tensors
        if tuple(tensor.shape[:1]) == (1,) and tuple(tensor.shape_signature or ())[:1] == (-1,)
    }
    for value in graph.outputs:
        if value.shape and rows.intersection((value.name, value.name.removesuffix("_next"))):
            value.shape = (name, *value.shape[1:])


class _Sizes:
    """Sizes by name: one name is one size."""

    def __init__(self) -> None:
        self._named: dict[str, int] = {}

    def size(self, given: int | str | None) -> int:
        """The size that is given; unknown for a name, None and -1."""
        if isinstance(given, str):
            return self._named.setdefault(given, unknown_size(given))
        return unknown_size() if given in (None, -1) else int(given)


def _by_index(model: Model, shapes: Given, sizes: _Sizes) -> dict[int, Shape]:
    graph = model.subgraphs[0]
    indices = {graph.tensors[index].name: index for index in graph.inputs}
    for unknown in sorted(set(shapes) - set(indices)):
        there = ", ".join(map(repr, indices))
        near = suggestion(unknown, indices)
        raise ExportError(f"no input {unknown!r}; there are {there}{near}")
    return {indices[name]: tuple(map(sizes.size, shape)) for name, shape in shapes.items()}


def _makes_batch(model: Model, index: int, shape: Shape) -> bool:
    """Whether `shape` puts another number of samples in the place of the file's one."""
    if len(shape) != len(model.subgraphs[0].tensors[index].shape):
        return False
    return has_one_sample(model, 0, index) and not (is_known(shape[0]) and shape[0] < 2)


def _unnamed(size: Any) -> bool:
    return not is_known(size) and not size.name


def _batch(
    model: Model, shapes: Mapping[int, Shape], size: int, resolver: OpResolver, *, all_inputs: bool
) -> Shaped:
    """`model` for a batch of `size` samples."""
    graph = model.subgraphs[0]
    given = (
        set(graph.inputs)
        if all_inputs
        else {i for i in shapes if _makes_batch(model, i, shapes[i])}
    )
    samples = {
        index: (1, *shape[1:]) if index in given and not all_inputs else shape
        for index, shape in shapes.items()
    }
    number = checked_batch(size) if is_known(size) else None
    made = batched(model, number, resolver, samples, None if all_inputs else given)
    declared = {index: samples.get(index, graph.tensors[index].shape) for index in graph.inputs}
    whole = {
        index: batch_shape(shape, size) if index in given else shape
        for index, shape in declared.items()
    }
    return Shaped(made, {**_variables(model, made, size), **whole})


def _variables(model: Model, made: Model, size: int) -> dict[int, Shape]:
    """The shapes of the variables of an open batch, which have all rows of each sample."""
    pairs = zip(model.subgraphs[0].tensors, made.subgraphs[0].tensors, strict=False)
    return {
        index: (multiple(size, math.prod(sample.shape[:1])), *tensor.shape[1:])
        for index, (sample, tensor) in enumerate(pairs)
        if tensor.is_variable and tensor.shape_signature and tensor.shape_signature[0] == -1
    }
