"""A plug-in provider for real: the package or library that TFLITE_ORT_PLUGIN names."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.oracle import litert
from tests.test_partition import SHAPE, chain
from tflite_ort import Interpreter, load_delegate
from tflite_ort.session import available_providers

PLUGIN = os.environ.get("TFLITE_ORT_PLUGIN", "")


@pytest.mark.skipif(not PLUGIN, reason="TFLITE_ORT_PLUGIN names no plug-in with a device here")
def test_plugin_runs_a_graph() -> None:
    delegate = load_delegate(PLUGIN)
    assert delegate.name not in available_providers()
    interpreter = Interpreter(model_content=chain(), experimental_delegates=[delegate], strict=True)
    interpreter.allocate_tensors()
    assert {row.provider for row in interpreter.delegation()} == {delegate.name}
    seed = 0
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    feeds = [rng.uniform(-1, 1, SHAPE).astype(np.float32) for _ in range(2)]
    for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, litert(chain(), feeds)[0], rtol=1e-3, atol=1e-5)
