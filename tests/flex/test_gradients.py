"""Gradients that TensorFlow's interpreter does not have: they are the adjoints of operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.cases import Case
from tests.flex.test_cases import invoked

Array = npt.NDArray[Any]
# Strides, dilations, the filter of 6 channels, and how many outputs there are.
FORMS = {
    "dilations": ((1, 1), (2, 3), (3, 2, 6, 4), 4),
    "groups": ((2, 1), (1, 1), (3, 3, 2, 9), 9),
    "dilated groups": ((1, 1), (2, 1), (2, 3, 3, 4), 4),
}


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_convolutions(providers: list[str] | None, form: str, padding: str) -> None:
    """The product of a result and a gradient is that of the images, or of the filter, with what the
    gradient becomes."""
    strides, dilations, shape, outputs = FORMS[form]
    attributes = {
        "strides": [1, *strides, 1],
        "dilations": [1, *dilations, 1],
        "padding": padding,
    }
    draw = np.random.default_rng(5)
    x, w = (draw.normal(size=size).astype(np.float32) for size in ((2, 8, 7, 6), shape))
    (y,) = invoked([Case("Conv2D", [x, w], attributes)], providers)
    assert y.shape[-1] == outputs
    given = draw.normal(size=y.shape).astype(np.float32)
    sizes = [np.int32(array.shape) for array in (x, w)]
    cases = [
        Case("Conv2DBackpropInput", [sizes[0], w, given], attributes, (0,)),
        Case("Conv2DBackpropFilter", [x, sizes[1], given], attributes, (1,)),
    ]
    want = float((y.astype(np.float64) * given).sum())
    for array, case in zip((x, w), cases, strict=True):
        (found,) = invoked([case], providers)
        assert found.shape == array.shape
        assert float((array.astype(np.float64) * found).sum()) == pytest.approx(want, rel=1e-5)
