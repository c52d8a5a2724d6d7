"""Exports of a batch whose samples have other sizes than the file says."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
from tests.subgraph_models import Sub, model_of
from tflite_ort import export_onnx
from tflite_ort.schema import (
    AddOptions,
    CumsumOptions,
    FullyConnectedOptions,
    LessOptions,
    ModelError,
    Op,
    Pool2DOptions,
    ReducerOptions,
    TensorType,
    WhileOptions,
)

_WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)
# What `input_shapes` and `batch` say, of a sample of 8 rows where the file has 4.
SIZES: list[tuple[tuple[Any, ...], Any]] = [
    ((2, 8, 3), None),
    ((None, 8, 3), None),
    ((None, None, 3), None),
    (("n", "rows", 3), None),
    ((1, 8, 3), "N"),
    ((1, "rows", 3), "N"),
    ((1, 8, 3), 2),
    ((1, None, 3), 2),
]


def results(model: bytes, shape: Any, batch: Any, x: np.ndarray[Any, Any]) -> Any:
    proto = export_onnx(model, input_shapes={"in0": shape}, batch=batch)
    (result,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"in0": x})
    return result


@pytest.mark.parametrize(("shape", "batch"), SIZES)
def test_each_sample_keeps_its_rows(shape: Any, batch: Any) -> None:
    """FULLY_CONNECTED makes one list of the rows of all samples."""
    inputs = [T((1, 4, 3)), T.constant(_WEIGHTS), None]
    model = one_op_model(Op.FULLY_CONNECTED, inputs, [T((4, 2))], FullyConnectedOptions())
    x = np.arange(48, dtype=np.float32).reshape(2, 8, 3)
    np.testing.assert_allclose(results(model, shape, batch, x), x @ _WEIGHTS.T)


@pytest.mark.parametrize(("shape", "batch"), SIZES)
def test_a_reshape_of_each_sample(shape: Any, batch: Any) -> None:
    """The size that it infers depends on nothing but the input's."""
    inputs = [T((1, 4, 3)), T.constant(np.array([1, -1], np.int32))]
    model = one_op_model(Op.RESHAPE, inputs, [T((1, 12))])
    x = np.arange(48, dtype=np.float32).reshape(2, 8, 3)
    np.testing.assert_array_equal(results(model, shape, batch, x), x.reshape(2, 24))


@pytest.mark.parametrize(("shape", "batch"), SIZES)
def test_a_reshape_that_does_not_fit_the_sample_is_refused(shape: Any, batch: Any) -> None:
    """Two samples of 24 numbers are no four of 12."""
    inputs = [T((1, 4, 3)), T.constant(np.array([1, 12], np.int32))]
    model = one_op_model(Op.RESHAPE, inputs, [T((1, 12))])
    x = np.arange(48, dtype=np.float32).reshape(2, 8, 3)
    with pytest.raises((ModelError, onnxruntime.capi.onnxruntime_pybind11_state.Fail)):
        results(model, shape, batch, x)


def test_images_of_any_size() -> None:
    tensors = {"in0": T((1, 4, 4, 2)), "axes": T.constant(np.array([1, 2], np.int32))}
    tensors |= {"pooled": T((1, 2, 2, 2)), "mean": T((1, 2)), "row": T((2,))}
    tensors["all"] = T.constant(np.array([-1], np.int32))
    pool = Pool2DOptions(stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    nodes = [
        Node(Op.MAX_POOL_2D, ["in0"], ["pooled"], pool),
        Node(Op.MEAN, ["pooled", "axes"], ["mean"], ReducerOptions()),
        Node(Op.RESHAPE, ["mean", "all"], ["row"]),
    ]
    x = np.arange(144, dtype=np.float32).reshape(2, 6, 6, 2)
    got = results(graph_model(tensors, nodes, ["row"]), (None, None, None, 2), None, x)
    cells = x.reshape(2, 3, 2, 3, 2, 2).max(axis=(2, 4))
    np.testing.assert_allclose(got, cells.mean(axis=(1, 2)), rtol=1e-6)


@pytest.mark.parametrize(("shape", "batch"), SIZES)
def test_a_loop_over_samples_of_any_size(shape: Any, batch: Any) -> None:
    """A WHILE runs sample by sample: sums of the rows before, three times."""
    number, rows = T((1,), TensorType.INT32), T((1, 4, 3))
    state = {"number": number, "x": rows}
    test = Sub(
        {**state, "most": T.constant(np.array([3], np.int32)), "goes_on": T((1,), TensorType.BOOL)},
        [Node(Op.LESS, ["number", "most"], ["goes_on"], LessOptions())],
        ["number", "x"],
        ["goes_on"],
    )
    body = Sub(
        {
            **state,
            "one": T.constant(np.array([1], np.int32)),
            "axis": T.constant(np.array([1], np.int32)),
            "next": number,
            "sums": rows,
        },
        [
            Node(Op.ADD, ["number", "one"], ["next"], AddOptions()),
            Node(Op.CUMSUM, ["x", "axis"], ["sums"], CumsumOptions()),
        ],
        ["number", "x"],
        ["next", "sums"],
    )
    main = Sub(
        {
            "in0": rows,
            "first": T.constant(np.array([0], np.int32)),
            "last": number,
            "out": rows,
        },
        [Node(Op.WHILE, ["first", "in0"], ["last", "out"], WhileOptions(1, 2))],
        ["in0"],
        ["out"],
    )
    x = np.arange(48, dtype=np.float32).reshape(2, 8, 3)
    wanted = x.cumsum(1).cumsum(1).cumsum(1)
    np.testing.assert_allclose(results(model_of(main, test, body), shape, batch, x), wanted)
