"""Cases of comparisons, logic and bits."""

from __future__ import annotations

import numpy as np

from tests.flex.cases import Case, texts
from tests.flex.cases_elementwise import numbers
from tflite_ort.schema.file.flex_table import flex_operator

_ORDER = ("Greater", "GreaterEqual", "Less", "LessEqual")
_BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
_SHIFTS = ("LeftShift", "RightShift")
_COMPLEX = ("complex64", "complex128")
TEST = np.array([True, False, True, False])


def types_of(name: str) -> list[str]:
    operator = flex_operator(name)
    assert operator is not None
    left_out = {"bfloat16", "string", "bool", "quint8", "qint8", "qint32"}
    return [type for type in operator.attributes["T"].allowed or _ALL if type not in left_out]


_ALL = (
    *("float", "double", "half", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
    *("uint64", *_COMPLEX),
)


def of_types() -> list[Case]:
    found = []
    for name in ("Equal", "NotEqual", *_ORDER, *_BITS, *_SHIFTS):
        for type in types_of(name):
            x, y = numbers(type), numbers(type)[::-1].copy()
            y[:2] = x[:2]
            exports = type not in _COMPLEX
            exports &= name not in _ORDER or type != "uint64"
            found.append(Case(name, [x, y[:, None]], exports=exports))
    for name in ("Invert", "PopulationCount"):
        for type in types_of(name):
            found.append(Case(name, [numbers(type)], exports=True))
    for name in ("IsFinite", "IsNan"):
        found += [Case(name, [numbers(type)]) for type in ("float", "double", "half")]
    return found


X = np.float32([1, 2, 3, -1])

CASES = [
    *of_types(),
    Case("Equal", [TEST, TEST[::-1].copy()]),
    Case("NotEqual", [texts(b"a", b"b"), texts(b"a", b"c")], exports=False),
    Case("LogicalAnd", [TEST, TEST[:2, None]]),
    Case("LogicalOr", [TEST, TEST[:2, None]]),
    Case("LogicalNot", [TEST]),
    Case("ApproximateEqual", [X, X + np.float32([0, 0.1, 1e-6, -2])], {"tolerance": 0.05}),
]
