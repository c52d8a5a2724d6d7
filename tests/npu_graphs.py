"""Graphs as an NPU gets them, run by ONNX Runtime's own kernels."""

from __future__ import annotations

import pytest

from tflite_ort.base.records import replace
from tflite_ort.opmap import Target
from tflite_ort.providers import conditions, traits
from tflite_ort.providers.provider_traits import WrongResult
from tflite_ort.providers.traits import CPU, TRAITS

WHY = "it rounds floats to float16"


def for_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU's provider have the graphs of Qualcomm's NPU, which has no floats."""
    row = replace(
        TRAITS[CPU],
        graphs=lambda: Target("int8", paired_codes=True, fallback=True),
        exact_weights=False,
        wrong=(WrongResult(WHY, where=conditions.computes_floats, full=True),),
    )
    monkeypatch.setitem(traits.TRAITS, CPU, row)  # type: ignore[arg-type]
