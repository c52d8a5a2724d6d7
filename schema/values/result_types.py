"""The element types of results, where TFLite's kernels have the last word, not the file."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.operators import data_input
from tflite_ort.schema.values.view import OperatorView


def _operators(names: str) -> frozenset[Op]:
    return frozenset(Op[name] for name in names.split())


# LiteRT gives the results the type of the data, whatever the file says.
_AS_DATA = _operators(
    "ADD ADD_N BITWISE_XOR CEIL DIV DYNAMIC_UPDATE_SLICE EXP EXPAND_DIMS FAKE_QUANT FILL FLOOR "
    "FLOOR_DIV FLOOR_MOD GATHER GATHER_ND MAXIMUM MINIMUM NEG ONE_HOT POW PRELU RANGE "
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR RIGHT_SHIFT ROUND SCATTER_ND SELECT SELECT_V2 "
    "SPARSE_TO_DENSE SPLIT SPLIT_V SQUARED_DIFFERENCE SUB ZEROS_LIKE"
)
# LiteRT refuses a first result of another type than the data.
_LIKE_DATA = _operators(
    "ABS AVERAGE_POOL_2D BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DEPTH_TO_SPACE ELU "
    "HARD_SWISH L2_POOL_2D LEAKY_RELU LOG MAX_POOL_2D MIRROR_PAD PACK PAD PADV2 REDUCE_MAX "
    "REDUCE_MIN REVERSE_V2 RSQRT SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SQRT STRIDED_SLICE TILE "
    "TOPK_V2 TRANSPOSE UNPACK"
)
# LiteRT writes the data's type where the file says another one: neither is what the file means.
_SAID_WRONGLY = _operators(
    "BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN CUMSUM LSTM MATRIX_DIAG "
    "MATRIX_SET_DIAG MEAN REDUCE_ALL REDUCE_ANY REDUCE_PROD RESHAPE RNN SQUEEZE STABLEHLO_ADD "
    "STABLEHLO_AND STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_SCATTER "
    "STABLEHLO_SHIFT_LEFT SUM SVDF UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN"
)
# Products of floats are floats and those of codes are codes: LiteRT refuses others, but for
# BATCH_MATMUL, which writes the bytes of floats as if they were codes, or nothing.
_PRODUCTS = _operators("BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED TRANSPOSE_CONV")
# Their second result is one as the first.
_TWO_RESULTS = _operators("BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN")
_ALWAYS = {
    **dict.fromkeys(
        _operators("EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL"), TensorType.BOOL
    ),
    Op.BUCKETIZE: TensorType.INT32,
    Op.DEQUANTIZE: TensorType.FLOAT32,
    Op.WHERE: TensorType.INT64,
}
# Custom operators whose results are FLOAT32: LiteRT gives them that type, or refuses others. The
# positions of a pooling, its second result, may be INT32.
_FLOATS = frozenset(("NumericVerify", "TFLite_Detection_PostProcess"))
_FLOATS_ALONE = frozenset(
    (
        *("AudioSpectrogram", "Mfcc", "aeq.hadamard_rotation", "Convolution2DTransposeBias"),
        *("MaxPoolingWithArgmax2D", "MaxUnpooling2D", "TransformTensorBilinear"),
        *("TransformLandmarks", "Landmarks2TransformMatrix", "KmeansEmbeddingLookup"),
    )
)
# Which option says it.
_OPTIONS = {Op.ARG_MAX: "output_type", Op.ARG_MIN: "output_type", Op.SHAPE: "out_type"}


def result_type(op: OperatorView[Any]) -> TensorType | None:
    """The type of all results of `op`, where its kernel decides; None where the file does.

    Raises:
        ModelError: TFLite refuses the type that the file says.
    """
    if op.op in _ALWAYS:
        return _ALWAYS[op.op]
    if op.op is Op.CUSTOM:
        return _custom_type(op)
    if op.op in _OPTIONS:
        type = TensorType(getattr(op.options, _OPTIONS[op.op]))
        if type not in (TensorType.INT32, TensorType.INT64):
            raise ModelError(f"{op.label}: a result of {type.name}, expected INT32 or INT64")
        return type
    if op.op in _PRODUCTS and op.outputs:
        _check_product(op)
    position = data_input(op.op)
    data = op.inputs[position] if position < len(op.inputs) else None
    if data is None:
        return None
    results = op.outputs[: 2 if op.op in _TWO_RESULTS else 1]
    wrong = [result.type for result in results if result.type is not data.type]
    if op.op in _LIKE_DATA | _SAID_WRONGLY and wrong:
        raise ModelError(f"{op.label}: a result of {wrong[0].name}, expected {data.type.name}")
    return data.type if op.op in _AS_DATA else None


def _custom_type(op: OperatorView[Any]) -> TensorType | None:
    """As `result_type`, of a custom operator."""
    if op.name in _FLOATS_ALONE:
        for result in op.outputs[:1]:
            if result.type is not TensorType.FLOAT32:
                raise ModelError(f"{op.label}: a result of {result.type.name}, expected FLOAT32")
    return TensorType.FLOAT32 if op.name in _FLOATS else None


def _check_product(op: OperatorView[Any]) -> None:
    """Refuse codes of floats, floats of codes, and INT32 but of BATCH_MATMUL of INT8."""
    batch = op.op is Op.BATCH_MATMUL
    given, made = op["x" if batch else "input"].type, op.output.type
    sums = made is TensorType.INT32 and not (batch and given is TensorType.INT8)
    if sums or (given is TensorType.FLOAT32) != (made is TensorType.FLOAT32):
        raise ModelError(f"{op.label}: a result of {made.name} of {given.name} input")
