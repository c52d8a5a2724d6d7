"""Options of convolutions, pooling, linear, recurrent, normalising and embedding operators."""

from __future__ import annotations

from tflite_ort.schema.file.declare import boolean, enum, options, scalar, vector
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import (
    ActivationFunctionType,
    CombinerType,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    Op,
    Padding,
)
from tflite_ort.schema.file.exports import export_classes
from tflite_ort.schema.file.fields import FLOAT32, INT32
from tflite_ort.schema.file.tables import Table


@options(1, Op.CONV_2D)
class Conv2DOptions(Table):
    """Options of CONV_2D."""

    padding: Padding = enum(0, Padding)
    stride_w: int = scalar(1, INT32)
    stride_h: int = scalar(2, INT32)
    fused_activation_function: ActivationFunctionType = enum(3, ActivationFunctionType)
    dilation_w_factor: int = scalar(4, INT32, default=1)
    dilation_h_factor: int = scalar(5, INT32, default=1)
    quantized_bias_type: TensorType = enum(6, TensorType, since=8)


@options(2, Op.DEPTHWISE_CONV_2D)
class DepthwiseConv2DOptions(Table):
    """Options of DEPTHWISE_CONV_2D."""

    padding: Padding = enum(0, Padding)
    stride_w: int = scalar(1, INT32)
    stride_h: int = scalar(2, INT32)
    depth_multiplier: int = scalar(3, INT32)
    fused_activation_function: ActivationFunctionType = enum(4, ActivationFunctionType)
    dilation_w_factor: int = scalar(5, INT32, default=1, since=2)
    dilation_h_factor: int = scalar(6, INT32, default=1, since=2)


@options(3, Op.CONCAT_EMBEDDINGS)
class ConcatEmbeddingsOptions(Table):
    """Options of CONCAT_EMBEDDINGS."""

    num_channels: int = scalar(0, INT32)
    num_columns_per_channel: tuple[int, ...] | None = vector(1, INT32)
    embedding_dim_per_channel: tuple[int, ...] | None = vector(2, INT32)


@options(4, Op.LSH_PROJECTION)
class LSHProjectionOptions(Table):
    """Options of LSH_PROJECTION."""

    type: LSHProjectionType = enum(0, LSHProjectionType)


@options(5, Op.AVERAGE_POOL_2D, Op.L2_POOL_2D, Op.MAX_POOL_2D)
class Pool2DOptions(Table):
    """Options of AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D."""

    padding: Padding = enum(0, Padding)
    stride_w: int = scalar(1, INT32)
    stride_h: int = scalar(2, INT32)
    filter_width: int = scalar(3, INT32)
    filter_height: int = scalar(4, INT32)
    fused_activation_function: ActivationFunctionType = enum(5, ActivationFunctionType)


@options(6, Op.SVDF)
class SVDFOptions(Table):
    """Options of SVDF."""

    rank: int = scalar(0, INT32)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)
    asymmetric_quantize_inputs: bool = boolean(2, since=4)


@options(7, Op.RNN)
class RNNOptions(Table):
    """Options of RNN."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    asymmetric_quantize_inputs: bool = boolean(1, since=3)


@options(8, Op.FULLY_CONNECTED)
class FullyConnectedOptions(Table):
    """Options of FULLY_CONNECTED."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    weights_format: FullyConnectedOptionsWeightsFormat = enum(
        1, FullyConnectedOptionsWeightsFormat, since=2
    )
    keep_num_dims: bool = boolean(2, since=5)
    asymmetric_quantize_inputs: bool = boolean(3, since=9)
    quantized_bias_type: TensorType = enum(4, TensorType, since=11)


@options(9, Op.SOFTMAX)
class SoftmaxOptions(Table):
    """Options of SOFTMAX."""

    beta: float = scalar(0, FLOAT32)


@options(12, Op.L2_NORMALIZATION)
class L2NormOptions(Table):
    """Options of L2_NORMALIZATION."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


@options(13, Op.LOCAL_RESPONSE_NORMALIZATION)
class LocalResponseNormalizationOptions(Table):
    """Options of LOCAL_RESPONSE_NORMALIZATION."""

    radius: int = scalar(0, INT32)
    bias: float = scalar(1, FLOAT32)
    alpha: float = scalar(2, FLOAT32)
    beta: float = scalar(3, FLOAT32)


@options(14, Op.LSTM)
class LSTMOptions(Table):
    """Options of LSTM."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    cell_clip: float = scalar(1, FLOAT32)
    proj_clip: float = scalar(2, FLOAT32)
    kernel_type: LSTMKernelType = enum(3, LSTMKernelType, since=2)
    asymmetric_quantize_inputs: bool = boolean(4, since=4)


