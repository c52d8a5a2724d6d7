"""MediaPipe's custom operators: against XNNPACK, and against readings of each by its definition."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models import model_path
from tests.one_op import Node, T, assert_close, graph_model
from tests.ops.custom_op import by_exported, by_numpy, by_ort, custom_model, interpreter_of, invoked
from tests.oracle import litert
from tflite_ort import (
    ExportError,
    Interpreter,
    KernelError,
    ModelError,
    Registration,
    WellKnownOpResolver,
    export_onnx,
)
from tflite_ort.schema import OperatorView, TensorType

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

MESH = "pypi-mediapipe__face_landmark_with_attention.tflite"
SELFIE = "pypi-mediapipe__selfie_segmentation.tflite"
SAME, VALID = 1, 2
FILE_FIXTURE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
seeds = st.integers(0, 2**32 - 1)


def check(model: bytes, feeds: list[Array], wanted: list[Array], folder: Path) -> None:
    """numpy, ONNX Runtime and the exported file against `wanted`."""
    found = (by_numpy(model, feeds), by_ort(model, feeds), by_exported(model, feeds, folder))
    for where, outputs in zip(("numpy", "ort", "exported"), found, strict=True):
        for got, want in zip(outputs, wanted, strict=True):
            assert_close(got, want.astype(got.dtype), 0, 1e-5, where)


# Pooling and its opposites -----------------------------------------------------------------------


@FILE_FIXTURE
@given(
    seed=seeds,
    size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from([SAME, VALID]),
)
def test_convolution_2d_transpose_bias(
    seed: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: int,
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(seed)
    x, filter = rng.normal(size=(2, *size, 3)), rng.normal(size=(4, *kernel, 3))
    bias = rng.normal(size=4)
    cut = [
        max(0, k - (n - 1) % s - 1) if padding == SAME else 0
        for n, k, s in zip(size, kernel, strides, strict=True)
    ]
    sides = [s * (n - 1) + k - c for n, k, s, c in zip(size, kernel, strides, cut, strict=True)]
    want = np.tile(bias, (2, *sides, 1))
    for i, j, p, q in np.ndindex(*size, *kernel):
        row, column = i * strides[0] + p - cut[0] // 2, j * strides[1] + q - cut[1] // 2
        if 0 <= row < sides[0] and 0 <= column < sides[1]:
            want[:, row, column] += x[:, i, j] @ filter[:, p, q].T
    constants = [T.constant(array.astype(np.float32)) for array in (filter, bias)]
    options = struct.pack("<3i", padding, strides[1], strides[0])
    inputs, outputs = [T(x.shape), *constants], [T(want.shape)]
    model = custom_model("Convolution2DTransposeBias", inputs, outputs, options)
    check(model, [x.astype(np.float32)], [want], tmp_path)


def pool_struct(
    padding: int, strides: tuple[int, int], filter: tuple[int, int], activation: int = 0
) -> bytes:
    """The words of TfLitePoolParams: widths before heights, four of computed padding at the end."""
    words = (padding, strides[1], strides[0], filter[1], filter[0], activation)
    return struct.pack("<10i", *words, 0, 0, 0, 0)


@FILE_FIXTURE
@given(
    seed=seeds,
    size=st.tuples(st.integers(4, 7), st.integers(4, 7)),
    filter=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from([SAME, VALID]),
    type=st.sampled_from([TensorType.FLOAT32, TensorType.INT32]),
    activation=st.sampled_from([0, 1, 3]),
)
def test_max_pooling_with_argmax_2d(
    seed: int,
    size: tuple[int, int],
    filter: tuple[int, int],
    strides: tuple[int, int],
    padding: int,
    type: TensorType,
    activation: int,
    tmp_path: Path,
) -> None:
    """Equal cells are among them: the first in a window counts."""
    x = np.random.default_rng(seed).integers(-9, 10, (2, *size, 3)).astype(np.float32)
    counts = [
        -(-n // s) if padding == SAME else (n - k) // s + 1
        for n, k, s in zip(size, filter, strides, strict=True)
    ]
    before = [
        max(0, (c - 1) * s + k - n) // 2 if padding == SAME else 0
        for n, k, s, c in zip(size, filter, strides, counts, strict=True)
    ]
    greatest, place = np.full((2, *counts, 3), -np.inf), np.zeros((2, *counts, 3))
    for b, i, j, c, p, q in np.ndindex(2, *counts, 3, *filter):
        row, column = i * strides[0] + p - before[0], j * strides[1] + q - before[1]
        inside = 0 <= row < size[0] and 0 <= column < size[1]
        if inside and x[b, row, column, c] > greatest[b, i, j, c]:
            greatest[b, i, j, c], place[b, i, j, c] = x[b, row, column, c], p * filter[1] + q
    low, high = {0: (-99, 99), 1: (0, 99), 3: (0, 6)}[activation]
    place += 0.1 if type is TensorType.FLOAT32 else 0
    outputs = [T(greatest.shape), T(place.shape, type)]
    options = pool_struct(padding, strides, filter, activation)
    model = custom_model("MaxPoolingWithArgmax2D", [T(x.shape)], outputs, options)
    check(model, [x], [greatest.clip(low, high), place], tmp_path)


@FILE_FIXTURE
@given(
    seed=seeds,
    size=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    filter=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    type=st.sampled_from([TensorType.FLOAT32, TensorType.INT32]),
)
def test_max_unpooling_2d(
    seed: int, size: tuple[int, int], filter: tuple[int, int], type: TensorType, tmp_path: Path
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, *size, 3)).astype(np.float32)
    place = rng.integers(0, filter[0] * filter[1], x.shape)
    want = np.zeros((2, size[0] * filter[0], size[1] * filter[1], 3))
    for b, i, j, c in np.ndindex(*x.shape):
        row, column = divmod(int(place[b, i, j, c]), filter[1])
        want[b, i * filter[0] + row, j * filter[1] + column, c] = x[b, i, j, c]
    tenth = 0.1 if type is TensorType.FLOAT32 else 0
    feeds = [x, (place + tenth).astype(np.float32 if tenth else np.int32)]
    options = pool_struct(VALID, filter, filter)
    inputs, outputs = [T(x.shape), T(x.shape, type)], [T(want.shape)]
    check(custom_model("MaxUnpooling2D", inputs, outputs, options), feeds, [want], tmp_path)


def test_unpooling_out_of_the_image_is_an_error() -> None:
    options = pool_struct(VALID, (3, 3), (2, 2))
    inputs = [T((1, 2, 2, 1)), T((1, 2, 2, 1), TensorType.INT32)]
    model = custom_model("MaxUnpooling2D", inputs, [T((1, 4, 4, 1))], options)
    feeds = [np.ones((1, 2, 2, 1), np.float32), np.full((1, 2, 2, 1), 3, np.int32)]
    with pytest.raises(KernelError, match="a cell at 1 or 4 of 4"):
        by_numpy(model, feeds)


def test_pooled_and_unpooled_is_xnnpacks() -> None:
    """LiteRT runs both in XNNPACK, whose positions go down a window's columns."""
    x = np.random.default_rng(0).normal(size=(1, 6, 8, 2)).astype(np.float32)
    tensors = {"x": T(x.shape), "most": T((1, 3, 4, 2)), "place": T((1, 3, 4, 2)), "y": T(x.shape)}
    options = pool_struct(VALID, (2, 2), (2, 2))
    nodes = [
        Node("MaxPoolingWithArgmax2D", ["x"], ["most", "place"], options),
        Node("MaxUnpooling2D", ["most", "place"], ["y"], options),
    ]
    model = graph_model(tensors, nodes, ["most", "y"])
    for got, want in zip(by_ort(model, [x]), litert(model, [x]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (pool_struct(0, (2, 2), (2, 2)), r"padding 0 is neither 1 \(SAME\) nor 2 \(VALID\)"),
        (pool_struct(VALID, (0, 2), (2, 2)), "expected at least 1"),
        (pool_struct(VALID, (2, 2), (2, 2), 77), "no activation 77"),
        (pool_struct(VALID, (2, 2), (9, 9)), "no window fits"),
        (b"", "expected at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: bytes, reason: str) -> None:
    outputs = [T((1, 2, 2, 1)), T((1, 2, 2, 1))]
    model = custom_model("MaxPoolingWithArgmax2D", [T((1, 4, 4, 1))], outputs, options)
    with pytest.raises(ModelError, match=reason):
        interpreter_of(model)


# Parts of faces, read from the definitions -------------------------------------------------------


def bilinear_reading(image: Array, transform: Array, size: tuple[int, int]) -> Floats:
    """Cell (r, c) of the output is the image at transform * (c + 1/2, r + 1/2) - 1/2."""
    height, width, channels = image.shape[1:]
    matrix, output = transform.reshape(4, 4).astype(np.float64), np.zeros((1, *size, channels))
    for r, c in np.ndindex(*size):
        x, y = (matrix @ (c + 0.5, r + 0.5, 0, 1))[:2] - 0.5
        if not (0 <= x <= width - 1 and 0 <= y <= height - 1):
            continue
        for row, column in ((math.floor(y) + i, math.floor(x) + j) for i in (0, 1) for j in (0, 1)):
            share = (1 - abs(x - column)) * (1 - abs(y - row))
            if share > 0:
                output[0, r, c] += share * image[0, row, column]
    return output


def landmarks_reading(points: Array, transform: Array) -> Floats:
    output = points.astype(np.float64).copy()
    for i, point in enumerate(output[0]):
        moved = transform.reshape(4, 4).astype(np.float64) @ (point[0], point[1], 0, 1)
        output[0, i, :2] = moved[:2]
    return output


def matrix_reading(points: Array, options: dict[str, Any]) -> Floats:
    """The product of four steps, from the crop's cells to the image: the crop's middle to the
    origin, to the size of the box, turned back, to the middle of the box."""
    x, y = points[0, :, 0].astype(np.float64), points[0, :, 1].astype(np.float64)
    left, right = options["left_rotation_idx"], options["right_rotation_idx"]
    angle = options["target_rotation_radians"] - math.atan2(y[right] - y[left], x[right] - x[left])
    cos, sin = math.cos(angle), math.sin(angle)
    subset = options["subset_idxs"]
    us = [cos * x[i] - sin * y[i] for i in subset]
    vs = [sin * x[i] + cos * y[i] for i in subset]
    u, v = (max(us) + min(us)) / 2, (max(vs) + min(vs)) / 2
    to_origin, size, turn, to_middle = np.eye(4), np.eye(4), np.eye(4), np.eye(4)
    to_origin[:2, 3] = -options["output_width"] / 2, -options["output_height"] / 2
    size[0, 0] = options["scale_x"] * (max(us) - min(us)) / options["output_width"]
    size[1, 1] = options["scale_y"] * (max(vs) - min(vs)) / options["output_height"]
    turn[:2, :2] = [[cos, sin], [-sin, cos]]
    to_middle[:2, 3] = cos * u + sin * v, -sin * u + cos * v
    return np.asarray(to_middle @ turn @ size @ to_origin)[None]


def transforms(rng: np.random.Generator, reach: float) -> Array:
    angle, scale = rng.uniform(-4, 4), rng.uniform(0.1, 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = np.eye(4)
    matrix[:2, :2], matrix[:2, 3] = scale * turn, rng.uniform(-reach, reach, 2)
    return matrix[None].astype(np.float32)


@FILE_FIXTURE
@given(seed=seeds, height=st.integers(1, 9), width=st.integers(1, 9))
def test_transform_tensor_bilinear(seed: int, height: int, width: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(1, height, width, 3)).astype(np.float32)
    transform, size = transforms(rng, height + width), (5, 4)
    options = {"output_height": 5, "output_width": 4}
    inputs, outputs = [T(image.shape), T((1, 4, 4))], [T((1, *size, 3))]
    model = custom_model("TransformTensorBilinear", inputs, outputs, options, version=2)
    want = bilinear_reading(image, transform, size)
    outputs = [by_numpy(model, [image, transform]), by_ort(model, [image, transform])]
    for (got,) in (*outputs, by_exported(model, [image, transform], tmp_path)):
        # Coordinates are float32: up to that, a cell is inside or outside the image.
        assert np.mean(np.abs(got - want) > 1e-4) <= 0.05


def test_the_image_itself_and_its_edge(tmp_path: Path) -> None:
    image = np.arange(24, dtype=np.float32).reshape(1, 4, 3, 2)
    options = {"output_height": 5, "output_width": 4}
    inputs, outputs = [T(image.shape), T((1, 4, 4))], [T((1, 5, 4, 2))]
    model = custom_model("TransformTensorBilinear", inputs, outputs, options, version=2)
    want = np.pad(image, [(0, 0), (0, 1), (0, 1), (0, 0)])
    check(model, [image, np.eye(4, dtype=np.float32)[None]], [want], tmp_path)


@FILE_FIXTURE
@given(seed=seeds, count=st.integers(1, 9), dimensions=st.sampled_from([2, 3]))
def test_transform_landmarks(seed: int, count: int, dimensions: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 200, (1, count, dimensions)).astype(np.float32)
    transform = transforms(rng, 100)
    inputs, outputs = [T(points.shape), T((1, 4, 4))], [T(points.shape)]
    model = custom_model("TransformLandmarks", inputs, outputs, version=2)
    check(model, [points, transform], [landmarks_reading(points, transform)], tmp_path)


@FILE_FIXTURE
@given(seed=seeds, count=st.integers(2, 9), angle=st.floats(-4, 4))
def test_landmarks_to_transform_matrix(seed: int, count: int, angle: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 200, (1, count, 3)).astype(np.float32)
    options = {
        "left_rotation_idx": 0,
        "right_rotation_idx": count - 1,
        "target_rotation_radians": float(np.float32(angle)),
        "output_height": 16,
        "output_width": 12,
        "scale_x": 1.5,
        "scale_y": 1.25,
        "subset_idxs": rng.permutation(count).tolist(),
    }
    model = custom_model(
        "Landmarks2TransformMatrix", [T(points.shape)], [T((1, 4, 4))], options, version=2
    )
    check(model, [points], [matrix_reading(points, options)], tmp_path)


MATRIX = {
    "left_rotation_idx": 0,
    "right_rotation_idx": 1,
    "target_rotation_radians": 0.0,
    "output_height": 2,
    "output_width": 2,
    "scale_x": 1.0,
    "scale_y": 1.0,
    "subset_idxs": [0, 2],
}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"subset_idxs": [0, 3]}, "landmarks 0 to 3 of 3"),
        ({"left_rotation_idx": -1}, "landmarks -1 to 2 of 3"),
        ({"subset_idxs": []}, "landmarks 0 to 1 of 3"),
        ({"scale_x": 0.0}, "expected more than 0"),
        ({"output_width": 0}, "expected more than 0"),
    ],
)
def test_matrices_of_nothing_are_refused(changed: dict[str, Any], reason: str) -> None:
    options = {**MATRIX, **changed}
    inputs, outputs = [T((1, 3, 3))], [T((1, 4, 4))]
    with pytest.raises(ModelError, match=reason):
        interpreter_of(custom_model("Landmarks2TransformMatrix", inputs, outputs, options, 2))


