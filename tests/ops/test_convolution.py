"""CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, assert_close, check, ours
from tests.ops.operands import (
    HYBRID_INT4,
    SCHEMES,
    check_hybrid,
    exported,
    extremes,
    operands,
    optimized_nodes,
)
from tests.oracle import litert
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    BridgeError,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    ExportError,
    KernelError,
    ModelError,
    Op,
    Padding,
    TensorType,
    TransposeConvOptions,
)
from tflite_ort.schema.values.semantics import conv_output_size

SAME, VALID = Padding.SAME, Padding.VALID
NONE, RELU, RELU6, RELU_N1_TO_1 = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.RELU_N1_TO_1,
)
CONV_2D = {**SCHEMES, "hybrid_int4": HYBRID_INT4}
HYBRID = {name for name in CONV_2D if name.startswith("hybrid")}
QUANTISED = [name for name in SCHEMES if name not in HYBRID and name != "float"]


def conv(
    scheme: str,
    image: tuple[int, int, int, int] = (2, 9, 11, 6),
    outputs: int = 8,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: Padding = SAME,
    activation: ActivationFunctionType = NONE,
    *,
    groups: int = 1,
    multiplier: int = 0,
    extreme: bool = False,
    version: int = 1,
) -> Case:
    """A CONV_2D, or with a `multiplier` a DEPTHWISE_CONV_2D."""
    channels = image[3]
    outputs = channels * multiplier or outputs
    depthwise = multiplier > 0
    filter = (1, *kernel, outputs) if depthwise else (outputs, *kernel, channels // groups)
    rows, columns = (
        conv_output_size(padding, image[1 + i], kernel[i], stride[i], dilation[i]) for i in (0, 1)
    )
    input, weights, bias, output = operands(
        CONV_2D[scheme],
        image,
        filter,
        (image[0], rows, columns, outputs),
        axis=3 if depthwise else 0,
        extreme=extreme,
    )
    table: Any = DepthwiseConv2DOptions if depthwise else Conv2DOptions
    options = table(
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        dilation_h_factor=dilation[0],
        dilation_w_factor=dilation[1],
        fused_activation_function=activation,
    )
    op = Op.DEPTHWISE_CONV_2D if depthwise else Op.CONV_2D
    name = f"{op.name.lower()}-{scheme}-{image}-{kernel}-{stride}-{dilation}"
    feeds = [extremes(input)] if extreme else None
    return Case(name, op, [input, weights, bias], [output], options, version, feeds=feeds)


ROWS: dict[str, dict[str, Any]] = {
    "same": {},
    "valid strided": {"kernel": (3, 2), "stride": (2, 2), "padding": VALID, "activation": RELU},
    "dilated": {"dilation": (2, 3), "activation": RELU6},
    "dilated and strided": {"dilation": (2, 1), "stride": (2, 3), "activation": RELU_N1_TO_1},
    "stride beyond kernel": {"kernel": (1, 2), "stride": (3, 3)},
    "even kernel": {"kernel": (4, 2), "stride": (2, 1)},
    "pointwise": {"kernel": (1, 1)},
    "one cell": {"image": (1, 1, 1, 32), "kernel": (1, 1)},
    "one cell of a window": {"image": (2, 5, 6, 6), "dilation": (5, 6), "activation": RELU},
    "a row of a window": {"image": (2, 3, 9, 6), "dilation": (4, 1), "stride": (1, 2)},
    "three cells of five": {"image": (1, 6, 6, 6), "kernel": (5, 5), "dilation": (4, 4)},
    "wide for one cell": {"image": (1, 1, 1, 32), "stride": (2, 2)},
    "a window between the cells": {"image": (1, 3, 3, 6), "kernel": (2, 2), "dilation": (8, 8)},
    "one channel": {"image": (1, 8, 8, 1)},
    "few channels": {"image": (2, 8, 9, 3), "kernel": (3, 5), "stride": (2, 2)},
}


def run(case: Case, scheme: str) -> None:
    if scheme in HYBRID:
        check_hybrid(case, filter=1)
    else:
        check(case)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("scheme", CONV_2D)
def test_conv_2d(scheme: str, row: str) -> None:
    run(conv(scheme, **ROWS[row]), scheme)


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "hybrid"])
def test_conv_2d_of_groups(scheme: str) -> None:
    """LiteRT's hybrid kernel of groups needs a scale per channel, as its depthwise one does."""
    run(conv(scheme, outputs=9, stride=(2, 1), groups=3), scheme)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "hybrid"])
