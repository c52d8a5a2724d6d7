"""Options of the StableHLO operators and of those added with them."""

from __future__ import annotations

from tflite_ort.schema.file.declare import boolean, enum, options, scalar, string, vector, view
from tflite_ort.schema.file.enums import (
    CustomOptionsFormat,
    Op,
    ReduceWindowFunction,
    RngAlgorithm,
    StablehloComparisonDirection,
    StablehloComparisonType,
    StablehloPrecisionConfig,
)
from tflite_ort.schema.file.exports import export_classes
from tflite_ort.schema.file.fields import BOOL, INT32, INT64
from tflite_ort.schema.file.tables import Array, Table


@options(1, Op.STABLEHLO_CONCATENATE, second=True)
class StablehloConcatenateOptions(Table):
    """Options of STABLEHLO_CONCATENATE."""

    dimension: int = scalar(0, INT64)


@options(2, Op.STABLEHLO_BROADCAST_IN_DIM, second=True)
class StablehloBroadcastInDimOptions(Table):
    """Options of STABLEHLO_BROADCAST_IN_DIM."""

    broadcast_dimensions: tuple[int, ...] | None = vector(0, INT64)


@options(3, Op.STABLEHLO_SLICE, second=True)
class StablehloSliceOptions(Table):
    """Options of STABLEHLO_SLICE."""

    start_indices: tuple[int, ...] | None = vector(0, INT64)
    limit_indices: tuple[int, ...] | None = vector(1, INT64)
    strides: tuple[int, ...] | None = vector(2, INT64)


@options(4, Op.STABLEHLO_CONVOLUTION, second=True)
class StablehloConvolutionOptions(Table):
    """Options of STABLEHLO_CONVOLUTION."""

    window_strides: tuple[int, ...] | None = vector(0, INT64)
    padding: tuple[int, ...] | None = vector(1, INT64)
    lhs_dilation: tuple[int, ...] | None = vector(2, INT64)
    rhs_dilation: tuple[int, ...] | None = vector(3, INT64)
    window_reversal: tuple[bool, ...] | None = vector(4, BOOL)
    input_batch_dimension: int = scalar(5, INT64)
    input_feature_dimension: int = scalar(6, INT64)
    input_spatial_dimensions: tuple[int, ...] | None = vector(7, INT64)
    kernel_input_feature_dimension: int = scalar(8, INT64)
    kernel_output_feature_dimension: int = scalar(9, INT64)
    kernel_spatial_dimensions: tuple[int, ...] | None = vector(10, INT64)
    output_batch_dimension: int = scalar(11, INT64)
    output_feature_dimension: int = scalar(12, INT64)
    output_spatial_dimensions: tuple[int, ...] | None = vector(13, INT64)
    feature_group_count: int = scalar(14, INT64)
    batch_group_count: int = scalar(15, INT64)
    precision_config: tuple[StablehloPrecisionConfig, ...] | None = vector(
        16, StablehloPrecisionConfig
    )


@options(5, Op.STABLEHLO_CUSTOM_CALL, second=True)
class StablehloCustomCallOptions(Table):
    """Options of STABLEHLO_CUSTOM_CALL."""

    call_target_name: str = string(0)
    has_side_effect: bool = boolean(1)
    backend_config: str = string(2)
    api_version: int = scalar(3, INT32)
    called_computations: tuple[int, ...] | None = vector(4, INT32)
    custom_attributes: Array | None = view(5)


@options(6, Op.STABLEHLO_REDUCE, second=True)
class StablehloReduceOptions(Table):
    """Options of STABLEHLO_REDUCE."""

    dimensions: tuple[int, ...] | None = vector(0, INT64)
    body_subgraph_index: int = scalar(1, INT32)


@options(7, Op.STABLEHLO_SCATTER, second=True)
class StablehloScatterOptions(Table):
    """Options of STABLEHLO_SCATTER."""

    indices_are_sorted: bool = boolean(0)
    update_window_dims: tuple[int, ...] | None = vector(1, INT64)
    inserted_window_dims: tuple[int, ...] | None = vector(2, INT64)
    scatter_dims_to_operand_dims: tuple[int, ...] | None = vector(3, INT64)
    index_vector_dim: int = scalar(4, INT64)
    unique_indices: bool = boolean(5)
    update_computation_subgraph_index: int = scalar(6, INT32)


@options(8, Op.STABLEHLO_COMPARE, second=True)
class StablehloCompareOptions(Table):
    """Options of STABLEHLO_COMPARE."""

    comparison_direction: StablehloComparisonDirection = enum(0, StablehloComparisonDirection)
    compare_type: StablehloComparisonType = enum(1, StablehloComparisonType)


