"""Batch normalization by given moments, whose other results TensorFlow leaves unwritten, and in the
layouts that TensorFlow refuses on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.flex.cases import Case
from tests.flex.cases_layers import BETA, GAMMA, IMAGE, MEAN, NORMS, VARIANCE
from tests.flex.test_cases import exported, invoked
from tflite_ort import export_onnx

Array = npt.NDArray[Any]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", NORMS)
def test_given_moments(name: str, first: bool, tmp_path: Path) -> None:
    """The first result is the input normalized; the others are the moments."""
    x = np.moveaxis(IMAGE, -1, 1).copy() if first else IMAGE
    attributes = {"is_training": False, "epsilon": 0.01, "data_format": "NCHW" if first else "NHWC"}
    case = Case(name, [x, GAMMA, BETA, MEAN, VARIANCE], attributes)
    wide = (IMAGE.astype(np.float64) - MEAN) / np.sqrt(VARIANCE + 0.01) * GAMMA + BETA
    want = np.moveaxis(wide, -1, 1) if first else wide
    for got in (invoked([case], []), invoked([case], None), exported([case], tmp_path)):
        np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-6)
        for place, moment in enumerate((MEAN, VARIANCE, MEAN, VARIANCE), start=1):
            np.testing.assert_array_equal(got[place], moment)


def test_open_batch(tmp_path: Path) -> None:
    """The moments of an open number of images."""
    none = np.zeros(0, np.float32)
    case = Case("FusedBatchNormV3", [IMAGE, GAMMA, BETA, none, none], {})
    path = tmp_path / "model.onnx"
    export_onnx(case.model(), path, input_shapes={"in0": (-1, *IMAGE.shape[1:])})
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = dict(zip([each.name for each in session.get_inputs()], case.feeds(), strict=True))
    for got, want in zip(session.run(None, feeds), invoked([case], []), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
