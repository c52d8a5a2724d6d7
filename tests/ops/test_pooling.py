"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, assert_close, check, graph_model, ours
from tests.ops.operands import extremes, optimized_nodes
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.schema import (
    ActivationFunctionType,
    Op,
    Padding,
    PadOptions,
    Pool2DOptions,
    TensorType,
)
from tflite_ort.schema.values.semantics import conv_output_size

SAME, VALID = Padding.SAME, Padding.VALID
QUANTISED = {
    TensorType.UINT8: (0.05, 100),
    TensorType.INT8: (0.05, -20),
    TensorType.INT16: (0.001, 0),
}
TYPED = [
    (op, type)
    for op in (Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D)
    for type in (TensorType.FLOAT32, *QUANTISED)
] + [(Op.L2_POOL_2D, TensorType.FLOAT32)]


def pool(
    op: Op,
    type: TensorType,
    image: tuple[int, int, int, int] = (2, 9, 11, 6),
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (2, 2),
    padding: Padding = SAME,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
    *,
    version: int = 1,
) -> Case:
    batch, *cells, channels = image
    rows, columns = (conv_output_size(padding, cells[i], kernel[i], stride[i]) for i in (0, 1))
    scale, zero_point = QUANTISED.get(type, (None, 0))
    options = Pool2DOptions(
        padding=padding,
        stride_h=stride[0],
        stride_w=stride[1],
        filter_height=kernel[0],
        filter_width=kernel[1],
        fused_activation_function=activation,
    )
    return Case(
        f"{op.name.lower()}-{type.name}-{image}-{kernel}-{stride}-{padding.name}",
        op,
        [T(image, type, scale, zero_point)],
        [T((batch, rows, columns, channels), type, scale, zero_point)],
        options,
        version,
        quanta=op == Op.AVERAGE_POOL_2D,
    )


ROWS: dict[str, dict[str, Any]] = {
    "same": {},
    "wide": {"kernel": (5, 4), "stride": (1, 3), "activation": ActivationFunctionType.RELU},
    "valid": {"kernel": (3, 2), "padding": VALID, "activation": ActivationFunctionType.RELU6},
    "whole image": {"kernel": (9, 11), "padding": VALID},
    "whole image, same": {"image": (1, 7, 6, 16), "kernel": (7, 6), "stride": (7, 6)},
    "window beyond the image": {"image": (1, 3, 3, 4), "kernel": (5, 5), "stride": (1, 1)},
    "window far beyond the image": {"image": (1, 3, 3, 4), "kernel": (9, 1000)},
    "one cell": {"kernel": (1, 1), "activation": ActivationFunctionType.RELU_N1_TO_1},
    "one channel": {"image": (2, 6, 6, 1)},
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("op", "type"), TYPED)
def test_pool(op: Op, type: TensorType, row: str) -> None:
    check(pool(op, type, **ROWS[row]))


@pytest.mark.parametrize(("op", "type"), [typed for typed in TYPED if typed[1] in QUANTISED])
def test_pool_of_extreme_codes(op: Op, type: TensorType) -> None:
    case = pool(op, type)
    assert case.inputs[0] is not None
    check(replace(case, feeds=[extremes(case.inputs[0])]))


@pytest.mark.parametrize(
    ("op", "version"),
    [(op, version) for op in (Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D) for version in (1, 2, 3)]
    + [(Op.L2_POOL_2D, 1)],
)
def test_pool_version(op: Op, version: int) -> None:
    check(pool(op, TensorType.FLOAT32, version=version))


@pytest.mark.parametrize("op", [Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D])
def test_pool_of_another_size(op: Op) -> None:
    feeds = [extremes(T((3, 12, 7, 6), TensorType.INT8))]
    check(replace(pool(op, TensorType.INT8), feeds=feeds))


