"""What a change between two known sizes of an input takes, in our interpreter and in LiteRT's.

    python benchmarks/known_sizes.py MODEL [--axis N] [--sizes 1,2] [--changes 12]

Prints milliseconds of ``resize_tensor_input`` and ``allocate_tensors``, each change in its order.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import Interpreter


def changes(interpreter: Any, axis: int, sizes: list[int], count: int) -> list[float]:
    """Milliseconds of each change; the model is run after it."""
    details, found = interpreter.get_input_details()[0], list[float]()
    for number in range(count):
        shape = [int(size) for size in details["shape"]]
        shape[axis] = sizes[number % len(sizes)]
        started = time.perf_counter()
        interpreter.resize_tensor_input(details["index"], shape)
        interpreter.allocate_tensors()
        found.append(1000 * (time.perf_counter() - started))
        interpreter.set_tensor(details["index"], np.ones(shape, details["dtype"]))
        interpreter.invoke()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--axis", type=int, default=0)
    parser.add_argument("--sizes", default="1,2")
    parser.add_argument("--changes", type=int, default=12)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    for name, kind in (("ours", Interpreter), ("LiteRT", LiteRT)):
        found = changes(kind(given.model, num_threads=1), given.axis, sizes, given.changes)
        print(f"{name}: {', '.join(f'{each:.2f}' for each in found)}")


if __name__ == "__main__":
    main()
