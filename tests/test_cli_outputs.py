"""Names of values: only numbers that are places of labels have them."""

from __future__ import annotations

import numpy as np
import pytest

from tflite_ort.command import outputs
from tflite_ort.command.outputs import Output
from tflite_ort.metadata import TensorDescription

LABELS = ("none", "cat", "dog")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1.0, 2.0], ["cat", "dog"]),
        ([1.0, np.nan], []),
        ([1.0, np.inf], []),
        ([1.0, 1.5], []),
        ([-1.0, 1.0], []),
        ([0.0, 3.0], []),
    ],
)
def test_names_of_values(
    values: list[float], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "names_values", lambda description: True)
    details = {"quantization": (0.0, 0)}
    output = Output("y", np.float32(values), details, TensorDescription(labels=LABELS))
    assert list(output.value_names) == names


def test_names_of_codes_are_those_of_their_real_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a `Predictor` has them."""
    monkeypatch.setattr(outputs, "names_values", lambda description: True)
    details = {"quantization": (float(np.float32(0.1)), -2)}
    output = Output("y", np.int8([18, 8, -2]), details, TensorDescription(labels=LABELS))
    assert list(output.value_names) == ["dog", "cat", "none"]
