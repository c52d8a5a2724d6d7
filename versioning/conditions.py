"""The vocabulary of the version rules: what may be true of a signature."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_float

from tflite_ort.base.records import record
from tflite_ort.schema import TensorType
from tflite_ort.versioning.operator_signature import Signature, TensorSignature

Condition = Callable[[Signature], bool]

FLOAT32 = TensorType.FLOAT32
FLOAT16 = TensorType.FLOAT16
FLOAT64 = TensorType.FLOAT64
BFLOAT16 = TensorType.BFLOAT16
COMPLEX64 = TensorType.COMPLEX64
INT2 = TensorType.INT2
INT4 = TensorType.INT4
INT8 = TensorType.INT8
INT16 = TensorType.INT16
INT32 = TensorType.INT32
INT64 = TensorType.INT64
UINT4 = TensorType.UINT4
UINT8 = TensorType.UINT8
UINT16 = TensorType.UINT16
UINT32 = TensorType.UINT32
BOOL = TensorType.BOOL
STRING = TensorType.STRING
FLOAT8 = (TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)


@record
class Rule:
    """Rows of (version, conditions that must all hold); the first row that holds gives it."""

    rows: tuple[tuple[int, tuple[Condition, ...]], ...]
    otherwise: int = 1

    def __call__(self, s: Signature) -> int:
        for version, conditions in self.rows:
            if all(holds(s) for holds in conditions):
                return version
        return self.otherwise

    @property
    def versions(self) -> frozenset[int]:
        """Every version that the rule can give."""
        return frozenset({self.otherwise, *(version for version, _ in self.rows)})


def rule(*rows: tuple[int, *tuple[Condition, ...]], otherwise: int = 1) -> Rule:
    """Rows of a version and its conditions; `otherwise` where no row holds."""
    return Rule(tuple((version, tuple(conditions)) for version, *conditions in rows), otherwise)


# Types -------------------------------------------------------------------------------------------


def first(*types: TensorType) -> Condition:
    """Input 0 is of one of these types."""
    return lambda s: s.input(0).type in types


def second(*types: TensorType) -> Condition:
    """Input 1 is of one of these types."""
    return lambda s: s.input(1).type in types


def third(*types: TensorType) -> Condition:
    """Input 2 is of one of these types."""
    return lambda s: s.input(2).type in types


def result(*types: TensorType) -> Condition:
    """Output 0 is of one of these types."""
    return lambda s: s.output(0).type in types


def second_result(*types: TensorType) -> Condition:
    """Output 1 is of one of these types."""
    return lambda s: s.output(1).type in types


def either_end(*types: TensorType) -> Condition:
    """Input 0 or output 0 is of one of these types."""
    return lambda s: s.input(0).type in types or s.output(0).type in types


def both_ends(type: TensorType) -> Condition:
    """Input 0 and output 0 are of this type."""
    return lambda s: s.input(0).type == s.output(0).type == type


def hybrid(s: Signature) -> bool:
    """Float data, int8 weights in input 1."""
    return weights_between(FLOAT32, INT8)(s)


def recurrent_hybrid(s: Signature) -> bool:
    """Float data, int8 weights in input 2."""
    return s.input(2).type == INT8 and both_ends(FLOAT32)(s)


def weights_between(data: TensorType, weights: TensorType) -> Condition:
    """Input 0 and output 0 are `data`, input 1 is `weights`."""
    return lambda s: s.input(1).type == weights and both_ends(data)(s)


# Shapes ------------------------------------------------------------------------------------------


def rank_above(rank: int) -> Condition:
    """Of input 0."""
    return lambda s: len(s.input(0).shape) > rank


def rank_is(rank: int) -> Condition:
    """Of input 0."""
    return lambda s: len(s.input(0).shape) == rank


def some_rank_is_5(s: Signature) -> bool:
    """Of the first three inputs; six dimensions do not count."""
    return any(len(s.input(i).shape) == 5 for i in range(3))


def two_inputs(s: Signature) -> bool:
    """A third that is left out counts all the same."""
    return len(s.inputs) == 2


def four_inputs(s: Signature) -> bool:
    """Of which the last is not left out."""
    return len(s.inputs) == 4 and s.inputs[3].type is not None


def broadcast_above_rank_4(s: Signature) -> bool:
    """The first two inputs differ in shape, and some input has more than four dimensions."""
    return (
        len(s.inputs) >= 2
        and s.input(0).shape != s.input(1).shape
        and max(len(tensor.shape) for tensor in s.inputs) > 4
    )


def grouped(s: Signature) -> bool:
    """A convolution's input has other channels than its filter."""
    data, weights = s.input(0).shape, s.input(1).shape
    return len(data) > 3 and len(weights) > 3 and data[3] != weights[3]


# Quantization ------------------------------------------------------------------------------------


def quantized(s: Signature) -> bool:
    """Input 0 carries a quantization table."""
    return s.input(0).quantized


def unquantized_int16(s: Signature) -> bool:
    """int16 input 0; neither it nor input 1 carries a quantization table."""
    return s.input(0).type == INT16 and not (s.input(0).quantized or s.input(1).quantized)


def sparse_weights(s: Signature) -> bool:
    """Input 1 is sparse."""
    return s.input(1).sparse


def per_channel(position: int, axis: int, fewest: int = 1) -> Condition:
    """Input `position` has one scale per index of `axis`, and at least `fewest`."""
    return lambda s: _one_scale_each(s.input(position), axis, fewest)


def per_channel_data(s: Signature) -> bool:
    """Input 0 has several scales along the axis it names."""
    return _one_scale_each(s.input(0), s.input(0).axis, 2)


def per_channel_result(s: Signature) -> bool:
    """Output 0 has several scales along the axis it names."""
    return _one_scale_each(s.output(0), s.output(0).axis, 2)


def _one_scale_each(tensor: TensorSignature, axis: int, fewest: int) -> bool:
    return (
        tensor.scales >= fewest
        and 0 <= axis < len(tensor.shape)
        and (tensor.scales == tensor.shape[axis])
    )


def multiplier_from_one(s: Signature) -> bool:
    """Both input scales over the output scale, in float32, is 1 or more."""
    if len(s.inputs) < 2 or not s.outputs:
        return False
    a, b, out = s.inputs[0].scale, s.inputs[1].scale, s.outputs[0].scale
    if not a or not b or not out:
        return False
    return c_float(c_float(a * b).value / out).value >= 1.0


# Options -----------------------------------------------------------------------------------------


def option(name: str) -> Condition:
    """The option is set: neither 0 nor false."""
    return lambda s: bool(s.option(name))


def option_is(name: str, value: int) -> Condition:
    """The option has this value."""
    return lambda s: bool(s.option(name) == value)


def typed_bias(s: Signature) -> bool:
    """The options say the bias's type; a file that has the options table always does."""
    return s.options is not None and "quantized_bias_type" in s.options


def free_scales(s: Signature) -> bool:
    """int16 scales need not be powers of two."""
    return s.options is not None and not s.option("pot_scale_int16")


def no(condition: Condition) -> Condition:
    """The condition does not hold."""
    return lambda s: not condition(s)


def either(*conditions: Condition) -> Condition:
    """One of the conditions holds."""
    return lambda s: any(holds(s) for holds in conditions)