def test_depthwise_conv_2d(scheme: str, multiplier: int, row: str) -> None:
    run(conv(scheme, multiplier=multiplier, **ROWS[row]), scheme)


COMPUTED = {
    "conv": conv("float", stride=(2, 1)),
    "few channels": conv("float", (1, 8, 9, 3)),
    "groups": conv("float", outputs=9, groups=3),
    "depthwise": conv("float", multiplier=2),
    "codes": conv("int8"),
    "depthwise codes": conv("uint8", multiplier=1),
}


def computed(case: Case, *positions: int) -> Case:
    """These constants as inputs of the model."""
    inputs = list(case.inputs)
    for position in positions:
        tensor = inputs[position]
        assert tensor is not None
        inputs[position] = replace(tensor, data=None)
    return replace(case, inputs=inputs)


@pytest.mark.parametrize("name", COMPUTED)
def test_filters_may_be_computed(name: str) -> None:
    check(computed(COMPUTED[name], 1))


@pytest.mark.parametrize("multiplier", [0, 2])
def test_biases_of_floats_may_be_computed(multiplier: int) -> None:
    check(computed(conv("float", multiplier=multiplier), 1, 2))


@pytest.mark.parametrize("multiplier", [0, 1])
@pytest.mark.parametrize("scheme", QUANTISED)
def test_extreme_codes_do_not_saturate_sums(scheme: str, multiplier: int) -> None:
    """Integer kernels that add pairs of products in 16 bits overflow on these."""
    check(conv(scheme, (1, 6, 6, 64), 16, multiplier=multiplier, extreme=True))


@pytest.mark.parametrize("weights", ["uint8", "int8"])
@pytest.mark.parametrize("scheme", ["int8", "int8_channels", "int4"])
def test_weights_may_be_carried_either_way(scheme: str, weights: str) -> None:
    for case in (
        conv(scheme, (1, 6, 6, 64), 16, extreme=True),
        conv(scheme, (1, 6, 6, 64), multiplier=1, extreme=True),
    ):
        feeds = case.arrays(np.random.default_rng(0))
        expected = litert(case.model(), feeds, "reference")
        assert_close(
            exported(case.model(), feeds, weights=weights)[0], expected[0], 1, 0, case.name
        )


@pytest.mark.parametrize("multiplier", [0, 1])
@pytest.mark.parametrize("scheme", ["uint8", "int8"])
def test_convolution_of_another_size(scheme: str, multiplier: int) -> None:
    case = conv(scheme, stride=(2, 2), multiplier=multiplier)
    type = SCHEMES[scheme].activation
    check(replace(case, feeds=[extremes(T((3, 12, 7, 6), type))]))


@pytest.mark.parametrize("version", range(1, 9))
def test_conv_2d_version(version: int) -> None:
    check(conv("float", version=version))


@pytest.mark.parametrize("version", range(1, 8))
def test_depthwise_conv_2d_version(version: int) -> None:
    """The reference resolver ends at version 6."""
    check(replace(conv("float", multiplier=2, version=version), reference="optimized"))


def test_depthwise_multiplier_comes_from_the_shapes() -> None:
    case = conv("float", multiplier=2)
    check(replace(case, options=replace(case.options, depth_multiplier=7)))


def test_bias_of_16_bit_activations_may_have_32_bits() -> None:
    case = conv("int16")
    input, weights, bias = case.inputs
    assert bias is not None and bias.data is not None
    narrow = T.constant(bias.data.astype(np.int32), scale=bias.scale)
    options = replace(case.options, quantized_bias_type=TensorType.INT32)
    check(replace(case, inputs=[input, weights, narrow], options=options))


