"""Says what is in a picture.

python examples/classify_image.py mobilenet.tflite picture.jpg [--labels labels.txt]

Labels, mean and standard deviation come from the model's metadata where it has them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from pictures import as_input, real
from tflite_ort import Interpreter
from tflite_ort.metadata import TensorDescription


def classify(model: Path, picture: Path, labels: Path | None = None) -> list[tuple[str, float]]:
    """(label, score) of every class, the best first."""
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    described = next(iter(interpreter.metadata.inputs), TensorDescription())
    with Image.open(picture) as image:
        interpreter.set_tensor(given["index"], as_input(image, given, described))
    interpreter.invoke()
    scores = real(interpreter.get_tensor(made["index"]), made).reshape(-1)
    names = names_of(interpreter, labels) or [str(index) for index in range(scores.size)]
    return [(names[index], float(scores[index])) for index in np.argsort(-scores)]


def names_of(interpreter: Interpreter, labels: Path | None) -> list[str]:
    """From a file with one label a line, else from the model's metadata."""
    if labels is not None:
        return labels.read_text(encoding="utf-8").splitlines()
    return [name for output in interpreter.metadata.outputs for name in output.labels]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--labels", type=Path, help="one a line")
    parser.add_argument("--top", type=int, default=5, help="how many to print")
    arguments = parser.parse_args()
    for name, score in classify(arguments.model, arguments.picture, arguments.labels)[
        : arguments.top
    ]:
        print(f"{score:8.4f}  {name}")


if __name__ == "__main__":
    main()
