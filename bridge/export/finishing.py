"""Passes over a graph before it is a file: nodes and constants in the form that readers take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx

from tflite_ort.base.warned import warn_caller
from tflite_ort.batching.samples import BATCH
from tflite_ort.export.folding import fold_constants
from tflite_ort.export.form import Form
from tflite_ort.export.inferred import inferred, say_shapes
from tflite_ort.export.presets import SIGNED, UNSIGNED, Preset
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.parted_weights import part_signed_weights
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.activations import (
    SOFTPLUS,
    bound_tanhs,
    join_clips,
    part_prelus,
)
from tflite_ort.opmap.onnx_graph.writing.agreeing_scales import agree_scales
from tflite_ort.opmap.onnx_graph.writing.channel_blocks import blocks_behind_channels
from tflite_ort.opmap.onnx_graph.writing.exact_products import require_exact_products
from tflite_ort.opmap.onnx_graph.writing.float_widths import without_doubles
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.means import even_pools, sums_as_means
from tflite_ort.opmap.onnx_graph.writing.narrowing import join_equal_constants, narrow_constants
from tflite_ort.opmap.onnx_graph.writing.needless_nodes import without_needless_nodes
from tflite_ort.opmap.onnx_graph.writing.pads import (
    cut_uneven_pads,
    join_channel_pads,
    reflect_last_axes,
)
from tflite_ort.opmap.onnx_graph.writing.quantized_moves import (
    end_moves_in_codes,
    fold_biases,
    move_reals,
    say_zero_points,
)
from tflite_ort.opmap.onnx_graph.writing.recurrent_layers import squeeze_sequences, widen_inputs
from tflite_ort.opmap.onnx_graph.writing.reversals import gather_reversals
from tflite_ort.opmap.onnx_graph.writing.short_names import shorten_names
from tflite_ort.opmap.onnx_graph.writing.signed_codes import make_signed
from tflite_ort.opmap.onnx_graph.writing.told_shapes import tell_shapes
from tflite_ort.opmap.onnx_graph.writing.transform_products import multiply_transforms
from tflite_ort.opmap.onnx_graph.writing.unrolled_scans import unroll_scans
from tflite_ort.opmap.onnx_graph.writing.unrolled_sequences import unroll_sequences
from tflite_ort.opmap.onnx_graph.writing.usual_parts import leave_out_usual_parts
from tflite_ort.providers.model_session import suit_session
from tflite_ort.schema import ExportWarning, Model, TensorType
from tflite_ort.schema.file.model import stored_data

_NAMED = 8  # operators in a message
# Beyond this part of the model's constants, those of a file are written narrow.
_LARGER = 1.06
# Of a shape that is a constant now, onnx infers more.
_ROUNDS = 4
Number = int | float


def finish(model: ir.Model, source: Model, form: Form, *, signed_weights: bool) -> None:
    """Make `model` what its destination reads.

    Args:
        source: what it was made of.
        form: of the file.
        signed_weights: weights are int8.

    Raises:
        ExportError: the destination does not read it.
    """
    graph, preset = model.graph, form.preset
    _write_out(model, preset)
    known = clean(model, as_session=preset.cpu_kernels or bool(preset.provider))
    if form.quantization == SIGNED:
        if _has_signed_codes(source):
            make_signed(graph)
        if preset.agreeing:
            agree_scales(graph)
        move_reals(graph)
        end_moves_in_codes(graph)
        if preset.symmetric:
            fold_biases(graph)
        say_zero_points(graph)
    if form.floats:
        join_clips(graph)
    if ir.DataType.DOUBLE in preset.never_types:
        _compute_in_single(graph, str(form.for_))
    if any(node.op_type in preset.unrolled for node in graph.nodes):
        unroll_sequences(graph, _shapes(model), preset.unrolled)
    _suit(model, preset)
    if preset.cpu_kernels and not form.float16:  # these layers have scales of 32 bits
        suit_session(graph, kept=True)
    if not preset.plain:
        if not preset.cpu_kernels:
            leave_out_usual_parts(graph)
        narrow_constants(model, int(_LARGER * _constant_bytes(source)))
        join_equal_constants(graph)
    if signed_weights:
        part_signed_weights(graph)
        if preset.cpu_kernels:
            require_exact_products(graph)
    if form.for_ is not None:
        preset.check(form.for_, graph)
    if form.quantization != UNSIGNED or form.floats or preset.never_types:
        known = inferred(model)  # of a graph with other types
    say_shapes(graph, known)
    leave_out_defaults(graph)
    shorten_names(graph, [tensor.name for tensor in source.subgraphs[0].tensors])


def _write_out(model: ir.Model, preset: Preset) -> None:
    """Write nodes that few destinations read as several that all do."""
    graph = model.graph
    kinds = {node.op_type for node in graph.nodes}
    if "Scan" in kinds and "Scan" in preset.never:
        unroll_scans(graph, inferred(model))
    if "DFT" in kinds and not preset.cpu_kernels:
        multiply_transforms(graph, inferred(model), faster="DFT" not in preset.never)


def _suit(model: ir.Model, preset: Preset) -> None:
    """Write nodes that the destination computes otherwise in a form that it computes."""
    graph = model.graph
    if preset.channel_slopes:
        part_prelus(graph)
    if preset.bounded_tanhs:
        bound_tanhs(graph)
    elif preset.parted_mish:
        bound_tanhs(graph, SOFTPLUS)
    if preset.wide_inputs:
        widen_inputs(graph)
    if preset.squeezed_sequences:
        squeeze_sequences(graph)
    if preset.even_pads:
        cut_uneven_pads(graph)
    if preset.last_reflections:
        reflect_last_axes(graph)
    if preset.gathered_reversals and any(node.op_type == "Slice" for node in graph.nodes):
        gather_reversals(graph, inferred(model))
    if preset.even_pools and any(node.op_type == "AveragePool" for node in graph.nodes):
        even_pools(graph, inferred(model))
    if preset.blocks_last and any(node.op_type == "DepthToSpace" for node in graph.nodes):
        blocks_behind_channels(graph, inferred(model))
    if preset.no_sums and any(node.op_type == "ReduceSum" for node in graph.nodes):
        sums_as_means(graph, inferred(model), model.opset_imports[""])
    if preset.joined_channels and any(node.op_type == "Pad" for node in graph.nodes):
        join_channel_pads(graph, _shapes(model))


def _compute_in_single(graph: ir.Graph, name: str) -> None:
    """Leave 64-bit floats out; a warning says where."""
    if found := without_doubles(graph):
        listed = ", ".join(found[:_NAMED])
        warn_caller(
            f"{name} has no 64-bit floats: {listed} compute in 32 bits, so results may differ in "
            "their last bits, and whole numbers beyond 16,777,216 are not exact",
            ExportWarning,
        )


def _shapes(model: ir.Model) -> dict[str, list[int]]:
    """The shapes of the values of a graph, by their names, where all sizes are known."""
    inferred = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(serialized(model)))
    values = (*inferred.graph.value_info, *inferred.graph.input)
    sizes = {value.name: value.type.tensor_type.shape.dim for value in values}
    return {
        name: [size.dim_value for size in dims]
        for name, dims in sizes.items()
        if all(size.HasField("dim_value") for size in dims)
    }


def _constant_bytes(model: Model) -> int:
    """What the constants of a model take in its file."""
    buffers = {tensor.buffer for graph in model.subgraphs for tensor in graph.tensors}
    data = (model.buffers[index].data for index in buffers if index < len(model.buffers))
    return sum(each.nbytes for each in data if each is not None)


def _has_signed_codes(model: Model) -> bool:
    """Whether a tensor that is no constant has int8 codes: models of uint8 codes stay so."""
    return any(
        tensor.type is TensorType.INT8 and tensor.quantization is not None
        for graph in model.subgraphs
        for tensor in graph.tensors
        if stored_data(model, tensor) is None
    )


# Needless nodes and attributes ------------------------------------------------------------------


def clean(model: ir.Model, *, as_session: bool = False) -> Known:
    """Hold what is computed of constants, and leave out needless nodes; returns what is known of
    the values that are left.

    What they make is the same, bit for bit, also where the first sizes of inputs differ that the
    file leaves open: their name is one, and nothing holds them to it.

    Args:
        as_session: reductions stay as `Interpreter` runs them: OpenVINO adds along another axis
            behind one that leaves axes out.
    """
    graph = model.graph
    is_open = any(isinstance(size, str) for value in graph.inputs for size in value.shape or ())
    for _ in range(_ROUNDS):
        count, known = len(graph.nodes), inferred(model)
        fold_constants(model, known)
        if is_open:
            tell_shapes(graph, known, assumed=BATCH)
        without_needless_nodes(graph, known, reduced=not as_session)
        has_shapes = any(node.op_type == "Shape" for node in graph.nodes)
        if not is_open or len(graph.nodes) == count or not has_shapes:
            break
    return known


def leave_out_defaults(graph: ir.Graph) -> None:
    """Leave out numbers that every version of a node takes where nothing is said: some readers know
    few attributes. Texts stay, such as the mode of a Resize, which OpenCV wants to be told."""
    for node in graph.all_nodes():
        if node.domain or not node.attributes:
            continue
        usual = _defaults(node.op_type)
        node.attributes = {
            name: value
            for name, value in node.attributes.items()
            if name not in usual or not _is_equal(value, usual[name])
        }


@cache
def _defaults(op_type: str) -> Mapping[str, Number]:
    """The attributes of a node whose default is the same number in all versions: who reads an
    earlier one takes its default, such as that of the axis of a Softmax."""
    found, others = dict[str, Number](), set[str]()
    version = onnx.defs.onnx_opset_version()
    while version and onnx.defs.has(op_type, version, ""):
        schema = onnx.defs.get_schema(op_type, version, "")
        for name, attribute in schema.attributes.items():
            default = attribute.default_value
            value = onnx.helper.get_attribute_value(default) if default.type else None
            if not isinstance(value, Number) or found.setdefault(name, value) != value:
                others.add(name)
        version = schema.since_version - 1
    return {name: value for name, value in found.items() if name not in others}


def _is_equal(value: ir.Attribute, default: Number) -> bool:
    """Whether an attribute has its default; a float has 32 bits in a file."""
    return isinstance(value, Number) and np.float32(value) == np.float32(default)