@pytest.mark.parametrize("multiplier", [0, 1])
@pytest.mark.parametrize("scheme", ["uint8", "int8", "int8_channels"])
def test_convolution_becomes_one_integer_node(scheme: str, multiplier: int, tmp_path: Path) -> None:
    nodes = optimized_nodes(conv(scheme, multiplier=multiplier).model(), tmp_path / "o.onnx")
    assert nodes.count("QLinearConv") == 1
    assert "Conv" not in nodes


@given(st.data())
def test_drawn_convolutions(data: st.DataObject) -> None:
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    case = conv(
        data.draw(st.sampled_from(["float", *QUANTISED])),
        (data.draw(st.integers(1, 2)), *data.draw(st.tuples(*[st.integers(7, 12)] * 2)), 4),
        data.draw(st.integers(1, 5)) * 2,
        data.draw(pair),
        data.draw(pair),
        data.draw(pair),
        data.draw(st.sampled_from([SAME, VALID])),
        data.draw(st.sampled_from([NONE, RELU, RELU6])),
        groups=data.draw(st.sampled_from([1, 2])),
        multiplier=data.draw(st.integers(0, 2)),
    )
    check(case, seed=data.draw(st.integers(0, 2**31)))


def transposed(
    scheme: str,
    image: tuple[int, int, int, int] = (2, 5, 6, 4),
    outputs: int = 7,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (2, 2),
    padding: Padding = SAME,
    activation: ActivationFunctionType = NONE,
    *,
    size: tuple[int, int] | None = None,
    bias: bool = True,
    extreme: bool = False,
    version: int = 4,
) -> Case:
    """A TRANSPOSE_CONV, by default to the size a convolution of the same options starts from."""
    batch, *cells, channels = image
    if size is None and padding is SAME:
        size = (cells[0] * stride[0], cells[1] * stride[1])
    elif size is None:
        size = ((cells[0] - 1) * stride[0] + kernel[0], (cells[1] - 1) * stride[1] + kernel[1])
    shape = (batch, *size, outputs)
    input, weights, offset, output = operands(
        SCHEMES[scheme], image, (outputs, *kernel, channels), shape, extreme=extreme
    )
    inputs = [T.constant(np.array(shape, np.int32)), weights, input, *([offset] if bias else [])]
    options = TransposeConvOptions(
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        fused_activation_function=activation,
    )
    name = f"transpose_conv-{scheme}-{image}-{kernel}-{stride}-{size}"
    feeds = [extremes(input)] if extreme else None
    return Case(name, Op.TRANSPOSE_CONV, inputs, [output], options, version, feeds=feeds)


TRANSPOSED_ROWS: dict[str, dict[str, Any]] = {
    "same": {},
    "valid": {"kernel": (3, 2), "padding": VALID, "activation": RELU},
    "valid, cells past the last window": {"padding": VALID, "size": (12, 14)},
    "same, odd size": {"kernel": (4, 3), "size": (9, 11), "activation": RELU6},
    "stride beyond kernel": {"kernel": (1, 2), "stride": (3, 3)},
    "not strided, no bias": {"stride": (1, 1), "bias": False, "version": 1},
    "one cell": {"image": (1, 1, 1, 32), "kernel": (2, 2)},
}


@pytest.mark.parametrize("row", TRANSPOSED_ROWS)
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "int4"])
def test_transpose_conv(scheme: str, row: str) -> None:
    case = transposed(scheme, **TRANSPOSED_ROWS[row])
    if scheme in HYBRID:
        check_hybrid(case, filter=1)
    else:
        check(case)


@pytest.mark.parametrize("scheme", [name for name in QUANTISED if name != "int4"])
def test_transpose_conv_of_extreme_codes(scheme: str) -> None:
    check(transposed(scheme, (1, 5, 5, 64), extreme=True))


def nodes_of(model: bytes) -> set[str]:
    """The types of nodes that ONNX Runtime runs."""
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return {node for operator in interpreter.profile(1) for node in operator.nodes}


@pytest.mark.parametrize("row", TRANSPOSED_ROWS)
def test_transpose_conv_of_bytes_is_multiplied_as_integers(row: str) -> None:
    nodes = nodes_of(transposed("int8", **TRANSPOSED_ROWS[row]).model())
    assert nodes & {"QLinearConv", "ConvTranspose"} == {"QLinearConv"}


