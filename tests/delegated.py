"""Small models that run on chosen delegates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.one_op import assert_close, ours
from tests.oracle import litert
from tests.test_partition import SHAPE
from tflite_ort import Interpreter


def allocated(model: bytes, **arguments: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, **arguments)
    interpreter.allocate_tensors()
    return interpreter


def assert_as_litert(model: bytes, delegates: list[Any], rtol: float = 1e-5) -> None:
    """Assert that a model of two inputs of SHAPE gives LiteRT's result.

    Args:
        rtol: the tolerance, relative to the largest magnitude.
    """
    seed = 0
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    feeds = [rng.uniform(-1, 1, SHAPE).astype(np.float32) for _ in range(2)]
    got, _ = ours(model, feeds, providers=delegates)
    assert_close(got[0], litert(model, feeds)[0], quanta=0, rtol=rtol, what="delegates")
