"""From the tables of a model to the views that translators, kernels and shape rules take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.element_types import ELEMENT_TYPES, NUMPY_DTYPE, PACKED_BITS, TensorType
from tflite_ort.schema.file.enums import BuiltinOperator
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.external import ExternalData
from tflite_ort.schema.file.model import (
    BlockwiseQuantization,
    Model,
    MultiAxisQuantization,
    Operator,
    OperatorCode,
    SubGraph,
    Tensor,
    stored_data,
)
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.file.strings import decoded
from tflite_ort.schema.file.tables import Array
from tflite_ort.schema.values.operators import INPUTS
from tflite_ort.schema.values.semantics import densify, quantized_range
from tflite_ort.schema.values.view import (
    Blocks,
    OperatorView,
    Origin,
    Packed,
    Quantization,
    TensorView,
)

with late:
    from tflite_ort.schema.file import custom_options

_Op = BuiltinOperator
# What may set variables among its inputs anew; any other operator only reads them.
_KEEPING = frozenset(
    {
        *(_Op.LSTM, _Op.UNIDIRECTIONAL_SEQUENCE_LSTM, _Op.BIDIRECTIONAL_SEQUENCE_LSTM),
        *(_Op.RNN, _Op.UNIDIRECTIONAL_SEQUENCE_RNN, _Op.BIDIRECTIONAL_SEQUENCE_RNN),
        *(_Op.SVDF, _Op.CUSTOM),
    }
)
# The integers that TFLite takes as codes, of INT32 in QUANTIZE and biases alone. Of any other type
# what stands in a tensor is a number, whatever scale the file gives it.
CODES = frozenset(
    {
        *(TensorType.INT2, TensorType.INT4, TensorType.INT8, TensorType.INT16, TensorType.INT32),
        *(TensorType.UINT4, TensorType.UINT8, TensorType.UINT16),
    }
)
# These take all zero points of signed weights for 0; the position of their weights.
_WITHOUT_ZERO_POINTS = {
    BuiltinOperator.DEPTHWISE_CONV_2D: 1,
    BuiltinOperator.TRANSPOSE_CONV: 1,
}
_SIGNED = (TensorType.INT8, TensorType.INT4)
# Where there are several scales these do too.
_SYMMETRIC = frozenset(
    {
        *(BuiltinOperator.DEPTHWISE_CONV_2D, BuiltinOperator.TRANSPOSE_CONV),
        *(BuiltinOperator.FULLY_CONNECTED, BuiltinOperator.BATCH_MATMUL),
    }
)


def tensor_views(model: Model, subgraph: int, meter: Meter | None = None) -> list[TensorView]:
    """The tensors of a subgraph, with the data of constants dense and typed.

    Whatever the file says, one that an operator computes is no variable, unless that operator only
    starts it; nor is an input that no operator keeps a value in.

    Args:
        meter: counts the bytes of sparse constants, which are made dense.

    Raises:
        BudgetExceeded: there are more of them than their budget.
        ModelError: a constant's data is not whole, or in a file that cannot be read.
    """
    external, graph = ExternalData(model), model.subgraphs[subgraph]
    made = {index for operator in graph.operators for index in operator.outputs}
    computed, given, filled = made, set(graph.inputs), made.union(graph.inputs)
    meter = meter or meter_of(model)
    if True in [tensor.is_variable for tensor in graph.tensors]:
        starts = [operator for operator in graph.operators if _only_starts(model, graph, operator)]
        computed = made.difference(*(operator.outputs for operator in starts))
        given.difference_update(*(_state_tensors(model, operator) for operator in graph.operators))
    return [
        TensorView(
            index,
            tensor.name,
            tensor.type,
            tensor.shape,
            _data(model, tensor, external, meter, index in filled),
            quantization_as(tensor, tensor.type),
            tensor.is_variable and index not in given and index not in computed,
            blocks=_blocks(model, graph, tensor, external),
        )
        for index, tensor in enumerate(graph.tensors)
    ]


def meter_of(model: Model, given: Callable[[], int] = int) -> Meter:
    """A meter that counts the bytes made of a model beyond four times its constants.

    Args:
        given: tells the bytes of its inputs.
    """

    def free() -> Mapping[str, int]:
        data = [buffer.data.nbytes for buffer in model.buffers if buffer.data is not None]
        constants = 4 * sum(data)
        computed = constants + 4 * given()
        return {"folded_bytes": constants, "tensor_bytes": constants, "result_bytes": computed}

    return Meter(model.budgets, free)


def _state_tensors(model: Model, operator: Operator) -> Sequence[int]:
    """The tensors in which `operator` may keep a value for the next invoke."""
    code, places = model.operator_codes[operator.opcode_index], enumerate(operator.inputs)
    return [index for at, index in places if index is not None and _keeps(code, at)]


def _keeps(code: OperatorCode, position: int) -> bool:
    """Whether an operator sets a variable anew that it has as this input: one of its states, or
    any input of an operator that only its user knows. LSTM has two orders of inputs."""
    if code.builtin_code not in _KEEPING:
        return False
    names = () if code.builtin_code is _Op.LSTM else _input_names(code)
    return not names or (position < len(names) and names[position].endswith("state"))


def _only_starts(model: Model, graph: SubGraph, operator: Operator) -> bool:
    """Whether `operator` is a DEQUANTIZE of constant float16 zeros to a variable, as networks with
    half-precision weights have them: TFLite runs it once, so it gives the first value there is."""
    code = model.operator_codes[operator.opcode_index].builtin_code
    if code is not BuiltinOperator.DEQUANTIZE or len(operator.inputs) != 1:
        return False
    (source,) = operator.inputs
    if source is None or not all(graph.tensors[index].is_variable for index in operator.outputs):
        return False
    data = stored_data(model, graph.tensors[source])
    is_half = graph.tensors[source].type is TensorType.FLOAT16
    return is_half and data is not None and not data.any()


def _data(
    model: Model, tensor: Tensor, external: ExternalData, meter: Meter, is_computed: bool
) -> Array | Packed | None:
    """A constant's values. A tensor without elements is one unless something computes it: its
    buffer does not tell, since nothing to store is written as no buffer or as an empty one."""
    if tensor.is_variable:
        return None
    if math.prod(tensor.shape) == 0 and tensor.type in ELEMENT_TYPES:
        return None if is_computed else _empty(tensor)
    if tensor.sparsity is not None and tensor.type in ELEMENT_TYPES:
        size = math.prod(tensor.shape) * NUMPY_DTYPE[tensor.type].itemsize
        meter.spend("folded_bytes", size, f"the sparse tensor {tensor.name!r}")
    bits = PACKED_BITS.get(tensor.type)
    if bits is None or tensor.sparsity is not None:
        return constant_data(model, tensor, external)
    data = _octets(model, tensor, external)
    return None if data is None else _packed(data, tensor, bits)


def _empty(tensor: Tensor) -> Array:
    try:
        return np.empty(tensor.shape, NUMPY_DTYPE[tensor.type])
    except ValueError as error:  # sizes whose product is 0 but overflows on the way
        raise MalformedModel(f"tensor {tensor.name!r} has shape {tensor.shape}: {error}") from error


def operator_view(
    model: Model,
    subgraph: int,
    index: int,
    tensors: Sequence[TensorView],
    meter: Meter | None = None,
) -> OperatorView[Any]:
    """Operator `index` of a subgraph over `tensors`, the views of that subgraph's tensors; `meter`
    counts what is decoded of custom options."""
    operator = model.subgraphs[subgraph].operators[index]
    code = model.operator_codes[operator.opcode_index]
    custom = code.builtin_code is BuiltinOperator.CUSTOM
    return OperatorView(
        op=code.builtin_code,
        version=code.version,
        index=index,
        inputs=tuple(
            [
                None if i is None else _input(code, tensors[i], position)
                for position, i in enumerate(operator.inputs)
            ]
        ),
        outputs=tuple([tensors[i] for i in operator.outputs]),
        options=_options(code, operator, meter or Meter(model.budgets)),
        names=_input_names(code),
        custom_code=code.custom_code if custom else None,
        custom_options=operator.custom_options,
        subgraph=subgraph,
        intermediates=tuple([tensors[i] for i in operator.intermediates or ()]),
        origin=code.custom_code if isinstance(code.custom_code, Origin) else "",
    )


def _input_names(code: OperatorCode) -> tuple[str, ...]:
    custom = code.builtin_code is BuiltinOperator.CUSTOM
    declared = INPUTS.get(code.custom_code or "" if custom else code.builtin_code)
    return () if declared is None else declared.names


def _input(code: OperatorCode, tensor: TensorView, position: int) -> TensorView:
    """`tensor` as this operator has it: a variable that it only reads is a value like others, and
    weights have no zero points where TFLite does not look at them."""
    if tensor.is_variable and not _keeps(code, position):
        tensor = replace(tensor, is_variable=False)
    quantization = tensor.quantization
    if quantization is None:
        return tensor
    at = _WITHOUT_ZERO_POINTS.get(code.builtin_code)
    of_several = code.builtin_code in _SYMMETRIC and quantization.per_channel
    if not of_several and not (at == position and tensor.type in _SIGNED):
        return tensor
    if not quantization.zero_point.any():
        return tensor
    zeros = np.zeros_like(quantization.zero_point)
    return replace(tensor, quantization=replace(quantization, zero_point=zeros))


def _options(code: OperatorCode, operator: Operator, meter: Meter) -> Any:
    if code.builtin_code is not BuiltinOperator.CUSTOM:
        return options_of(code.builtin_code, operator.options)
    data = operator.custom_options
    return custom_options.custom_options(b"" if data is None else data.tobytes(), meter)


def quantization_as(tensor: Tensor, type: TensorType) -> Quantization | None:
    """What the file says of a tensor's codes, if they are of `type`: the affine part; None for a
    tensor without a scale or if codes have other types, and where there are details, which take its
    place. A scale is a number, a single one is not 0."""
    parameters = tensor.quantization if type in CODES else None
    if parameters is None or parameters.scale is None or parameters.scale.size == 0:
        return None
    if isinstance(parameters.details, (BlockwiseQuantization, MultiAxisQuantization)):
        return None
    scale, zero_point = parameters.scale, parameters.zero_point
    if zero_point is None or zero_point.size != scale.size:
        zero_point = np.zeros(scale.size, np.int64)
    # Most are single numbers, which Python's functions take less time for.
    finite = math.isfinite(scale.item()) if scale.size == 1 else np.isfinite(scale).all()
    if not finite or (scale.size == 1 and not scale.item()):
        return None
    lowest_bits = zero_point.astype(np.int32).astype(np.int64)  # those that TFLite keeps
    return Quantization(scale, lowest_bits, parameters.quantized_dimension)


def _blocks(model: Model, graph: SubGraph, tensor: Tensor, external: ExternalData) -> Blocks | None:
    """The blockwise scales of a matrix; None where there are none, or they do not fit it."""
    details = None if tensor.quantization is None else tensor.quantization.details
    if not isinstance(details, BlockwiseQuantization) or len(tensor.shape) != 2:
        return None
    if tensor.type not in CODES:
        return None
    scales, (rows, columns) = graph.tensors[details.scales], tensor.shape
    if scales.type is not TensorType.FLOAT16 or details.block_size < 1:
        return None
    data = constant_data(model, scales, external)
    if data is None or data.size * details.block_size != rows * columns or not data.size:
        return None
    if columns % details.block_size:
        return None
    return Blocks(data.reshape(rows, -1), details.block_size)


def constant_data(model: Model, tensor: Tensor, external: ExternalData) -> Array | None:
    """A constant's values as a read-only array of its shape; None for a tensor without data.

    4-bit and 2-bit values come as int8 (uint8), sparse ones dense, strings as bytes objects.
    """
    data = _octets(model, tensor, external)
    if data is None:
        return None
    if tensor.type is TensorType.STRING:
        dense = decoded(data, tensor.shape)
    elif tensor.sparsity is not None:
        dense = densify(_typed(data, tensor, data.nbytes), tensor.shape, tensor.sparsity)
    else:
        dense = _dense(data, tensor)
    dense.flags.writeable = False
    return dense


def _octets(model: Model, tensor: Tensor, external: ExternalData) -> Array | None:
    data = model.buffers[tensor.buffer].data if tensor.buffer else external.data(tensor)
    return None if data is None or (data.size == 0 and math.prod(tensor.shape) > 0) else data


def _dense(data: Array, tensor: Tensor) -> Array:
    count, bits = math.prod(tensor.shape), PACKED_BITS.get(tensor.type)
    if bits is None:
        return _typed(data, tensor, count * NUMPY_DTYPE[tensor.type].itemsize)
    return _packed(data, tensor, bits).unpacked()


def _packed(data: Array, tensor: Tensor, bits: int) -> Packed:
    count, held = math.prod(tensor.shape), data.size * 8 // bits
    if held < count:
        raise MalformedModel(
            f"tensor {tensor.name!r}: {data.size} bytes hold {held} of {count} {bits}-bit values"
        )
    return Packed(data, bits, tensor.shape, quantized_range(tensor.type)[0] < 0)


def _typed(data: Array, tensor: Tensor, nbytes: int) -> Array:
    """The first `nbytes` of `data` in the tensor's type; in its shape unless it is sparse."""
    dtype = NUMPY_DTYPE[tensor.type]
    if data.nbytes < nbytes:
        raise MalformedModel(f"tensor {tensor.name!r} needs {nbytes} bytes, has {data.nbytes}")
    if dtype.hasobject:
        raise MalformedModel(f"tensor {tensor.name!r}: a {tensor.type.name} has no data in a file")
    flat = data[: nbytes // dtype.itemsize * dtype.itemsize].view(dtype)
    if tensor.sparsity is not None:
        return flat
    try:
        return flat.reshape(tensor.shape)
    except ValueError as error:  # sizes whose product is 0 but overflows on the way
        raise MalformedModel(f"tensor {tensor.name!r} has shape {tensor.shape}: {error}") from error
