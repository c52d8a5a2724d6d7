"""Options of the operators that compute element by element, move data or call subgraphs."""

from __future__ import annotations

from tflite_ort.schema.file.declare import boolean, enum, options, scalar, string, vector
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import ActivationFunctionType, MirrorPadMode, Op
from tflite_ort.schema.file.exports import export_classes
from tflite_ort.schema.file.fields import FLOAT32, INT32, INT64, UINT32
from tflite_ort.schema.file.tables import Table


@options(10, Op.CONCATENATION)
class ConcatenationOptions(Table):
    """Options of CONCATENATION."""

    axis: int = scalar(0, INT32)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)


@options(11, Op.ADD)
class AddOptions(Table):
    """Options of ADD."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    pot_scale_int16: bool = boolean(1, default=True, since=3)


@options(16, Op.CALL)
class CallOptions(Table):
    """Options of CALL."""

    subgraph: int = scalar(0, UINT32)


@options(17, Op.RESHAPE)
class ReshapeOptions(Table):
    """Options of RESHAPE."""

    new_shape: tuple[int, ...] | None = vector(0, INT32)


@options(19, Op.SPACE_TO_DEPTH)
class SpaceToDepthOptions(Table):
    """Options of SPACE_TO_DEPTH."""

    block_size: int = scalar(0, INT32)


@options(21, Op.MUL)
class MulOptions(Table):
    """Options of MUL."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


@options(23, Op.GATHER)
class GatherOptions(Table):
    """Options of GATHER."""

    axis: int = scalar(0, INT32)
    batch_dims: int = scalar(1, INT32, since=5)


@options(
    27, Op.MEAN, Op.SUM, Op.REDUCE_PROD, Op.REDUCE_MAX, Op.REDUCE_MIN, Op.REDUCE_ANY, Op.REDUCE_ALL
)
class ReducerOptions(Table):
    """Options of MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL."""

    keep_dims: bool = boolean(0)


@options(28, Op.SUB)
class SubOptions(Table):
    """Options of SUB."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    pot_scale_int16: bool = boolean(1, default=True, since=5)


@options(29, Op.DIV)
class DivOptions(Table):
    """Options of DIV."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


@options(30, Op.SQUEEZE)
class SqueezeOptions(Table):
    """Options of SQUEEZE."""

    squeeze_dims: tuple[int, ...] | None = vector(0, INT32)


@options(32, Op.STRIDED_SLICE)
class StridedSliceOptions(Table):
    """Options of STRIDED_SLICE."""

    begin_mask: int = scalar(0, INT32)
    end_mask: int = scalar(1, INT32)
    ellipsis_mask: int = scalar(2, INT32)
    new_axis_mask: int = scalar(3, INT32)
    shrink_axis_mask: int = scalar(4, INT32)
    offset: bool = boolean(5, since=8)


@options(35, Op.SPLIT)
class SplitOptions(Table):
    """Options of SPLIT."""

    num_splits: int = scalar(0, INT32)


@options(37, Op.CAST)
class CastOptions(Table):
    """Options of CAST."""

    in_data_type: TensorType = enum(0, TensorType)
    out_data_type: TensorType = enum(1, TensorType)


@options(40, Op.ARG_MAX)
class ArgMaxOptions(Table):
    """Options of ARG_MAX."""

    output_type: TensorType = enum(0, TensorType)


@options(50, Op.SPARSE_TO_DENSE)
class SparseToDenseOptions(Table):
    """Options of SPARSE_TO_DENSE."""

    validate_indices: bool = boolean(0)


@options(55, Op.SHAPE)
class ShapeOptions(Table):
    """Options of SHAPE."""

    out_type: TensorType = enum(0, TensorType)


@options(57, Op.ARG_MIN)
class ArgMinOptions(Table):
    """Options of ARG_MIN."""

    output_type: TensorType = enum(0, TensorType)


@options(59, Op.PACK)
class PackOptions(Table):
    """Options of PACK."""

    values_count: int = scalar(0, INT32)
    axis: int = scalar(1, INT32)


@options(61, Op.ONE_HOT)
class OneHotOptions(Table):
    """Options of ONE_HOT."""

    axis: int = scalar(0, INT32)


@options(64, Op.UNPACK)
class UnpackOptions(Table):
    """Options of UNPACK."""

    num: int = scalar(0, INT32)
    axis: int = scalar(1, INT32)


@options(77, Op.MIRROR_PAD)
class MirrorPadOptions(Table):
    """Options of MIRROR_PAD."""

    mode: MirrorPadMode = enum(0, MirrorPadMode)


@options(79, Op.SPLIT_V)
class SplitVOptions(Table):
    """Options of SPLIT_V."""

    num_splits: int = scalar(0, INT32)


@options(80, Op.UNIQUE)
class UniqueOptions(Table):
    """Options of UNIQUE."""

    idx_out_type: TensorType = enum(0, TensorType, default=2)


@options(87, Op.REVERSE_SEQUENCE)
class ReverseSequenceOptions(Table):
    """Options of REVERSE_SEQUENCE."""

    seq_dim: int = scalar(0, INT32)
    batch_dim: int = scalar(1, INT32)


@options(92, Op.IF)
class IfOptions(Table):
    """Options of IF."""

    then_subgraph_index: int = scalar(0, INT32)
    else_subgraph_index: int = scalar(1, INT32)


@options(93, Op.WHILE)
class WhileOptions(Table):
    """Options of WHILE."""

    cond_subgraph_index: int = scalar(0, INT32)
    body_subgraph_index: int = scalar(1, INT32)


@options(94, Op.DEPTH_TO_SPACE)
class DepthToSpaceOptions(Table):
    """Options of DEPTH_TO_SPACE."""

    block_size: int = scalar(0, INT32)


@options(102, Op.CUMSUM)
class CumsumOptions(Table):
    """Options of CUMSUM."""

    exclusive: bool = boolean(0)
    reverse: bool = boolean(1)


@options(103, Op.CALL_ONCE)
class CallOnceOptions(Table):
    """Options of CALL_ONCE."""

    init_subgraph_index: int = scalar(0, INT32)


@options(107, Op.HASHTABLE)
class HashtableOptions(Table):
    """Options of HASHTABLE."""

    table_id: int = scalar(0, INT32)
    key_dtype: TensorType = enum(1, TensorType)
    value_dtype: TensorType = enum(2, TensorType)


@options(111, Op.VAR_HANDLE)
class VarHandleOptions(Table):
    """Options of VAR_HANDLE."""

    container: str = string(0)
    shared_name: str = string(1)


@options(114, Op.RANDOM_STANDARD_NORMAL, Op.RANDOM_UNIFORM, Op.MULTINOMIAL)
class RandomOptions(Table):
    """Options of RANDOM_STANDARD_NORMAL, RANDOM_UNIFORM, MULTINOMIAL."""

    seed: int = scalar(0, INT64)
    seed2: int = scalar(1, INT64)


@options(115, Op.BUCKETIZE)
class BucketizeOptions(Table):
    """Options of BUCKETIZE."""

    boundaries: tuple[float, ...] | None = vector(0, FLOAT32)


export_classes(globals())
