"""The tables that make up a model: graph, tensors, quantization, buffers, signatures.

A vector that is absent reads as ``()`` where TFLite treats absent and empty alike, and as None
where the difference means something (`Tensor.shape_signature`, `Operator.custom_options`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.budgets import DEFAULT, Budgets
from tflite_ort.schema.file.declare import (
    boolean,
    child,
    children,
    enum,
    local,
    one_of,
    operator_code,
    scalar,
    string,
    vector,
    view,
)
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator, CustomOptionsFormat, DimensionType
from tflite_ort.schema.file.exports import export_classes
from tflite_ort.schema.file.fields import BOOL, FLOAT32, INT32, INT64, UINT16, UINT32, UINT64, Union
from tflite_ort.schema.file.tables import Array, Table
from tflite_ort.schema.file.unions import BuiltinOptions, BuiltinOptions2


class CustomQuantization(Table):
    """Quantization in a form that only its maker knows."""

    custom: Array | None = view(0, align=16)


class BlockwiseQuantization(Table):
    """One scale per `block_size` elements of the last axis; scales are a tensor (an index)."""

    scales: int = scalar(0, INT32)
    zero_points: int = scalar(1, INT32)
    block_size: int = scalar(2, INT32)


class MultiAxisQuantization(Table):
    """One scale per element (or block) of several axes; scales are a tensor (an index)."""

    scales: int = scalar(0, INT32)
    zero_points: int = scalar(1, INT32)
    block_size: int = scalar(2, INT32)
    quantized_dimensions: tuple[int, ...] | None = vector(3, INT32)


QuantizationDetails = Union(
    "QuantizationDetails", (CustomQuantization, BlockwiseQuantization, MultiAxisQuantization)
)


class QuantizationParameters(Table):
    """Affine quantization: real = scale * (stored - zero_point), per tensor or per channel.

    `min`, `max`, `scale` are float32 [n], `zero_point` is int64 [n]; None when absent or empty.
    """

    min: Array | None = view(0, FLOAT32, blank=True)
    max: Array | None = view(1, FLOAT32, blank=True)
    scale: Array | None = view(2, FLOAT32, blank=True)
    zero_point: Array | None = view(3, INT64, blank=True)
    details: CustomQuantization | BlockwiseQuantization | MultiAxisQuantization | None = one_of(
        (5, QuantizationDetails)
    )
    quantized_dimension: int = scalar(6, INT32)

    @classmethod
    def affine(
        cls, scale: npt.ArrayLike, zero_point: npt.ArrayLike = 0, axis: int = 0
    ) -> QuantizationParameters:
        """One scale for the whole tensor, or one for each index of `axis`.

        Args:
            scale: one or more, stored as float32.
            zero_point: one for all scales, or as many.
        """
        scales = np.atleast_1d(np.asarray(scale, np.float32))
        zeros = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape)
        return cls(scale=scales, zero_point=np.ascontiguousarray(zeros), quantized_dimension=axis)


class Int32Vector(Table):
    """Segments or indices of a sparse dimension."""

    values: Array | None = view(0, INT32)


class Uint16Vector(Table):
    """Segments or indices of a sparse dimension that fit 16 bits."""

    values: Array | None = view(0, UINT16, align=4)


class Uint8Vector(Table):
    """Segments or indices of a sparse dimension that fit 8 bits."""

    values: Array | None = view(0, align=4)


SparseIndexVector = Union("SparseIndexVector", (Int32Vector, Uint16Vector, Uint8Vector))


class DimensionMetadata(Table):
    """One dimension of a sparse tensor: dense, or compressed as in CSR."""

    format: DimensionType = enum(0, DimensionType)
    dense_size: int = scalar(1, INT32)
    array_segments: Int32Vector | Uint16Vector | Uint8Vector | None = one_of((3, SparseIndexVector))
    array_indices: Int32Vector | Uint16Vector | Uint8Vector | None = one_of((5, SparseIndexVector))


class SparsityParameters(Table):
    """How the dimensions of a sparse constant are ordered, blocked and compressed."""

    traversal_order: tuple[int, ...] | None = vector(0, INT32)
    block_map: tuple[int, ...] | None = vector(1, INT32)
    dim_metadata: tuple[DimensionMetadata, ...] = children(2, DimensionMetadata, keep_empty=True)


class VariantSubType(Table):
    """What the elements of a VARIANT tensor are."""

    shape: tuple[int, ...] = vector(0, INT32, default=(), keep_empty=True)
    type: TensorType = enum(1, TensorType)
    has_rank: bool = boolean(2)


class Tensor(Table):
    """A tensor of a subgraph.

    Attributes:
        shape: the shape memory is reserved for; dynamic dimensions are 1.
        buffer: index of its constant data; 0 when it has none.
        shape_signature: as `shape` with -1 for dynamic dimensions, None when nothing is dynamic.
        has_rank: with an empty shape, tells a scalar from a tensor of unknown rank.
        external_buffer: id of its data in a file of its own; 0 when it has none.
    """

    shape: tuple[int, ...] = vector(0, INT32, default=(), keep_empty=True)
    type: TensorType = enum(1, TensorType)
    buffer: int = scalar(2, UINT32)
    name: str = string(3)
    quantization: QuantizationParameters | None = child(4, QuantizationParameters)
    is_variable: bool = boolean(5)
    sparsity: SparsityParameters | None = child(6, SparsityParameters)
    shape_signature: tuple[int, ...] | None = vector(7, INT32)
    has_rank: bool = boolean(8)
    variant_tensors: tuple[VariantSubType, ...] = children(9, VariantSubType)
    external_buffer: int = scalar(10, UINT32)


class OperatorCode(Table):
    """An operator with its version; operators refer to it by index."""

    builtin_code: BuiltinOperator = operator_code(3, BuiltinOperator, narrow_slot=0)
    custom_code: str | None = string(1, default=None)
    version: int = scalar(2, INT32, default=1)


class Operator(Table):
    """One operator of a subgraph.

    Attributes:
        inputs: tensor indices; None for an optional input that is left out.
        options: the options table, from either of the schema's two unions.
        custom_options: uint8 bytes of a custom operator's options.
        intermediates: tensors that carry the scales of intermediate results.
    """

    opcode_index: int = scalar(0, UINT32)
    inputs: tuple[int | None, ...] = vector(1, INT32, default=(), none_as=-1, keep_empty=True)
    outputs: tuple[int, ...] = vector(2, INT32, default=(), keep_empty=True)
    options: Table | None = one_of((4, BuiltinOptions), (12, BuiltinOptions2))
    custom_options: Array | None = view(5, outside=(9, 10))
    custom_options_format: CustomOptionsFormat = enum(6, CustomOptionsFormat)
    mutating_variable_inputs: tuple[bool, ...] = vector(7, BOOL, default=())
    intermediates: tuple[int, ...] = vector(8, INT32, default=())
    debug_metadata_index: int = scalar(13, INT32, default=-1)


class SubGraph(Table):
    """A graph: tensors, and operators in the order in which they run."""

    tensors: tuple[Tensor, ...] = children(0, Tensor, keep_empty=True)
    inputs: tuple[int, ...] = vector(1, INT32, default=(), keep_empty=True)
    outputs: tuple[int, ...] = vector(2, INT32, default=(), keep_empty=True)
    operators: tuple[Operator, ...] = children(3, Operator, keep_empty=True)
    name: str = string(4)
    debug_metadata_index: int = scalar(5, INT32, default=-1)


class Buffer(Table):
    """Constant data as uint8 bytes, wherever in the file they stand."""

    data: Array | None = view(0, outside=(1, 2), align=16)


class ExternalBufferGroup(Table):
    """A file of external buffers; its name is relative to the model's folder unless absolute."""

    name: str = string(0)


