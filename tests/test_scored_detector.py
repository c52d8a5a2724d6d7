"""Detectors of several classes without post-processing: anchors and decoding from metadata."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_bundles import with_files
from tests.made_networks import network
from tests.test_decode import outputs_of, session
from tests.test_tasks import IMAGE, base
from tflite_ort import MalformedModel, ModelError, export_onnx
from tflite_ort.export.decoded import known_kind
from tflite_ort.schema import Buffer, read_model, write_model
from tflite_ort.schema.file.detector_metadata import (
    DETECTOR,
    FixedAnchor,
    FixedAnchorsSchema,
    ObjectDetectorOptions,
    SsdAnchorsOptions,
    TensorsDecodingOptions,
    write_custom,
)
from tflite_ort.schema.file.model import Metadata
from tflite_ort.schema.file.model_metadata import (
    NAME as METADATA,
)
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    BoundingBoxProperties,
    BoundingBoxType,
    ColorSpaceType,
    Content,
    CustomMetadata,
    FeatureProperties,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
    write_metadata,
)
from tflite_ort.tasks import vision

Array = npt.NDArray[Any]

LABELS = ("cat", "dog", "cow")
# y, x, height, width
ANCHORS = np.array(
    [[0.3, 0.3, 0.2, 0.4], [0.32, 0.3, 0.2, 0.4], [0.7, 0.6, 0.4, 0.2], [0.5, 0.5, 0.9, 0.9]]
)
RAW = np.array([[0.5, -1, 0.1, 0.2], [0, 0, 0, 0], [1, 1, -2, 3], [0, 0, 0.5, 0]])
LOGITS = np.array([[2.0, 1, -3], [1, 1.5, 0], [-1, 0, 3], [-3, -4, -5]])
SCALE = (10.0, 8.0, 5.0, 4.0)  # y, x, height, width


def detector(*, swapped: bool = False, told: bytes | None = None, **changed: Any) -> bytes:
    """A network that always gives `RAW` and `LOGITS`, and metadata as MediaPipe's."""
    outputs = [RAW[np.newaxis], LOGITS[np.newaxis]]
    model = read_model(network(64, outputs[::-1] if swapped else outputs))
    said = TensorsDecodingOptions(
        num_classes=3,
        num_boxes=4,
        num_coords=4,
        num_values_per_keypoint=2,
        y_scale=SCALE[0],
        x_scale=SCALE[1],
        h_scale=SCALE[2],
        w_scale=SCALE[3],
        apply_exponential_on_box_size=True,
        sigmoid_score=True,
    )
    boxes = tuple(FixedAnchor(x, y, width, height) for y, x, height, width in ANCHORS.tolist())
    options = ObjectDetectorOptions(
        "1.0.0", SsdAnchorsOptions(FixedAnchorsSchema(boxes)), replace(said, **changed)
    )
    content = write_custom(options) if told is None else told
    picture = TensorMetadata(
        name="image",
        content=Content(ImageProperties(ColorSpaceType.RGB)),
        process_units=(ProcessUnit(NormalizationOptions((127.5,), (127.5,))),),
    )
    box = BoundingBoxProperties((0, 1, 2, 3), BoundingBoxType.BOUNDARIES)
    file = AssociatedFile("labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    named = [
        TensorMetadata(name="location", content=Content(box)),
        TensorMetadata(
            name="score", content=Content(FeatureProperties()), associated_files=(file,)
        ),
    ]
    graph = SubGraphMetadata(
        input_tensor_metadata=(picture,),
        output_tensor_metadata=tuple(named[::-1] if swapped else named),
        custom_metadata=(CustomMetadata(DETECTOR, np.frombuffer(content, np.uint8)),),
    )
    table = ModelMetadata(subgraph_metadata=(graph,), min_parser_version="1.0.0")
    buffers = (*model.buffers, Buffer(np.frombuffer(write_metadata(table), np.uint8)))
    metadata = (*model.metadata, Metadata(METADATA, len(model.buffers)))
    written = write_model(replace(model, buffers=buffers, metadata=metadata))
    return with_files(written, {"labels.txt": "\n".join(LABELS).encode()})


def boxes() -> Array:
    """Left, top, right and bottom of all boxes, read from the definition."""
    scaled = RAW / SCALE
    middle = scaled[:, :2] * ANCHORS[:, 2:] + ANCHORS[:, :2]
    half = np.exp(scaled[:, 2:]) * ANCHORS[:, 2:] / 2
    return np.concatenate([middle - half, middle + half], axis=1)[:, [1, 0, 3, 2]]


