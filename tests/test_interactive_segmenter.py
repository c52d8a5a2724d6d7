"""`InteractiveSegmenter`, networks for hair, and what the metadata say of activations.

Pictures of another size and circles are those of OpenCV 4.11, which MediaPipe uses.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.prediction.models import described
from tests.test_heads import PICTURE
from tests.test_tasks import base
from tflite_ort import MalformedModel, ModelError, tasks
from tflite_ort.schema import Conv2DOptions, Op, Padding
from tflite_ort.schema.file.detector_metadata import (
    SEGMENTER,
    ImageSegmenterOptions,
    read_segmenter,
    write_custom,
)
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    CustomMetadata,
    SubGraphMetadata,
    TensorMetadata,
)
from tflite_ort.tasks import containers, vision
from tflite_ort.tasks.interactive_segmenter import disc
from tflite_ort.tasks.resizing import resized

Array = npt.NDArray[Any]
Region = vision.InteractiveSegmenterRegionOfInterest

SIZE = 16
_SEED = 5


def segmenter(weights: Array, labels: str = "", last: Op | None = Op.LOGISTIC) -> bytes:
    """Masks that are sums of the channels of a pixel.

    Args:
        weights: [classes, channels].
    """
    classes, channels = weights.shape
    tensors = {
        "x": T((1, SIZE, SIZE, channels)),
        "w": T.constant(weights.reshape(classes, 1, 1, channels).astype(np.float32)),
        "b": T.constant(np.zeros(classes, np.float32)),
        "z": T((1, SIZE, SIZE, classes)),
    }
    conv = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    nodes = [Node(Op.CONV_2D, ["x", "w", "b"], ["z"], conv)]
    if last is not None:
        tensors["y"] = T((1, SIZE, SIZE, classes))
        nodes.append(Node(last, ["z"], ["y"]))
    named = (AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS),)
    made = TensorMetadata(name="masks", associated_files=named if labels else ())
    files = {"labels.txt": labels} if labels else {}
    model = graph_model(tensors, nodes, ["y" if last is not None else "z"])
    return described(model, PICTURE, [made], files)


def pictures(shape: tuple[int, int]) -> Array:
    return np.random.default_rng(_SEED).integers(0, 256, (*shape, 3), np.uint8)


def at(x: float, y: float) -> Region:
    return Region(Region.Format.KEYPOINT, containers.NormalizedKeypoint(x, y))


def pointed(image: Array, x: float, y: float) -> Array:
    """The mask of a network that says where its fourth channel is."""
    content = segmenter(np.array([[0, 0, 0, 8.0]]), last=None)
    options = vision.InteractiveSegmenterOptions(base(content))
    with vision.InteractiveSegmenter.create_from_options(options) as task:
        (mask,) = task.segment(image, at(x, y)).confidence_masks or ()
    found: Array = mask.numpy_view()
    return found


def test_what_is_pointed_at_is_the_fourth_channel() -> None:
    mask = pointed(np.zeros((SIZE, SIZE, 3), np.uint8), 0.25, 0.5)
    cross = np.zeros((SIZE, SIZE), bool)
    cross[8, 3:6] = cross[7:10, 4] = True
    assert ((mask == 8) == cross).all() and not mask[~cross].any()
    # At the lower right corner the point is outside, but for its edge.
    mask = pointed(np.zeros((SIZE, SIZE, 3), np.uint8), 1.0, 15 / 16)
    assert np.argwhere(mask).tolist() == [[15, 15]]


def test_masks_have_the_size_of_the_picture() -> None:
    image = tasks.Image(tasks.ImageFormat.SRGB, pictures((40, 30)))
    content = segmenter(np.eye(3, 4))
    options = vision.InteractiveSegmenterOptions(base(content), output_category_mask=True)
    with vision.InteractiveSegmenter.create_from_options(options) as task:
        found = task.segment(image, at(0.5, 0.5))
        with pytest.raises(ValueError, match="Unrecognized format"):
            task.segment(image, Region(Region.Format.KEYPOINT))
        with pytest.raises(ValueError, match="format not specified"):
            task.segment(image, replace(at(0, 0), format=Region.Format.UNSPECIFIED))
        for x in (-0.1, 1.1, float("nan")):
            with pytest.raises(ValueError, match=r"in 0\.\.1"):
                task.segment(image, at(x, 0.5))
        with pytest.raises(ValueError, match="region-of-interest"):
            part = tasks.ImageProcessingOptions(tasks.RectF(0, 0, 0.5, 0.5))
            task.segment(image, at(0.5, 0.5), part)
    with pytest.raises(ValueError, match="not running"):
        task.segment(image, at(0.5, 0.5))
    assert found.confidence_masks is not None and found.category_mask is not None
    assert [each.numpy_view().shape for each in found.confidence_masks] == [(40, 30)] * 3
    assert found.category_mask.numpy_view().shape == (40, 30)
    with pytest.raises(ValueError, match="At least one"):
        options = vision.InteractiveSegmenterOptions(base(content), output_confidence_masks=False)
        vision.InteractiveSegmenter.create_from_options(options)
    with pytest.raises(ModelError, match="interactive segmentation"):
        options = vision.InteractiveSegmenterOptions(base(segmenter(np.eye(3))))
        vision.InteractiveSegmenter.create_from_options(options)


def test_hair() -> None:
    """Nothing is pointed at, and the network has a fourth channel all the same."""
    content = segmenter(np.array([[1.0, 0, 0, 9], [0, 1, 0, 9]]), "background\nhair", last=None)
    image = pictures((SIZE, SIZE))
    with vision.ImageSegmenter.create_from_options(
        vision.ImageSegmenterOptions(base(content))
    ) as t:
        masks = t.segment(image).confidence_masks or ()
    for mask, channel in zip(masks, (0, 1), strict=True):
        np.testing.assert_allclose(mask.numpy_view(), image[..., channel] / 255, atol=1e-6)
    other = segmenter(np.array([[1.0, 0, 0, 9], [0, 1, 0, 9]]), "background\nskin", last=None)
    with pytest.raises(ModelError, match="segmentation"):
        vision.ImageSegmenter.create_from_options(vision.ImageSegmenterOptions(base(other)))


# By sizes of a picture and of what is made of it, the checksum of OpenCV's pixels.
RESIZED = {
    ((130, 90), (16, 16)): 1729202223,
    ((12, 16), (16, 16)): 3324947250,
    ((64, 64), (32, 32)): 1587385386,
    ((96, 64), (32, 32)): 1093247766,
    ((33, 34), (32, 32)): 2591983381,
    ((200, 30), (32, 32)): 2848587155,
    ((5, 5), (32, 32)): 3988171076,
    ((1, 1), (8, 8)): 3767562382,
    ((77, 53), (25, 26)): 3676802983,
}


@pytest.mark.parametrize(("size", "wanted"), RESIZED)
def test_another_size(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    image = np.random.default_rng(_SEED).integers(0, 256, (*size, 4), np.uint8)
    assert zlib.crc32(resized(image, *wanted).tobytes()) == RESIZED[size, wanted]


def test_the_same_size() -> None:
    image = pictures((7, 9))
    assert resized(image, 7, 9) is image


# By radius, how wide the rows of OpenCV's circles are, from the middle down.
ROWS = {
    1: (3, 1),
    2: (5, 3, 1),
    3: (7, 5, 5, 1),
    5: (11, 9, 9, 9, 7, 1),
    8: (17, 15, 15, 15, 13, 13, 11, 7, 1),
    13: (27, 25, 25, 25, 25, 25, 23, 21, 21, 19, 17, 13, 11, 1),
}


@pytest.mark.parametrize("radius", ROWS)
def test_circles(radius: int) -> None:
    found = disc((40, 40), (20, 20), radius)
    assert tuple((found[20 : 21 + radius] > 0).sum(axis=1).tolist()) == ROWS[radius]
    assert (found == found[::-1][[39, *range(39)]]).all()
    assert not disc((40, 40), (100, -20), radius).any()


@pytest.mark.parametrize(("activation", "wanted"), [(0, ""), (1, "Sigmoid"), (2, "Softmax")])
def test_activations(activation: int, wanted: str) -> None:
    content = write_custom(ImageSegmenterOptions(activation, "1.0.0"))
    graph = SubGraphMetadata(
        custom_metadata=(CustomMetadata(SEGMENTER, np.frombuffer(content, np.uint8)),)
    )
    said = read_segmenter(graph)
    assert said is not None and said.activation_name == wanted
    with pytest.raises(MalformedModel, match="no activation 3"):
        _ = replace(said, activation=3).activation_name
    assert read_segmenter(SubGraphMetadata()) is None
