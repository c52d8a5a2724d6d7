"""Draws boxes around the objects in a picture.

python examples/detect_objects.py ssd.tflite picture.jpg found.png

The model has the four outputs of TFLite_Detection_PostProcess: boxes, classes, scores, count.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from pictures import as_input
from tflite_ort import Interpreter
from tflite_ort.metadata import TensorDescription


@dataclass(frozen=True)
class Found:
    """An object; `box` is left, top, right and bottom as parts of the picture's size."""

    name: str
    score: float
    box: tuple[float, float, float, float]


def detect(model: Path, picture: Image.Image, threshold: float = 0.5) -> list[Found]:
    """The objects with at least this score, the best first."""
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    metadata = interpreter.metadata
    described = next(iter(metadata.inputs), TensorDescription())
    interpreter.set_tensor(given["index"], as_input(picture, given, described))
    interpreter.invoke()
    outputs = [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]
    boxes, classes, scores, count = outputs
    labels = [name for output in metadata.outputs for name in output.labels]
    found = []
    for index in range(int(count[0])):
        top, left, bottom, right = map(float, boxes[0, index])
        number, score = int(classes[0, index]), float(scores[0, index])
        name = labels[number] if number < len(labels) else str(number)
        found.append(Found(name, score, (left, top, right, bottom)))
    return [each for each in found if each.score >= threshold]


def draw(picture: Image.Image, found: list[Found]) -> Image.Image:
    """A copy of `picture` with a box and a name around each object."""
    drawn = picture.convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for each in found:
        left, top, right, bottom = each.box
        corners = (
            left * drawn.width,
            top * drawn.height,
            right * drawn.width,
            bottom * drawn.height,
        )
        pen.rectangle(corners, outline="red", width=3)
        pen.text((corners[0] + 5, corners[1] + 5), f"{each.name} {each.score:.0%}", fill="red")
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("output", type=Path, help="the picture with boxes")
    parser.add_argument("--threshold", type=float, default=0.5, help="the least score")
    arguments = parser.parse_args()
    with Image.open(arguments.picture) as picture:
        found = detect(arguments.model, picture, arguments.threshold)
        draw(picture, found).save(arguments.output)
    for each in found:
        print(f"{each.score:8.4f}  {each.name}  {' '.join(f'{side:.3f}' for side in each.box)}")


if __name__ == "__main__":
    main()
