"""Options tables without fields: the file can name them, they say nothing."""

from __future__ import annotations

from tflite_ort.schema.file.declare import Table, table


@table
class PadOptions(Table):
    """Empty options of PAD."""


@table
class BatchToSpaceNDOptions(Table):
    """Empty options of BATCH_TO_SPACE_ND."""


@table
class SpaceToBatchNDOptions(Table):
    """Empty options of SPACE_TO_BATCH_ND."""


@table
class TransposeOptions(Table):
    """Empty options of TRANSPOSE."""


@table
class ExpOptions(Table):
    """Empty options of EXP."""


@table
class TopKV2Options(Table):
    """Empty options of TOPK_V2."""


@table
class LogSoftmaxOptions(Table):
    """Empty options of LOG_SOFTMAX."""


@table
class DequantizeOptions(Table):
    """Empty options of DEQUANTIZE."""


@table
class MaximumMinimumOptions(Table):
    """Empty options of MAXIMUM, MINIMUM."""


@table
class LessOptions(Table):
    """Empty options of LESS."""


@table
class NegOptions(Table):
    """Empty options of NEG."""


@table
class PadV2Options(Table):
    """Empty options of PADV2."""


@table
class GreaterOptions(Table):
    """Empty options of GREATER."""


@table
class GreaterEqualOptions(Table):
    """Empty options of GREATER_EQUAL."""


@table
class LessEqualOptions(Table):
    """Empty options of LESS_EQUAL."""


@table
class SelectOptions(Table):
    """Empty options of SELECT."""


@table
class SliceOptions(Table):
    """Empty options of SLICE."""


@table
class TileOptions(Table):
    """Empty options of TILE."""


@table
class ExpandDimsOptions(Table):
    """Empty options of EXPAND_DIMS."""


@table
class EqualOptions(Table):
    """Empty options of EQUAL."""


@table
class NotEqualOptions(Table):
    """Empty options of NOT_EQUAL."""


@table
class PowOptions(Table):
    """Empty options of POW."""


@table
class LogicalOrOptions(Table):
    """Empty options of LOGICAL_OR."""


@table
class LogicalAndOptions(Table):
    """Empty options of LOGICAL_AND."""


@table
class LogicalNotOptions(Table):
    """Empty options of LOGICAL_NOT."""


@table
class FloorDivOptions(Table):
    """Empty options of FLOOR_DIV."""


@table
class SquareOptions(Table):
    """Empty options of SQUARE."""


@table
class ZerosLikeOptions(Table):
    """Empty options of ZEROS_LIKE."""


@table
class FillOptions(Table):
    """Empty options of FILL."""


@table
class FloorModOptions(Table):
    """Empty options of FLOOR_MOD."""


@table
class RangeOptions(Table):
    """Empty options of RANGE."""


@table
class SquaredDifferenceOptions(Table):
    """Empty options of SQUARED_DIFFERENCE."""


@table
class AbsOptions(Table):
    """Empty options of ABS."""


@table
class ReverseV2Options(Table):
    """Empty options of REVERSE_V2."""


@table
class AddNOptions(Table):
    """Empty options of ADD_N."""


@table
class GatherNdOptions(Table):
    """Empty options of GATHER_ND."""


@table
class CosOptions(Table):
    """Empty options of COS."""


@table
class WhereOptions(Table):
    """Empty options of WHERE."""


@table
class RankOptions(Table):
    """Empty options of RANK."""


@table
class MatrixDiagOptions(Table):
    """Empty options of MATRIX_DIAG."""


@table
class QuantizeOptions(Table):
    """Empty options of QUANTIZE."""


@table
class MatrixSetDiagOptions(Table):
    """Empty options of MATRIX_SET_DIAG."""


@table
class HardSwishOptions(Table):
    """Empty options of HARD_SWISH."""


@table
class NonMaxSuppressionV4Options(Table):
    """Empty options of NON_MAX_SUPPRESSION_V4."""


@table
class NonMaxSuppressionV5Options(Table):
    """Empty options of NON_MAX_SUPPRESSION_V5."""


@table
class ScatterNdOptions(Table):
    """Empty options of SCATTER_ND."""


@table
class SelectV2Options(Table):
    """Empty options of SELECT_V2."""


@table
class DensifyOptions(Table):
    """Empty options of DENSIFY."""


@table
class SegmentSumOptions(Table):
    """Empty options of SEGMENT_SUM."""


@table
class BroadcastToOptions(Table):
    """Empty options of BROADCAST_TO."""


@table
class Rfft2dOptions(Table):
    """Empty options of RFFT2D."""


@table
class HashtableFindOptions(Table):
    """Empty options of HASHTABLE_FIND."""


@table
class HashtableImportOptions(Table):
    """Empty options of HASHTABLE_IMPORT."""


@table
class HashtableSizeOptions(Table):
    """Empty options of HASHTABLE_SIZE."""


@table
class ReadVariableOptions(Table):
    """Empty options of READ_VARIABLE."""


@table
class AssignVariableOptions(Table):
    """Empty options of ASSIGN_VARIABLE."""


@table
class DynamicUpdateSliceOptions(Table):
    """Empty options of DYNAMIC_UPDATE_SLICE."""


@table
class UnsortedSegmentProdOptions(Table):
    """Empty options of UNSORTED_SEGMENT_PROD."""


@table
class UnsortedSegmentMaxOptions(Table):
    """Empty options of UNSORTED_SEGMENT_MAX."""


@table
class UnsortedSegmentMinOptions(Table):
    """Empty options of UNSORTED_SEGMENT_MIN."""


@table
class UnsortedSegmentSumOptions(Table):
    """Empty options of UNSORTED_SEGMENT_SUM."""


@table
class ATan2Options(Table):
    """Empty options of ATAN2."""


@table
class SignOptions(Table):
    """Empty options of SIGN."""


@table
class BitcastOptions(Table):
    """Empty options of BITCAST."""


@table
class BitwiseXorOptions(Table):
    """Empty options of BITWISE_XOR."""


@table
class RightShiftOptions(Table):
    """Empty options of RIGHT_SHIFT."""


@table
class DilateOptions(Table):
    """Empty options of DILATE."""


@table
class StablehloShiftLeftOptions(Table):
    """Empty options of STABLEHLO_SHIFT_LEFT."""