@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 3, 2)])
def test_landmarks_that_are_no_points_are_refused(shape: tuple[int, ...]) -> None:
    inputs, outputs = [T(shape), T((1, 4, 4))], [T(shape)]
    with pytest.raises(ModelError, match="points of 2 or 3 coordinates"):
        interpreter_of(custom_model("TransformLandmarks", inputs, outputs, version=2))


def test_two_landmarks_in_one_place_stand_at_no_angle(tmp_path: Path) -> None:
    points = np.array([[[5, 5, 0], [5, 5, 0], [9, 1, 0]]], np.float32)
    inputs, outputs = [T(points.shape)], [T((1, 4, 4))]
    model = custom_model("Landmarks2TransformMatrix", inputs, outputs, MATRIX, version=2)
    check(model, [points], [matrix_reading(points, MATRIX)], tmp_path)


# Models ------------------------------------------------------------------------------------------


def bilinear(op: OperatorView[Any], inputs: list[Array], state: None) -> tuple[Array]:
    size = (op.options["output_height"], op.options["output_width"])
    return (bilinear_reading(inputs[0], inputs[1], size).astype(np.float32),)


def landmarks(op: OperatorView[Any], inputs: list[Array], state: None) -> tuple[Array]:
    return (landmarks_reading(*inputs).astype(np.float32),)


