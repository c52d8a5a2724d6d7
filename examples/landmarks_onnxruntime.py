"""Landmarks of an exported bundle with onnxruntime, numpy and Pillow alone.

tflite-ort export hand_landmarker.task FOLDER --image-input
python examples/landmarks_onnxruntime.py FOLDER PICTURE

Prints JSON: by hand, face or body its points [x, y, z] in 0 to 1 of the picture.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from PIL import Image

Array = npt.NDArray[Any]


def region_of(region: dict[str, Any], box: Array, points: Array, size: Array) -> Array:
    """Where a landmark network looks: middle, width, height and rotation.

    Args:
        region: as ``bundle.json`` has it.
        box: left, top, right and bottom of what the detector found, in 0..1.
        points: its keypoints [K, 2].
        size: width and height of the picture.
    """
    start, end = points[region["start"]], points[region["end"]]
    across, down = (end - start) * size
    turn = region["upright"] - math.atan2(-down, across)
    turn -= 2 * math.pi * math.floor((turn + math.pi) / (2 * math.pi))
    if region["circle"]:
        middle, width = start * size, 2 * math.hypot(across, down)
        height = width
    else:
        middle = (box[:2] + box[2:]) / 2 * size
        width, height = (box[2:] - box[:2]) * size
    shift = height * region["shift_y"]
    moved = np.array([-shift * math.sin(turn), shift * math.cos(turn)])
    sides = max(width, height) * region["scale"] / size
    return np.array([*(middle + moved) / size, *sides, turn], np.float32)


def landmarks(folder: Path, picture: Array) -> list[Array]:
    """The points of all that is found in a picture, uint8 [height, width, 3]."""
    index = json.loads((folder / "bundle.json").read_text("utf-8"))
    (region,) = index["regions"]
    files = {model["name"]: model["file"] for model in index["models"]}
    detector, network = (
        onnxruntime.InferenceSession(folder / files[region[role]])
        for role in ("detector", "landmarks")
    )
    boxes, _, keypoints = detector.run(["boxes", "scores", "keypoints"], {"image": picture})
    size, found = np.array(picture.shape[1::-1]), []
    for box, points in zip(boxes, keypoints, strict=True):
        roi = region_of(region, box, points, size)
        places, score = network.run(["landmarks", "score"], {"image": picture, "roi": roi})
        if score > 0.5:
            found.append(places)
    return found


def main() -> None:
    folder, picture = map(Path, sys.argv[1:3])
    pixels = np.asarray(Image.open(picture).convert("RGB"))
    print(json.dumps([points.tolist() for points in landmarks(folder, pixels)]))


if __name__ == "__main__":
    main()
