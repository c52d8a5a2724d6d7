"""A delegate that accepts less than the library: the rest runs elsewhere, with the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models import model_path
from tests.one_op import T, assert_close, one_op_model, ours
from tests.oracle import litert
from tflite_ort import ExecutionProviderDelegate, Interpreter
from tflite_ort.schema import AddOptions, Op, read_model

CPU = "CPUExecutionProvider"
NETWORKS = [
    "mlperf-tiny__kws_ref_model.tflite",
    "mlperf-tiny__pretrainedResnet_quant.tflite",
    "tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite",
]


def first_versions_only() -> ExecutionProviderDelegate:
    return ExecutionProviderDelegate(CPU, max_versions=dict.fromkeys(Op, 1))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_delegate_that_knows_version_1_alone_leaves_the_rest_to_numpy(name: str) -> None:
    content = Path(model_path(name)).read_bytes()
    interpreter = Interpreter(model_content=content, providers=[first_versions_only()])
    interpreter.allocate_tensors()
    versions = {code.builtin_code.name: code.version for code in read_model(content).operator_codes}
    for row in interpreter.delegation():
        assert row.runs_on == ("ort" if row.version == 1 else "numpy")
        limit = f"{CPU} takes {row.operator} up to version 1, this is {versions[row.operator]}"
        assert row.reason == ("" if row.version == 1 else limit)
    (detail,) = interpreter.get_input_details()
    rng = np.random.default_rng(0)
    image = rng.integers(-128, 128, detail["shape"]).astype(detail["dtype"])
    got, runners = ours(content, [image], providers=[first_versions_only()])
    assert runners <= {"ort", "numpy"}
    (want,) = litert(content, [image], "reference")
    assert_close(got[0], want, quanta=1, rtol=1e-4, what=name)


def test_what_one_delegate_refuses_goes_to_the_next() -> None:
    model = one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions(), version=2)
    interpreter = Interpreter(model_content=model, providers=[first_versions_only(), CPU])
    interpreter.allocate_tensors()
    (row,) = interpreter.delegation()
    assert (row.runs_on, row.delegate) == ("ort", CPU)
    assert row.reason == f"{CPU} takes ADD up to version 1, this is 2"