def matrix(op: OperatorView[Any], inputs: list[Array], state: None) -> tuple[Array]:
    return (matrix_reading(inputs[0], dict(op.options)).astype(np.float32),)


def test_face_mesh_with_attention_is_what_the_readings_make_of_it(tmp_path: Path) -> None:
    """The same network with our operators, in ORT, numpy and exported, and with the readings."""
    content = model_path(MESH).read_bytes()
    readings = WellKnownOpResolver()
    for name, reading in (
        ("TransformTensorBilinear", bilinear),
        ("TransformLandmarks", landmarks),
        ("Landmarks2TransformMatrix", matrix),
    ):
        readings.add_custom(name, Registration(kernel=reading), 2, 2)
    read = Interpreter(model_content=content, resolver=readings)
    read.allocate_tensors()
    assert sum(row.runs_on == "numpy" for row in read.delegation()) == 11
    image = np.random.default_rng(0).uniform(0, 1, (1, 192, 192, 3)).astype(np.float32)
    wanted = invoked(read, [image])
    by_us = interpreter_of(content)
    assert {row.runs_on for row in by_us.delegation()} <= {"ort", "constant"}
    for outputs in (invoked(by_us, [image]), by_exported(content, [image], tmp_path)):
        for got, want in zip(outputs, wanted, strict=True):
            assert_close(got, want, 0, 1e-5, "face mesh")


def test_selfie_segmentation_is_xnnpacks_without_a_registration(tmp_path: Path) -> None:
    content = model_path(SELFIE).read_bytes()
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    rows, columns = np.indices((256, 256))
    bust = (rows - 140) ** 2 / 9 + (columns - 128) ** 2 < 2500
    image = np.tile(np.where(bust, 0.8, 0.2)[None, :, :, None], 3).astype(np.float32)
    (want,) = litert(content, [image])
    for (got,) in (invoked(interpreter, [image]), by_exported(content, [image], tmp_path)):
        assert_close(got, want, 0, 1e-4, "selfie")


def test_many_cells_are_unpooled_without_a_constant_for_each() -> None:
    shape = (1, 4096, 8192, 1)
    options = pool_struct(1, (2, 2), (2, 2))
    model = custom_model("MaxUnpooling2D", [T(shape), T(shape)], [T((1, 8192, 16384, 1))], options)
    with pytest.raises(ExportError, match=r"an input of shape \(1, 4096, 8192, 1\)"):
        export_onnx(model)
