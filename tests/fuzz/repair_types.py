"""Types and forms put right: what LiteRT reads as something else than it is; see `repairs.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.feeds import away
from tests.fuzz.repairs import BIASES, each_operator, each_tensor, name_of
from tests.fuzz.tree import (
    Array,
    data_of,
    values_of,
    with_data,
    with_graph,
    with_operator,
    with_tensor,
)
from tflite_ort.schema import BidirectionalSequenceLSTMOptions, Model, Tensor, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS
from tflite_ort.schema.values.semantics import quantized_range, unpack

Shape = tuple[int, ...]

_PEEPHOLES = (9, 10, 11)  # of LSTM's inputs

_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)
_WEIGHTS = ("CONV", "FULLY_CONNECTED", "BATCH_MATMUL")
_ODD_WEIGHTS = (TensorType.INT16, *PACKED_BITS)
_ODD_INDICES = (
    *(TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.UINT16),
    *(TensorType.UINT32, TensorType.INT64, TensorType.UINT64),
)


def _tensors_of(model: Model, graph: int, indices: tuple[int | None, ...]) -> list[int]:
    count = len(model.subgraphs[graph].tensors)
    return [i for i in indices if i is not None and 0 <= i < count]


def first_versions(model: Model) -> Model:
    """Operators of version 1: LiteRT's reference kernels lack some later ones."""
    codes = tuple(replace(each, version=1) for each in model.operator_codes)
    return model if codes == model.operator_codes else replace(model, operator_codes=codes)


def booleans(model: Model) -> Model:
    """Constants of BOOL are bytes of 0 and 1."""
    for graph, number, tensor in each_tensor(model):
        data = data_of(model, tensor) if tensor.type is TensorType.BOOL else None
        if data is not None and data.max() > 1:
            model = with_data(model, graph, number, (data != 0).tobytes())
    return model


def no_handles(model: Model) -> Model:
    """Handles of variables are no results of the graph."""
    for number, graph in enumerate(model.subgraphs):
        known = set(_tensors_of(model, number, graph.outputs))
        handles = {i for i in known if graph.tensors[i].type in _HANDLES}
        left = tuple(i for i in graph.outputs if i not in handles)
        if handles and left:
            model = with_graph(model, number, outputs=left)
    return model


def declared(model: Model, shapes: Mapping[int, Shape]) -> Model:
    """The main graph's tensors declare the shapes that they have."""
    for index, shape in shapes.items():
        tensor = model.subgraphs[0].tensors[index]
        if (tensor.shape, tensor.shape_signature) != (shape, None):
            model = with_tensor(model, 0, index, shape=shape, shape_signature=None, has_rank=True)
    return model


def single_rows(model: Model) -> Model:
    """One row a batch where LiteRT strides out of the states: batch-major rows of both directions
    whose outputs are merged."""
    for graph, _, op, _ in each_operator(model):
        options = op.options
        if not isinstance(options, BidirectionalSequenceLSTMOptions) or not options.merge_outputs:
            continue
        for index in _tensors_of(model, graph, op.inputs) if not options.time_major else ():
            tensor = model.subgraphs[graph].tensors[index]
            fed = data_of(model, tensor) is None
            if fed and len(tensor.shape) > 1 and tensor.shape[0] > 1:
                shape = (1, *tensor.shape[1:])
                model = with_tensor(model, graph, index, shape=shape, shape_signature=None)
    return model


def own_states(model: Model) -> Model:
    """No variable that an operator has twice."""
    for graph, number, op, _ in each_operator(model):
        tensors, inputs = model.subgraphs[graph].tensors, list(op.inputs)
        for place, index in enumerate(inputs):
            known = index is not None and 0 <= index < len(tensors)
            if known and index in inputs[:place] and tensors[index].is_variable:
                inputs[place] = len(tensors)
                tensors = (*tensors, tensors[index])
        if tuple(inputs) != op.inputs:
            model = with_graph(model, graph, tensors=tensors)
            model = with_operator(model, graph, number, inputs=tuple(inputs))
    return model


def without_peepholes(model: Model) -> Model:
    """No diagonal weights where an integer LSTM has a projection to more outputs than cells."""
    for graph, number, op, name in each_operator(model):
        if not name.endswith("SEQUENCE_LSTM") or len(op.inputs) < 20 or op.inputs[16] is None:
            continue
        tensors, index = model.subgraphs[graph].tensors, op.inputs[16]
        shape = tensors[index].shape if 0 <= index < len(tensors) else ()
        if len(shape) == 2 and shape[0] > shape[1] and any(op.inputs[at] for at in _PEEPHOLES):
            left = [None if at in _PEEPHOLES else each for at, each in enumerate(op.inputs)]
            model = with_operator(model, graph, number, inputs=tuple(left))
    return model


def usual_results(model: Model) -> Model:
    """Codes are made of codes of the same type, and no floats of them."""
    for graph, _, op, name in each_operator(model):
        if not any(each in name for each in _WEIGHTS):
            continue
        tensors = model.subgraphs[graph].tensors
        read, made = (_tensors_of(model, graph, each[:1]) for each in (op.inputs, op.outputs))
        if not read or not made or tensors[read[0]].type not in _CODES:
            continue
        old, wanted = tensors[made[0]], tensors[read[0]]
        if old.type is not wanted.type:
            scaled = old.quantization is not None and old.quantization.scale is not None
            kept = old.quantization if scaled else wanted.quantization
            if kept is not None and kept.zero_point is not None:
                wide = wanted.type is TensorType.INT16
                low, high = (0, 0) if wide else quantized_range(wanted.type)
                kept = replace(kept, zero_point=np.clip(kept.zero_point, low, high))
            model = with_tensor(model, graph, made[0], type=wanted.type, quantization=kept)
    return model


