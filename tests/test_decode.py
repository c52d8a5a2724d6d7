"""Decoded outputs: each piece against a plain reading of what it has to compute."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import helper
from typer.testing import CliRunner

from tests.made_networks import network
from tflite_ort import ExportError, export_onnx
from tflite_ort.command.cli import app
from tflite_ort.decode.detections import PUBLISHED, anchored_detections, anchors_for, anchors_of
from tflite_ort.decode.image_input import add_image_input, no_projection
from tflite_ort.decode.kinds import kind_of
from tflite_ort.decode.landmarks import pose
from tflite_ort.decode.nodes import Nodes, described
from tflite_ort.decode.picture_input import PictureInput
from tflite_ort.schema import ModelBuilder, Op, read_model

Array = npt.NDArray[Any]


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def made(
    write: Callable[[Nodes], dict[str, Any]], inputs: Sequence[onnx.ValueInfoProto] = ()
) -> onnxruntime.InferenceSession:
    """The nodes that `write` adds, as a model of their own."""
    nodes = Nodes("made")
    outputs = write(nodes)
    ends = Nodes("ends")
    infos = [described(ends.named(n, v), dtype, shape) for n, (v, dtype, shape) in outputs.items()]
    graph = helper.make_graph(
        [*nodes.nodes, *ends.nodes],
        "made",
        [*inputs, *nodes.inputs],
        infos,
        list(nodes.constants.values()),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return session(model)


def outputs_of(run: onnxruntime.InferenceSession, feeds: dict[str, Array]) -> dict[str, Array]:
    names = [each.name for each in run.get_outputs()]
    return dict(zip(names, run.run(names, feeds), strict=True))


@pytest.mark.parametrize(
    ("size", "count", "first", "last"),
    [
        (128, 896, (0.5 / 16, 0.5 / 16), (7.5 / 8, 7.5 / 8)),
        (192, 2016, (0.5 / 24, 0.5 / 24), (11.5 / 12, 11.5 / 12)),
        (192, 2304, (0.5 / 48, 0.5 / 48), (47.5 / 48, 47.5 / 48)),
        (224, 2254, (0.5 / 28, 0.5 / 28), (6.5 / 7, 6.5 / 7)),
    ],
)
def test_published_anchors(size: int, count: int, first: Any, last: Any) -> None:
    points = anchors_for(count, size, size)
    assert points is not None
    assert points.shape == (count, 2)
    np.testing.assert_allclose(points[[0, -1]], [first, last], atol=1e-6)


def test_anchors_of_one_cell_follow_each_other() -> None:
    points = anchors_of(PUBLISHED[0], 128, 128)
    assert (points[0] == points[1]).all()
    assert (points[512:518] == points[512]).all()  # three layers of stride 16 share a map
    assert anchors_for(897, 128, 128) is None


def test_anchors_of_a_vast_picture_are_not_made() -> None:
    tracemalloc.start()
    for count in (2_000, 32_000_000):  # the second are those of this size
        assert anchors_for(count, 16_000, 32_000) is None
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def suppressed(boxes: Array, points: Array, scores: Array, threshold: float) -> list[Any]:
    """Weighted non-maximum suppression, one candidate after the other."""
    left = sorted(range(len(scores)), key=lambda index: -scores[index])
    found = []
    while left:
        best = left[0]
        near = [i for i in left if i == best or iou(boxes[i], boxes[best]) > threshold]
        weights = scores[near] / scores[near].sum()
        found.append(
            (scores[best], weights @ boxes[near], np.tensordot(weights, points[near], axes=1))
        )
        left = [i for i in left if i not in near]
    return found


def iou(a: Array, b: Array) -> float:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    union = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - sides.prod()
    return float(sides.prod() / union)


@pytest.mark.parametrize("seed", range(6))
def test_detections_are_those_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 200
    anchors = rng.uniform(0.2, 0.8, (count, 2)).astype(np.float32)
    raw = rng.normal(0, 4, (1, count, 4 + 6)).astype(np.float32)
    raw[..., 2:4] = rng.uniform(10, 40, (1, count, 2))
    raw[0, :5, 2] = -1  # no box
    logits = rng.normal(-1, 2, (1, count, 1)).astype(np.float32)
    inputs = [described("raw", "float32", raw.shape), described("logits", "float32", logits.shape)]
    run = made(
        lambda nodes: anchored_detections(
            nodes, "raw", "logits", anchors, (100, 80), no_projection(nodes), 0.3
        ),
        inputs,
    )
    found = outputs_of(run, {"raw": raw, "logits": logits, "min_score": np.array(0.4, np.float32)})
    points = raw[0].reshape(count, -1, 2) / [100, 80]
    middle, half = points[:, 0] + anchors, points[:, 1] / 2
    boxes = np.concatenate([middle - half, middle + half], 1)
    scores = 1 / (1 + np.exp(-logits.ravel().astype(float)))
    good = (scores >= 0.4) & (half >= 0).all(1)
    keypoints = points[:, 2:] + anchors[:, np.newaxis]
    wanted = suppressed(boxes[good], keypoints[good], scores[good], 0.3)
    assert len(wanted) > 5
    for name, place in (("scores", 0), ("boxes", 1), ("keypoints", 2)):
        expected = np.array([each[place] for each in wanted])
        np.testing.assert_allclose(found[name], expected, atol=2e-5, err_msg=f"seed {seed}")
    few = outputs_of(run, {"raw": raw, "logits": logits, "max_results": np.array(2)})
    assert few["boxes"].shape == (2, 4)
    none = outputs_of(run, {"raw": raw, "logits": logits, "min_score": np.array(1.5, np.float32)})
    assert none["keypoints"].shape == (0, 3, 2)


def cropped(image: Array, roi: Array, how: PictureInput) -> tuple[Array, Array]:
    """The pixels of a region, and the matrix of its points, by the definition."""
    height, width = image.shape[:2]
    x, y, w, h = roi[:4] * [width, height, width, height]
    if how.letterbox:
        w, h = max(w, h * how.width / how.height), max(h, w * how.height / how.width)
    c, s = math.cos(roi[4]), math.sin(roi[4])
    sides = np.array([[w * c, w * s], [-h * s, h * c]])
    matrix = np.vstack([sides, np.array([x, y]) - sides.sum(0) / 2])
    rows, columns = np.mgrid[: how.height, : how.width]
    ones = np.ones(rows.shape)
    at = np.stack([columns / how.width, rows / how.height, ones], -1) @ matrix
    at = np.round(at * 32) / 32
    low = np.floor(at).astype(int)
    part = at - low
    found = np.zeros((how.height, how.width, 3))
    for dy in (0, 1):
        for dx in (0, 1):
            px, py = low[..., 0] + dx, low[..., 1] + dy
            inside = (px >= 0) & (px < width) & (py >= 0) & (py < height)
            values = image[py.clip(0, height - 1), px.clip(0, width - 1)].astype(float)
            if how.outside == "zeros":
                values = values * inside[..., np.newaxis]
            fx = part[..., 0] if dx else 1 - part[..., 0]
            fy = part[..., 1] if dy else 1 - part[..., 1]
            found += values * (fx * fy)[..., np.newaxis]
    return np.floor(found + 0.5), matrix / [width, height]


ROIS = {
    "whole": (0.5, 0.5, 1.0, 1.0, 0.0),
    "turned": (0.4, 0.5, 0.5, 0.6, 0.7),
    "over the edge": (0.1, 0.9, 0.8, 0.7, -2.0),
    "far outside": (3.0, -2.0, 0.3, 0.3, 0.1),
    "tiny": (0.5, 0.5, 0.01, 0.01, 0.0),
    "huge": (0.5, 0.5, 6.0, 6.0, 0.3),
}


@pytest.mark.parametrize("size", [(37, 53), (1, 9), (5, 1), (1, 1), (2, 2)])
@pytest.mark.parametrize("roi", ROIS)
@pytest.mark.parametrize(("letterbox", "outside"), [(True, "zeros"), (False, "border")])
def test_a_region_of_a_picture(
    roi: str, letterbox: bool, outside: str, size: tuple[int, int]
) -> None:
    how = PictureInput(24, 32, (10.0, 20.0, 30.0), (2.0, 4.0, 8.0), letterbox, outside)

    def write(nodes: Nodes) -> dict[str, Any]:
        to = add_image_input(nodes, "tensor", how)
        return {"x": ("tensor", "float32", [1, 24, 32, 3]), "m": (to.matrix, "float32", [3, 2])}

    image = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
    region = np.array(ROIS[roi], np.float32)
    found = outputs_of(made(write), {"image": image, "roi": region})
    pixels, matrix = cropped(image, region.astype(float), how)
    np.testing.assert_allclose(found["m"], matrix, rtol=1e-5, atol=1e-5)
    off = np.abs(found["x"][0] * how.std + how.mean - pixels)
    # A coordinate halfway between two 32nds of a pixel becomes either.
    assert (off > 0.01).mean() < 0.01
    assert off.max() < 10


def test_integer_tensors_take_pixels_as_they_are() -> None:
    image = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    for dtype, less in (("uint8", 0), ("int8", 128)):
        how = PictureInput(8, 8, dtype=dtype)

        def write(nodes: Nodes, how: PictureInput = how) -> dict[str, Any]:
            add_image_input(nodes, "tensor", how)
            return {"x": ("tensor", how.dtype, [1, 8, 8, 3])}

        found = outputs_of(made(write), {"image": image})["x"]
        assert found.dtype == dtype
        assert (found[0] == image.astype(int) - less).all()


def test_points_of_a_pose_move_to_the_heat() -> None:
    rng = np.random.default_rng(3)
    size, cells = 64, 16
    raw = [
        rng.uniform(-10, 74, (1, 195)),
        np.zeros((1, 1)),
        np.zeros((1, size, size, 1)),
        rng.normal(-1, 2, (1, cells, cells, 39)),
        rng.normal(0, 1, (1, 117)),
    ]
    raw = [each.astype(np.float32) for each in raw]
    names = [f"raw{number}" for number in range(5)]
    inputs = [described(n, "float32", a.shape) for n, a in zip(names, raw, strict=True)]
    run = made(lambda nodes: pose(nodes, names, size, no_projection(nodes)), inputs)
    found = outputs_of(run, dict(zip(names, raw, strict=True)))
    points = raw[0].reshape(39, 5)[:, :3] / size
    heat = 1 / (1 + np.exp(-raw[3][0].astype(float)))
    for number in range(33):
        column, row = (int(value * cells) for value in points[number, :2])
        expected = points[number, :2].astype(float)
        if 0 <= column < cells and 0 <= row < cells:
            columns = range(max(column - 3, 0), min(column + 4, cells))
            rows = range(max(row - 3, 0), min(row + 4, cells))
            part = heat[np.ix_(rows, columns)][..., number]
            if part.max() >= 0.5:
                mean = (part.sum(0) @ columns, part.sum(1) @ rows)
                expected = np.array(mean) / part.sum() / cells
        np.testing.assert_allclose(found["landmarks"][number, :2], expected, atol=1e-5)
    np.testing.assert_allclose(found["landmarks"][:, 2], points[:33, 2], atol=1e-6)
    assert found["auxiliary_landmarks"].shape == (2, 3)


def zeros(*shapes: tuple[int, ...]) -> list[Array]:
    return [np.zeros(shape) for shape in shapes]


KINDS = {
    "face detector": (128, zeros((1, 896, 16), (1, 896, 1)), None),
    "palm detector": (192, zeros((1, 2016, 18), (1, 2016, 1)), None),
    "pose detector": (224, zeros((1, 2254, 12), (1, 2254, 1)), None),
    "hand landmarks": (224, zeros((1, 63), (1, 1), (1, 1), (1, 63)), None),
    "face landmarks": (192, zeros((1, 1, 1, 1404), (1, 1, 1, 1)), None),
    "iris landmarks": (64, zeros((1, 213), (1, 15)), None),
    "segmentation": (32, zeros((1, 32, 32, 2)), Op.SOFTMAX),
    "classifier": (16, zeros((1, 5)), Op.SOFTMAX),
    "embedding": (16, zeros((1, 5)), None),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_are_told_by_shapes(name: str, tmp_path: Path) -> None:
    size, outputs, last = KINDS[name]
    content = network(size, outputs, last=last)
    kind = kind_of(read_model(content))
    assert kind is not None
    assert kind.name == name
    path = tmp_path / "decoded.onnx"
    written = export_onnx(content, path, decode="image", check=True)
    said = json.loads({each.key: each.value for each in written.metadata_props}["tflite.decoded"])
    assert said["kind"] == name
    run = session(onnx.load(path))
    image = np.zeros((40, 60, 3), np.uint8)
    found = run.run(None, {"image": image})
    for info, value in zip(run.get_outputs(), found, strict=True):
        fixed = [size for size in info.shape if isinstance(size, int)]
        assert len(info.shape) == value.ndim
        assert set(fixed) <= set(value.shape), (info.name, info.shape, value.shape)
    plain = session(export_onnx(content, decode=True, decode_inputs=True))
    assert plain.get_inputs()[0].shape == [1, size, size, 3]
    assert [each.name for each in plain.get_outputs()] == said["outputs"]


def test_a_model_without_results_is_of_no_kind() -> None:
    builder = ModelBuilder()
    graph = builder.subgraph().tensor("picture", (1, 8, 8, 3)).tensor("lost", (1, 8, 8, 3))
    graph.operator(Op.ABS, ["picture"], ["lost"]).inputs("picture").outputs()
    assert kind_of(read_model(builder.write())) is None


def test_results_that_are_not_those_of_the_post_processing() -> None:
    builder = ModelBuilder()
    graph = builder.subgraph().tensor("picture", (1, 8, 8, 3)).inputs("picture")
    for name in "abcd":
        graph.tensor(name, (1, 10))
    names = ["picture", "picture", "picture"]
    graph.operator("TFLite_Detection_PostProcess", names, list("abcd"), b"").outputs(*"abca")
    assert kind_of(read_model(builder.write())) is None


def test_classes_are_sorted_and_limited() -> None:
    scores = np.array([[0.1, 3.0, -1.0, 2.0, 0.0]])
    run = session(
        export_onnx(network(16, [scores], last=Op.SOFTMAX), decode="image", decode_inputs=True)
    )
    image = np.full((5, 7, 3), 9, np.uint8)
    _, classes = run.run(None, {"image": image})
    assert classes.tolist() == [1, 3, 0, 4, 2]
    best, classes = run.run(None, {"image": image, "max_results": np.array(2)})
    assert classes.tolist() == [1, 3]
    assert run.run(None, {"image": image, "min_score": np.array(best[1], np.float32)})[
        1
    ].tolist() == [1, 3]


def test_what_cannot_be_decoded(tmp_path: Path) -> None:
    unknown = network(16, zeros((1, 3), (1, 4), (1, 5)))
    with pytest.raises(ExportError, match="no kind whose outputs are known"):
        export_onnx(unknown, decode=True)
    with pytest.raises(ValueError, match="decode must be"):
        export_onnx(unknown, decode="picture")
    path = tmp_path / "m.tflite"
    path.write_bytes(network(16, zeros((1, 5)), last=Op.SOFTMAX))
    result = CliRunner().invoke(app, ["export", str(path), "--image-input"])
    assert result.exit_code == 0, result.output
    assert onnx.load(path.with_suffix(".onnx")).graph.input[0].name == "image"
