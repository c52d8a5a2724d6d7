"""Fourier transforms written as products give what they give, within what products round."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.models import model_path
from tests.one_op import Case, T
from tests.oracle import litert
from tflite_ort import ExportError, export_onnx
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.transform_products import multiply_transforms
from tflite_ort.schema import Op, TensorType

Array = npt.NDArray[Any]
# Of 32-bit floats.
_UNIT = 2.0**-24


def transform(
    shape: tuple[int | str, ...], axis: int, length: int | None, dtype: Any, **attributes: int
) -> ir.Model:
    """A graph of one DFT."""
    kind = ir.DataType.from_numpy(dtype)
    x = ir.Value("x", dtype=kind, shape=shape)
    y = ir.Value("y", dtype=kind)
    graph = ir.Graph([x], [y], [])
    given = None if length is None else graph.add_initializer("length", np.array(length, np.int64))
    place = graph.add_initializer("axis", np.array(axis, np.int64))
    graph.nodes.append(ir.Node("DFT", [x, given, place], [y], attributes=attributes, name="dft"))
    return ir.Model(graph, opset_imports={"": 21})


def run(model: ir.Model | onnx.ModelProto, x: Array) -> Array:
    content = serialized(model) if isinstance(model, ir.Model) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def bound(x: Array, axis: int, length: int) -> float:
    """What 32-bit sums of `length` products are off at most: the number of roundings, times the
    magnitudes that are added."""
    parts = x.shape[-1]
    return (length * parts + 2) * _UNIT * float(np.abs(x).sum(axis=(axis, -1)).max())


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("axis", "length"), [(1, None), (1, 8), (2, 12), (2, 3), (-2, 7)])
def test_products_are_the_transform(
    axis: int, length: int | None, parts: int, inverse: int
) -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 6, parts)).astype(np.float32)
    count = x.shape[axis] if length is None else length
    numbers = x[..., 0] if parts == 1 else x[..., 0] + 1j * x[..., 1]
    along = axis % 4
    for onesided in (0, 1) if (parts, inverse) == (1, 0) else (0,):
        model = transform(x.shape, axis, length, np.float32, inverse=inverse, onesided=onesided)
        multiply_transforms(model.graph, inferred(model), faster=False)
        assert "DFT" not in {node.op_type for node in model.graph.nodes}
        made = (np.fft.ifft if inverse else np.fft.fft)(numbers, count, along)
        made = made.take(range(count // 2 + 1), along) if onesided else made
        want = np.stack([made.real, made.imag], axis=-1)
        got = run(model, x)
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= bound(x, along, count)


def test_open_sizes_and_what_is_beyond_the_length() -> None:
    """Of rows that are cut, the rest is not read."""
    model = transform(("n", 6, 1), 1, 4, np.float32, onesided=1)
    multiply_transforms(model.graph, inferred(model), faster=False)
    x = np.random.default_rng(1).normal(size=(3, 6, 1)).astype(np.float32)
    x[:, 4:] = np.nan
    want = np.fft.rfft(x[:, :4, 0])
    np.testing.assert_allclose(run(model, x)[..., 0], want.real, atol=bound(x[:, :4], 1, 4))
    assert run(model, x[:0]).shape == (0, 3, 2)


def test_others_stay() -> None:
    """Very long ones, those of unknown sizes, and where the inverse has half of the frequencies."""
    for model in (
        transform((1, 1 << 14, 1), 1, None, np.float32),
        transform((1, "t", 1), 1, None, np.float32),
        transform((1, 8, "parts"), 1, None, np.float32),
    ):
        multiply_transforms(model.graph, inferred(model), faster=False)
        assert [node.op_type for node in model.graph.nodes] == ["DFT"]


@pytest.mark.parametrize(("parts", "length", "kind"), [
    (1, 512, "MatMul"), (1, 1024, "DFT"), (2, 128, "MatMul"), (2, 256, "DFT"),
])  # fmt: skip
def test_a_file_for_onnx_runtime_has_what_is_faster(parts: int, length: int, kind: str) -> None:
    model = transform((1, length, parts), 1, None, np.float32, onesided=2 - parts)
    multiply_transforms(model.graph, inferred(model), faster=True)
    assert kind in {node.op_type for node in model.graph.nodes}


def spectrum(rows: int, width: int) -> Case:
    length = T.constant(np.array([rows, width], np.int32))
    made = T((rows, width // 2 + 1), TensorType.COMPLEX64)
    return Case("spectrum", Op.RFFT2D, [T((rows, width)), length], [made])


@pytest.mark.parametrize(("rows", "width", "preset"), [
    (1, 256, None), (4, 64, None), (1, 1024, "tvm"), (64, 16, "tract"), (8, 32, "mnn"),
])  # fmt: skip
def test_exports_are_as_near_to_litert_as_products_are(
    rows: int, width: int, preset: str | None
) -> None:
    case = spectrum(rows, width)
    model = case.model()
    x = np.random.default_rng(2).normal(size=(rows, width)).astype(np.float32)
    proto = export_onnx(model, for_=preset)
    assert "DFT" not in {node.op_type for node in proto.graph.node}
    (want,) = litert(model, [x])
    got = run(proto, x)
    off = np.abs(got[..., 0] + 1j * got[..., 1] - want).max()
    assert off <= 2 * (rows + width + 4) * _UNIT * np.abs(x).sum()


def test_what_is_too_long_for_a_destination_is_refused() -> None:
    model = spectrum(1, 8192).model()
    assert "DFT" in {node.op_type for node in export_onnx(model).graph.node}
    with pytest.raises(ExportError, match="is DFT; tflite-ort extract"):
        export_onnx(model, for_="torch")


def test_a_network_of_sounds_has_no_transform() -> None:
    path = model_path("tflite-support__yamnet_wavin_quantized_mel_relu6.tflite")
    for preset in (None, "torch"):
        kinds = {node.op_type for node in export_onnx(path, for_=preset, check=True).graph.node}
        assert not kinds & {"DFT", "Split"}
