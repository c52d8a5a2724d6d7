"""Scans written step by step give what they give, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.graph_checks import inconsistencies
from tests.ops.test_detection_postprocess import PLAIN, detected, model_and_feeds
from tests.oracle import litert
from tflite_ort import ExportError, export_onnx
from tflite_ort.export.inferred import inferred
from tflite_ort.export.presets import PRESETS
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.unrolled_scans import MOST_NODES, unroll_scans

Array = npt.NDArray[Any]
F = ir.DataType.FLOAT
STEPS, WIDTH = 5, 3
# They have 64-bit floats, as the operator has inside.
EXACT = sorted(name for name, row in PRESETS.items() if "Scan" in row.never and not row.never_types)


def scan(steps: int | str, nodes: int = 1, **attributes: Any) -> ir.Model:
    """s = s * x + y * c + z, of which each step gives s and s - x; z is of the graph around it."""
    x, y = (ir.Value(name, dtype=F, shape=(steps, WIDTH)) for name in "xy")
    first, z = (ir.Value(name, dtype=F, shape=(WIDTH,)) for name in "sz")
    inner = [ir.Value(f"{name}_in", dtype=F) for name in "sxy"]
    values = [ir.Value(f"v{place}", dtype=F) for place in range(4 + nodes)]
    body = ir.Graph(inner, [], [], name="body")
    c = body.add_initializer("c", np.full(WIDTH, 0.75, np.float32))
    s_in, x_in, y_in = inner
    pairs = [("Mul", s_in, x_in), ("Mul", y_in, c), ("Add", values[0], values[1]),
             ("Add", values[2], z)]  # fmt: skip
    pairs += [("Sub", values[3 + place], x_in) for place in range(nodes)]
    for made, (kind, *given) in zip(values, pairs, strict=True):
        body.nodes.append(ir.Node(kind, given, [made], name=f"inner/{made.name}"))
    copy = ir.Value("copy", dtype=F)
    body.nodes.append(ir.Node("Identity", [values[3]], [copy]))
    body.outputs = [values[3], copy, values[3 + nodes]]
    outputs = [ir.Value(name, dtype=F) for name in ("last", "every", "less")]
    graph = ir.Graph([x, y, first, z], outputs, [])
    given = {"body": body, "num_scan_inputs": 2, **attributes}
    graph.nodes.append(ir.Node("Scan", [first, x, y], outputs, attributes=given, name="scan"))
    return ir.Model(graph, opset_imports={"": 21})


def results(model: ir.Model, steps: int) -> list[Array]:
    rng = np.random.default_rng(steps)
    feeds = {name: rng.normal(size=(steps, WIDTH)).astype(np.float32) for name in "xy"}
    feeds |= {name: rng.normal(size=WIDTH).astype(np.float32) for name in "sz"}
    session = onnxruntime.InferenceSession(serialized(model), providers=["CPUExecutionProvider"])
    return [np.asarray(each) for each in session.run(None, feeds)]


@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize("backward", [None, ([1, 0], [0, 1]), ([0, 1], [1, 0])])
def test_steps_give_what_a_scan_gives(steps: int, backward: tuple[Any, Any] | None) -> None:
    sides = () if backward is None else zip(("input", "output"), backward, strict=True)
    model = scan(steps, **{f"scan_{side}_directions": told for side, told in sides})
    want = results(model, steps)
    unroll_scans(model.graph, inferred(model))
    assert not list(inconsistencies(model.graph))
    assert "Scan" not in {node.op_type for node in model.graph.nodes}
    for one, other in zip(results(model, steps), want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("model", [
    scan("t"), scan(STEPS, scan_input_axes=[0, 1]), scan(STEPS, MOST_NODES),
], ids=["open", "axes", "many"])  # fmt: skip
def test_others_stay(model: ir.Model) -> None:
    unroll_scans(model.graph, inferred(model))
    assert [node.op_type for node in model.graph.nodes] == ["Scan"]


@pytest.mark.parametrize("preset", EXACT)
@pytest.mark.parametrize(("each", "classes"), [(1, 6), (2, 6), (3, 4), (2, 2)])
def test_classes_of_boxes_are_sorted_as_litert_does(preset: str, each: int, classes: int) -> None:
    """Many of their scores are equal."""
    options = {**PLAIN, "max_classes_per_detection": each, "num_classes": classes}
    for seed in range(3):
        model, feeds = model_and_feeds(options, np.random.default_rng(seed), 20, 1, False)
        proto = export_onnx(model, for_=preset, opset=21)
        assert not {node.op_type for node in proto.graph.node} & {"Scan", "Loop", "If"}
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        names = [value.name for value in session.get_inputs()]
        got = session.run(None, dict(zip(names, feeds, strict=True)))
        want = detected(litert(model, feeds), options)
        for one, other in zip(detected(got, options), want, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_sort_of_very_many_nodes_is_refused() -> None:
    options = {**PLAIN, "max_classes_per_detection": 8, "num_classes": 90}
    model, _ = model_and_feeds(options, np.random.default_rng(0), 20, 1, False)
    with pytest.raises(ExportError, match="is Scan; tflite-ort extract"):
        export_onnx(model, for_="torch")
