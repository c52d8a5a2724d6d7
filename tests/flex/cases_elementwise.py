"""Cases of arithmetic element by element: every type, the edges of each, broadcasting.

TensorFlow's Python interpreter takes no arrays of bfloat16: there are no cases of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case, texts
from tflite_ort.schema.file.flex_table import flex_operator

Array = npt.NDArray[Any]

DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "complex64": np.complex64,
    "complex128": np.complex128,
}
# How far 16-bit floats may be: half a unit in the last place.
CLOSE = {"half": 1e-3}
# Both sides of 0, and what is not finite.
_REAL = [-2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 7.25]
_SPECIAL = [*_REAL, np.inf, -np.inf, np.nan]


def numbers(type: str, special: bool = True) -> Array:
    """Numbers of a type, its edges among them."""
    dtype = np.dtype(DTYPES[type])
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        edges = [bounds.min, bounds.max, 0, 1, 2, 3, 5, 7, 100]
        return np.array([*edges, *([-1, -2, -7] if dtype.kind == "i" else [9, 11, 13])], dtype)
    if dtype.kind == "c":
        return np.array([1 + 2j, -0.5 + 1j, 3, -2j, 0, 1.5 - 2.5j], dtype)
    return np.array(_SPECIAL if special else _REAL, np.float32).astype(dtype)


# What TensorFlow's definitions allow and its CPU has no kernel for.
_COMPLEX = {"complex64", "complex128"}
_INTEGERS_ALL = {kind + bits for kind in ("int", "uint") for bits in ("8", "16", "32", "64")}
_NOWHERE = {
    **dict.fromkeys(("Inv", "Reciprocal", "RealDiv"), _INTEGERS_ALL),
    "Round": _COMPLEX | {"int8", "int16"} | {"int32", "int64"},  # of these it writes zeros
    **dict.fromkeys(("FloorDiv", "TruncateDiv"), _COMPLEX),
}


def types_of(name: str) -> list[str]:
    operator = flex_operator(name)
    assert operator is not None
    allowed = operator.attributes["T"].allowed
    return [type for type in allowed if type in DTYPES and type not in _NOWHERE.get(name, ())]


# The types that ONNX Runtime computes, of each operator that it does not compute for all.
_FLOAT = {"float", "half"}
_FLOATS = _FLOAT | {"double"}
_SIGNED = {"int8", "int16", "int32", "int64"}
_INTEGERS = _SIGNED | {"uint8", "uint16", "uint32"}
_ORT = {
    **dict.fromkeys(("Atan", "Cosh", "Erf", "Sinh", "Tan"), _FLOAT),
    **dict.fromkeys(("Ceil", "Cos", "Floor", "Log"), _FLOATS),
    **dict.fromkeys(("Round", "Rsqrt", "Sin", "Sqrt", "Tanh"), _FLOATS),
    **dict.fromkeys(("DivNoNan", "MulNoNan", "Pow"), _FLOATS),
    **dict.fromkeys(("Div", "RealDiv"), _FLOATS | _COMPLEX),
    **dict.fromkeys(("Inv", "Reciprocal", "Exp"), _FLOATS | _COMPLEX),
    **dict.fromkeys(("Atan2", "Xdivy", "Xlogy"), _FLOATS),
    "Sign": _FLOATS | _SIGNED,
    "Abs": _FLOATS | _INTEGERS,
    **dict.fromkeys(("Maximum", "Minimum"), _FLOATS | _INTEGERS),
    **dict.fromkeys(("FloorDiv", "FloorMod"), _FLOATS | _INTEGERS),
    "TruncateDiv": _INTEGERS,
    "Xlog1py": _FLOAT,
    "SquaredDifference": _FLOATS | _INTEGERS | {"uint64"},
}
_ALL = _FLOATS | _INTEGERS | {"uint64"} | _COMPLEX

_DIVIDED = ("FloorDiv", "FloorMod", "TruncateDiv")
_UNARY = (
    *("Abs", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Inv", "Log", "Neg"),
    *("Reciprocal", "Round", "Rsqrt", "Sign", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh"),
)
_BINARY = (
    *("Add", "AddV2", "Atan2", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Maximum", "Minimum"),
    *("Mul", "MulNoNan", "Pow", "RealDiv", "SquaredDifference", "Sub", "TruncateDiv", "Xdivy"),
    *("Xlog1py", "Xlogy"),
)


def close(type: str) -> float:
    return CLOSE.get(type, 2e-6)


def unary() -> list[Case]:
    found = []
    for name in _UNARY:
        for type in types_of(name):
            x = numbers(type)
            exports = type in _ORT.get(name, _ALL)
            found.append(Case(name, [x], exports=exports, rtol=close(type)))
    return found


def binary() -> list[Case]:
    found = []
    for name in _BINARY:
        for type in types_of(name):
            x, y = numbers(type), numbers(type)[::-1].copy()
            if name in ("Div", "FloorDiv", "FloorMod", "TruncateDiv") and x.dtype.kind in "iu":
                y[(y.astype(np.float64) == 0) | (y.astype(np.float64) == -1)] = 3
            if y.dtype.kind == "c":  # what a quotient by 0 is differs from library to library
                x, y = np.where(x == 0, 4, x), np.where(y == 0, 4, y)
            if name == "Pow" and x.dtype.kind in "iu":
                y = (np.arange(y.size) % 4).astype(y.dtype)
            given: dict[str, Any] = {
                "exports": type in _ORT.get(name, _ALL),
                "by_numpy": name in _DIVIDED,  # of integers, which may be divided by 0
                "rtol": close(type),
            }
            found.append(Case(name, [x, y], **given))
            found.append(Case(name, [x[None], y[:3, None]], note="wide", **given))
    return found


def others() -> list[Case]:
    x = np.float64([[1, -2, 3], [0.5, 0, -9]])
    test = np.array([[True, False, True], [False, False, True]])
    zero = np.int32([3, 0])
    return [
        Case("Add", [texts(b"a", b"bc"), texts(b"", b"\xff")], exports=False),
        Case("AddN", [x, x * 2, x * 3]),
        Case("AddN", [np.uint8([200, 1]), np.uint8([100, 2])]),
        Case("ClipByValue", [x, np.array(-1.0), np.array(1.0)]),
        Case(
            "ClipByValue", [np.uint8([1, 9, 200]), np.array(5, np.uint8), np.array(100, np.uint8)]
        ),
        Case("SelectV2", [test, x, x[:1]]),
        Case("SelectV2", [test, np.uint16([[7]]), np.uint16([[1, 2, 3]])]),
        Case("Select", [test, x, -x]),
        Case("Select", [np.array([True, False]), x, -x], note="rows"),
        Case("FloorDiv", [np.int32([7, 8]), zero], exports=False, refused=True, note="by_0"),
        Case("Bitcast", [np.float64([1, -2.5])], {"type": "int32"}, exports=False),
        Case("Bitcast", [np.uint8([[1, 2, 3, 4]])], {"type": "float"}, exports=False),
        Case("Bitcast", [np.float32([[1, 2, 3, 4]])], {"type": "int32"}, exports=False),
    ]


def casts() -> list[Case]:
    found = []
    for source in DTYPES:
        x = numbers(source, special=False)
        if x.dtype.kind == "f":
            x = np.array([0, 1, 2.5, 3.75, 100], x.dtype)
        elif x.dtype.kind in "iu":
            x = np.array([0, 1, 2, 100], x.dtype)
        for target in DTYPES:
            found.append(Case("Cast", [x], {"DstT": target}, note=target))
        for target in ("complex64", "complex128"):
            found.append(Case("Cast", [x], {"DstT": target}, note=target))
    return found


CASES = [*unary(), *binary(), *others(), *casts()]
