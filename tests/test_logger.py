"""What the library warns of is logged too, where a program listens."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import BatchWarning, Predictor
from tflite_ort.schema import Op


def mixing() -> bytes:
    """A model that takes any size: no batch of it is made."""
    tensor = T((1, 1), shape_signature=(1, -1))
    return one_op_model(Op.ABS, [tensor], [tensor])


def test_a_warning_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with (
        pytest.warns(BatchWarning, match="one at a time"),
        caplog.at_level("WARNING", "tflite_ort"),
    ):
        Predictor(mixing())(np.ones((2, 3), np.float32))
    (record,) = caplog.records
    assert record.name == "tflite_ort"
    assert record.getMessage().startswith("BatchWarning: rows run one at a time")


def test_nothing_is_printed_twice() -> None:
    code = (
        "import numpy as np; from tests.test_logger import mixing; import tflite_ort\n"
        "tflite_ort.Predictor(mixing())(np.ones((2, 3), np.float32))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.count("rows run one at a time") == 1
