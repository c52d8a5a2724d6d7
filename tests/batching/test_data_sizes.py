"""Sizes that depend on the data of a sample: results are padded with zeros, and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.batching.single_runs import assert_batched, batch_of, opened, run
from tests.one_op import Node, T, add_subgraph, graph_model
from tests.ops.custom_op import custom_model
from tflite_ort import Predictor, Unbatchable, batched_model, export_onnx
from tflite_ort.schema import (
    GreaterOptions,
    ModelBuilder,
    MulOptions,
    Op,
    RandomOptions,
    ReducerOptions,
    ReshapeOptions,
    StridedSliceOptions,
    TensorType,
    UniqueOptions,
    read_model,
)

Array = npt.NDArray[Any]
pytestmark = pytest.mark.usefixtures("unmeasured")

INT32, INT64, BOOL = TensorType.INT32, TensorType.INT64, TensorType.BOOL
SAMPLES = 4
ZERO_POINT = 3


def _where() -> bytes:
    tensors = {"mask": T((4, 3), BOOL), "places": T((0, 2), INT64)}
    return graph_model(tensors, [Node(Op.WHERE, ["mask"], ["places"])], ["places"])


def _masked() -> bytes:
    """The positive values of a vector; their squares; and their sum, which every sample has."""
    tensors = {
        "x": T((1, 6)),
        "flat": T((6,)),
        "shape": T.constant(np.array([6], np.int32)),
        "zero": T.constant(np.float32(0)),
        "mask": T((6,), BOOL),
        "places": T((0, 1), INT64),
        "found": T((0,)),
        "squares": T((0,)),
        "axis": T.constant(np.array([0], np.int32)),
        "sum": T(()),
        "twice": T(()),
        "two": T.constant(np.float32(2)),
    }
    nodes = [
        Node(Op.RESHAPE, ["x", "shape"], ["flat"], ReshapeOptions(new_shape=(6,))),
        Node(Op.GREATER, ["flat", "zero"], ["mask"], GreaterOptions()),
        Node(Op.WHERE, ["mask"], ["places"]),
        Node(Op.GATHER_ND, ["flat", "places"], ["found"]),
        Node(Op.MUL, ["found", "found"], ["squares"], MulOptions()),
        Node(Op.SUM, ["found", "axis"], ["sum"], ReducerOptions()),
        Node(Op.MUL, ["sum", "two"], ["twice"], MulOptions()),
    ]
    return graph_model(tensors, nodes, ["found", "twice", "squares", "flat"])


def _unique() -> bytes:
    tensors = {"x": T((5,), INT32), "y": T((0,), INT32), "places": T((5,), INT32)}
    node = Node(Op.UNIQUE, ["x"], ["y", "places"], UniqueOptions(idx_out_type=INT32))
    return graph_model(tensors, [node], ["y", "places"])


def _topk() -> bytes:
    tensors = {"x": T((1, 2, 5)), "k": T((), INT32), "v": T((1, 2, 0)), "i": T((1, 2, 0), INT32)}
    return graph_model(tensors, [Node(Op.TOPK_V2, ["x", "k"], ["v", "i"])], ["v", "i"])


def _reshape() -> bytes:
    tensors = {"x": T((12,), TensorType.INT8, 0.5, ZERO_POINT), "shape": T((2,), INT32)}
    tensors["y"] = T((0, 0), TensorType.INT8, 0.5, ZERO_POINT)
    return graph_model(tensors, [Node(Op.RESHAPE, ["x", "shape"], ["y"], ReshapeOptions())], ["y"])


def _slice() -> bytes:
    tensors = {
        "x": T((1, 6, 2), BOOL),
        "begin": T.constant(np.zeros(3, np.int32)),
        "end": T((3,), INT32),
        "steps": T.constant(np.ones(3, np.int32)),
        "y": T((1, 0, 2), BOOL),
    }
    options = StridedSliceOptions(begin_mask=7, end_mask=5)
    node = Node(Op.STRIDED_SLICE, ["x", "begin", "end", "steps"], ["y"], options)
    return graph_model(tensors, [node], ["y"])


Draw = Callable[[np.random.Generator, int], list[Array]]


def _ints(*shape: int, high: int) -> Draw:
    return lambda rng, _: [rng.integers(0, high, shape).astype(np.int32)]


MODELS: Mapping[str, tuple[Callable[[], bytes], Draw]] = {
    "where": (_where, lambda rng, n: [rng.random((4, 3)) < n / SAMPLES]),
    "masked": (_masked, lambda rng, n: [rng.normal(n - 2, 1, (1, 6)).astype(np.float32)]),
    "unique": (_unique, _ints(5, high=4)),
    "topk": (
        _topk,
        lambda rng, n: [rng.normal(size=(1, 2, 5)).astype(np.float32), np.array(1 + n, np.int32)],
    ),
    "reshape": (
        _reshape,
        lambda rng, n: [
            rng.integers(-128, 128, 12).astype(np.int8),
            np.array([(1, 12), (3, 4), (6, 2), (12, 1)][n], np.int32),
        ],
    ),
    "slice": (
        _slice,
        lambda rng, n: [rng.random((1, 6, 2)) < 0.5, np.array([1, 2 * n, 2], np.int32)],
    ),
}


# The outputs that lead with 1, and those whose sizes depend on data with the axes of a sample.
LEADING = {"v", "i"}
PADDED = {
    "where": {"places": [0]},
    "masked": {"found": [0], "squares": [0]},
    "unique": {"y": [0]},
    "topk": {"v": [1], "i": [1]},
    "reshape": {"y": [0, 1]},
    "slice": {"y": [0]},
}


def _drawn(name: str) -> tuple[bytes, list[list[Array]], dict[str, Array]]:
    """A model, its samples, and what a batch of them has to give: by output, and by count."""
    make, draw = MODELS[name]
    model, rng = make(), np.random.default_rng(3)
    samples = [draw(rng, number) for number in range(SAMPLES)]
    with opened(model) as alone:
        names = [each["name"] for each in alone.get_output_details()]
        singles = [run(alone, sample) for sample in samples]
    wanted: dict[str, Array] = {}
    for place, output in enumerate(names):
        rows = [outputs[place] for outputs in singles]
        if output in LEADING or name == "slice":
            rows = [row[0] for row in rows]
        wanted[output] = _padded(rows, ZERO_POINT if rows[0].dtype == np.int8 else 0)
    for output, axes in PADDED[name].items():
        rows = [outputs[names.index(output)] for outputs in singles]
        if output in LEADING or name == "slice":
            rows = [row[0] for row in rows]
        counts = np.array([[row.shape[axis] for axis in axes] for row in rows], np.int32)
        wanted[f"{output}_count"] = counts[:, 0] if len(axes) == 1 else counts
    return model, samples, wanted


def _padded(rows: Sequence[Array], zero: int) -> Array:
    """Rows of several shapes as one array, with zeros behind them."""
    most = [max(sizes) for sizes in zip(*(row.shape for row in rows), strict=True)]
    whole = np.full((len(rows), *most), zero, rows[0].dtype)
    for place, row in enumerate(rows):
        whole[(place, *map(slice, row.shape))] = row
    return whole


def _assert_same(got: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("providers", [[], None], ids=["numpy", "onnxruntime"])
def test_results_are_padded_and_counted(name: str, providers: Any) -> None:
    model, samples, wanted = _drawn(name)
    with opened(model, batch=SAMPLES, providers=providers) as together:
        for _ in range(2):
            made = run(together, batch_of(samples))
        names = [each["name"] for each in together.get_output_details()]
        _assert_same(dict(zip(names, made, strict=True)), wanted)


@pytest.mark.parametrize("batch", ["N", SAMPLES])
@pytest.mark.parametrize("name", MODELS)
def test_exports_pad_and_count(name: str, batch: Any) -> None:
    model, samples, wanted = _drawn(name)
    proto = export_onnx(model, batch=batch, state_defaults=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    inputs = [each.name for each in session.get_inputs()]
    outputs = [each.name for each in session.get_outputs()]
    made = session.run(None, dict(zip(inputs, batch_of(samples), strict=True)))
    _assert_same(dict(zip(outputs, map(np.asarray, made), strict=True)), wanted)


@pytest.mark.parametrize("name", MODELS)
def test_predictors_give_rows_as_they_are(name: str) -> None:
    model, samples, _ = _drawn(name)
    together, alone = Predictor(model, 3), Predictor(model, 1)
    assert together.rows.batch_size == 3
    inputs = [each.name for each in together.rows.inputs]
    rows = dict(zip(inputs, batch_of(samples), strict=True))
    got, wanted = together(rows), alone(rows)
    assert got.keys() == wanted.keys()
    for output, column in wanted.items():
        assert got[output].dtype == column.dtype
        for a, b in zip(got[output], column, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def test_operators_that_need_no_size_run_over_whole_batches() -> None:
    """Only what makes or reads the list of what is found is in the loop."""
    model = batched_model(read_model(_masked()), SAMPLES)
    codes = [code.builtin_code for code in model.operator_codes]
    outside, _, inside = (
        {codes[op.opcode_index] for op in graph.operators} for graph in model.subgraphs
    )
    assert {Op.GREATER, Op.WHILE} <= outside
    assert not {Op.WHERE, Op.GATHER_ND, Op.SUM} & outside
    assert {Op.WHERE, Op.GATHER_ND, Op.SUM} <= inside
    assert Op.GREATER not in inside


def test_signatures_have_counts() -> None:
    tensors = {"mask": T((4, 3), BOOL), "places": T((0, 2), INT64)}
    builder = ModelBuilder()
    graph = add_subgraph(builder, "main", tensors, [Node(Op.WHERE, ["mask"], ["places"])])
    graph.inputs("mask").outputs("places")
    graph.signature("serving_default", {"m": "mask"}, {"p": "places"})
    with opened(builder.write(), batch=2) as together:
        runner = together.get_signature_runner()
        mask = np.zeros((2, 4, 3), np.bool_)
        mask[1, 2, 1:] = True
        made = runner(m=mask)
    assert sorted(made) == ["p", "p_count"]
    assert made["p_count"].tolist() == [0, 2]
    assert made["p"].tolist() == [[[0, 0], [0, 0]], [[2, 1], [2, 2]]]


def test_random_sizes_are_refused() -> None:
    tensors = {"sizes": T((1,), INT32), "drawn": T((0,))}
    node = Node(Op.RANDOM_UNIFORM, ["sizes"], ["drawn"], RandomOptions(seed=1, seed2=2))
    with pytest.raises(Unbatchable, match="its random numbers follow"):
        batched_model(read_model(graph_model(tensors, [node], ["drawn"])), 2)


def _suppression() -> bytes:
    constants = [np.int32(3), np.float32(0.5), np.float32(0.1)]
    tensors = {"boxes": T((6, 4)), "scores": T((6,))}
    tensors |= {f"c{place}": T.constant(value) for place, value in enumerate(constants)}
    tensors |= {"kept": T((3,), INT32), "count": T((), INT32)}
    inputs = ["boxes", "scores", "c0", "c1", "c2"]
    node = Node(Op.NON_MAX_SUPPRESSION_V4, inputs, ["kept", "count"])
    return graph_model(tensors, [node], ["kept", "count"])


def _detection() -> bytes:
    options = {
        "max_detections": 4,
        "max_classes_per_detection": 1,
        "nms_score_threshold": 0.25,
        "nms_iou_threshold": 0.5,
        "num_classes": 3,
        **dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 5.0),
    }
    anchors = T.constant(np.random.default_rng(0).uniform(0.1, 1, (6, 4)).astype(np.float32))
    outputs = [T((1, 4, 4)), T((1, 4)), T((1, 4)), T((1,))]
    given = [T((1, 6, 4)), T((1, 6, 4)), anchors]
    return custom_model("TFLite_Detection_PostProcess", given, outputs, options)


@pytest.mark.parametrize("make", [_suppression, _detection])
@pytest.mark.parametrize("providers", [[], None], ids=["numpy", "onnxruntime"])
def test_detections_have_a_count_of_their_own(make: Callable[[], bytes], providers: Any) -> None:
    rng, model = np.random.default_rng(5), make()
    with opened(model) as alone:
        shapes = [each["shape"] for each in alone.get_input_details()]
    samples = [[rng.random(shape).astype(np.float32) for shape in shapes] for _ in range(3)]
    for sample, limit in zip(samples, (0.3, 1.0, 0.05), strict=True):
        sample[1] *= limit
    assert_batched(model, samples, providers=providers)
