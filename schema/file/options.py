"""Options of the operators that compute element by element, move data or call subgraphs."""

from __future__ import annotations

from tflite_ort.schema.file.declare import (
    FLOAT32,
    INT32,
    INT64,
    UINT32,
    Table,
    boolean,
    enum,
    scalar,
    string,
    table,
    vector,
)
from tflite_ort.schema.file.enums import ActivationFunctionType, MirrorPadMode, TensorType


@table
class ConcatenationOptions(Table):
    """Options of CONCATENATION."""

    axis: int = scalar(0, INT32)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)


@table
class AddOptions(Table):
    """Options of ADD."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    pot_scale_int16: bool = boolean(1, default=True, since=3)


@table
class CallOptions(Table):
    """Options of CALL."""

    subgraph: int = scalar(0, UINT32)


@table
class ReshapeOptions(Table):
    """Options of RESHAPE."""

    new_shape: tuple[int, ...] | None = vector(0, INT32)


@table
class SpaceToDepthOptions(Table):
    """Options of SPACE_TO_DEPTH."""

    block_size: int = scalar(0, INT32)


@table
class MulOptions(Table):
    """Options of MUL."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


@table
class GatherOptions(Table):
    """Options of GATHER."""

    axis: int = scalar(0, INT32)
    batch_dims: int = scalar(1, INT32, since=5)


@table
class ReducerOptions(Table):
    """Options of MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL."""

    keep_dims: bool = boolean(0)


@table
class SubOptions(Table):
    """Options of SUB."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    pot_scale_int16: bool = boolean(1, default=True, since=5)


@table
class DivOptions(Table):
    """Options of DIV."""

    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


@table
class SqueezeOptions(Table):
    """Options of SQUEEZE."""

    squeeze_dims: tuple[int, ...] | None = vector(0, INT32)


@table
class StridedSliceOptions(Table):
    """Options of STRIDED_SLICE."""

    begin_mask: int = scalar(0, INT32)
    end_mask: int = scalar(1, INT32)
    ellipsis_mask: int = scalar(2, INT32)
    new_axis_mask: int = scalar(3, INT32)
    shrink_axis_mask: int = scalar(4, INT32)
    offset: bool = boolean(5, since=8)


@table
class SplitOptions(Table):
    """Options of SPLIT."""

    num_splits: int = scalar(0, INT32)


@table
class CastOptions(Table):
    """Options of CAST."""

    in_data_type: TensorType = enum(0, TensorType)
    out_data_type: TensorType = enum(1, TensorType)


@table
class ArgMaxOptions(Table):
    """Options of ARG_MAX."""

    output_type: TensorType = enum(0, TensorType)


@table
class SparseToDenseOptions(Table):
    """Options of SPARSE_TO_DENSE."""

    validate_indices: bool = boolean(0)


@table
class ShapeOptions(Table):
    """Options of SHAPE."""

    out_type: TensorType = enum(0, TensorType)


@table
class ArgMinOptions(Table):
    """Options of ARG_MIN."""

    output_type: TensorType = enum(0, TensorType)


@table
class PackOptions(Table):
    """Options of PACK."""

    values_count: int = scalar(0, INT32)
    axis: int = scalar(1, INT32)


@table
class OneHotOptions(Table):
    """Options of ONE_HOT."""

    axis: int = scalar(0, INT32)


@table
class UnpackOptions(Table):
    """Options of UNPACK."""

    num: int = scalar(0, INT32)
    axis: int = scalar(1, INT32)


@table
class MirrorPadOptions(Table):
    """Options of MIRROR_PAD."""

    mode: MirrorPadMode = enum(0, MirrorPadMode)


@table
class SplitVOptions(Table):
    """Options of SPLIT_V."""

    num_splits: int = scalar(0, INT32)


@table
class UniqueOptions(Table):
    """Options of UNIQUE."""

    idx_out_type: TensorType = enum(0, TensorType, default=2)


@table
class ReverseSequenceOptions(Table):
    """Options of REVERSE_SEQUENCE."""

    seq_dim: int = scalar(0, INT32)
    batch_dim: int = scalar(1, INT32)


@table
class IfOptions(Table):
    """Options of IF."""

    then_subgraph_index: int = scalar(0, INT32)
    else_subgraph_index: int = scalar(1, INT32)


@table
class WhileOptions(Table):
    """Options of WHILE."""

    cond_subgraph_index: int = scalar(0, INT32)
    body_subgraph_index: int = scalar(1, INT32)


@table
class DepthToSpaceOptions(Table):
    """Options of DEPTH_TO_SPACE."""

    block_size: int = scalar(0, INT32)


@table
class CumsumOptions(Table):
    """Options of CUMSUM."""

    exclusive: bool = boolean(0)
    reverse: bool = boolean(1)


@table
class CallOnceOptions(Table):
    """Options of CALL_ONCE."""

    init_subgraph_index: int = scalar(0, INT32)


@table
class HashtableOptions(Table):
    """Options of HASHTABLE."""

    table_id: int = scalar(0, INT32)
    key_dtype: TensorType = enum(1, TensorType)
    value_dtype: TensorType = enum(2, TensorType)


@table
class VarHandleOptions(Table):
    """Options of VAR_HANDLE."""

    container: str = string(0)
    shared_name: str = string(1)


@table
class RandomOptions(Table):
    """Options of RANDOM_STANDARD_NORMAL, RANDOM_UNIFORM, MULTINOMIAL."""

    seed: int = scalar(0, INT64)
    seed2: int = scalar(1, INT64)


@table
class BucketizeOptions(Table):
    """Options of BUCKETIZE."""

    boundaries: tuple[float, ...] | None = vector(0, FLOAT32)
