"""The number of samples of a batch, as callers give it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter, batched_model
from tflite_ort.schema import AddOptions, Op, read_model

X = T((1, 3))
ADD = one_op_model(Op.ADD, [X, X], [X], AddOptions())


@pytest.mark.parametrize("count", [4, np.int64(4), np.uint8(4)])
def test_a_number_of_samples_may_be_one_of_numpy(count: Any) -> None:
    details = Interpreter(model_content=ADD, batch=count).get_input_details()[0]
    assert details["shape_signature"].tolist() == [4, 3]


def test_an_interpreter_refuses_a_name_for_any_number_of_samples() -> None:
    with pytest.raises(ValueError, match="batch must be a number of samples, got 'N'"):
        Interpreter(model_content=ADD, batch="N")  # type: ignore[arg-type]


def test_a_part_of_a_sample_is_no_number_of_samples() -> None:
    with pytest.raises(TypeError, match="float"):
        batched_model(read_model(ADD), 2.5)  # type: ignore[arg-type]
