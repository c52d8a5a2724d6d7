"""Sessions of small tensors: memory is not used again within a run."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import onnxruntime
import pytest

from benchmarks.invoke_overhead import one_add
from tflite_ort import Interpreter
from tflite_ort.providers.settings import Settings
from tflite_ort.providers.trials import exact_weight_type


@pytest.mark.parametrize(("elements", "reused"), [(1 << 12, False), (1 << 20, True)])
def test_memory_is_used_again_where_there_is_much(elements: int, reused: bool) -> None:
    exact_weight_type()  # tried once a process, in a session of its own
    made: list[Any] = []
    plain = onnxruntime.SessionOptions

    def noted() -> onnxruntime.SessionOptions:
        made.append(plain())
        return made[-1]

    with (
        patch.object(onnxruntime, "SessionOptions", noted),
        patch.object(Settings, "shared_options", Settings.options),
    ):
        Interpreter(model_content=one_add((1, elements)), cache=False).allocate_tensors()
    assert [options.enable_mem_reuse for options in made] == [reused]
