"""Bilinear resizing of codes as two products: the same codes as by ONNX Runtime's Resize."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, ResizeBilinearOptions, TensorType

Shape = tuple[int, int, int, int]


def resizing(shape: Shape, size: tuple[int, int], type: TensorType, *, half: bool = True) -> bytes:
    code = {"type": type, "scale": 0.1, "zero_point": 5}
    tensors = {
        "x": T(shape, **code),
        "size": T.constant(np.int32(size)),
        "y": T((shape[0], *size, shape[3]), **code),
    }
    options = ResizeBilinearOptions(half_pixel_centers=half)
    return graph_model(tensors, [Node(Op.RESIZE_BILINEAR, ["x", "size"], ["y"], options)], ["y"])


SIZES: dict[str, tuple[Shape, tuple[int, int], bool]] = {
    "narrow": ((2, 6, 6, 6), (96, 96), True),
    "one channel": ((1, 17, 24, 1), (34, 96), True),
    "one cell": ((1, 1, 1, 48), (6, 6), False),
    "smaller": ((1, 8, 16, 2), (4, 8), True),
    "other factors": ((1, 6, 6, 6), (20, 20), False),
    "wide": ((1, 8, 16, 16), (16, 32), False),
    "high": ((1, 512, 4, 1), (1024, 4), False),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.UINT8])
@pytest.mark.parametrize("half", [False, True])
def test_same_codes(name: str, type: TensorType, half: bool) -> None:
    shape, size, products = SIZES[name]
    model, low = resizing(shape, size, type, half=half), -128 * (type is TensorType.INT8)
    codes = np.random.default_rng(0).integers(low, low + 256, shape).astype(type.name.lower())
    by_products, _ = ours(model, [codes])
    with without("products of a Resize"):
        by_resize, _ = ours(model, [codes])
    np.testing.assert_array_equal(by_products[0], by_resize[0])
    if products:
        np.testing.assert_array_equal(by_products[0], litert(model, [codes])[0])


@pytest.mark.parametrize("name", SIZES)
def test_which_are_products(name: str) -> None:
    shape, size, products = SIZES[name]
    nodes = optimised_nodes(resizing(shape, size, TensorType.INT8))
    assert (nodes["MatMul"], nodes["Resize"]) == ((2, 0) if products else (0, 1))


def test_halves_of_every_code_go_up() -> None:
    """Between a code and the next one is a half."""
    codes = np.arange(-128, 128, dtype=np.int8).reshape(32, 8, 1, 1)
    codes = np.concatenate([codes, np.minimum(codes, 126) + 1], axis=2)
    model = resizing((32, 8, 2, 1), (8, 4), TensorType.INT8, half=False)
    assert optimised_nodes(model)["MatMul"] == 2
    np.testing.assert_array_equal(ours(model, [codes])[0][0], litert(model, [codes])[0])
