"""How far one reads to see what an operator becomes."""

from __future__ import annotations

import pytest

from benchmarks.walk import TYPES, one_convolution, operators, walk
from tflite_ort.schema import TensorType


@pytest.mark.parametrize(("type_", "returns"), [(TensorType.FLOAT32, 6), (TensorType.INT8, 12)])
def test_a_reader_of_conv_2d_enters_few_files(type_: TensorType, returns: int) -> None:
    (op,) = operators(one_convolution(type_))
    reader = walk(op, TYPES)
    assert "tflite_ort.opmap.convolution" in reader.files
    assert len(reader.files) <= 6, reader.files
    assert reader.returns <= returns
