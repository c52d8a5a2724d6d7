"""Which options table belongs to which operator, and what an operator without one gets."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file import layer_options, options, stablehlo_options
from tflite_ort.schema.file.declare import Scalar, Table, fields_of
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError

# Operators that have no row here have no options, or an empty table.
OPTIONS: dict[Op, type[Table]] = {
    Op.ADD: options.AddOptions,
    Op.AVERAGE_POOL_2D: layer_options.Pool2DOptions,
    Op.CONCATENATION: options.ConcatenationOptions,
    Op.CONV_2D: layer_options.Conv2DOptions,
    Op.DEPTHWISE_CONV_2D: layer_options.DepthwiseConv2DOptions,
    Op.DEPTH_TO_SPACE: options.DepthToSpaceOptions,
    Op.FULLY_CONNECTED: layer_options.FullyConnectedOptions,
    Op.L2_NORMALIZATION: layer_options.L2NormOptions,
    Op.L2_POOL_2D: layer_options.Pool2DOptions,
    Op.LOCAL_RESPONSE_NORMALIZATION: layer_options.LocalResponseNormalizationOptions,
    Op.LSH_PROJECTION: layer_options.LSHProjectionOptions,
    Op.LSTM: layer_options.LSTMOptions,
    Op.MAX_POOL_2D: layer_options.Pool2DOptions,
    Op.MUL: options.MulOptions,
    Op.RESHAPE: options.ReshapeOptions,
    Op.RESIZE_BILINEAR: layer_options.ResizeBilinearOptions,
    Op.RNN: layer_options.RNNOptions,
    Op.SOFTMAX: layer_options.SoftmaxOptions,
    Op.SPACE_TO_DEPTH: options.SpaceToDepthOptions,
    Op.SVDF: layer_options.SVDFOptions,
    Op.CONCAT_EMBEDDINGS: layer_options.ConcatEmbeddingsOptions,
    Op.SKIP_GRAM: layer_options.SkipGramOptions,
    Op.CALL: options.CallOptions,
    Op.EMBEDDING_LOOKUP_SPARSE: layer_options.EmbeddingLookupSparseOptions,
    Op.UNIDIRECTIONAL_SEQUENCE_RNN: layer_options.SequenceRNNOptions,
    Op.GATHER: options.GatherOptions,
    Op.MEAN: options.ReducerOptions,
    Op.SUB: options.SubOptions,
    Op.DIV: options.DivOptions,
    Op.SQUEEZE: options.SqueezeOptions,
    Op.UNIDIRECTIONAL_SEQUENCE_LSTM: layer_options.UnidirectionalSequenceLSTMOptions,
    Op.STRIDED_SLICE: options.StridedSliceOptions,
    Op.BIDIRECTIONAL_SEQUENCE_RNN: layer_options.BidirectionalSequenceRNNOptions,
    Op.SPLIT: options.SplitOptions,
    Op.BIDIRECTIONAL_SEQUENCE_LSTM: layer_options.BidirectionalSequenceLSTMOptions,
    Op.CAST: options.CastOptions,
    Op.ARG_MAX: options.ArgMaxOptions,
    Op.TRANSPOSE_CONV: layer_options.TransposeConvOptions,
    Op.SPARSE_TO_DENSE: options.SparseToDenseOptions,
    Op.SUM: options.ReducerOptions,
    Op.SHAPE: options.ShapeOptions,
    Op.ARG_MIN: options.ArgMinOptions,
    Op.FAKE_QUANT: layer_options.FakeQuantOptions,
    Op.REDUCE_PROD: options.ReducerOptions,
    Op.REDUCE_MAX: options.ReducerOptions,
    Op.PACK: options.PackOptions,
    Op.ONE_HOT: options.OneHotOptions,
    Op.UNPACK: options.UnpackOptions,
    Op.REDUCE_MIN: options.ReducerOptions,
    Op.REDUCE_ANY: options.ReducerOptions,
    Op.RESIZE_NEAREST_NEIGHBOR: layer_options.ResizeNearestNeighborOptions,
    Op.LEAKY_RELU: layer_options.LeakyReluOptions,
    Op.MIRROR_PAD: options.MirrorPadOptions,
    Op.SPLIT_V: options.SplitVOptions,
    Op.UNIQUE: options.UniqueOptions,
    Op.REVERSE_SEQUENCE: options.ReverseSequenceOptions,
    Op.IF: options.IfOptions,
    Op.WHILE: options.WhileOptions,
    Op.BATCH_MATMUL: layer_options.BatchMatMulOptions,
    Op.CUMSUM: options.CumsumOptions,
    Op.CALL_ONCE: options.CallOnceOptions,
    Op.CONV_3D: layer_options.Conv3DOptions,
    Op.HASHTABLE: options.HashtableOptions,
    Op.REDUCE_ALL: options.ReducerOptions,
    Op.CONV_3D_TRANSPOSE: layer_options.Conv3DOptions,
    Op.VAR_HANDLE: options.VarHandleOptions,
    Op.RANDOM_STANDARD_NORMAL: options.RandomOptions,
    Op.BUCKETIZE: options.BucketizeOptions,
    Op.RANDOM_UNIFORM: options.RandomOptions,
    Op.MULTINOMIAL: options.RandomOptions,
    Op.GELU: layer_options.GeluOptions,
    Op.STABLEHLO_CONCATENATE: stablehlo_options.StablehloConcatenateOptions,
    Op.STABLEHLO_BROADCAST_IN_DIM: stablehlo_options.StablehloBroadcastInDimOptions,
    Op.STABLEHLO_CONVOLUTION: stablehlo_options.StablehloConvolutionOptions,
    Op.STABLEHLO_SLICE: stablehlo_options.StablehloSliceOptions,
    Op.STABLEHLO_CUSTOM_CALL: stablehlo_options.StablehloCustomCallOptions,
    Op.STABLEHLO_REDUCE: stablehlo_options.StablehloReduceOptions,
    Op.STABLEHLO_SCATTER: stablehlo_options.StablehloScatterOptions,
    Op.STABLEHLO_COMPARE: stablehlo_options.StablehloCompareOptions,
    Op.STABLEHLO_DYNAMIC_SLICE: stablehlo_options.StablehloDynamicSliceOptions,
    Op.STABLEHLO_PAD: stablehlo_options.StablehloPadOptions,
    Op.STABLEHLO_IOTA: stablehlo_options.StablehloIotaOptions,
    Op.STABLEHLO_DOT_GENERAL: stablehlo_options.StablehloDotGeneralOptions,
    Op.STABLEHLO_REDUCE_WINDOW: stablehlo_options.StablehloReduceWindowOptions,
    Op.STABLEHLO_SORT: stablehlo_options.StablehloSortOptions,
    Op.STABLEHLO_WHILE: stablehlo_options.StablehloWhileOptions,
    Op.STABLEHLO_GATHER: stablehlo_options.StablehloGatherOptions,
    Op.STABLEHLO_TRANSPOSE: stablehlo_options.StablehloTransposeOptions,
    Op.STABLEHLO_RNG_BIT_GENERATOR: stablehlo_options.StablehloRngBitGeneratorOptions,
    Op.REDUCE_WINDOW: stablehlo_options.ReduceWindowOptions,
    Op.STABLEHLO_COMPOSITE: stablehlo_options.StableHLOCompositeOptions,
    Op.STABLEHLO_CASE: stablehlo_options.StablehloCaseOptions,
}


class NoOptions(Table):
    """The options of an operator that has none."""

    __slots__ = ()


_NO_OPTIONS = NoOptions()


def options_of(op: Op, given: Table | None) -> Table:
    """`given` if it is the operator's own table, else the zeroed struct that TFLite then uses:
    strides 0, beta 0, both flags of a resize false; not the schema's defaults.

    Raises:
        ModelError: the operator has a padding, for which zero means "unknown".
    """
    expected = OPTIONS.get(op)
    if expected is None:
        return _NO_OPTIONS
    return given if isinstance(given, expected) else zeroed(expected)


def zeroed(table: type[Table]) -> Table:
    """`table` with every scalar 0 and everything else absent."""
    if "padding" in fields_of(table):
        raise ModelError(f"the operator lacks its options ({table.__name__}): unknown padding")
    zeros: dict[str, Any] = {}
    for name, field in fields_of(table).items():
        if isinstance(field, Scalar):
            zeros[name] = field.enum(0) if field.enum is not None else type(field.default)(0)
    return table(**zeros)
