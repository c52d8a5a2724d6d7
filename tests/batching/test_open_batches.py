"""Models whose file leaves the number of samples open, which run over a batch as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.batching import random_indices, random_moves, random_sizes, random_steps
from tests.batching.random_graphs import Array, RandomGraph, Shape
from tests.batching.single_runs import batch_of, opened, run, singles
from tests.one_op import assert_close
from tflite_ort import Interpreter
from tflite_ort.batching.proofs import keeps_samples_apart
from tflite_ort.batching.sample_axes import SIZES, SampleAxes
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.schema import (
    BridgeError,
    LessOptions,
    Model,
    ModelBuilder,
    Op,
    ReducerOptions,
    TensorType,
    Unbatchable,
    Untranslatable,
    WhileOptions,
    read_model,
    write_model,
)
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.specialize.specialization import specialize

MODULES = (random_indices, random_moves, random_sizes, random_steps)  # which draw operators
GRAPHS, MANY = 150, 5_000
TOLERANCE = 1e-4
INT = TensorType.INT32


class OneSample(RandomGraph):
    """A graph most of whose tensors lead with 1."""

    def shape(self, rank: int | None = None) -> Shape:
        sizes = super().shape(rank)
        return (1, *sizes[1:]) if sizes and self.draw.random() < 0.9 else sizes


def is_proved(model: Model) -> bool:
    """Whether it is known that a model keeps the samples apart if its inputs are resized."""
    count, graph = unknown_size(), model.subgraphs[0]
    with closing(BoundResolver(BuiltinOpResolver(), model)) as bound:
        shapes = {i: (count, *graph.tensors[i].shape[1:]) for i in graph.inputs}
        flat = bound.model_for(0, shapes)
        of_shapes = partial(specialize, flat, 0, kernels=bound.kernels)
        try:
            keeps_samples_apart(of_shapes(shapes), graph.inputs, count)
        except (Unbatchable, Untranslatable, BridgeError):
            return False
    return True


def proved(model: Model) -> tuple[dict[int, int | None], set[int]]:
    """By tensor of which it is known, the axis of the samples if the inputs are resized; and the
    tensors of which it is not."""
    count, graph = unknown_size(), model.subgraphs[0]
    with closing(BoundResolver(BuiltinOpResolver(), model)) as bound:
        shapes = {i: (count, *graph.tensors[i].shape[1:]) for i in graph.inputs}
        try:
            whole = specialize(bound.model_for(0, shapes), 0, shapes, kernels=bound.kernels)
        except BridgeError:
            return {}, set()
    axes, unknown = SampleAxes(count, dict.fromkeys(graph.inputs, 0)), set[int]()
    made: list[int] = []
    for op in whole.operators:
        outputs = [out.index for out in op.outputs]
        try:
            if unknown & {tensor.index for tensor in op.present_inputs()}:
                raise Unbatchable("an input is not known")
            axes.follow(replace(whole, operators=(op,)))
            made += outputs
        except (Unbatchable, Untranslatable):
            unknown.update(outputs)
    return {index: axes.places.get(index) for index in made}, unknown


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.filterwarnings("ignore::tflite_ort.schema.BatchWarning")  # of other tensors
def test_random_graphs(request: pytest.FixtureRequest) -> None:
    """What is proved of a tensor is so: resized to a batch it has what single runs give. `--seed N`
    draws others."""
    count = MANY if request.config.getoption("--thorough") else GRAPHS
    first = request.config.getoption("--seed")
    checked = Counter[str]()
    for seed in range(first, first + count):
        checked += _checked(seed)
    print(dict(checked), "from seed", first)
    assert checked["tensors"] > count


def _checked(seed: int) -> Counter[str]:
    graph, rng = OneSample(seed), np.random.default_rng(seed)
    content = graph.model()
    model = read_model(content)
    inputs = [model.subgraphs[0].tensors[index] for index in model.subgraphs[0].inputs]
    found, unknown = proved(model)
    if not found or any(each.shape[:1] != (1,) for each in inputs):
        return Counter(nothing=1)
    kinds = Counter[str](graphs=1)
    samples = [graph.sample(rng) for _ in range(2 + seed % 3)]
    batch, content = batch_of(samples), only(model, found, unknown)
    whole = Interpreter(model_content=content, providers=[])
    for detail, array in zip(whole.get_input_details(), batch, strict=True):
        whole.resize_tensor_input(detail["index"], array.shape)
    whole.allocate_tensors()
    single = opened(content)
    singly = ([array.copy() for array in run(single, sample)] for sample in samples)
    places = read_model(content).subgraphs[0].outputs
    for got, each, index in zip(run(whole, batch), zip(*singly, strict=True), places, strict=True):
        place = found[index]
        if place != SIZES:
            want = each[0] if place is None else np.concatenate(each, max(place, 0))
            assert_close(got, want, 0, TOLERANCE, f"seed {seed}, tensor {index} along {place}")
            kinds["tensors"] += 1
    return kinds


def only(model: Model, outputs: Collection[int], unknown: Collection[int]) -> bytes:
    """A model that gives the tensors `outputs`, without the operators that make `unknown` ones."""
    (graph,) = model.subgraphs
    kept, left_out = [], set(unknown)
    for op in graph.operators:
        if left_out.isdisjoint({*op.inputs, *op.outputs}):
            kept.append(op)
        else:  # a shape that is known of what is not
            left_out.update(op.outputs)
    found = tuple(index for index in outputs if index not in left_out)
    return write_model(
        replace(model, subgraphs=(replace(graph, operators=tuple(kept), outputs=found),))
    )


def with_open_batch(content: bytes) -> bytes:
    """A model whose inputs have an open first size."""
    model = read_model(content)
    (graph, *others) = model.subgraphs
    tensors = list(graph.tensors)
    for index in graph.inputs:
        tensors[index] = replace(tensors[index], shape_signature=(-1, *tensors[index].shape[1:]))
    return write_model(replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)), *others)))


def looping(*, body: str, test: str) -> bytes:
    """x of [1, 4] is changed in three iterations, or while an element of it is small."""
    model = ModelBuilder()
    main, condition, step = (model.subgraph(name) for name in ("main", "condition", "step"))
    for graph in (main, condition, step):
        graph.tensor("n", (), INT)
        graph.tensor("x", (1, 4))
    main.constant("zero", np.array(0, np.int32))
    main.tensor("last", (), INT).tensor("y", (1, 4))
    main.operator(Op.WHILE, ["zero", "x"], ["last", "y"], WhileOptions(1, 2))
    main.inputs("x").outputs("y")
    condition.constant("three", np.array(3, np.int32)).constant("ten", np.array(10, np.float32))
    condition.constant("all", np.array([0, 1], np.int32)).tensor("most", ()).tensor(
        "more", (), TensorType.BOOL
    )
    if test == "count":
        condition.operator(Op.LESS, ["n", "three"], ["more"], LessOptions())
    else:
        condition.operator(Op.REDUCE_MAX, ["x", "all"], ["most"], ReducerOptions())
        condition.operator(Op.LESS, ["most", "ten"], ["more"], LessOptions())
    condition.inputs("n", "x").outputs("more")
    step.constant("one", np.array(1, np.int32)).constant("axis", np.array([0], np.int32))
    step.tensor("next", (), INT).tensor("made", (1, 4)).tensor("mean", (1, 4))
    step.operator(Op.ADD, ["n", "one"], ["next"])
    if body == "sum":
        step.operator(Op.SUM, ["x", "axis"], ["mean"], ReducerOptions(keep_dims=True))
        step.operator(Op.ADD, ["x", "mean"], ["made"])
    else:
        step.operator(Op.ADD, ["x", "x"], ["made"])
    step.inputs("n", "x").outputs("next", "made")
    return with_open_batch(model.write())


@pytest.mark.parametrize(
    ("body", "test", "proved"),
    [("add", "count", True), ("sum", "count", False), ("add", "most", False)],
)
def test_loops(body: str, test: str, proved: bool) -> None:
    """A loop runs over the whole batch only if it mixes nothing and ends for all at once; others
    run sample by sample."""
    content = looping(body=body, test=test)
    assert is_proved(read_model(content)) == proved
    rng = np.random.default_rng(0)
    samples: list[list[Array]] = [
        [rng.uniform(0.5, 4, (1, 4)).astype(np.float32)] for _ in range(3)
    ]
    for providers in (None, []):
        with Interpreter(model_content=content, batch=3, providers=providers) as interpreter:
            interpreter.allocate_tensors()
            (got,) = run(interpreter, batch_of(samples))
        (want,) = singles(content, samples)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def sizes_as_values() -> bytes:
    """x of [1, 4] plus the number of samples."""
    model = ModelBuilder()
    graph = model.subgraph("main")
    graph.tensor("x", (1, 4)).tensor("sizes", (2,), INT).tensor("floats", (2,))
    graph.tensor("largest", (1,)).tensor("y", (1, 4))
    graph.constant("axis", np.array([0], np.int32))
    graph.operator(Op.SHAPE, ["x"], ["sizes"])
    graph.operator(Op.CAST, ["sizes"], ["floats"])
    graph.operator(Op.SUM, ["floats", "axis"], ["largest"], ReducerOptions(keep_dims=True))
    graph.operator(Op.ADD, ["x", "largest"], ["y"])
    graph.inputs("x").outputs("y")
    return with_open_batch(model.write())


def test_the_number_of_samples_is_no_value() -> None:
    assert not is_proved(read_model(sizes_as_values()))
