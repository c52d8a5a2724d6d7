"""Version rules of the layers: convolution, linear, pooling, activation, recurrent, and so on."""

from __future__ import annotations

from tflite_ort.schema import Op
from tflite_ort.versioning.conditions import (
    BFLOAT16,
    BOOL,
    FLOAT8,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT2,
    INT4,
    INT8,
    INT16,
    UINT4,
    UINT8,
    UINT16,
    UINT32,
    Rule,
    both_ends,
    either,
    either_end,
    first,
    four_inputs,
    grouped,
    hybrid,
    no,
    option,
    option_is,
    per_channel,
    per_channel_data,
    per_channel_result,
    recurrent_hybrid,
    result,
    rule,
    second,
    second_result,
    sparse_weights,
    third,
    two_inputs,
    typed_bias,
    weights_between,
)

_INT8 = weights_between(INT8, INT8)
_INT4_WEIGHTS = weights_between(INT8, INT4)
_INT16_BY_INT8 = weights_between(INT16, INT8)
_ASYMMETRIC = option("asymmetric_quantize_inputs")
_ANY_INT16_END = rule((3, both_ends(INT16)), (2, first(INT8)))
# Float data, int8 weights in input 1; whatever the type of input 0.
_SEQUENCE = rule(
    (3, second(INT8), result(FLOAT32), _ASYMMETRIC),
    (2, second(INT8), result(FLOAT32)),
)

# Some rows hold for no operator that runs, because they look at a tensor beside the one they mean:
# the int16 ones of the convolutions (a second output), 5 of TRANSPOSE_CONV (its output shape).
RULES: dict[Op, Rule] = {
    Op.CONV_2D: rule(
        (8, _INT16_BY_INT8, typed_bias),
        (6, grouped),
        (4, first(INT16), second(INT16), second_result(INT16)),
        (3, _INT8),
        (7, _INT4_WEIGHTS),
        (5, hybrid, per_channel(1, axis=0)),
        (2, hybrid),
    ),
    Op.DEPTHWISE_CONV_2D: rule(
        (5, first(INT16), second(INT16), second_result(INT16)),
        (6, hybrid, per_channel(1, axis=3)),
        (4, hybrid),
        (3, _INT8),
        (7, _INT4_WEIGHTS),
        (2, either(no(option_is("dilation_w_factor", 1)), no(option_is("dilation_h_factor", 1)))),
    ),
    Op.TRANSPOSE_CONV: rule(
        (5, _INT16_BY_INT8, typed_bias),
        (4, option("fused_activation_function")),
        (3, four_inputs),
        (2, second(INT8)),
    ),
    Op.FULLY_CONNECTED: rule(
        (14, second(INT2)),
        (13, weights_between(INT16, INT4)),
        (12, hybrid, per_channel(1, axis=0)),
        (11, _INT16_BY_INT8, typed_bias),
        (8, sparse_weights),
        (7, weights_between(INT16, INT16)),
        (6, two_inputs),
        (5, option("keep_num_dims")),
        (4, _INT8),
        (10, _INT4_WEIGHTS),
        (9, hybrid, _ASYMMETRIC),
        (3, hybrid),
        (2, option_is("weights_format", 1)),
    ),
    Op.BATCH_MATMUL: rule((3, first(INT16)), (2, first(INT8)), (4, hybrid, _ASYMMETRIC)),
    Op.EMBEDDING_LOOKUP: rule(
        (4, either(second(INT4), per_channel(1, axis=0, fewest=2))), (5, second(INT2))
    ),
    Op.AVERAGE_POOL_2D: _ANY_INT16_END,
    Op.MAX_POOL_2D: _ANY_INT16_END,
    Op.LOGISTIC: _ANY_INT16_END,
    Op.TANH: _ANY_INT16_END,
    Op.RELU: rule((3, first(INT16)), (2, first(INT8, UINT8))),
    Op.RELU6: rule((3, first(INT16)), (2, first(INT8))),
    Op.LEAKY_RELU: rule((2, first(INT16))),
    Op.GELU: rule((3, first(FLOAT16)), (2, first(INT8, UINT8))),
    Op.SOFTMAX: rule((4, first(FLOAT16)), (3, first(INT16)), (2, first(INT8))),
    Op.LOG_SOFTMAX: rule((2, first(INT8))),
    Op.L2_NORMALIZATION: rule((2, result(INT8))),
    Op.RESIZE_BILINEAR: rule(
        (4, first(INT16)), (3, option("half_pixel_centers")), (2, first(INT8))
    ),
    Op.RESIZE_NEAREST_NEIGHBOR: rule(
        (4, first(INT16)),
        (3, either(option("half_pixel_centers"), option("align_corners"))),
        (2, first(INT8)),
    ),
    Op.LSTM: rule(
        (5, option_is("kernel_type", 0), third(INT8), both_ends(INT16)),
        (4, option_is("kernel_type", 0), recurrent_hybrid, _ASYMMETRIC),
        (3, option_is("kernel_type", 0), recurrent_hybrid),
        (2, option_is("kernel_type", 1)),
    ),
    Op.UNIDIRECTIONAL_SEQUENCE_LSTM: rule(
        (5, third(INT8), both_ends(INT16)),
        (4, option("diagonal_recurrent_tensors")),
        (3, recurrent_hybrid, _ASYMMETRIC),
        (2, recurrent_hybrid),
    ),
    Op.BIDIRECTIONAL_SEQUENCE_LSTM: _SEQUENCE,
    Op.RNN: _SEQUENCE,
    Op.UNIDIRECTIONAL_SEQUENCE_RNN: _SEQUENCE,
    Op.BIDIRECTIONAL_SEQUENCE_RNN: _SEQUENCE,
    Op.SVDF: rule((3, first(INT8)), (4, hybrid, _ASYMMETRIC), (2, hybrid)),
    Op.QUANTIZE: rule(
        (5, either_end(UINT4)),
        (4, either_end(INT4)),
        (3, per_channel_result),
        (2, result(INT16)),
    ),
    Op.DEQUANTIZE: rule(
        (9, first(*FLOAT8)),
        (8, first(UINT4)),
        (7, first(INT2)),
        (6, first(INT4)),
        (3, first(INT16, FLOAT16)),
        (5, first(INT8), per_channel_data),
        (2, first(INT8)),
    ),
    Op.FAKE_QUANT: rule((2, option("narrow_range"))),
    Op.CAST: rule(
        (9, either_end(*FLOAT8)),
        (8, either_end(INT2, UINT4)),
        (7, either_end(BFLOAT16)),
        (6, first(INT4), result(FLOAT32)),
        (5, either_end(FLOAT64, FLOAT16)),
        (4, either_end(UINT16)),
        (3, either_end(INT8)),
        (2, either_end(UINT32)),
    ),
    Op.WHERE: rule((1, first(BOOL)), otherwise=2),
}
