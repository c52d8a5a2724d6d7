"""From a model of one sample to the model of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

from tflite_ort.base.optional import late
from tflite_ort.batching.data_sizes import Split, split
from tflite_ort.batching.graph import BatchedGraph, leads
from tflite_ort.batching.parts import Parts
from tflite_ort.batching.plain import sized
from tflite_ort.batching.registry import RULES
from tflite_ort.batching.sample_loop import sample_by_sample, samples_one_by_one
from tflite_ort.batching.state import ALWAYS
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.schema import (
    Model,
    ModelError,
    Op,
    OperatorView,
    SignatureDef,
    Specialized,
    TensorMap,
    Unbatchable,
    Untranslatable,
)
from tflite_ort.schema.values.inlining import FlatModel
from tflite_ort.schema.values.operators import key_of
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.specialize.resources import NAMES
from tflite_ort.specialize.specialization import Shape, specialize
from tflite_ort.versioning.resolver import OpResolver

with late:  # few models have operators without a rule
    from tflite_ort.batching import open_rows, proofs

View = OperatorView[Any]

# What follows the name of a padded output in that of the sizes of its samples.
COUNT = "_count"


def batched(
    model: Model,
    size: int | None,
    resolver: OpResolver,
    shapes: Mapping[int, Shape] = MappingProxyType({}),
    given: Collection[int] | None = None,
) -> Model:
    """The model for a batch of `size` samples; None for any number.

    Args:
        shapes: of inputs for one sample, where they are not the file's.
        given: the inputs of which there is one for each sample, None for all. Other inputs are
            the same for all samples, and so are the outputs that depend on these alone.

    Raises:
        Unbatchable: an operator cannot run over a batch.
        ModelError: an operator cannot take the shapes that reach it.
    """
    with closing(BoundResolver(resolver, model)) as bound:
        flat = bound.model_for(0, shapes)

        def of_shapes(model: FlatModel, shapes: Mapping[int, Shape]) -> Specialized:
            return specialize(model, 0, shapes, bound.kernels, bound.preparers())

        sample, open_sizes = of_shapes(flat, shapes), list[int]()
        _check_states(sample.operators, resolver)
        if (whole := _as_it_is(flat, sample, size, of_shapes, given)) is not None:
            return whole
        if any(not is_known(*shape) for shape in shapes.values()):
            open_sizes = _open_sizes(sample, of_shapes(flat, {}))

        def graph() -> BatchedGraph:
            return BatchedGraph(Parts(flat), sample, size, open_sizes)

        try:
            return _batched(flat, graph(), given, Split(sample.operators))
        except Unbatchable:
            # A loop gives each sample a size of its own, but one of an open input is that of all.
            parts = Split(()) if open_sizes else split(sample, given)
            if not parts.inside:
                raise
        return _batched(flat, graph(), given, parts)


def _as_it_is(
    model: FlatModel,
    sample: Specialized,
    size: int | None,
    of_shapes: Callable[[FlatModel, Mapping[int, Shape]], Specialized],
    given: Collection[int] | None,
) -> Model | None:
    """The model itself, if there are operators without a rule for a batch, and it is known to keep
    the samples apart: as its file has it, if that leaves their number open, else with the constants
    open that say that there is one."""
    graph = model.subgraphs[0]
    several = [index for index in graph.inputs if given is None or index in given]
    if all(key_of(op) in RULES for op in sample.operators):
        return None
    if not several or not all(leads(sample.tensors[index]) for index in several):
        return None
    tables = [graph.tensors[index] for index in several]
    opened = all((table.shape_signature or (1,))[:1] == (-1,) for table in tables)
    if not opened and not any(op.op is Op.WHILE for op in sample.operators):
        return None
    count = unknown_size()
    shapes = {index: (count, *sample.tensors[index].shape[1:]) for index in several}
    try:
        whole_model = model if opened else open_rows.with_open_rows(model, sample, several)
        others = {i: sample.tensors[i].shape for i in sample.inputs}
        whole = of_shapes(whole_model, {**others, **shapes})
        proofs.keeps_samples_apart(whole, several, count)
    except (ModelError, Unbatchable, Untranslatable):
        return None
    graph, number = whole_model.subgraphs[0], -1 if size is None else size
    tensors = list(graph.tensors)
    for index in (*graph.inputs, *graph.outputs):
        sizes = (number if each is count else each for each in whole.tensors[index].shape)
        tensors[index] = sized(tensors[index], tuple(sizes))
    first = replace(graph, tensors=tuple(tensors))
    return replace(whole_model, subgraphs=(first, *whole_model.subgraphs[1:]))


def _open_sizes(sample: Specialized, in_file: Specialized) -> list[int]:
    """The unknown sizes that depend on nothing but the sizes of open inputs.

    Args:
        in_file: the same subgraph with the sizes that the file gives its inputs.
    """
    pairs = zip(sample.tensors, in_file.tensors, strict=False)
    alike = [(one, other) for one, other in pairs if one.ranked and one.rank == other.rank]
    sizes = chain.from_iterable(zip(one.shape, other.shape, strict=True) for one, other in alike)
    return [size for size, known in sizes if not is_known(size) and is_known(known)]


def _check_states(operators: Sequence[View], resolver: OpResolver) -> None:
    """Refuse kernels of a user that keep a state, which is that of one sample."""
    for op in operators:
        if resolver.keeps_state(key_of(op), op.version):
            raise Unbatchable("it keeps a state of its own", op.name, op.index, op.subgraph)
        for body in op.bodies:
            _check_states(body.operators, resolver)


def _batched(
    model: Model, graph: BatchedGraph, given: Collection[int] | None, parts: Split
) -> Model:
    sample = graph.sample
    inputs = [
        graph.take(sample.tensors[index])
        if given is None or index in given
        else graph.result_same(sample.tensors[index])
        for index in sample.inputs
    ]
    for tensor in sample.tensors[: len(graph.source.tensors)]:
        if tensor.is_variable:
            graph.take_variable(tensor)
    for op in sample.folded:
        if op.op in NAMES:
            graph.copy(op, [], [out.index for out in op.outputs])
    for op in parts.before:
        _add(op, graph)
    if parts.inside:
        samples_one_by_one(parts.inside, parts.wanted(sample.outputs), graph)
    for op in parts.after:
        _add(op, graph)
    outputs = _outputs(graph, sample, spread=given is None)
    counts = _counts(graph, sample)
    made = replace(
        graph.source,
        tensors=tuple(graph.tensors),
        operators=tuple(graph.operators),
        inputs=tuple(inputs),
        outputs=(*outputs, *counts.values()),
    )
    place = dict(zip(sample.outputs, outputs, strict=True))
    whole = graph.parts.made(made)
    return replace(
        whole, signature_defs=tuple(_moved(each, place, counts) for each in model.signature_defs)
    )


def _counts(graph: BatchedGraph, sample: Specialized) -> dict[int, int]:
    """The output with the sizes of the samples, for each padded output; it has its own name."""
    found = {index: graph.counts[index] for index in sample.outputs if index in graph.counts}
    taken = {graph.source.tensors[index].name for index in sample.outputs}
    for index, place in found.items():
        name = _free(graph.source.tensors[index].name, taken)
        graph.tensors[place] = replace(graph.tensors[place], name=name)
    return found


def _free(name: str, taken: set[str]) -> str:
    """A name for the counts of `name` that is not taken; now it is."""
    free = f"{name}{COUNT}"
    while free in taken:
        free += "_"
    taken.add(free)
    return free


def _moved(
    signature: SignatureDef, place: Mapping[int, int], counts: Mapping[int, int]
) -> SignatureDef:
    """A signature of the first subgraph with its outputs in their new places, and with counts."""
    if signature.subgraph_index:
        return signature
    taken = {each.name for each in signature.outputs}
    outputs = [
        TensorMap(each.name, place.get(each.tensor_index, each.tensor_index))
        for each in signature.outputs
    ]
    outputs += [
        TensorMap(_free(each.name, taken), counts[each.tensor_index])
        for each in signature.outputs
        if each.tensor_index in counts
    ]
    return replace(signature, outputs=tuple(outputs))


def _outputs(graph: BatchedGraph, sample: Specialized, *, spread: bool) -> list[int]:
    """The outputs, under their own names.

    Args:
        spread: what is the same for all samples is given for each.
    """
    places = []
    for index in sample.outputs:
        tensor = sample.tensors[index]
        if not spread and not graph.is_batched(tensor):
            places.append(graph.same(tensor))
            continue
        try:
            place = graph.boundary(tensor)
        except Unbatchable as error:
            raise Unbatchable(f"output {tensor.name!r}: {error.reason}") from None
        if place != index:
            name = graph.source.tensors[index].name
            graph.tensors[index] = replace(graph.tensors[index], name=f"{name}/of_all")
            graph.tensors[place] = replace(graph.tensors[place], name=name)
        places.append(place)
    return places


def _add(op: View, graph: BatchedGraph) -> None:
    """What computes the results of `op` for each sample.

    Raises:
        Unbatchable: with the operator's name.
    """
    try:
        if op.op in ALWAYS:
            RULES[op.op](op, graph)
        elif not any(map(graph.is_batched, op.inputs)) and not op.variables():
            _add_same(op, graph)
        else:
            _add_batched(op, graph)
    except Unbatchable as error:
        raise Unbatchable(error.reason, op.name, op.index, op.subgraph) from None


def _add_same(op: View, graph: BatchedGraph) -> None:
    graph.copy(op, graph.all_same(op.inputs), [graph.result_same(out) for out in op.outputs])


def _add_batched(op: View, graph: BatchedGraph) -> None:
    rule = RULES.get(key_of(op))
    if rule is not None:
        try:
            rule(op, graph)
        except Unbatchable as error:
            reason = error.reason
        except Untranslatable as error:  # the rule asks for the number of an open size
            reason = str(error)
        else:
            return
        graph.forget(op.outputs)
    try:
        sample_by_sample(op, graph)
    except Unbatchable as error:
        if rule is None:
            raise
        raise Unbatchable(f"{reason}, and {error.reason}") from None
