"""EfficientDet without metadata: anchors as they were published."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.test_decode import outputs_of, session
from tests.test_tasks import base
from tflite_ort import ExportError, export_onnx
from tflite_ort.decode.efficientdet import efficientdet_of
from tflite_ort.schema import (
    ConcatenationOptions,
    Conv2DOptions,
    Op,
    Padding,
    Pool2DOptions,
    ReshapeOptions,
)
from tflite_ort.tasks import vision

Array = npt.NDArray[Any]

SIZE, CLASSES, LEVELS = 320, 3, (40, 20, 10, 5, 3)
RNG = np.random.default_rng(22)


def detector(channels: int = 64, last: Op | None = Op.LOGISTIC, *, swapped: bool = False) -> bytes:
    """The heads of EfficientDet-Lite0 on mean pixels: a box and a score by the colour of a cell."""
    boxes, scores = RNG.normal(0, 0.3, (36, channels)), RNG.normal(0, 2, (9 * CLASSES, channels))
    tensors = {
        "picture": T((1, SIZE, SIZE, 3)),
        "spread": T.constant(RNG.normal(0, 1, (channels, 1, 1, 3)).astype(np.float32)),
        "none": T.constant(np.zeros(channels, np.float32)),
        "box": T.constant(boxes.reshape(36, 1, 1, channels).astype(np.float32)),
        "box0": T.constant(np.zeros(36, np.float32)),
        "class": T.constant(scores.reshape(-1, 1, 1, channels).astype(np.float32)),
        "class0": T.constant(np.full(9 * CLASSES, -4, np.float32)),
    }
    nodes, same = [], Padding.SAME
    conv = Conv2DOptions(same, 1, 1)
    for level, cells in enumerate(LEVELS):
        stride = 8 << level
        tensors |= {f"mean{level}": T((1, cells, cells, 3))}
        tensors |= {f"wide{level}": T((1, cells, cells, channels))}
        pool = Pool2DOptions(same, stride, stride, stride, stride)
        nodes.append(Node(Op.AVERAGE_POOL_2D, ["picture"], [f"mean{level}"], pool))
        wide = [f"mean{level}", "spread", "none"]
        nodes.append(Node(Op.CONV_2D, wide, [f"wide{level}"], conv))
        for name, count in (("box", 4), ("class", CLASSES)):
            shape = (1, cells * cells * 9, count)
            head, flat = f"{name}{level}_", f"{name}{level}_flat"
            tensors |= {head: T((1, cells, cells, 9 * count)), flat: T(shape)}
            nodes.append(Node(Op.CONV_2D, [f"wide{level}", name, f"{name}0"], [head], conv))
            nodes.append(Node(Op.RESHAPE, [head], [flat], ReshapeOptions(shape)))
    anchors = 9 * sum(cells**2 for cells in LEVELS)
    for name, count in (("box", 4), ("class", CLASSES)):
        tensors[f"{name}s"] = tensors[f"{name}s_raw"] = T((1, anchors, count))
        made = f"{name}s_raw" if name == "class" and last is not None else f"{name}s"
        parts = [f"{name}{level}_flat" for level in range(len(LEVELS))]
        nodes.append(Node(Op.CONCATENATION, parts, [made], ConcatenationOptions(1)))
    if last is not None:
        nodes.append(Node(last, ["classs_raw"], ["classs"]))
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    outputs = ["classs", "boxs"] if swapped else ["boxs", "classs"]
    return graph_model(
        {name: each for name, each in tensors.items() if name in used}, nodes, outputs
    )


def anchors() -> Array:
    """Middle y and x, height and width in pixels, written down again."""
    found = []
    for cells in LEVELS:
        stride = SIZE / cells
        for row in range(cells):
            for column in range(cells):
                for octave in range(3):
                    for ratio in (1.0, 2.0, 0.5):
                        side = 3.0 * stride * 2 ** (octave / 3)
                        middle = (row + 0.5) * stride, (column + 0.5) * stride
                        found.append((*middle, side / ratio**0.5, side * ratio**0.5))
    return np.array(found)


PICTURE = np.kron(RNG.uniform(-1, 1, (1, 20, 20, 3)), np.ones((1, 16, 16, 1))).astype(np.float32)


@pytest.mark.parametrize("last", [Op.LOGISTIC, None])
@pytest.mark.parametrize("swapped", [False, True])
def test_boxes(last: Op | None, swapped: bool) -> None:
    content = detector(last=last, swapped=swapped)
    raw = session(export_onnx(content))
    given = dict(
        zip(
            (each.name for each in raw.get_outputs()),
            raw.run(None, {"picture": PICTURE}),
            strict=True,
        )
    )
    located, sure = given["boxs"][0], given["classs"][0]
    sure = sure if last is not None else 1 / (1 + np.exp(-sure))
    found = outputs_of(
        session(export_onnx(content, decode=True, decode_inputs=True)), {"picture": PICTURE}
    )
    best = int(sure.max(1).argmax())
    y, x, height, width = anchors()[best]
    dy, dx, dh, dw = located[best]
    middle = np.array([x + dx * width, y + dy * height])
    half = np.array([width * np.exp(dw), height * np.exp(dh)]) / 2
    wanted = np.concatenate([middle - half, middle + half]) / SIZE
    np.testing.assert_allclose(found["boxes"][0], wanted, rtol=1e-4, atol=1e-5)
    assert found["classes"][0] == sure[best].argmax()
    assert found["scores"][0] == pytest.approx(sure[best].max(), rel=1e-5)


def test_in_the_task() -> None:
    options = vision.ObjectDetectorOptions(base(detector()), score_threshold=0.3, max_results=2)
    picture = ((PICTURE[0] + 1) * 127).astype(np.uint8)
    found = vision.ObjectDetector.create_from_options(options).detect(picture).detections
    assert 0 < len(found) <= 2
    assert found[0].categories[0].index in range(CLASSES)


def test_a_network_of_other_sizes_is_not_taken_for_one() -> None:
    with pytest.raises(ExportError, match="no kind"):
        export_onnx(detector(channels=72), decode=True)


@pytest.mark.parametrize(
    ("size", "channels", "count", "scale"),
    [
        (320, 64, 19206, 3.0),
        (384, 88, 27621, 3.0),
        (448, 112, 37629, 3.0),
        (512, 160, 49104, 4.0),
        (640, 224, 76725, 4.0),
        (512, 64, 49104, 4.0),
        (1536, 384, 441936, 5.0),
        (1536, 384, 442260, 4.0),
        (320, 88, 19206, None),
        (512, 64, 49103, None),
    ],
)
def test_which_one(size: int, channels: int, count: int, scale: float | None) -> None:
    known = efficientdet_of(size, size, channels, count)
    assert (known and known.scale) == scale
    assert known is None or len(known.anchors(size)) == count
