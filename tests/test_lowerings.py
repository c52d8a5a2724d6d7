"""Every lowering of a layer gives the same codes, or the same floats but for the last bits."""

from __future__ import annotations

import json
import platform
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lowerings import lowerings_of
from tests.lstm_models import invokes
from tests.optimised import optimised_nodes
from tests.oracle import litert_interpreter
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target, lower
from tflite_ort.opmap.graph import costs as costs_of
from tflite_ort.opmap.graph.costs import modelled_chooser
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Model,
    ModelBuilder,
    Op,
    OperatorView,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    SoftmaxOptions,
    Specialized,
    TensorType,
    TransposeConvOptions,
    read_model,
    write_model,
)
from tflite_ort.specialize.specialization import specialize
from tflite_ort.tuning.timing import forced

Array = npt.NDArray[Any]

_TARGET = Target(cpu_kernels=True)
_RESOLVER = BuiltinOpResolver()
_affine = QuantizationParameters.affine
_SIDES = st.integers(1, 4)
_ACTIVATIONS = [ActivationFunctionType.NONE, ActivationFunctionType.RELU6]


@st.composite
def convolutions(draw: st.DrawFn) -> Model:
    """A convolution of 8-bit codes over few channels, behind a PAD or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    type_ = draw(st.sampled_from([TensorType.INT8, TensorType.UINT8]))
    depthwise, padded = draw(st.booleans()), draw(st.booleans())
    kernel, stride = (draw(_SIDES), draw(_SIDES)), (draw(_SIDES), draw(_SIDES))
    dilation = (1, draw(st.integers(1, 2))) if stride == (1, 1) else (1, 1)
    padding = draw(st.sampled_from([Padding.SAME, Padding.VALID]))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    size = [r + draw(st.integers(9, 60)) for r in reach]
    channels = draw(st.integers(1, 5))
    outputs = channels * draw(st.integers(1, 2)) if depthwise else draw(st.integers(1, 6))
    edges = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in "hw"]
    edges = edges if padded else [(0, 0), (0, 0)]
    whole = [n + sum(edge) for n, edge in zip(size, edges, strict=True)]
    lost = [r - 1 if padding == Padding.VALID else 0 for r in reach]
    cells = [-(-(n - gone) // s) for n, gone, s in zip(whole, lost, stride, strict=True)]
    builder = ModelBuilder()
    main = builder.subgraph("main")
    low, zero = (0, 7) if type_ is TensorType.UINT8 else (-128, -100)
    codes = _affine(0.02, zero)
    main.tensor("image", (2, *size, channels), type_, codes)
    main.tensor("padded", (2, *whole, channels), type_, codes)
    main.constant("edges", np.int32([(0, 0), *edges, (0, 0)]))
    shape = (1, *kernel, outputs) if depthwise else (outputs, *kernel, channels)
    weights = rng.integers(low, low + 255, shape, type_.name.lower(), endpoint=True)
    axis = 3 if depthwise else 0
    scales, zeros = [0.01], [121]
    if type_ is TensorType.INT8:
        weights = weights.clip(-127)
        scales, zeros = rng.uniform(0.001, 0.02, outputs).tolist(), [0] * outputs
    main.constant("weights", weights, type_, _affine(scales, zeros, axis))
    bias = rng.integers(-3000, 3000, outputs, np.int32)
    units = (np.float32(scales) * np.float32(0.02)).tolist()
    main.constant("bias", bias, TensorType.INT32, _affine(units, [0] * len(units), 0))
    main.tensor("result", (2, *cells, outputs), type_, _affine(0.15, low + 9))
    if padded:
        main.operator(Op.PAD, ["image", "edges"], ["padded"])
    common: dict[str, Any] = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation_function": draw(st.sampled_from(_ACTIVATIONS)),
    }
    source = ["padded" if padded else "image", "weights", "bias"]
    if depthwise:
        options: Any = DepthwiseConv2DOptions(depth_multiplier=outputs // channels, **common)
        main.operator(Op.DEPTHWISE_CONV_2D, source, ["result"], options, version=3)
    else:
        main.operator(Op.CONV_2D, source, ["result"], Conv2DOptions(**common), version=3)
    main.inputs("image").outputs("result")
    return read_model(builder.write())


def graph_of(model: Model) -> Specialized:
    return specialize(model, 0, {}, _RESOLVER.kernels)


def last_operator(graph: Specialized) -> OperatorView[Any]:
    op = graph.operators[-1]
    entry = _RESOLVER.translators.of(op)
    assert entry is not None
    return entry.inputs.bind(op)


def result_of(graph: Specialized, name: str, image: Array, weights: str = "uint8") -> Array:
    target = replace(_TARGET, weights=weights, choose=forced(name))
    inputs = [graph.tensors[i] for i in graph.inputs]
    outputs = [graph.tensors[i] for i in graph.outputs]
    lowered = lower(graph.operators, inputs, outputs, _RESOLVER.translators, target=target)
    assert not lowered.refusals
    return model_session(lowered.model, num_threads=1).call([image])[0]


@given(convolutions(), st.integers(0, 2**32 - 1))
def test_lowerings_of_a_convolution_give_the_same_codes(model: Model, seed: int) -> None:
    graph, rng = graph_of(model), np.random.default_rng(seed)
    input = graph.tensors[graph.inputs[0]]
    bounds = np.iinfo(input.dtype)
    image = rng.integers(bounds.min, bounds.max, input.shape, input.dtype, endpoint=True)
    names = [
        each.name for each in lowerings_of(last_operator(graph), _TARGET, _RESOLVER.translators)
    ]
    hypothesis.assume(names)
    first = result_of(graph, "windows", image)
    for name in names[1:]:
        np.testing.assert_array_equal(result_of(graph, name, image), first, name)
    if exact_weight_type() == "int8":
        for name in names:
            np.testing.assert_array_equal(result_of(graph, name, image, "int8"), first, name)


@st.composite
def means(draw: st.DrawFn) -> Model:
    """AVERAGE_POOL_2D of 8-bit codes, by windows that reach over the edges or do not."""
    type_ = draw(st.sampled_from([TensorType.INT8, TensorType.UINT8]))
    filter, stride = (draw(_SIDES), draw(_SIDES)), (draw(_SIDES), draw(_SIDES))
    padding = draw(st.sampled_from([Padding.SAME, Padding.VALID]))
    size = [k + draw(st.integers(0, 9)) for k in filter]
    cells = [
        -(-n // s) if padding is Padding.SAME else (n - k) // s + 1
        for n, k, s in zip(size, filter, stride, strict=True)
    ]
    channels, codes = draw(st.integers(1, 20)), _affine(0.02, 5)
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (2, *size, channels), type_, codes)
    main.tensor("y", (2, *cells, channels), type_, codes)
    options = Pool2DOptions(
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        filter_height=filter[0],
        filter_width=filter[1],
        fused_activation_function=draw(st.sampled_from(_ACTIVATIONS)),
    )
    main.operator(Op.AVERAGE_POOL_2D, ["x"], ["y"], options, version=2)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


@given(means(), st.integers(0, 2**32 - 1))
def test_lowerings_of_a_mean_give_the_codes_of_litert(model: Model, seed: int) -> None:
    """Halves are among the means, which LiteRT rounds away from zero."""
    graph, rng = graph_of(model), np.random.default_rng(seed)
    input = graph.tensors[graph.inputs[0]]
    bounds = np.iinfo(input.dtype)
    x = rng.integers(bounds.min, bounds.max, input.shape, input.dtype, endpoint=True)
    litert = litert_interpreter(write_model(model), "reference")
    ((expected,),) = invokes(litert, [[x]])
    for name in ("pool", "sums"):
        for weights in ("uint8", exact_weight_type()):
            np.testing.assert_array_equal(result_of(graph, name, x, weights), expected, name)


@given(
    st.sampled_from([TensorType.INT8, TensorType.UINT8]),
    st.sampled_from([(3, 7), (2, 64), (5, 129), (1, 1001), (40, 300)]),
    st.sampled_from([0.01, 0.05, 0.1, 0.25]),
    st.integers(0, 2**32 - 1),
)
def test_lowerings_of_a_softmax_give_the_codes_of_litert(
    type_: TensorType, shape: tuple[int, int], scale: float, seed: int
) -> None:
    builder, low = ModelBuilder(), -128 if type_ is TensorType.INT8 else 0
    main = builder.subgraph("main").tensor("x", shape, type_, _affine(scale, 3))
    main.tensor("y", shape, type_, _affine(1 / 256, low))
    main.operator(Op.SOFTMAX, ["x"], ["y"], SoftmaxOptions(beta=1.0), version=2)
    main.inputs("x").outputs("y")
    model = builder.write()
    rng = np.random.default_rng(seed)
    dtype = np.int8 if type_ is TensorType.INT8 else np.uint8
    x = rng.integers(low, low + 255, shape, dtype, endpoint=True)
    ((expected,),) = invokes(litert_interpreter(model), [[x]])
    graph = graph_of(read_model(model))
    names = [e.name for e in lowerings_of(last_operator(graph), _TARGET, _RESOLVER.translators)]
    assert names == ["table", "floats"]
    for name in names:
        np.testing.assert_array_equal(result_of(graph, name, x), expected, name)


@given(
    st.sampled_from([TensorType.INT8, TensorType.UINT8]),
    st.sampled_from([(2, 5), (7, 16), (1, 3, 8), (2, 4, 6, 12)]),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from(_ACTIVATIONS),
    st.integers(0, 2**32 - 1),
)
def test_lowerings_of_a_product_give_the_codes_of_litert(
    type_: TensorType,
    shape: tuple[int, ...],
    units: int,
    has_bias: bool,
    activation: ActivationFunctionType,
    seed: int,
) -> None:
    rng, low = np.random.default_rng(seed), -128 if type_ is TensorType.INT8 else 0
    dtype = np.int8 if type_ is TensorType.INT8 else np.uint8
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", shape, type_, _affine(0.02, 3))
    weights = rng.integers(low + 1, low + 255, (units, shape[-1]), dtype, endpoint=True)
    main.constant("w", weights, type_, _affine(0.01, 0 if low else 117))
    main.constant("b", rng.integers(-300, 300, units, np.int32), TensorType.INT32, _affine(2e-4, 0))
    main.tensor("y", (*shape[:-1], units), type_, _affine(0.07, low + 60))
    options = FullyConnectedOptions(
        keep_num_dims=len(shape) > 2, fused_activation_function=activation
    )
    given = ["x", "w", "b" if has_bias else None]
    main.operator(Op.FULLY_CONNECTED, given, ["y"], options, version=5)
    main.inputs("x").outputs("y")
    model = builder.write()
    x = rng.integers(low, low + 255, shape, dtype, endpoint=True)
    ((expected,),) = invokes(litert_interpreter(model), [[x]])
    graph = graph_of(read_model(model))
    for name in ("rows", "cells"):
        for kind in {"uint8", exact_weight_type()}:
            np.testing.assert_array_equal(result_of(graph, name, x, kind), expected, name)


def test_products_of_many_narrow_rows_are_one_convolution() -> None:
    builder, type_ = ModelBuilder(), TensorType.INT8
    main = builder.subgraph("main").tensor("x", (800, 8), type_, _affine(0.1, 3))
    main.constant("w", np.ones((48, 8), np.int8), type_, _affine(0.01, 0))
    main.tensor("y", (800, 48), type_, _affine(0.1, 0))
    options = FullyConnectedOptions()
    main.operator(Op.FULLY_CONNECTED, ["x", "w", None], ["y"], options, version=4)
    main.inputs("x").outputs("y")
    if platform.machine() in ("x86_64", "AMD64") and exact_weight_type() == "int8":
        assert optimised_nodes(builder.write()) == {"Reshape": 1, "QLinearConv": 1}


def test_a_long_softmax_of_codes_is_in_floats() -> None:
    def nodes(width: int) -> Counter[str]:
        builder, type_ = ModelBuilder(), TensorType.INT8
        main = builder.subgraph("main").tensor("x", (64, width), type_, _affine(0.1, 3))
        main.tensor("y", (64, width), type_, _affine(1 / 256, -128))
        main.operator(Op.SOFTMAX, ["x"], ["y"], SoftmaxOptions(beta=1.0), version=2)
        main.inputs("x").outputs("y")
        return optimised_nodes(builder.write())

    assert nodes(4) == {"QLinearSoftmax": 1}
    if platform.machine() in ("x86_64", "AMD64"):
        assert nodes(512)["Softmax"] == 1


def test_means_of_codes_are_sums_where_windows_stay_inside() -> None:
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("x", (1, 12, 12, 16), TensorType.INT8, _affine(0.1, 0))
    main.tensor("y", (1, 6, 6, 16), TensorType.INT8, _affine(0.1, 0))
    options = Pool2DOptions(stride_h=2, stride_w=2, filter_height=2, filter_width=2)
    main.operator(Op.AVERAGE_POOL_2D, ["x"], ["y"], options, version=2)
    main.inputs("x").outputs("y")
    assert optimised_nodes(builder.write()) == {"QLinearConv": 1}


@st.composite
def transposed(draw: st.DrawFn) -> Model:
    """TRANSPOSE_CONV of 8-bit codes or of floats."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    type_ = draw(st.sampled_from([TensorType.INT8, TensorType.UINT8, TensorType.FLOAT32]))
    kernel, stride = (draw(_SIDES), draw(_SIDES)), (draw(_SIDES), draw(_SIDES))
    padding = draw(st.sampled_from([Padding.SAME, Padding.VALID]))
    size, inputs, outputs = (draw(_SIDES), draw(_SIDES)), draw(_SIDES), draw(_SIDES)
    cells = [
        n * s if padding is Padding.SAME else (n - 1) * s + k
        for n, k, s in zip(size, kernel, stride, strict=True)
    ]
    result = 2, *cells, outputs
    builder = ModelBuilder()
    main = builder.subgraph("main").constant("size", np.int32(result))
    codes = None if type_ is TensorType.FLOAT32 else _affine(0.05, 7)
    weights: Any = rng.integers(1, 100, (outputs, *kernel, inputs))
    units = None if codes is None else _affine(0.01, 0 if type_ is TensorType.INT8 else 41)
    main.constant("weights", weights.astype(type_.name.lower()), type_, units)
    main.tensor("image", (2, *size, inputs), type_, codes)
    main.tensor("result", result, type_, codes)
    options = TransposeConvOptions(padding=padding, stride_h=stride[0], stride_w=stride[1])
    given = ["size", "weights", "image"]
    main.operator(Op.TRANSPOSE_CONV, given, ["result"], options, version=2)
    main.inputs("image").outputs("result")
    return read_model(builder.write())


