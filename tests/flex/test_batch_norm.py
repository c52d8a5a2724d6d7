"""Batch normalization by given moments, whose other results TensorFlow leaves unwritten, and in the
layouts that TensorFlow refuses on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.cases import Case
from tests.flex.cases_layers import BETA, GAMMA, IMAGE, MEAN, NORMS, VARIANCE
from tests.flex.test_cases import exported, invoked

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