def test_multiplied_depthwise_conv_of_bytes_has_a_group_for_each_output() -> None:
    nodes = nodes_of(conv("int8", multiplier=3).model())
    assert {"Gather", "QLinearConv"} <= nodes


@pytest.mark.parametrize("positions", [(1,), (1, 3)])
def test_transpose_conv_of_a_computed_filter(positions: tuple[int, ...]) -> None:
    check(computed(transposed("float"), *positions))


@pytest.mark.parametrize("version", range(1, 6))
def test_transpose_conv_version(version: int) -> None:
    check(transposed("float", version=version))


@pytest.mark.parametrize("scheme", ["float", "uint8", "int8", "int8_channels"])
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_transpose_conv_of_a_resized_batch(padding: Padding, scheme: str) -> None:
    """LiteRT's default takes the batch of a constant output_shape from the input."""
    case = transposed(scheme, (1, 5, 6, 4), padding=padding)
    image = case.inputs[2]
    assert image is not None
    feed = replace(image, shape=(3, 5, 6, 4)).random(np.random.default_rng(0))
    model = case.model()
    (want,) = litert(model, [feed])
    assert want.shape[0] == 3
    open_batch = exported(model, [feed], input_shapes={"in2": (None, 5, 6, 4)})
    for providers in (None, []):
        interpreter = Interpreter(model_content=model, providers=providers)
        (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
        interpreter.resize_tensor_input(given["index"], feed.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given["index"], feed)
        interpreter.invoke()
        assert_close(interpreter.get_tensor(made["index"]), want, 1, 1e-5, scheme)
    assert_close(open_batch[0], want, 1, 1e-5, scheme)


def test_transpose_conv_of_other_channels_than_it_makes() -> None:
    case = transposed("float", (1, 5, 6, 4))
    shape = T.constant(np.array([1, 10, 12, 3], np.int32))
    outputs = [replace(case.outputs[0], shape=(1, 10, 12, 3))]
    model = replace(case, inputs=[shape, *case.inputs[1:]], outputs=outputs).model()
    feed = np.zeros((1, 5, 6, 4), np.float32)
    for providers in (None, []):
        with pytest.raises(BridgeError, match=r"\(1, 10, 12, 3\), expected \(1, H, W, 7\)"):
            ours(model, [feed], providers)


REFUSED = [
    (TensorType.UINT8, TensorType.INT8, "UINT8 input with INT8 filter"),
    (TensorType.FLOAT32, TensorType.UINT8, "FLOAT32 input with UINT8 filter"),
]


@pytest.mark.parametrize(("input", "filter", "message"), REFUSED)
def test_types_without_a_product_are_refused(
    input: TensorType, filter: TensorType, message: str
) -> None:
    case = conv("int8")
    image, weights, _ = case.inputs
    assert image is not None and weights is not None and weights.data is not None
    image = replace(image, type=input, scale=None if input is TensorType.FLOAT32 else 0.02)
    weights = replace(weights, type=filter, data=weights.data.view(filter.name.lower()))
    mixed = replace(case, inputs=[image, weights], outputs=[replace(case.outputs[0], type=input)])
    with pytest.raises(ExportError, match=message):
        export_onnx(mixed.model())
    with pytest.raises(KernelError, match=message):
        ours(mixed.model(), mixed.arrays(np.random.default_rng(0)), providers=[])


MISFITS = [
    (conv("float"), (2, 9, 11, 5), "does not fit 5 input channels"),
    (conv("float", multiplier=2), (2, 9, 11, 5), "does not fit 5 input channels"),
    (conv("float", padding=VALID), (2, 2, 11, 6), "no window of"),
    (conv("float"), (9, 11, 6), "has rank 3, expected 4"),
]


@pytest.mark.parametrize(("case", "image", "message"), MISFITS)
def test_images_that_do_not_fit(case: Case, image: tuple[int, ...], message: str) -> None:
    model = replace(case, inputs=[T(image), *case.inputs[1:]]).model()
    with pytest.raises(ModelError, match=message):
        Interpreter(model_content=model).allocate_tensors()