@given(transposed(), st.integers(0, 2**32 - 1))
def test_lowerings_of_a_transposed_convolution_give_the_same(model: Model, seed: int) -> None:
    graph, rng = graph_of(model), np.random.default_rng(seed)
    input = graph.tensors[graph.inputs[0]]
    image: Array = rng.normal(0, 1, input.shape).astype(np.float32)
    if input.is_quantized:
        bounds = np.iinfo(input.dtype)
        image = rng.integers(bounds.min, bounds.max, input.shape, input.dtype, endpoint=True)
    found = lowerings_of(last_operator(graph), _TARGET, _RESOLVER.translators)
    hypothesis.assume(found)
    first = result_of(graph, found[0].name, image)
    for other in found[1:]:
        got = result_of(graph, other.name, image)
        if input.is_quantized:
            np.testing.assert_array_equal(got, first, other.name)
        else:
            np.testing.assert_allclose(got, first, 1e-5, 1e-5 * np.abs(first).max())


def image_layer(width: int, channels: int) -> OperatorView[Any]:
    """A first layer of an image network: 3x3 windows of stride 2 to 8 channels, int8."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("image", (1, 48, width, channels), TensorType.INT8, _affine(0.02, 3))
    weights = np.ones((8, 3, 3, channels), np.int8)
    main.constant("weights", weights, TensorType.INT8, _affine([0.01] * 8, [0] * 8, 0))
    main.tensor("result", (1, 24, -(-width // 2), 8), TensorType.INT8, _affine(0.1, 0))
    options = Conv2DOptions(stride_w=2, stride_h=2)
    main.operator(Op.CONV_2D, ["image", "weights", None], ["result"], options, version=3)
    main.inputs("image").outputs("result")
    return last_operator(graph_of(read_model(builder.write())))


def test_the_model_groups_columns_of_an_image() -> None:
    op = image_layer(96, 3)
    lowerings = lowerings_of(op, _TARGET, _RESOLVER.translators)
    assert len(lowerings) > 10
    for weights in ("int8", "uint8"):
        by_model = modelled_chooser(weights)(op, lowerings)
        assert by_model.startswith("columns") or platform.machine() not in ("x86_64", "AMD64")
        assert modelled_chooser(weights)(op, lowerings) == by_model
    assert modelled_chooser("unheard of")(op, lowerings) == "windows"


def test_every_kind_of_work_has_a_time_on_every_kind_of_cpu() -> None:
    file = json.loads(Path(costs_of.__file__).with_name("costs.json").read_text("utf-8"))
    assert {"x86_64 int8", "x86_64 uint8"} <= file.keys()
    costs = {name: times for name, times in file.items() if name.startswith(("x86_64", "aarch64"))}
    kinds = set().union(*costs.values())
    assert all(times.keys() == kinds for times in costs.values())
    assert all(0 <= time < 100 for times in costs.values() for time in times.values())


def test_more_images_are_rounded_for_tiles() -> None:
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("image", (1, 24, 24, 128))
    codes = np.ones((32, 3, 3, 128), np.int8)
    main.constant("weights", codes, TensorType.INT8, _affine([0.01] * 32, [0] * 32, 0))
    main.constant("bias", np.ones(32, np.float32)).tensor("result", (1, 24, 24, 32))
    options = Conv2DOptions(stride_w=1, stride_h=1)
    main.operator(Op.CONV_2D, ["image", "weights", "bias"], ["result"], options, version=5)
    main.inputs("image").outputs("result")
    op = last_operator(graph_of(read_model(builder.write())))
    for tiles, node in ((False, "Conv"), (True, "MatMulIntegerToFloat")):
        target = replace(_TARGET, weights="int8", hybrid="auto", tiles=tiles)
        lowered = lower([op], op.inputs[:1], op.outputs, _RESOLVER.translators, target=target)
        assert node in {each.op_type for each in lowered.model.graph.nodes}


def test_other_targets_have_one_lowering() -> None:
    assert len(lowerings_of(image_layer(96, 3), Target(), _RESOLVER.translators)) <= 1
