"""The operators that compute element by element."""

from __future__ import annotations

from tflite_ort.schema.file.enums import BuiltinOperator as Op

# TensorFlow's, by their own names.
FLEX_BINARY = (
    *("Add", "AddV2", "Atan2", "Div", "DivNoNan", "FloorDiv", "FloorMod", "Maximum", "Minimum"),
    *("Mul", "MulNoNan", "Pow", "RealDiv", "SquaredDifference", "Sub", "TruncateDiv", "Xdivy"),
    *("Xlog1py", "Xlogy"),
)
FLEX_UNARY = (
    *("Abs", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Inv", "Log", "Neg"),
    *("Reciprocal", "Round", "Rsqrt", "Sign", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh"),
)

# Their operands broadcast as numpy's do.
BROADCASTING: tuple[Op | str, ...] = (
    *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.SQUARED_DIFFERENCE, Op.FLOOR_DIV, Op.FLOOR_MOD),
    *(Op.MAXIMUM, Op.MINIMUM, Op.POW, Op.ATAN2, Op.LOGICAL_AND, Op.LOGICAL_OR, Op.BITWISE_XOR),
    *(Op.RIGHT_SHIFT, Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER),
    *(Op.GREATER_EQUAL, Op.SELECT_V2, Op.PRELU),
    *(f"Flex{name}" for name in FLEX_BINARY),
)
# These have one operand.
UNARY: tuple[Op | str, ...] = (
    *(Op.ABS, Op.CEIL, Op.SQUARE, Op.COS, Op.SIN, Op.EXP, Op.LOG, Op.RSQRT, Op.SQRT, Op.FLOOR),
    *(Op.ROUND, Op.NEG, Op.SIGN, Op.ZEROS_LIKE, Op.BUCKETIZE, Op.LOGICAL_NOT),
    *(Op.ELU, Op.HARD_SWISH, Op.RELU_0_TO_1, Op.RELU_N1_TO_1, Op.RELU, Op.RELU6, Op.LEAKY_RELU),
    *(Op.GELU, Op.LOGISTIC, Op.TANH, Op.REAL, Op.IMAG, Op.COMPLEX_ABS),
    *("Atan", "ATAN", "Sinh", *(f"Flex{name}" for name in FLEX_UNARY), "FlexSoftplus", "FlexCast"),
)
