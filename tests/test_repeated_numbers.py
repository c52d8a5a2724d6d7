"""Constants of few numbers: a file has each number once, and nodes that ONNX Runtime folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.repeated_numbers import Runs, Waves, runs_of, waves_of
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Constants, TableNodes

Array = npt.NDArray[Any]


def folded(form: Runs | Waves, array: Array) -> Array:
    """What the nodes of a form make."""
    made = ir.Value("made", dtype=ir.DataType.from_numpy(array.dtype), shape=array.shape)
    graph = ir.Graph([], [made], [], name="main")
    form.make(TableNodes(graph.nodes, Constants(graph)), "c", made)
    assert len(graph.nodes) == form.nodes
    content = serialized(ir.Model(graph, opset_imports={"": 21}), small=True)
    return np.asarray(onnxruntime.InferenceSession(content).run(None, {})[0])


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("shape", [(80,), (1, 80), (4, 20), (5, 2, 8)])
def test_runs_are_exactly_the_constant(shape: tuple[int, ...], dtype: type) -> None:
    array = np.repeat(np.array([3, 7, 7, 1]), 20).astype(dtype).reshape(shape)
    runs = runs_of(array)
    assert runs is not None and runs.numbers.size == 4
    np.testing.assert_array_equal(folded(runs, array), array, strict=True)


def test_what_has_no_long_runs() -> None:
    assert runs_of(np.arange(80)) is None
    assert runs_of(np.zeros(80, np.float32)) is None
    assert runs_of(np.repeat(np.arange(40), 2)) is None
    assert runs_of(np.repeat(np.arange(4), [20, 20, 21, 20])) is None
    signs = runs_of(np.repeat(np.array([0.0, -0.0, np.nan]), 8))
    assert signs is not None and np.signbit(signs.numbers)[1] and np.isnan(signs.numbers)[2]


def test_a_matrix_of_few_columns_has_no_waves() -> None:
    zeros = np.zeros((1 << 14, 2), np.float32)
    zeros[5] = -0.0
    for array in (zeros, zeros[:, :1], zeros.reshape(-1, 4)):
        assert waves_of(np.ascontiguousarray(array)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "length", "kept"),
    [(512, 512, 257), (400, 512, 257), (128, 128, 128), (301, 301, 151), (130, 260, 131)],
)
def test_waves_are_exactly_the_matrix(rows: int, length: int, kept: int, dtype: type) -> None:
    turns = np.outer(np.arange(rows), np.arange(kept)) % length
    waves = np.exp(-2j * np.pi / length * turns)
    array = np.stack([waves.real, waves.imag], axis=-1).reshape(rows, -1).astype(dtype)
    found = waves_of(array)
    assert found is not None
    np.testing.assert_array_equal(folded(found, array), array, strict=True)
    array[rows // 2, 5] = np.nextafter(array[rows // 2, 5], dtype(2))
    assert waves_of(array) is None