@options(9, Op.STABLEHLO_DYNAMIC_SLICE, second=True)
class StablehloDynamicSliceOptions(Table):
    """Options of STABLEHLO_DYNAMIC_SLICE."""

    slice_sizes: tuple[int, ...] | None = vector(0, INT64)


@options(10, Op.STABLEHLO_PAD, second=True)
class StablehloPadOptions(Table):
    """Options of STABLEHLO_PAD."""

    edge_padding_low: tuple[int, ...] | None = vector(0, INT64)
    edge_padding_high: tuple[int, ...] | None = vector(1, INT64)
    interior_padding: tuple[int, ...] | None = vector(2, INT64)


@options(11, Op.STABLEHLO_IOTA, second=True)
class StablehloIotaOptions(Table):
    """Options of STABLEHLO_IOTA."""

    iota_dimension: int = scalar(0, INT64)


@options(12, Op.STABLEHLO_DOT_GENERAL, second=True)
class StablehloDotGeneralOptions(Table):
    """Options of STABLEHLO_DOT_GENERAL."""

    lhs_batching_dimensions: tuple[int, ...] | None = vector(0, INT64)
    rhs_batching_dimensions: tuple[int, ...] | None = vector(1, INT64)
    lhs_contracting_dimensions: tuple[int, ...] | None = vector(2, INT64)
    rhs_contracting_dimensions: tuple[int, ...] | None = vector(3, INT64)
    precision_config: tuple[StablehloPrecisionConfig, ...] | None = vector(
        4, StablehloPrecisionConfig
    )


@options(13, Op.STABLEHLO_REDUCE_WINDOW, second=True)
class StablehloReduceWindowOptions(Table):
    """Options of STABLEHLO_REDUCE_WINDOW."""

    window_dimensions: tuple[int, ...] | None = vector(0, INT64)
    window_strides: tuple[int, ...] | None = vector(1, INT64)
    base_dilations: tuple[int, ...] | None = vector(2, INT64)
    window_dilations: tuple[int, ...] | None = vector(3, INT64)
    padding: tuple[int, ...] | None = vector(4, INT64)
    body_subgraph_index: int = scalar(5, INT32)


@options(14, Op.STABLEHLO_SORT, second=True)
class StablehloSortOptions(Table):
    """Options of STABLEHLO_SORT."""

    dimension: int = scalar(0, INT64)
    is_stable: bool = boolean(1)
    comparator_subgraph_index: int = scalar(2, INT32)


@options(15, Op.STABLEHLO_WHILE, second=True)
class StablehloWhileOptions(Table):
    """Options of STABLEHLO_WHILE."""

    cond_subgraph_index: int = scalar(0, INT32)
    body_subgraph_index: int = scalar(1, INT32)


@options(16, Op.STABLEHLO_GATHER, second=True)
class StablehloGatherOptions(Table):
    """Options of STABLEHLO_GATHER."""

    offset_dims: tuple[int, ...] | None = vector(0, INT64)
    collapsed_slice_dims: tuple[int, ...] | None = vector(1, INT64)
    start_index_map: tuple[int, ...] | None = vector(2, INT64)
    index_vector_dim: int = scalar(3, INT64)
    slice_sizes: tuple[int, ...] | None = vector(4, INT64)
    indices_are_sorted: bool = boolean(5)


@options(17, Op.STABLEHLO_TRANSPOSE, second=True)
class StablehloTransposeOptions(Table):
    """Options of STABLEHLO_TRANSPOSE."""

    permutation: tuple[int, ...] | None = vector(0, INT64)


@options(19, Op.STABLEHLO_RNG_BIT_GENERATOR, second=True)
class StablehloRngBitGeneratorOptions(Table):
    """Options of STABLEHLO_RNG_BIT_GENERATOR."""

    algorithm: RngAlgorithm = enum(0, RngAlgorithm)


@options(20, Op.REDUCE_WINDOW, second=True)
class ReduceWindowOptions(Table):
    """Options of REDUCE_WINDOW."""

    reduce_function: ReduceWindowFunction = enum(0, ReduceWindowFunction)


@options(21, Op.STABLEHLO_COMPOSITE, second=True)
class StableHLOCompositeOptions(Table):
    """Options of STABLEHLO_COMPOSITE."""

    name: str = string(0)
    decomposition_subgraph_index: int = scalar(1, INT32)
    composite_attributes: Array | None = view(2)
    composite_attributes_format: CustomOptionsFormat = enum(3, CustomOptionsFormat)
    version: int = scalar(4, INT32)


@options(23, Op.STABLEHLO_CASE, second=True)
class StablehloCaseOptions(Table):
    """Options of STABLEHLO_CASE."""

    branch_subgraph_indices: tuple[int, ...] | None = vector(0, INT32)


export_classes(globals())
