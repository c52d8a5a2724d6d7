"""Random streams from invoke to invoke. What is expected is what TensorFlow 2.18.1 answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.flex.cases import Case
from tflite_ort import Interpreter, export_onnx

Array = npt.NDArray[Any]

SHAPE = np.array([5], np.int32)
BOUNDS = [np.array(-5, np.int32), np.array(9, np.int32)]
# The third answer of each.
THIRD: list[tuple[str, list[Array], dict[str, Any], list[float]]] = [
    (
        "RandomShuffle",
        [np.arange(13)],
        {"seed": 1, "seed2": 2},
        [0, 9, 6, 2, 4, 5, 12, 8, 1, 7, 3, 10, 11],
    ),
    ("RandomUniformInt", [SHAPE, *BOUNDS], {"seed": 3, "seed2": 4}, [2, -2, -3, 6, -5]),
    (
        "Multinomial",
        [np.float32([[0, 1, 2, 3]]), np.array(7, np.int32)],
        {"seed": 8, "seed2": 9},
        [3, 0, 2, 3, 3, 3, 3],
    ),
    (
        "RandomPoissonV2",
        [SHAPE, np.float32([9, 30])],
        {"seed": 2, "seed2": 3},
        [10, 30, 9, 27, 5, 31, 15, 28, 11, 25],
    ),
    (
        "RandomUniform",
        [SHAPE],
        {"seed": 2, "seed2": 3, "dtype": "float"},
        [0.42768776, 0.7209141, 0.6859571, 0.2910565, 0.6314156],
    ),
    (
        "TruncatedNormal",
        [SHAPE],
        {"seed": 2, "seed2": 3, "dtype": "float"},
        [-1.2816466, -0.23686652, 0.8395329, -0.22150612, 1.5036606],
    ),
]


def answers(case: Case, count: int) -> list[Array]:
    interpreter = Interpreter(model_content=case.model())
    interpreter.allocate_tensors()
    found = []
    for _ in range(count):
        for detail, array in zip(interpreter.get_input_details(), case.inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return found


@pytest.mark.parametrize(("name", "inputs", "given", "want"), THIRD, ids=[row[0] for row in THIRD])
def test_a_stream_goes_on(
    name: str, inputs: list[Array], given: dict[str, Any], want: list[float]
) -> None:
    got = answers(Case(name, inputs, given), 3)[2]
    np.testing.assert_allclose(got.reshape(-1), want, rtol=1e-6)


@pytest.mark.parametrize("name", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_without_seeds_every_stream_is_another(name: str) -> None:
    case = Case(name, [np.array([64], np.int32)], {"dtype": "float"})
    first, second = answers(case, 2)
    other = answers(case, 1)[0]
    assert len({first.tobytes(), second.tobytes(), other.tobytes()}) == 3
    assert np.isfinite(first).all() and first.std() > 0.1


def test_constant_seeds_export_as_constants(tmp_path: Path) -> None:
    seed = np.array([3, 4], np.int64)
    case = Case("StatelessRandomUniform", [np.array([2, 3], np.int32), seed], {}, (0, 1))
    export_onnx(case.model(), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    fed = Case(case.operator, case.inputs)
    np.testing.assert_array_equal(session.run(None, {})[0], answers(fed, 1)[0])
