"""Options tables without fields: the file can name them, they say nothing."""

from __future__ import annotations

from tflite_ort.schema.file.declare import options
from tflite_ort.schema.file.exports import export_classes
from tflite_ort.schema.file.tables import Table


@options(22)
class PadOptions(Table):
    """Empty options of PAD."""


@options(24)
class BatchToSpaceNDOptions(Table):
    """Empty options of BATCH_TO_SPACE_ND."""


@options(25)
class SpaceToBatchNDOptions(Table):
    """Empty options of SPACE_TO_BATCH_ND."""


@options(26)
class TransposeOptions(Table):
    """Empty options of TRANSPOSE."""


@options(33)
class ExpOptions(Table):
    """Empty options of EXP."""


@options(34)
class TopKV2Options(Table):
    """Empty options of TOPK_V2."""


@options(36)
class LogSoftmaxOptions(Table):
    """Empty options of LOG_SOFTMAX."""


@options(38)
class DequantizeOptions(Table):
    """Empty options of DEQUANTIZE."""


@options(39)
class MaximumMinimumOptions(Table):
    """Empty options of MAXIMUM, MINIMUM."""


@options(41)
class LessOptions(Table):
    """Empty options of LESS."""


@options(42)
class NegOptions(Table):
    """Empty options of NEG."""


@options(43)
class PadV2Options(Table):
    """Empty options of PADV2."""


@options(44)
class GreaterOptions(Table):
    """Empty options of GREATER."""


@options(45)
class GreaterEqualOptions(Table):
    """Empty options of GREATER_EQUAL."""


@options(46)
class LessEqualOptions(Table):
    """Empty options of LESS_EQUAL."""


@options(47)
class SelectOptions(Table):
    """Empty options of SELECT."""


@options(48)
class SliceOptions(Table):
    """Empty options of SLICE."""


@options(51)
class TileOptions(Table):
    """Empty options of TILE."""


@options(52)
class ExpandDimsOptions(Table):
    """Empty options of EXPAND_DIMS."""


@options(53)
class EqualOptions(Table):
    """Empty options of EQUAL."""


@options(54)
class NotEqualOptions(Table):
    """Empty options of NOT_EQUAL."""


@options(56)
class PowOptions(Table):
    """Empty options of POW."""


@options(60)
class LogicalOrOptions(Table):
    """Empty options of LOGICAL_OR."""


@options(62)
class LogicalAndOptions(Table):
    """Empty options of LOGICAL_AND."""


@options(63)
class LogicalNotOptions(Table):
    """Empty options of LOGICAL_NOT."""


@options(65)
class FloorDivOptions(Table):
    """Empty options of FLOOR_DIV."""


@options(66)
class SquareOptions(Table):
    """Empty options of SQUARE."""


@options(67)
class ZerosLikeOptions(Table):
    """Empty options of ZEROS_LIKE."""


@options(68)
class FillOptions(Table):
    """Empty options of FILL."""


@options(72)
class FloorModOptions(Table):
    """Empty options of FLOOR_MOD."""


@options(73)
class RangeOptions(Table):
    """Empty options of RANGE."""


@options(76)
class SquaredDifferenceOptions(Table):
    """Empty options of SQUARED_DIFFERENCE."""


@options(78)
class AbsOptions(Table):
    """Empty options of ABS."""


@options(81)
class ReverseV2Options(Table):
    """Empty options of REVERSE_V2."""


@options(82)
class AddNOptions(Table):
    """Empty options of ADD_N."""


@options(83)
class GatherNdOptions(Table):
    """Empty options of GATHER_ND."""


@options(84)
class CosOptions(Table):
    """Empty options of COS."""


@options(85)
class WhereOptions(Table):
    """Empty options of WHERE."""


@options(86)
class RankOptions(Table):
    """Empty options of RANK."""


@options(88)
class MatrixDiagOptions(Table):
    """Empty options of MATRIX_DIAG."""


@options(89)
class QuantizeOptions(Table):
    """Empty options of QUANTIZE."""


@options(90)
class MatrixSetDiagOptions(Table):
    """Empty options of MATRIX_SET_DIAG."""


@options(91)
class HardSwishOptions(Table):
    """Empty options of HARD_SWISH."""


@options(95)
class NonMaxSuppressionV4Options(Table):
    """Empty options of NON_MAX_SUPPRESSION_V4."""


@options(96)
class NonMaxSuppressionV5Options(Table):
    """Empty options of NON_MAX_SUPPRESSION_V5."""


@options(97)
class ScatterNdOptions(Table):
    """Empty options of SCATTER_ND."""


@options(98)
class SelectV2Options(Table):
    """Empty options of SELECT_V2."""


@options(99)
class DensifyOptions(Table):
    """Empty options of DENSIFY."""


@options(100)
class SegmentSumOptions(Table):
    """Empty options of SEGMENT_SUM."""


@options(104)
class BroadcastToOptions(Table):
    """Empty options of BROADCAST_TO."""


@options(105)
class Rfft2dOptions(Table):
    """Empty options of RFFT2D."""


@options(108)
class HashtableFindOptions(Table):
    """Empty options of HASHTABLE_FIND."""


@options(109)
class HashtableImportOptions(Table):
    """Empty options of HASHTABLE_IMPORT."""


@options(110)
class HashtableSizeOptions(Table):
    """Empty options of HASHTABLE_SIZE."""


@options(112)
class ReadVariableOptions(Table):
    """Empty options of READ_VARIABLE."""


@options(113)
class AssignVariableOptions(Table):
    """Empty options of ASSIGN_VARIABLE."""


@options(117)
class DynamicUpdateSliceOptions(Table):
    """Empty options of DYNAMIC_UPDATE_SLICE."""


@options(118)
class UnsortedSegmentProdOptions(Table):
    """Empty options of UNSORTED_SEGMENT_PROD."""


@options(119)
class UnsortedSegmentMaxOptions(Table):
    """Empty options of UNSORTED_SEGMENT_MAX."""


@options(120)
class UnsortedSegmentMinOptions(Table):
    """Empty options of UNSORTED_SEGMENT_MIN."""


@options(121)
class UnsortedSegmentSumOptions(Table):
    """Empty options of UNSORTED_SEGMENT_SUM."""


@options(122)
class ATan2Options(Table):
    """Empty options of ATAN2."""


@options(123)
class SignOptions(Table):
    """Empty options of SIGN."""


@options(124)
class BitcastOptions(Table):
    """Empty options of BITCAST."""


@options(125)
class BitwiseXorOptions(Table):
    """Empty options of BITWISE_XOR."""


@options(126)
class RightShiftOptions(Table):
    """Empty options of RIGHT_SHIFT."""


@options(18, second=True)
class DilateOptions(Table):
    """Empty options of DILATE."""


@options(22, second=True)
class StablehloShiftLeftOptions(Table):
    """Empty options of STABLEHLO_SHIFT_LEFT."""


export_classes(globals())
