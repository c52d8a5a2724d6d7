"""A convolution of codes and the MAX_POOL_2D behind it as one group: the codes of LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lstm_models import invokes
from tests.oracle import litert_interpreter
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules.lowering import lower
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    ModelBuilder,
    Op,
    OperatorView,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    TensorType,
    read_model,
)
from tflite_ort.specialize.specialization import specialize
from tflite_ort.tuning.timing import forced

Array = npt.NDArray[Any]
Sides = tuple[int, int]

_RESOLVER = BuiltinOpResolver()
_ACTIVATIONS = [
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
]
_affine = QuantizationParameters.affine


def network(
    size: Sides = (43, 45),
    kernel: Sides = (3, 3),
    stride: Sides = (1, 1),
    padding: Padding = Padding.VALID,
    edges: Sides | None = None,
    window: Sides = (2, 2),
    steps: Sides = (2, 2),
    pooled: Padding = Padding.VALID,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
    after: ActivationFunctionType = ActivationFunctionType.NONE,
    type_: TensorType = TensorType.INT8,
    channels: Sides = (2, 3),
    read_twice: bool = False,
) -> bytes:
    """PAD if there are `edges`, CONV_2D, MAX_POOL_2D; per-channel scales of int8."""
    rng, (inputs, outputs) = np.random.default_rng(3), channels
    low, zero = (0, 90) if type_ is TensorType.UINT8 else (-128, -30)
    codes, made = _affine(0.02, zero), _affine(0.06, low + 100)
    whole = size if edges is None else (size[0] + sum(edges), size[1] + sum(edges))
    cells = _counts(whole, kernel, stride, padding)
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("image", (2, *size, inputs), type_, codes)
    main.tensor("padded", (2, *whole, inputs), type_, codes)
    weights = rng.integers(low + 1, low + 256, (outputs, *kernel, inputs), type_.name.lower())
    scales, zeros = [0.01], [121]
    if type_ is TensorType.INT8:
        scales, zeros = rng.uniform(0.004, 0.02, outputs).tolist(), [0] * outputs
    main.constant("weights", weights, type_, _affine(scales, zeros, 0))
    bias = rng.integers(-3000, 3000, outputs, np.int32)
    units = (np.float32(scales) * np.float32(0.02)).tolist()
    main.constant("bias", bias, TensorType.INT32, _affine(units, [0] * len(units), 0))
    main.tensor("made", (2, *cells, outputs), type_, made)
    main.tensor("result", (2, *_counts(cells, window, steps, pooled), outputs), type_, made)
    if edges is not None:
        main.constant("edges", np.int32([(0, 0), edges, edges, (0, 0)]))
        main.operator(Op.PAD, ["image", "edges"], ["padded"])
    conv = Conv2DOptions(
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        fused_activation_function=activation,
    )
    source = "image" if edges is None else "padded"
    main.operator(Op.CONV_2D, [source, "weights", "bias"], ["made"], conv, version=3)
    pool = Pool2DOptions(
        padding=pooled,
        stride_h=steps[0],
        stride_w=steps[1],
        filter_height=window[0],
        filter_width=window[1],
        fused_activation_function=after,
    )
    main.operator(Op.MAX_POOL_2D, ["made"], ["result"], pool, version=2)
    main.inputs("image").outputs(*["result", "made"][: 1 + read_twice])
    return builder.write()


def _counts(sizes: Sides, window: Sides, steps: Sides, padding: Padding) -> Sides:
    lost = [k - 1 if padding is Padding.VALID else 0 for k in window]
    axes = zip(sizes, lost, steps, strict=True)
    first, second = (-(-(n - gone) // s) for n, gone, s in axes)
    return first, second


def _offered(model: bytes) -> list[str]:
    """The names of the pooled lowerings."""
    found: list[str] = []

    def noted(op: OperatorView[Any], lowerings: Sequence[Lowering]) -> str:
        found.extend(each.name for each in lowerings if each.name.startswith("pooled"))
        return lowerings[0].name

    _lowered(model, Target(cpu_kernels=True, choose=noted))
    return found


def _lowered(model: bytes, target: Target) -> Any:
    graph = specialize(read_model(model), 0, {}, _RESOLVER.kernels)
    ends = ([graph.tensors[i] for i in places] for places in (graph.inputs, graph.outputs))
    lowered = lower(graph.operators, *ends, _RESOLVER.translators, target=target)
    assert not lowered.refusals
    return lowered.model


def _codes(model: bytes, name: str, weights: str, x: Array) -> Array:
    target = Target(cpu_kernels=True, choose=forced(name), weights=weights)
    made = _lowered(model, target)
    types = [node.op_type for node in made.graph.nodes]
    apart = types.index("MaxPool") - types.index("Conv") > 3
    assert apart == name.startswith("pooled")
    codes: Array = model_session(made, num_threads=1).call([x])[0]
    return codes


def _drawn_image(model: bytes, rng: np.random.Generator) -> Array:
    graph = specialize(read_model(model), 0, {}, _RESOLVER.kernels)
    input = graph.tensors[graph.inputs[0]]
    bounds = np.iinfo(input.dtype)
    return rng.integers(bounds.min, bounds.max, input.shape, input.dtype, endpoint=True)


@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(2, 4)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding=st.sampled_from([Padding.SAME, Padding.VALID]),
    edges=st.sampled_from([None, (1, 2), (2, 0)]),
    width=st.integers(2, 3),
    height=st.integers(1, 3),
    down=st.integers(1, 3),
    activation=st.sampled_from(_ACTIVATIONS),
    type_=st.sampled_from([TensorType.INT8, TensorType.UINT8]),
    channels=st.tuples(st.integers(1, 4), st.sampled_from([1, 3, 16])),
    more=st.tuples(st.integers(0, 5), st.integers(0, 9)),
    seed=st.integers(0, 2**32 - 1),
)
def test_codes_are_those_of_the_operators_one_by_one(
    width: int, height: int, down: int, more: Sides, seed: int, **drawn: Any
) -> None:
    size = 64 + more[0], 84 + more[1]  # so large that a convolution has several lowerings
    model = network(size, window=(height, width), steps=(down, width), **drawn)
    rng, names = np.random.default_rng(seed), _offered(model)
    assert names
    x = _drawn_image(model, rng)
    expected = _codes(model, "windows", "uint8", x)
    for name in rng.choice(names, min(4, len(names)), replace=False):
        for weights in {"uint8", exact_weight_type()}:
            codes = _codes(model, str(name), weights, x)
            np.testing.assert_array_equal(codes, expected, f"{name}, {weights}, seed {seed}")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": ActivationFunctionType.RELU, "padding": Padding.SAME},
        {"activation": ActivationFunctionType.RELU6, "edges": (1, 2), "channels": (1, 16)},
        {"size": (64, 83), "stride": (1, 2), "kernel": (4, 3), "window": (3, 3), "steps": (2, 3)},
    ],
    ids=["plain", "padding", "pad", "strides"],
)
def test_every_lowering_gives_the_codes_of_litert(changes: dict[str, Any]) -> None:
    model = network(**changes)
    x, names = _drawn_image(model, np.random.default_rng(0)), _offered(model)
    assert names
    ((expected,),) = invokes(litert_interpreter(model), [[x]])
    assert len(np.unique(expected)) > 50 or changes.get("activation")
    for name in names:
        codes = _codes(model, name, exact_weight_type(), x)
        np.testing.assert_array_equal(codes, expected, name)


@pytest.mark.parametrize(
    "changes",
    [
        {"window": (2, 3)},
        {"window": (2, 1), "steps": (2, 1)},
        {"pooled": Padding.SAME},
        {"after": ActivationFunctionType.RELU},
        {"read_twice": True},
    ],
    ids=["overlap", "no neighbours", "over the edge", "activation", "read twice"],
)
def test_others_are_translated_one_by_one(changes: dict[str, Any]) -> None:
    model = partial(network, size=(43, 45))
    assert _offered(model())
    assert not _offered(model(**changes))
