"""Errors of Python inside an operator: the message speaks of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter, KernelError
from tflite_ort.schema import Op, ReducerOptions, TensorType
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file

NOTHING: Any = None
RAISED: dict[str, Callable[[], object]] = {
    "a shape": lambda: np.zeros(3).reshape(-1, 0),
    "a number": lambda: np.int64(1 << 80),
    "an input": lambda: (1,)[len("abc")],
    "a key": lambda: {}[2],
    "by zero": lambda: 1 // 0,
    "a scale": lambda: float(NOTHING),
    "a length": lambda: len(NOTHING),
    "an absence": lambda: NOTHING + 1,
    "two shapes": lambda: np.zeros(2) + np.zeros(3),
}


@pytest.mark.parametrize("raised", RAISED.values(), ids=RAISED)
def test_no_text_of_python(raised: Callable[[], object]) -> None:
    with pytest.raises(MALFORMED_OPERATOR) as caught:
        raised()
    said = said_of_file(caught.value)
    assert said
    assert str(caught.value) not in said


def test_our_own_text_stays() -> None:
    assert said_of_file(KernelError("index out of bounds")) == "index out of bounds"


def test_a_product_of_codes_without_a_scale() -> None:
    axes = T.constant(np.int32([0]))
    codes = T((3,), TensorType.INT8, scale=0.5)
    model = one_op_model(
        Op.REDUCE_PROD, [codes, axes], [T((1,), TensorType.INT8)], ReducerOptions(keep_dims=True)
    )
    interpreter = Interpreter(model_content=model)
    with pytest.raises(KernelError, match="failed to invoke") as caught:
        interpreter.allocate_tensors()
        interpreter.invoke()
    assert "NoneType" not in str(caught.value)
