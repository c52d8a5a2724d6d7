"""Draws boxes around the objects in a picture.

python examples/detect_objects.py ssd.tflite picture.jpg found.png

The model is an SSD, an EfficientDet, a YOLO, or a detector of MediaPipe's. The command
``tflite-ort run ssd.tflite picture.jpg --output found.png`` does the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tflite_ort import quick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("output", type=Path, help="the picture with boxes")
    parser.add_argument("--threshold", type=float, default=0.5, help="the least score")
    arguments = parser.parse_args()
    found = quick.run(arguments.model, arguments.picture, min_score=arguments.threshold)
    found.draw(arguments.output)
    for box in found.answer.boxes if found.answer is not None else ():
        sides = " ".join(f"{side:.3f}" for side in box.sides)
        print(f"{box.what.score:8.4f}  {box.what.name}  {sides}")


if __name__ == "__main__":
    main()
