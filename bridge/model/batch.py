"""A model of one sample as a model of a batch of samples."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from operator import index

from tflite_ort.batching.graph import batch_shape
from tflite_ort.batching.samples import left_open
from tflite_ort.batching.transformation import batched
from tflite_ort.bundles.bundle import Source
from tflite_ort.model.opening import model_source
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.schema import Model, ModelError, Unbatchable, read_model
from tflite_ort.versioning.resolver import OpResolver

__all__ = ["batch_shape", "batched_model"]


def batched_model(
    model: Source | Model, batch: int | str | None, *, resolver: OpResolver | None = None
) -> Model:
    """The model that computes for a batch of samples what `model` computes for each of them.

    Every input and output gets the batch in front: in place of a leading 1, or as an axis of its
    own, see `batch_shape`. Names, types, order, signatures and metadata stay. Each variable has a
    row for each sample. Sizes of a sample that the file leaves open stay open in the signatures of
    the inputs, if an operator does not need to know them; all others have to stay as they are.

    Args:
        model: a ``.tflite`` file, a bundle with one model, the bytes of either, or a `Model`.
        batch: how many samples; None or a name for any number: the inputs then have -1 in their
            ``shape_signature``.
        resolver: where operators are looked up; default `BuiltinOpResolver`.

    Raises:
        Unbatchable: an operator cannot run over a batch; the error has its name and the reason.
        ModelError: an operator cannot take the shapes that reach it.
        ValueError: `batch` is less than 1, or no name.

    Examples:
        >>> from tflite_ort.command.demo import digits_model
        >>> model = batched_model(digits_model("float32"), 8)
        >>> model.subgraphs[0].tensors[model.subgraphs[0].inputs[0]].shape
        (8, 8, 8, 1)
    """
    if not isinstance(model, Model):
        model = read_model(model_source(model))
    size, resolver = checked_batch(batch), resolver or BuiltinOpResolver()
    wider = left_open(model, (), of_sample=True)
    if wider:
        with suppress(Unbatchable, ModelError):
            return _with_first_sizes(batched(model, size, resolver, wider), model, wider)
    return batched(model, size, resolver)


def _with_first_sizes(made: Model, model: Model, wider: Collection[int]) -> Model:
    """`made`, whose inputs have open sizes, with those of the file until they are resized."""
    (graph, *others), source = made.subgraphs, model.subgraphs[0]
    tensors = list(graph.tensors)
    for given, place in zip(source.inputs, graph.inputs, strict=True):
        if given in wider:
            shape = batch_shape(source.tensors[given].shape, tensors[place].shape[0])
            tensors[place] = replace(tensors[place], shape=shape)
    return replace(made, subgraphs=(replace(graph, tensors=tuple(tensors)), *others))


def checked_batch(batch: int | str | None) -> int | None:
    """The number of samples; None for any number.

    Raises:
        ValueError: it is less than 1, or not a name.
        TypeError: it is not a whole number, a name or None.
    """
    if batch is None:
        return None
    if isinstance(batch, str):
        if not batch.isidentifier():
            raise ValueError(f"a batch is a number of samples or a name, got {batch!r}")
        return None
    count = index(batch)  # also of numpy's integers
    if count < 1:
        raise ValueError(f"a batch has at least one sample, got {count}")
    return count
