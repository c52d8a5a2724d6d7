"""Factors and inverses in exported files, against numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

from tests.flex.cases import Case
from tflite_ort import export_onnx

Array = npt.NDArray[Any]


def run(operator: str, *inputs: Array, **attributes: Any) -> Sequence[Array]:
    case = Case(operator, inputs, attributes)
    session = onnxruntime.InferenceSession(
        export_onnx(case.model()).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    results: Sequence[Array] = session.run(None, dict(zip(names, inputs, strict=True)))
    return results


def matrices(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape)


@pytest.mark.parametrize("shape", [(1, 1), (30, 30), (2, 3, 7, 7), (3, 1, 1)])
def test_square(shape: tuple[int, ...]) -> None:
    """Their pivots have to be looked for: the first elements are 0."""
    x = matrices(*shape)
    if shape[-1] > 1:
        x[..., 0, 0] = 0
    (inverse,) = run("MatrixInverse", x)
    np.testing.assert_allclose(inverse @ x, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-10)
    sign, log = run("LogMatrixDeterminant", x)
    want = np.linalg.slogdet(x)
    np.testing.assert_array_equal(sign, want[0])
    np.testing.assert_allclose(log, want[1], rtol=1e-10)
    (determinant,) = run("MatrixDeterminant", x)
    np.testing.assert_allclose(determinant, np.linalg.det(x), rtol=1e-9)
    definite = x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])
    (lower,) = run("Cholesky", definite)
    np.testing.assert_allclose(lower, np.linalg.cholesky(definite), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (20, 11), (5, 9), (2, 4, 4)])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: np.triu(x), lambda x: x * 0])
def test_qr(shape: tuple[int, ...], whole: bool, make: Callable[[Array], Array]) -> None:
    """A triangle is its own, and so are zeros: no reflection divides by 0."""
    x = make(matrices(*shape))
    q, r = run("Qr", x, full_matrices=whole)
    modes = np.linalg.qr(x, mode="complete" if whole else "reduced")
    assert (q.shape, r.shape) == (modes[0].shape, modes[1].shape)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    both = np.swapaxes(q, -1, -2) @ q
    np.testing.assert_allclose(both, np.broadcast_to(np.eye(q.shape[-1]), both.shape), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.tril(r, -1)), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("MatrixInverse", [np.float64([[1, 2], [2, 4]])]),
        ("MatrixInverse", [np.zeros((2, 3, 3), np.float32)]),
        ("Cholesky", [np.float64([[1, 2], [2, 1]])]),
        ("MatrixTriangularSolve", [np.float64([[0, 0], [2, 4]]), np.ones((2, 1))]),
    ],
)
def test_what_has_no_result(operator: str, inputs: Sequence[Array]) -> None:
    """The exported graph fails; it does not give infinity."""
    with pytest.raises((Fail, InvalidArgument), match="indices element out of data bounds"):
        run(operator, *inputs)