class ExternalBuffer(Table):
    """A range of bytes of one of the external files."""

    id: int = scalar(0, UINT32)
    group: int = scalar(1, UINT32)
    offset: int = scalar(2, UINT64)
    length: int = scalar(3, UINT64)
    packing: str = string(4)


class Metadata(Table):
    """A named buffer."""

    name: str = string(0)
    buffer: int = scalar(1, UINT32)


class TensorMap(Table):
    """The name that a signature gives to a tensor."""

    name: str = string(0)
    tensor_index: int = scalar(1, UINT32)


class SignatureDef(Table):
    """A subgraph as a function with named inputs and outputs."""

    inputs: tuple[TensorMap, ...] = children(0, TensorMap)
    outputs: tuple[TensorMap, ...] = children(1, TensorMap)
    signature_key: str = string(2, keep_empty=True)
    deprecated_tag: str = string(3, deprecated=True)
    subgraph_index: int = scalar(4, UINT32)


class Model(Table):
    """A whole model.

    Attributes:
        folder: where it was read from, None when that was not a path.
        external_roots: further folders in which its external buffers may be.
        budgets: the limits of what is made of it.
    """

    version: int = scalar(0, UINT32)
    operator_codes: tuple[OperatorCode, ...] = children(1, OperatorCode, keep_empty=True)
    subgraphs: tuple[SubGraph, ...] = children(2, SubGraph, keep_empty=True)
    description: str = string(3)
    buffers: tuple[Buffer, ...] = children(4, Buffer, keep_empty=True)
    metadata_buffer: tuple[int, ...] = vector(5, INT32, default=())
    metadata: tuple[Metadata, ...] = children(6, Metadata)
    signature_defs: tuple[SignatureDef, ...] = children(7, SignatureDef)
    external_buffer_groups: tuple[ExternalBufferGroup, ...] = children(8, ExternalBufferGroup)
    external_buffers: tuple[ExternalBuffer, ...] = children(9, ExternalBuffer)
    folder: str | None = local()
    external_roots: tuple[str, ...] = local(default=())
    budgets: Budgets = local(DEFAULT)


def stored_data(model: Model, tensor: Tensor) -> Array | None:
    """The uint8 bytes that the file has for a tensor; None without any. Those outside the file are
    not looked for."""
    data = model.buffers[tensor.buffer].data if tensor.buffer else None
    return None if data is None or not data.size else data


export_classes(globals())
