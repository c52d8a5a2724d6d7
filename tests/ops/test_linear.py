"""FULLY_CONNECTED and BATCH_MATMUL against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from tests.one_op import Case, Node, T, assert_close, check, graph_model, one_op_model, ours
from tests.ops.operands import (
    HYBRID_INT4,
    INT2,
    SCHEMES,
    check_hybrid,
    exported,
    extremes,
    operands,
    optimized_nodes,
    with_blocks,
)
from tests.oracle import litert
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    BatchMatMulOptions,
    ExportError,
    FullyConnectedOptions,
    FullyConnectedOptionsWeightsFormat,
    KernelError,
    ModelError,
    Op,
    TensorType,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Shape = tuple[int, ...]
NONE, RELU, RELU6, RELU_N1_TO_1 = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.RELU_N1_TO_1,
)
DENSE = {**SCHEMES, "hybrid_int4": HYBRID_INT4, "int2": INT2}
QUANTISED = ["uint8", "int8", "int8_channels", "int4", "int2", "int16"]


def dense(
    scheme: str,
    input: Shape = (3, 64),
    units: int = 10,
    activation: ActivationFunctionType = NONE,
    *,
    depth: int | None = None,
    bias: str = "given",
    keep: bool = False,
    asymmetric: bool = False,
    extreme: bool = False,
    version: int = 9,
) -> Case:
    """A FULLY_CONNECTED; its `bias` is given, "missing" or "-1"."""
    depth = depth or input[-1]
    output = (*input[:-1], units) if keep else (int(np.prod(input)) // depth, units)
    x, weights, offset, result = operands(
        DENSE[scheme], input, (units, depth), output, extreme=extreme
    )
    inputs = {"given": [x, weights, offset], "missing": [x, weights], "-1": [x, weights, None]}
    options = FullyConnectedOptions(
        fused_activation_function=activation,
        keep_num_dims=keep,
        asymmetric_quantize_inputs=asymmetric,
    )
    name = f"fully_connected-{scheme}-{input}-{depth}-bias {bias}-keep{keep:d}"
    feeds = [extremes(x)] if extreme else None
    return Case(name, Op.FULLY_CONNECTED, inputs[bias], [result], options, version, feeds=feeds)


ROWS: dict[str, dict[str, Any]] = {
    "rows": {"activation": RELU},
    "image of one cell": {"input": (3, 1, 1, 64), "activation": RELU6},
    "image": {"input": (2, 4, 4, 4), "depth": 64},
    "vector": {"input": (64,), "depth": 16},
    "keep dimensions": {"input": (2, 5, 64), "keep": True, "activation": RELU_N1_TO_1},
    "bias missing": {"bias": "missing"},
    "bias -1": {"bias": "-1"},
    "asymmetric": {"asymmetric": True},
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("scheme", DENSE)
def test_fully_connected(scheme: str, row: str) -> None:
    case = dense(scheme, **ROWS[row])
    if scheme.startswith("hybrid"):
        check_hybrid(case, filter=1)
    else:
        check(case)


@pytest.mark.parametrize("name", ["TANH", "SIGN_BIT"])
@pytest.mark.parametrize("scheme", ["hybrid", "hybrid_int4"])
def test_products_with_integer_weights_apply_every_activation(scheme: str, name: str) -> None:
    activation = ActivationFunctionType[name]
    case = dense(scheme, (3, 16), activation=activation)
    (feed,) = case.arrays(np.random.default_rng(0))
    feed[1] = 0
    (want,) = litert(case.model(), [feed / 8], "reference")
    runs = [ours(case.model(), [feed / 8], [])[0], ours(case.model(), [feed / 8])[0]]
    runs += [exported(case.model(), [feed / 8], hybrid=kind) for kind in ("dynamic", "float")]
    for (got,), atol in zip(runs, (1e-6, 0.02, 1e-6, 0.02), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=atol)


@pytest.mark.parametrize("name", ["TANH", "SIGN_BIT"])
@pytest.mark.parametrize("scheme", ["float", "int8", "int16"])
def test_other_products_take_no_such_activation(scheme: str, name: str) -> None:
    case = dense(scheme, activation=ActivationFunctionType[name])
    with pytest.raises(RuntimeError, match=r"params->activation == kTfLiteActNone"):
        litert(case.model(), case.arrays(np.random.default_rng(0)))
    with pytest.raises(ModelError, match=f"takes no fused {name}"):
        Interpreter(model_content=case.model()).allocate_tensors()


@pytest.mark.parametrize("scheme", QUANTISED)
def test_extreme_codes_do_not_saturate_sums(scheme: str) -> None:
    check(dense(scheme, (4, 700), extreme=True))


@pytest.mark.parametrize("scheme", ["float", "uint8", "int8"])
def test_filter_may_be_computed(scheme: str) -> None:
    case = dense(scheme, bias="missing")
    input, weights = case.inputs
    assert weights is not None
    check(replace(case, inputs=[input, replace(weights, data=None)]))


@pytest.mark.parametrize("weights", ["uint8", "int8"])
@pytest.mark.parametrize("scheme", ["int8", "int8_channels", "int4"])
def test_weights_may_be_carried_either_way(scheme: str, weights: str) -> None:
    case = dense(scheme, (4, 700), extreme=True)
    feeds = case.arrays(np.random.default_rng(0))
    expected = litert(case.model(), feeds, "reference")
    assert_close(exported(case.model(), feeds, weights=weights)[0], expected[0], 1, 0, case.name)


def test_filter_of_16_bits() -> None:
    scale, depth = 1e-4, 48
    codes = np.random.default_rng(0).integers(-20000, 20000, (10, depth)).astype(np.int16)
    case = Case(
        "fully_connected-int16-int16",
        Op.FULLY_CONNECTED,
        [
            T((3, depth), TensorType.INT16, 1e-3),
            T.constant(codes, scale=scale),
            T.constant(np.arange(10, dtype=np.int64) * 1000, scale=1e-7),
        ],
        [T((3, 10), TensorType.INT16, 1e-2)],
        FullyConnectedOptions(quantized_bias_type=TensorType.INT64),
        version=11,
    )
    check(case)


def test_output_of_16_bits_from_uint8() -> None:
    case = dense("uint8")
    output = T(case.outputs[0].shape, TensorType.INT16, 0.003)
    check(replace(case, outputs=[output]))


def test_bias_of_16_bit_activations_may_have_32_bits() -> None:
    case = dense("int16", version=11)
    input, weights, bias = case.inputs
    assert bias is not None and bias.data is not None
    narrow = T.constant(bias.data.astype(np.int32), scale=bias.scale)
    options = replace(case.options, quantized_bias_type=TensorType.INT32)
    check(replace(case, inputs=[input, weights, narrow], options=options))


def test_fully_connected_of_another_batch() -> None:
    case = dense("int8")
    check(replace(case, feeds=[extremes(T((5, 64), TensorType.INT8))]))


@pytest.mark.parametrize("version", range(1, 15))
def test_fully_connected_version(version: int) -> None:
    check(dense("float", version=version))


@pytest.mark.parametrize("row", ["rows", "image", "keep dimensions", "bias missing"])
@pytest.mark.parametrize("scheme", ["uint8", "int8", "int8_channels"])
def test_fully_connected_becomes_one_integer_node(scheme: str, row: str, tmp_path: Path) -> None:
    nodes = optimized_nodes(dense(scheme, **ROWS[row]).model(), tmp_path / "o.onnx")
    assert nodes.count("QGemm") == 1
    assert "Gemm" not in nodes


def test_4_bit_weights_stay_packed(tmp_path: Path) -> None:
    case = dense("hybrid_int4", bias="missing")
    assert optimized_nodes(case.model(), tmp_path / "o.onnx") == ["MatMulNBits"]
    (weights,) = (t for t in export_onnx(case.model()).graph.initializer if len(t.dims) == 2)
    assert weights.data_type == TensorProto.INT4
    assert len(weights.raw_data) == 10 * 64 // 2


@pytest.mark.parametrize("size", [16, 32, 64])
def test_a_scale_for_each_block_of_weights(size: int) -> None:
    """LiteRT rounds the rows to 8 bits with a zero point, whatever the options say."""
    rng, units, depth = np.random.default_rng(0), 6, 128
    codes = rng.integers(-8, 8, (units, depth)).astype(np.int8)
    scales = rng.uniform(0.01, 0.05, (units, depth // size)).astype(np.float16)
    bias, x = rng.normal(size=units), rng.normal(size=(3, depth)).astype(np.float32)
    tensors = {
        "x": T(x.shape),
        "weights": T.constant(codes, TensorType.INT4),
        "scales": T.constant(scales.reshape(-1)),
        "bias": T.constant(bias.astype(np.float32)),
        "y": T((3, units)),
    }
    options = FullyConnectedOptions()
    node = Node(Op.FULLY_CONNECTED, ["x", "weights", "bias"], ["y"], options, 10)
    model = with_blocks(graph_model(tensors, [node], ["y"]), 1, 2, size)
    (rounded,) = litert(model, [x], "optimized")
    for got in (ours(model, [x], [])[0], ours(model, [x], hybrid="dynamic")[0]):
        assert_close(got[0], rounded, 0, 1e-5, "as TFLite rounds")
    (real,), runners = ours(model, [x])
    assert runners == {"ort"}
    weights = codes * np.repeat(scales.astype(np.float64), size, axis=1)
    assert_close(real, (x @ weights.T + bias).astype(np.float32), 0, 1e-5, "of reals")


def test_large_weights_of_a_single_row_are_as_exact_as_floats() -> None:
    case = dense("hybrid", (1, 1024), 256, RELU)
    feeds = case.arrays(np.random.default_rng(0))
    (got,), runners = ours(case.model(), feeds, hybrid="float")
    assert runners == {"ort"}
    assert_close(got, exported(case.model(), feeds)[0], 0, 1e-5, "digits against floats")
    check_hybrid(case, filter=1)


@pytest.mark.parametrize("low", [-200, -128, -113, -40, 0])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_halves_of_rounded_rows(asymmetric: bool, low: int) -> None:
    """Steps go away from zero before the zero point is added; so the weights, 1 on the diagonal,
    show. Each row has a scale of its own, a power of two."""
    seed, shape = 0, (6, 64)
    print(f"seed {seed}")
    ends = (low, low + 255) if asymmetric else (-127, 127)
    x = np.random.default_rng(seed).integers(2 * ends[0], 2 * ends[1] + 1, shape) / 2
    x[:, :2] = ends
    x = (x * np.exp2(np.arange(-3, 3))[:, np.newaxis]).astype(np.float32)
    weights = T.constant(np.eye(64, dtype=np.int8), TensorType.INT8, scale=1.0)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=asymmetric)
    case = Case("halves", Op.FULLY_CONNECTED, [T(shape), weights], [T(shape)], options, 9)
    (want,) = litert(case.model(), [x], "reference")
    for providers in (None, []):
        (got,), _ = ours(case.model(), [x], providers, hybrid="dynamic")
        np.testing.assert_array_equal(got, want, f"with providers {providers}")


def test_shuffled_weights_are_refused() -> None:
    case = dense("uint8")
    shuffled = FullyConnectedOptions(
        weights_format=FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
    )
    model = replace(case, options=shuffled).model()
    with pytest.raises(ExportError, match="SHUFFLED4x16INT8"):
        export_onnx(model)
    with pytest.raises(KernelError, match="SHUFFLED4x16INT8"):
        ours(model, case.arrays(np.random.default_rng(0)), providers=[])


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8])
def test_products_of_depth_0_are_zeros_as_stored(type: TensorType, keep: bool) -> None:
    """Whatever the bias and the zero point."""
    scale = None if type is TensorType.FLOAT32 else 0.1
    weights = np.zeros((4, 0), NUMPY_DTYPE[type])
    case = Case(
        "depth 0",
        Op.FULLY_CONNECTED,
        [T((2, 3, 0), type, scale=scale, zero_point=5), T.constant(weights, scale=scale)],
        [T((2, 3, 4) if keep else (6, 4), type, scale=scale, zero_point=5)],
        FullyConnectedOptions(keep_num_dims=keep),
        runs_on="constant",
    )
    check(case)


# Types of x, y and the result, their scales and zero points.
PRODUCTS: dict[str, tuple[T, T, T]] = {
    "float": (T(()), T(()), T(())),
    "int8": (
        T((), TensorType.INT8, 0.02, -7),
        T((), TensorType.INT8, 0.013, 5),
        T((), TensorType.INT8, 0.1, 3),
    ),
    "int8 to int32": (
        T((), TensorType.INT8, 0.02),
        T((), TensorType.INT8, 0.013),
        T((), TensorType.INT32),
    ),
    "int16": (
        T((), TensorType.INT16, 0.02),
        T((), TensorType.INT16, 0.013),
        T((), TensorType.INT16, 50.0),
    ),
    "int16 by int8": (
        T((), TensorType.INT16, 0.02),
        T((), TensorType.INT8, 0.013),
        T((), TensorType.INT16, 0.2),
    ),
    "hybrid": (T(()), T((), TensorType.INT8, 0.013), T(())),
}


def product(
    types: str,
    x: Shape = (3, 5, 16),
    y: Shape = (3, 16, 7),
    adjoint: str = "",
    *,
    constant: bool = False,
    version: int = 4,
    asymmetric: bool = False,
) -> Case:
    """A BATCH_MATMUL of shapes `x` and `y`; those named in `adjoint` come transposed."""
    shape = (*np.broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])
    left, right, result = PRODUCTS[types]
    stored = [(*s[:-2], s[-1], s[-2]) if name in adjoint else s for name, s in (("x", x), ("y", y))]
    left, right = replace(left, shape=stored[0]), replace(right, shape=stored[1])
    if constant:
        codes = right.random(np.random.default_rng(1))
        lowest = codes.min() if codes.dtype.kind == "f" else -127
        right = replace(right, data=np.maximum(codes, lowest))
    return Case(
        f"batch_matmul-{types}-{x}-{y}-adjoint {adjoint}-constant{constant:d}",
        Op.BATCH_MATMUL,
        [left, right],
        [replace(result, shape=shape)],
        BatchMatMulOptions(
            adj_x="x" in adjoint, adj_y="y" in adjoint, asymmetric_quantize_inputs=asymmetric
        ),
        version,
    )


PRODUCT_ROWS: dict[str, dict[str, Any]] = {
    "matrices": {"x": (5, 16), "y": (16, 7)},
    "x transposed": {"adjoint": "x"},
    "y transposed": {"adjoint": "y"},
    "both transposed, broadcast": {"x": (3, 1, 5, 16), "y": (2, 16, 7), "adjoint": "xy"},
    "x broadcast": {"x": (5, 16), "y": (4, 3, 16, 7)},
    "y broadcast": {"x": (4, 3, 5, 16), "y": (1, 16, 7)},
    "constant": {"constant": True, "adjoint": "y"},
}


@pytest.mark.parametrize("row", PRODUCT_ROWS)
@pytest.mark.parametrize("types", [types for types in PRODUCTS if types != "hybrid"])
def test_batch_matmul(types: str, row: str) -> None:
    check(product(types, **PRODUCT_ROWS[row]))


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("row", [row for row in PRODUCT_ROWS if row != "x broadcast"])
def test_hybrid_batch_matmul(row: str, asymmetric: bool) -> None:
    """Without a `y` of two batch dimensions: LiteRT then takes the row sums of another matrix."""
    arguments = {**PRODUCT_ROWS[row], "constant": True, "asymmetric": asymmetric}
    check_hybrid(product("hybrid", **arguments), filter=1)


def test_batch_matmul_of_other_shapes() -> None:
    shapes = (3, 6, 16), (3, 16, 9)
    feeds = [extremes(T(shape, TensorType.INT8)) for shape in shapes]
    check(replace(product("int8"), feeds=feeds))


@pytest.mark.parametrize("version", range(1, 5))
def test_batch_matmul_version(version: int) -> None:
    check(product("float", version=version))


@pytest.mark.parametrize("constant", [False, True])
def test_batch_matmul_becomes_one_integer_node(constant: bool, tmp_path: Path) -> None:
    nodes = optimized_nodes(product("int8", constant=constant).model(), tmp_path / "o.onnx")
    assert nodes.count("QLinearMatMul") == 1


@given(st.data())
def test_drawn_products(data: st.DataObject) -> None:
    size = st.integers(1, 9)
    rows, depth, columns, batch = (data.draw(size) for _ in range(4))
    case = product(
        data.draw(st.sampled_from([types for types in PRODUCTS if types != "hybrid"])),
        (data.draw(st.sampled_from([1, batch])), rows, depth),
        (data.draw(st.sampled_from([1, batch])), depth, columns),
        data.draw(st.sampled_from(["", "x", "y", "xy"])),
        constant=data.draw(st.booleans()),
    )
    check(case, seed=data.draw(st.integers(0, 2**31)))


MISFITS = [
    (dense("float"), [T((3, 5))], "does not fit an input of"),
    (dense("float", (2, 64), keep=True), [T((64, 2))], "filter has depth 64"),
    (product("float"), [T((3, 5, 15))], "depth is 15 on the left, 16 on the right"),
    (product("float"), [T((2, 5, 16))], "do not broadcast"),
    (product("float"), [T((16,))], "ranks are 1 and 3"),
]


@pytest.mark.parametrize(("case", "inputs", "message"), MISFITS)
def test_inputs_that_do_not_fit(case: Case, inputs: list[T], message: str) -> None:
    model = replace(case, inputs=[*inputs, *case.inputs[1:]]).model()
    with pytest.raises(ModelError, match=message):
        Interpreter(model_content=model).allocate_tensors()


@pytest.mark.parametrize("adjoint", [False, True])
def test_product_of_plain_integers(adjoint: bool) -> None:
    rng = np.random.default_rng(0)
    shapes = (2, 3, 4), (2, 5, 4) if adjoint else (2, 4, 5)
    feeds = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
    inputs, made = [T(shape, TensorType.INT8) for shape in shapes], T((2, 3, 5), TensorType.INT32)
    model = one_op_model(Op.BATCH_MATMUL, inputs, [made], BatchMatMulOptions(adj_y=adjoint), 4)
    (want,) = litert(model, feeds, "reference")
    (got,), runners = ours(model, feeds)
    assert runners == {"ort"}
    for each in (got, ours(model, feeds, [])[0][0], *exported(model, feeds)):
        np.testing.assert_array_equal(each, want)
