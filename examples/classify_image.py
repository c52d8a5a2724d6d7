"""Says what is in a picture.

python examples/classify_image.py mobilenet.tflite picture.jpg [--labels labels.txt]

Labels and the range of pixels come from the model's metadata where it has them. The command
``tflite-ort run mobilenet.tflite picture.jpg`` does the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tflite_ort import quick


def classify(model: Path, picture: Path, labels: Path | None = None) -> list[tuple[str, float]]:
    """(label, score) of every class, the best first."""
    found = quick.run(model, picture, labels=labels, decode="classes", top=1 << 20)
    classes = found.answer.classes if found.answer is not None else ()
    return [(each.label or str(each.number), each.score) for each in classes]


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