def usual_weights(model: Model) -> Model:
    """Weights of operators with 16-bit activations have 8 bits: not 16, 4 or 2."""
    for graph, _, op, name in each_operator(model):
        read = _tensors_of(model, graph, op.inputs[:2])
        tensors = model.subgraphs[graph].tensors
        if len(read) < 2 or not any(each in name for each in _WEIGHTS):
            continue
        weights = tensors[read[1]]
        if tensors[read[0]].type is TensorType.INT16 and weights.type in _ODD_WEIGHTS:
            codes = _codes(model, weights)
            if codes is not None:
                data = np.clip(codes, -127, 127).astype(np.int8).tobytes()
                model = with_data(model, graph, read[1], data, type=TensorType.INT8, sparsity=None)
    return model


def _codes(model: Model, tensor: Tensor) -> Array | None:
    data, count = data_of(model, tensor), int(np.prod(tensor.shape, dtype=np.int64))
    if data is None or tensor.type not in PACKED_BITS:
        return values_of(model, tensor)
    packed = count <= data.size * 8 // PACKED_BITS[tensor.type]
    return unpack(data, count, PACKED_BITS[tensor.type]) if packed else None


def whole_bytes(model: Model) -> Model:
    """Codes of 4 and 2 bits have 8."""
    for graph, number, tensor in each_tensor(model):
        if tensor.type in PACKED_BITS:
            type = TensorType.UINT8 if tensor.type is TensorType.UINT4 else TensorType.INT8
            codes = _codes(model, tensor)
            if codes is None:
                model = with_tensor(model, graph, number, type=type)
            else:
                codes = codes & 15 if type is TensorType.UINT8 else codes
                data = codes.astype(NUMPY_DTYPE[type]).tobytes()
                model = with_data(model, graph, number, data, type=type, sparsity=None)
    return model


def told_biases(model: Model) -> Model:
    """The option that tells the type of a bias tells that of the file."""
    for graph, number, op, name in each_operator(model):
        place = 3 if name == "TRANSPOSE_CONV" else 2
        read = _tensors_of(model, graph, op.inputs[place : place + 1])
        told = getattr(op.options, "quantized_bias_type", None)
        if op.options is None or told is None or not read:
            continue
        type = model.subgraphs[graph].tensors[read[0]].type
        if type in BIASES and told is not type:
            changes: dict[str, Any] = {"quantized_bias_type": type}
            model = with_operator(model, graph, number, options=replace(op.options, **changes))
    return model


def one_quantisation(model: Model) -> Model:
    """A tensor has scales, or scales by blocks, not both."""
    for graph, number, tensor in each_tensor(model):
        old = tensor.quantization
        if old is not None and old.scale is not None and old.details is not None:
            new = replace(old, details=None)
            model = with_tensor(model, graph, number, quantization=new)
    return model


def told_sizes(model: Model, shapes: Mapping[int, Shape]) -> Model:
    """The main graph's images are resized to constants, not to sizes that are fed."""
    graph = model.subgraphs[0]
    for op in graph.operators:
        name, index, made = name_of(model, op), (*op.inputs, None, None)[1], op.outputs[:1]
        if name == "RESIZE_BILINEAR" and index in graph.inputs and made[0] in shapes:
            size = np.array(shapes[made[0]][1:3], np.int32).tobytes()
            model = with_data(model, 0, index, size)
            left = tuple(each for each in graph.inputs if each != index)
            model = replace(with_graph(model, 0, inputs=left), signature_defs=())
    return model


def usual_indices(model: Model) -> Model:
    """Constants of whole numbers that tell axes, sizes and places are INT32."""
    for graph, _, op, name in each_operator(model):
        if any(each in name for each in ("STABLEHLO", "LSTM", "RNN", "SVDF", *_WEIGHTS)):
            continue
        for index in _tensors_of(model, graph, op.inputs[1:]):
            tensor = model.subgraphs[graph].tensors[index]
            values = values_of(model, tensor) if tensor.type in _ODD_INDICES else None
            if values is not None and values.dtype == NUMPY_DTYPE[tensor.type]:
                data = values.astype(np.int32).tobytes()
                changes = {"type": TensorType.INT32, "quantization": None}
                model = with_data(model, graph, index, data, **changes)
    return model


def away_from_zero(model: Model) -> Model:
    """Codes that DIV divides by or divides are not next to the zero point."""
    for graph, _, op, name in each_operator(model):
        for index in _tensors_of(model, graph, op.inputs) if name == "DIV" else ():
            tensor = model.subgraphs[graph].tensors[index]
            values, old = values_of(model, tensor), tensor.quantization
            if values is None or tensor.type not in _CODES or old is None:
                continue
            zero = 0 if old.zero_point is None or not old.zero_point.size else old.zero_point[0]
            moved = away(values, int(np.clip(zero, -(2**15), 2**15)))
            if not np.array_equal(moved, values):
                model = with_data(model, graph, index, moved.tobytes())
    return model