@options(15, Op.RESIZE_BILINEAR)
class ResizeBilinearOptions(Table):
    """Options of RESIZE_BILINEAR."""

    new_height: int = scalar(0, INT32, deprecated=True)
    new_width: int = scalar(1, INT32, deprecated=True)
    align_corners: bool = boolean(2)
    half_pixel_centers: bool = boolean(3, since=3)


@options(18, Op.SKIP_GRAM)
class SkipGramOptions(Table):
    """Options of SKIP_GRAM."""

    ngram_size: int = scalar(0, INT32)
    max_skip_size: int = scalar(1, INT32)
    include_all_ngrams: bool = boolean(2)


@options(20, Op.EMBEDDING_LOOKUP_SPARSE)
class EmbeddingLookupSparseOptions(Table):
    """Options of EMBEDDING_LOOKUP_SPARSE."""

    combiner: CombinerType = enum(0, CombinerType)


@options(31, Op.UNIDIRECTIONAL_SEQUENCE_RNN)
class SequenceRNNOptions(Table):
    """Options of UNIDIRECTIONAL_SEQUENCE_RNN."""

    time_major: bool = boolean(0)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)
    asymmetric_quantize_inputs: bool = boolean(2, since=3)


@options(49, Op.TRANSPOSE_CONV)
class TransposeConvOptions(Table):
    """Options of TRANSPOSE_CONV."""

    padding: Padding = enum(0, Padding)
    stride_w: int = scalar(1, INT32)
    stride_h: int = scalar(2, INT32)
    fused_activation_function: ActivationFunctionType = enum(3, ActivationFunctionType, since=4)
    quantized_bias_type: TensorType = enum(4, TensorType, since=5)


@options(58, Op.FAKE_QUANT)
class FakeQuantOptions(Table):
    """Options of FAKE_QUANT."""

    min: float = scalar(0, FLOAT32)
    max: float = scalar(1, FLOAT32)
    num_bits: int = scalar(2, INT32)
    narrow_range: bool = boolean(3, since=2)


@options(69, Op.BIDIRECTIONAL_SEQUENCE_LSTM)
class BidirectionalSequenceLSTMOptions(Table):
    """Options of BIDIRECTIONAL_SEQUENCE_LSTM."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    cell_clip: float = scalar(1, FLOAT32)
    proj_clip: float = scalar(2, FLOAT32)
    merge_outputs: bool = boolean(3)
    time_major: bool = boolean(4, default=True, since=2)
    asymmetric_quantize_inputs: bool = boolean(5, since=3)


@options(70, Op.BIDIRECTIONAL_SEQUENCE_RNN)
class BidirectionalSequenceRNNOptions(Table):
    """Options of BIDIRECTIONAL_SEQUENCE_RNN."""

    time_major: bool = boolean(0)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)
    merge_outputs: bool = boolean(2)
    asymmetric_quantize_inputs: bool = boolean(3, since=3)


@options(71, Op.UNIDIRECTIONAL_SEQUENCE_LSTM)
class UnidirectionalSequenceLSTMOptions(Table):
    """Options of UNIDIRECTIONAL_SEQUENCE_LSTM."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    cell_clip: float = scalar(1, FLOAT32)
    proj_clip: float = scalar(2, FLOAT32)
    time_major: bool = boolean(3)
    asymmetric_quantize_inputs: bool = boolean(4, since=3)
    diagonal_recurrent_tensors: bool = boolean(5, since=4)


@options(74, Op.RESIZE_NEAREST_NEIGHBOR)
class ResizeNearestNeighborOptions(Table):
    """Options of RESIZE_NEAREST_NEIGHBOR."""

    align_corners: bool = boolean(0, since=3)
    half_pixel_centers: bool = boolean(1, since=3)


@options(75, Op.LEAKY_RELU)
class LeakyReluOptions(Table):
    """Options of LEAKY_RELU."""

    alpha: float = scalar(0, FLOAT32)


@options(101, Op.BATCH_MATMUL)
class BatchMatMulOptions(Table):
    """Options of BATCH_MATMUL."""

    adj_x: bool = boolean(0)
    adj_y: bool = boolean(1)
    asymmetric_quantize_inputs: bool = boolean(2, since=4)


@options(106, Op.CONV_3D, Op.CONV_3D_TRANSPOSE)
class Conv3DOptions(Table):
    """Options of CONV_3D, CONV_3D_TRANSPOSE."""

    padding: Padding = enum(0, Padding)
    stride_d: int = scalar(1, INT32)
    stride_w: int = scalar(2, INT32)
    stride_h: int = scalar(3, INT32)
    fused_activation_function: ActivationFunctionType = enum(4, ActivationFunctionType)
    dilation_d_factor: int = scalar(5, INT32, default=1)
    dilation_w_factor: int = scalar(6, INT32, default=1)
    dilation_h_factor: int = scalar(7, INT32, default=1)


@options(116, Op.GELU)
class GeluOptions(Table):
    """Options of GELU."""

    approximate: bool = boolean(0)


export_classes(globals())