@pytest.mark.parametrize("op", [Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D])
def test_codes_are_kept_whatever_the_output_scale(op: Op) -> None:
    """TFLite's own kernels never look at it; XNNPACK refuses the operator."""
    case = pool(op, TensorType.INT8)
    model = replace(case, outputs=[replace(case.outputs[0], scale=0.11)]).model()
    feeds = case.arrays(np.random.default_rng(0))
    expected = litert(model, feeds, "optimized")[0]
    assert_close(ours(model, feeds)[0][0], expected, case.quanta, 0, "ORT")
    assert_close(ours(model, feeds, providers=[])[0][0], expected, 0, 0, "numpy")


FUSED = [
    (Op.AVERAGE_POOL_2D, "same", "QLinearAveragePool"),
    (Op.AVERAGE_POOL_2D, "whole image", "QLinearGlobalAveragePool"),
]


@pytest.mark.parametrize("type", [TensorType.UINT8, TensorType.INT8])
@pytest.mark.parametrize(("op", "row", "node"), FUSED)
def test_average_becomes_one_integer_node(
    op: Op, row: str, node: str, type: TensorType, tmp_path: Path
) -> None:
    assert node in optimized_nodes(pool(op, type, **ROWS[row]).model(), tmp_path / "o.onnx")


def test_maximum_is_taken_of_codes(tmp_path: Path) -> None:
    nodes = optimized_nodes(pool(Op.MAX_POOL_2D, TensorType.UINT8).model(), tmp_path / "o.onnx")
    assert set(nodes) <= {"NhwcMaxPool", "MaxPool", "Transpose"}


PADDED = {
    "around": (((0, 0), (1, 1), (1, 1), (0, 0)), VALID, True),
    "before": (((0, 0), (2, 0), (1, 0), (0, 0)), VALID, True),
    "as large as a window": (((0, 0), (3, 0), (0, 3), (0, 0)), VALID, False),
    "channels": (((0, 0), (1, 1), (1, 1), (1, 0)), VALID, False),
    "twice": (((0, 0), (1, 1), (1, 1), (0, 0)), SAME, False),
}


@pytest.mark.parametrize("name", PADDED)
@pytest.mark.parametrize("low", [True, False], ids=["lowest", "zeros"])
@pytest.mark.parametrize("type", [TensorType.UINT8, TensorType.INT8])
def test_maximum_of_codes_between_zeros(name: str, low: bool, type: TensorType) -> None:
    """A PAD by the lowest code is no node."""
    edges, padding, fits = PADDED[name]
    zero = (0 if type is TensorType.UINT8 else -128) + (0 if low else 70)
    code: dict[str, Any] = {"type": type, "scale": 0.1, "zero_point": zero}
    image = (2, 8, 9, 4)
    padded = tuple(size + sum(pair) for size, pair in zip(image, edges, strict=True))
    rows, columns = (conv_output_size(padding, size, 3, 2) for size in padded[1:3])
    tensors = {
        "x": T(image, **code),
        "edges": T.constant(np.int32(edges)),
        "padded": T(padded, **code),
        "y": T((2, rows, columns, padded[3]), **code),
    }
    window = Pool2DOptions(padding=padding, stride_h=2, stride_w=2, filter_height=3, filter_width=3)
    nodes = [
        Node(Op.PAD, ["x", "edges"], ["padded"], PadOptions()),
        Node(Op.MAX_POOL_2D, ["padded"], ["y"], window),
    ]
    model = graph_model(tensors, nodes, ["y"])
    assert optimised_nodes(model)["Pad"] == (0 if low and fits else 1)
    codes = np.random.default_rng(0).integers(0, 256, image).astype(np.uint8)
    x = codes.view(np.int8) if type is TensorType.INT8 else codes
    np.testing.assert_array_equal(ours(model, [x])[0][0], litert(model, [x])[0])


@given(st.data())
def test_drawn_pools(data: st.DataObject) -> None:
    op, type = data.draw(st.sampled_from(TYPED))
    pair = st.tuples(st.integers(1, 4), st.integers(1, 4))
    case = pool(
        op,
        type,
        (data.draw(st.integers(1, 2)), *data.draw(st.tuples(*[st.integers(4, 12)] * 2)), 3),
        data.draw(pair),
        data.draw(pair),
        data.draw(st.sampled_from([SAME, VALID])),
    )
    check(case, seed=data.draw(st.integers(0, 2**31)))
