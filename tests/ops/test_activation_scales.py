"""TANH and LOGISTIC of 16-bit codes whose scale is near a power of two: LiteRT takes it for that
power, of LOGISTIC for 1/4096 alone. Its reference kernels give other codes there than the default
ones; numpy has those."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as Litert
from ai_edge_litert.interpreter import OpResolverType

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter
from tflite_ort.schema import Op, TensorType

CODES = np.arange(-32768, 32768).astype(np.int16)


@pytest.mark.parametrize("op", [Op.TANH, Op.LOGISTIC])
@pytest.mark.parametrize("power", [-10, -11, -12, -13])
@pytest.mark.parametrize("factor", [0.9994, 1.0, 1.0003, 1.0007])
def test_every_code(op: Op, power: int, factor: float) -> None:
    source = T((65536,), TensorType.INT16, scale=2.0**power * factor)
    content = one_op_model(op, [source], [T((65536,), TensorType.INT16, scale=2.0**-15)])
    reference = OpResolverType.BUILTIN_REF
    found = []
    for each in (
        Interpreter(model_content=content),
        Litert(model_content=content),
        Interpreter(model_content=content, providers=[]),
        Litert(model_content=content, experimental_op_resolver_type=reference),
    ):
        each.allocate_tensors()
        each.set_tensor(each.get_input_details()[0]["index"], CODES)
        each.invoke()
        found.append(each.get_tensor(each.get_output_details()[0]["index"]))
    np.testing.assert_array_equal(*found[:2])
    np.testing.assert_array_equal(*found[2:])
