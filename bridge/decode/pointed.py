"""Networks for masks with a fourth channel: what of a picture is pointed at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection, normalised
from tflite_ort.decode.networks import Build, Kind
from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.picture_input import PictureInput

_SIZE = "size"


def pointed(name: str, how: PictureInput, build: Build) -> Kind:
    """The kind of a network that begins at a picture of its own size, uint8 [height, width, 4], and
    at width and height of the picture that the masks are for.

    Args:
        build: writes the nodes after it.
    """

    def begin(nodes: Nodes, names: list[str]) -> None:
        image = nodes.input("image", np.uint8, [how.height, how.width, 4])
        nodes.input(_SIZE, np.float32, [2])
        planes = nodes.op("Transpose", nodes.cast(image, np.float32), perm=[2, 0, 1])
        values = nodes.reshape(planes, 1, 4, how.height, how.width)
        nodes.named(names[0], normalised(nodes, values, how))

    def masks(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        return build(nodes, raw, replace(to, size=_SIZE))

    return Kind(name, masks, begin=begin, facts={"size": [how.height, how.width]})