def test_in_plain_onnx_runtime() -> None:
    for swapped in (False, True):
        run = session(export_onnx(detector(swapped=swapped), decode=True, decode_inputs=True))
        picture = {run.get_inputs()[0].name: np.zeros((1, 64, 64, 3), np.float32)}
        found = outputs_of(run, picture)
        # The second box overlaps the first; the better one of each place stays.
        assert found["classes"].tolist() == [2, 0, 0]
        np.testing.assert_allclose(found["boxes"], boxes()[[2, 0, 3]], atol=1e-6)
        np.testing.assert_allclose(found["scores"], 1 / (1 + np.exp([-3.0, -2, 3])), rtol=1e-5)
        all_of = {"min_suppression_threshold": np.array(0.99, np.float32)}
        assert outputs_of(run, {**picture, **all_of})["classes"].tolist() == [2, 0, 1, 0]
        some = {"allowed": np.array([False, True, False]), "min_score": np.array(0.6, np.float32)}
        found = outputs_of(run, {**picture, **some})
        assert found["classes"].tolist() == [1]
        np.testing.assert_allclose(found["boxes"], boxes()[[1]], atol=1e-6)
        assert not len(outputs_of(run, {**picture, "allowed": np.zeros(3, np.bool_)})["boxes"])


def test_in_the_task() -> None:
    options = vision.ObjectDetectorOptions(base(detector()), score_threshold=0.1)
    found = vision.ObjectDetector.create_from_options(options).detect(IMAGE).detections
    assert [each.categories[0].category_name for each in found] == ["cow", "cat"]
    left, top, right, bottom = boxes()[2] * [160, 120, 160, 120]
    box = found[0].bounding_box
    assert (box.origin_x, box.origin_y) == (int(left), int(top))
    assert (box.width, box.height) == (int(right - left), int(bottom - top))
    options.category_denylist = ["cat"]
    found = vision.ObjectDetector.create_from_options(options).detect(IMAGE).detections
    # Boxes have the surest class of those that are left.
    assert [each.categories[0].category_name for each in found] == ["cow", "dog"]
    options.max_results = 1
    found = vision.ObjectDetector.create_from_options(options).detect(IMAGE).detections
    assert [each.categories[0].category_name for each in found] == ["cow"]


def test_plain_sizes_and_scores() -> None:
    content = detector(apply_exponential_on_box_size=False, sigmoid_score=False)
    run = session(export_onnx(content, decode=True, decode_inputs=True))
    found = outputs_of(run, {run.get_inputs()[0].name: np.zeros((1, 64, 64, 3), np.float32)})
    # The third box is less than nothing high, and the fourth scores below 0.
    assert found["scores"].tolist() == [2.0, 1.5]
    assert found["boxes"][0, 3] - found["boxes"][0, 1] == pytest.approx(0.1 / 5 * 0.2, rel=1e-4)


@pytest.mark.parametrize("told", [b"", b"....V002" + bytes(20), b"\xff\xff\0\0V001" + bytes(20)])
def test_damaged_metadata(told: bytes) -> None:
    with pytest.raises(MalformedModel):
        export_onnx(detector(told=told), decode=True)


@pytest.mark.parametrize("changed", [{"num_classes": 4}, {"num_coords": 6}, {"x_scale": 0.0}])
def test_metadata_of_another_network(changed: dict[str, Any]) -> None:
    options = vision.ObjectDetectorOptions(base(detector(**changed)))
    with pytest.raises(ValueError, match="a network for object detector"):
        vision.ObjectDetector.create_from_options(options)


def test_mutated_metadata() -> None:
    model, rng, known = read_model(detector()), random.Random(22), 0
    (entry,) = (each for each in model.metadata if each.name == METADATA)
    content = model.buffers[entry.buffer].data
    assert content is not None
    for _ in range(300):
        changed = content.copy()
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 4, 0x7F, 0x80, 0xFF])
        buffers = list(model.buffers)
        buffers[entry.buffer] = Buffer(changed)
        try:
            kind = known_kind(replace(model, buffers=tuple(buffers)), None)
        except ModelError:
            continue
        known += kind is not None
    assert 0 < known < 300
