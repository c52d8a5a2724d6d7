"""The element types of tensors: the one table of what is known of each."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.dtypes import Dtypes


class TensorType(IntEnum):
    """Element type of a tensor as the file numbers it (the C API numbers them differently)."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22


@record
class ElementType:
    """What is known of an element type. ONNX's type follows from numpy's.

    Args:
        short: its name in the table of operators.
        numpy: the type of an array of elements, or its name in `ml_dtypes`. Those of 2 and 4 bits
            take a byte each there, strings are bytes objects.
        bits: the size of an element in a file; None where it has no fixed size.
        codes: the lowest and the highest code of a quantized tensor of this type; None where there
            is no such tensor.
        shown: the numpy type in which LiteRT shows the values, where it is another.
    """

    short: str
    numpy: npt.DTypeLike | str
    bits: int | None
    codes: tuple[int, int] | None = None
    shown: type[np.generic] | None = None


_T = TensorType

# Of the types with the same numpy type the plain one stands first.
ELEMENT_TYPES = {
    _T.FLOAT32: ElementType("f32", np.float32, 32),
    _T.FLOAT16: ElementType("f16", np.float16, 16),
    _T.BFLOAT16: ElementType("bf16", "bfloat16", 16),
    _T.FLOAT64: ElementType("f64", np.float64, 64),
    _T.FLOAT8_E4M3FN: ElementType("f8", "float8_e4m3fn", 8, shown=np.int8),
    _T.FLOAT8_E5M2: ElementType("f8", "float8_e5m2", 8, shown=np.int8),
    _T.INT8: ElementType("i8", np.int8, 8, (-128, 127)),
    _T.INT16: ElementType("i16", np.int16, 16, (-32768, 32767)),
    _T.INT32: ElementType("i32", np.int32, 32, (-(2**31), 2**31 - 1)),
    _T.INT64: ElementType("i64", np.int64, 64),
    _T.UINT8: ElementType("u8", np.uint8, 8, (0, 255)),
    _T.UINT16: ElementType("u16", np.uint16, 16, (0, 65535)),
    _T.UINT32: ElementType("u32", np.uint32, 32),
    _T.UINT64: ElementType("u64", np.uint64, 64),
    _T.INT4: ElementType("i4", np.int8, 4, (-8, 7)),
    _T.INT2: ElementType("i2", np.int8, 2, (-2, 1)),
    _T.UINT4: ElementType("u4", np.uint8, 4, (0, 15)),
    _T.BOOL: ElementType("bool", np.bool_, 8),
    _T.COMPLEX64: ElementType("c64", np.complex64, 64),
    _T.COMPLEX128: ElementType("c128", np.complex128, 128),
    _T.STRING: ElementType("str", np.object_, None, shown=np.bytes_),
    _T.RESOURCE: ElementType("resource", np.int32, None, shown=np.object_),
    _T.VARIANT: ElementType("variant", np.object_, None),
}

NUMPY_DTYPE = Dtypes({type: row.numpy for type, row in ELEMENT_TYPES.items()})
# Bits of an element in a file, and those of types that stand several to a byte.
BITS = {type: row.bits for type, row in ELEMENT_TYPES.items() if row.bits is not None}
PACKED_BITS = {type: bits for type, bits in BITS.items() if bits < 8}
# TFLite's kernels take INT32 as plain numbers, whatever scale it carries.
CODES = frozenset(t for t, row in ELEMENT_TYPES.items() if row.codes and t is not _T.INT32)


def type_of(dtype: npt.DTypeLike) -> TensorType | None:
    """The element type of an array of `dtype`: the plain one where several have it."""
    return NUMPY_DTYPE.key_of(dtype)


def shown_type(type: TensorType) -> type[np.generic]:
    """The numpy scalar type in which LiteRT gives and takes the values of a tensor."""
    return ELEMENT_TYPES[type].shown or NUMPY_DTYPE[type].type


def named_types(names: str) -> frozenset[TensorType]:
    """The types of short names, such as ``"f32 i8"``.

    Raises:
        KeyError: there is no type of such a name.
    """
    return frozenset().union(*(_BY_SHORT_NAME[name] for name in names.split()))


_BY_SHORT_NAME = {
    row.short: frozenset(t for t, other in ELEMENT_TYPES.items() if other.short == row.short)
    for row in ELEMENT_TYPES.values()
}
