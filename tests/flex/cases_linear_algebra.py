"""Cases of linear algebra: products of every type, equations, factors, and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case
from tests.flex.cases_elementwise import DTYPES
from tflite_ort.schema.file.flex_table import flex_operator

Array = npt.NDArray[Any]

RNG = np.random.default_rng(11)
# TensorFlow solves float32 in 32 bits, these kernels in 64; the matrices are well conditioned.
# Results of 16 bits are rounded once more, by up to 2^-11 of their size.
CLOSE = {"float": 2e-6, "half": 1e-3, "complex64": 2e-6}
_EXPORTED = {"float", "double", "half", "int16", "int32", "int64"}
_COMPLEX = {"complex64", "complex128"}
_NOWHERE = {"uint8", "uint16", "uint32", "uint64"}  # the CPU multiplies none of these


def numbers(type: str, *shape: int) -> Array:
    """Small numbers of a type."""
    dtype = np.dtype(DTYPES[type])
    if dtype.kind in "iu":
        return RNG.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    real = RNG.integers(-16, 17, shape) / 8
    return (real + 1j * RNG.integers(-16, 17, shape) / 8 if dtype.kind == "c" else real).astype(
        dtype
    )


def regular(type: str, *shape: int) -> Array:
    """Matrices that are far from singular."""
    return (numbers(type, *shape) + 5 * np.eye(shape[-1])).astype(DTYPES[type])


def definite(type: str, *shape: int) -> Array:
    """Positive definite matrices."""
    x = numbers(type, *shape)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(DTYPES[type])


def types_of(name: str) -> list[str]:
    operator = flex_operator(name)
    assert operator is not None
    return [each for each in operator.attributes["T"].allowed if each in set(DTYPES) - _NOWHERE]


def close(type: str) -> float:
    return CLOSE.get(type, 1e-6)


def products() -> list[Case]:
    found = []
    for type in types_of("MatMul"):
        exports = type in _EXPORTED | _COMPLEX
        for a, b in ((False, False), (True, False), (False, True), (True, True)):
            x = numbers(type, *((4, 3) if a else (3, 4)))
            y = numbers(type, *((5, 4) if b else (4, 5)))
            turns = {"transpose_a": a, "transpose_b": b}
            note = f"{a}-{b}"
            case = Case("MatMul", [x, y], turns, exports=exports, rtol=close(type), note=note)
            found.append(case)
    for name in ("BatchMatMul", "BatchMatMulV2"):
        for type in types_of(name):
            exports = type in _EXPORTED | _COMPLEX
            x, y = numbers(type, 2, 3, 4), numbers(type, 2, 4, 5)
            turned = [numbers(type, 2, 4, 3), numbers(type, 2, 5, 4)]
            adjoints = {"adj_x": True, "adj_y": True}
            found += [
                Case(name, [x, y], exports=exports, rtol=close(type)),
                Case(name, turned, adjoints, exports=exports, rtol=close(type), note="adjoint"),
            ]
            if name == "BatchMatMulV2":
                wide = [numbers(type, 3, 1, 2, 4), numbers(type, 2, 4, 3)]
                found.append(Case(name, wide, exports=exports, rtol=close(type), note="wide"))
    x = numbers("float", 2, 3)
    return [*found, Case("MatMul", [x, x], refused=True)]


_EQUATIONS: dict[str, list[tuple[int, ...]]] = {
    "ij,jk->ik": [(3, 4), (4, 5)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bqhd,bkhd->bhqk": [(2, 3, 2, 4), (2, 5, 2, 4)],
    "abc,cde->abde": [(2, 3, 4), (4, 2, 3)],
    "...ij,...jk->...ik": [(2, 1, 3, 4), (3, 4, 2)],
    "ii->i": [(3, 3)],
    "ii->": [(3, 3)],
    "ijk->kji": [(2, 3, 4)],
    "i,j->ij": [(3,), (4,)],
    "ij->": [(3, 4)],
    "...a->...": [(2, 3, 4)],
}


def equations() -> list[Case]:
    found = []
    for type in ("float", "double", "int32", "int64", "complex64", "complex128"):
        for equation, shapes in _EQUATIONS.items():
            inputs = [numbers(type, *shape) for shape in shapes]
            exports, given = type not in _COMPLEX, {"equation": equation}
            case = Case("Einsum", inputs, given, exports=exports, rtol=close(type), note=equation)
            found.append(case)
    x, y = numbers("float", 2, 3), numbers("float", 4, 2)
    for equation in ("ij,jk->ik", "ij,jk", "i,jk->ik"):
        found.append(Case("Einsum", [x, y], {"equation": equation}, refused=True, note=equation))
    return found


def factors() -> list[Case]:
    found = []
    for type in ("float", "double", "half", "complex64", "complex128"):
        near = {"exports": type not in _COMPLEX, "by_numpy": True, "rtol": close(type)}
        real = type != "half"
        x = regular(type, 2, 4, 4)
        if real:
            found += [
                Case("MatrixInverse", [x], **near),
                Case("MatrixInverse", [x], {"adjoint": True}, note="adjoint", **near),
                Case("Cholesky", [definite(type, 2, 3, 3)], **near),
                Case("Qr", [numbers(type, 2, 4, 3)], **near),
                Case("Qr", [numbers(type, 3, 4)], {"full_matrices": True}, note="wide", **near),
                Case("Qr", [numbers(type, 4, 3)], {"full_matrices": True}, note="tall", **near),
                Case("LogMatrixDeterminant", [x], outputs=2, **near),
                Case("MatrixDeterminant", [x], **near),
            ]
        right = numbers(type, 2, 4, 2)
        for lower in (True, False):
            for adjoint in (True, False) if real else ():
                given = {"lower": lower, "adjoint": adjoint}
                note = f"{lower}-{adjoint}"
                found.append(Case("MatrixTriangularSolve", [x, right], given, note=note, **near))
        if real:
            found.append(Case("MatrixTriangularSolve", [x[0], right], note="wide", **near))
    singular = np.float32([[1, 2], [2, 4]])
    return [
        *found,
        Case("MatrixDeterminant", [regular("float", 1, 1)], rtol=1e-6, note="one"),
        Case("MatrixDeterminant", [singular], rtol=1e-6, note="singular"),
        Case("LogMatrixDeterminant", [singular], by_numpy=True, note="singular"),
        Case("MatrixInverse", [singular], exports=False, refused=True),
    ]


_MOVED = ("float", "double", "int32", "int64", "uint8", "bool", "complex64", "half", "int16")


def moved(type: str, *shape: int) -> Array:
    if type == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    return numbers(type, *shape)


def bands() -> list[Case]:
    found = []
    for type in _MOVED:
        x = moved(type, 2, 3, 4)
        for lower, upper in ((0, -1), (1, 0), (-1, 2), (0, 0)):
            for index in (np.int32, np.int64) if type == "float" else (np.int64,):
                limits = [np.array(lower, index), np.array(upper, index)]
                found.append(
                    Case("MatrixBandPart", [x, *limits], {}, (1, 2), note=f"{lower}-{upper}")
                )
    x = numbers("float", 3, 4)
    return [
        *found,
        Case(
            "MatrixBandPart", [x, np.int64(4), np.int64(0)], {}, (1, 2), exports=False, refused=True
        ),
    ]


CASES = [*products(), *equations(), *factors(), *bands()]
