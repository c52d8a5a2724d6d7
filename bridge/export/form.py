"""The form of an exported file: its opset, number format, layout, names, and where weights are."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypedDict

import onnx

from tflite_ort.base.files import is_replaceable, remove, write_bytes, writing
from tflite_ort.base.records import field, record, replace
from tflite_ort.base.suggestions import suggestion
from tflite_ort.bundles.bundle import Source
from tflite_ort.export.dequantized import Inside, with_floats
from tflite_ort.export.external_weights import data_path, earlier_data, write_weights
from tflite_ort.export.inferred import inferred, say_shapes
from tflite_ort.export.presets import (
    FLOATS,
    PAIRED,
    ROUNDED,
    SELECTION,
    SIGNED,
    UNSIGNED,
    Preset,
    preset_of,
)
from tflite_ort.export.rounded import Rounded, rounds_all
from tflite_ort.metadata import properties
from tflite_ort.opmap import Target
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.opsets import IR_VERSIONS, OPSET
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.float_widths import halve
from tflite_ort.providers.exported_state import PAIRS, take_first_values
from tflite_ort.providers.provider import ON_CPU
from tflite_ort.providers.traits import traits_of
from tflite_ort.schema import ExportError, Model, SubGraph, TensorType
from tflite_ort.tuning.session_target import session_target
from tflite_ort.version import __version__

# What the metadata of a file call names of classes that were given.
LABELS = "tflite.labels"
# A protobuf cannot hold more.
_PROTOBUF_BYTES = 2**31 - 1
# Inside a file: room for the graph beside the weights.
_INLINE_LIMIT = _PROTOBUF_BYTES - (64 << 20)
# A layout is another one from this rank on.
_RANK_OF_LAYOUTS = 3


class Written(TypedDict, total=False):
    """How `export_onnx` writes a file.

    Args:
        signature: the key of a signature: its subgraph is exported, with the names that it gives to
            inputs and outputs. None: the primary subgraph.
        opset: from 17 to 24. An operator whose nodes this opset does not have is refused.
        float16: 32-bit floats are 16-bit ones inside; inputs and outputs stay as they are.
            So do quantized values and other whole numbers; weights beyond 65504 are refused.
        nchw: names of inputs and outputs that become [N, C, H, W], their channels first.
        rename: names of inputs and outputs by their present names.
        external_data: weights go into a file beside the model, ``<output>.data``, whatever their
            size.
        exact: layers with 16-bit activations give exactly TFLite's values, with more nodes;
            otherwise they compute in 32-bit floats, and may be one quantized step off.
        state_defaults: the file has the first value of each state, so a run without it starts the
            state. ONNX Runtime warns of each, and some of its providers then ignore the value
            that is fed. Otherwise every run needs the state, the first one that of `first_state`.
        for_: the destination, a key of `PRESETS`, whose row says how the file is written.
        dequantize: quantized values are floats, clipped to the numbers that codes stand for, and
            so are weights; inputs and outputs stay as they are.
        float_io: quantized inputs and outputs are floats.
        lstm_clip: ``"ignore"`` leaves the clip of LSTM cell states out, so that each LSTM is one
            node. Then a state beyond the clip, which few models reach, gives other numbers.
            ``"keep"`` leaves it out where it cannot be reached.
        decode_inputs: what a decoded file can be told, ``min_score``, ``roi`` and the like, are
            inputs with a value, of which ONNX Runtime warns. Otherwise they are constants.
        labels: names of the classes, in the place of the model's. They are ``tflite.labels`` in the
            metadata, a list in JSON, and part of what a decoded file says of itself.
    """

    signature: str | None
    opset: int
    float16: bool
    nchw: Sequence[str]
    rename: Mapping[str, str]
    external_data: bool
    exact: bool
    state_defaults: bool
    for_: str | None
    dequantize: bool
    float_io: bool
    lstm_clip: str
    decode_inputs: bool
    labels: Sequence[str]


@record
class Form:
    """What `Written` says, with defaults; see there."""

    signature: str | None = None
    opset: int = OPSET
    float16: bool = False
    nchw: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    external_data: bool = False
    exact: bool = False
    state_defaults: bool = False
    for_: str | None = None
    dequantize: bool = False
    float_io: bool = False
    lstm_clip: str = "keep"
    decode_inputs: bool = False
    labels: Sequence[str] = ()
    # Codes are floats that are rounded, since the destination has none of 16 bits; see `laid_out`.
    rounds_wide: bool = False

    def __post_init__(self) -> None:
        if self.lstm_clip not in ("keep", "ignore"):
            raise ValueError(f"lstm_clip must be 'keep' or 'ignore', got {self.lstm_clip!r}")
        if self.opset not in IR_VERSIONS:
            first, last = min(IR_VERSIONS), max(IR_VERSIONS)
            raise ValueError(f"opset must be from {first} to {last}, got {self.opset!r}")

    @classmethod
    def of(cls, written: Written) -> Form:
        """The form that is asked for: what is not said is as the destination needs it.

        Raises:
            ValueError: there is no such destination or opset.
        """
        given: Written = {"opset": preset_of(written.get("for_")).opset, **written}
        return cls(**given)

    @property
    def preset(self) -> Preset:
        """The row of the destination."""
        return preset_of(self.for_)

    @property
    def quantization(self) -> str:
        """How quantized values are written."""
        return ROUNDED if self.rounds_wide else self.preset.quantization

    @property
    def floats(self) -> bool:
        """Whether quantized values are floats."""
        return self.dequantize or self.quantization in (FLOATS, ROUNDED)

    @property
    def plain(self) -> bool:
        """Whether a graph that is decoded can be written so."""
        kept = ("signature", "exact", "state_defaults", "decode_inputs", "labels")
        return self == Form(**{name: getattr(self, name) for name in kept})

    def hybrid(self, hybrid: str | None) -> str:
        """How float activations meet integer weights; None is what the destination needs."""
        return hybrid or ("auto" if self.preset.cpu_kernels else "float")

    def computed(self, hybrid: str | None) -> str:
        """How a file computes them. Only one for this processor can tell what is faster where it
        will run: the products of others are those of floats."""
        chosen = self.hybrid(hybrid)
        return "float" if chosen == "auto" and not self.preset.cpu_kernels else chosen

    def target(self, weights: str | None, hybrid: str | None) -> Target:
        """What the graph is made for; None is what the destination needs."""
        preset, kind = self.preset, self.quantization
        signed = "int8" if kind in (SIGNED, PAIRED) else weights
        gates, paired = kind == UNSIGNED, kind == PAIRED
        made = replace(
            traits_of(preset.provider).target,
            weights=signed or "uint8",
            paired_codes=paired,
            exact=self.exact,
            exact_gates=gates,
            fallback=False,
        )
        if preset.cpu_kernels:
            made = session_target(ON_CPU.name)
            made = replace(made, carried_boundary=False, fallback=False)
            made = replace(made, weights=weights or made.weights)
        return replace(
            made,
            hybrid=self.hybrid(hybrid),
            opset=self.opset,
            channels_first=frozenset(self.nchw),
            ignored_clip=self.lstm_clip == "ignore",
            fixed_counts=preset.picked_boxes or SELECTION in preset.never,
        )

    def prepared(self, model: Model) -> Model:
        """The model whose graph is written: one of floats where this form asks for floats, which is
        `laid_out`.

        Raises:
            ExportError: an operator has no form of floats.
        """
        kind = self.quantization
        ends = self.float_io or self.preset.quantization in (FLOATS, ROUNDED)
        if not (self.floats or ends):
            return model
        if not self.floats:
            return with_floats(model, inside=None, ends=ends)
        rounded = kind == ROUNDED and not self.dequantize
        return with_floats(model, inside=Rounded if rounded else Inside, ends=ends)

    def laid_out(self, model: Model) -> Form:
        """This form, with the layout that the destination needs, and where there are 16-bit codes
        the opset that has them, or rounded floats inside."""
        graph = model.subgraphs[0]
        if not self.floats and _has_wide_codes(graph):
            rounds = self.preset.rounds_wide and rounds_all(model)
            opset = OPSET if self.opset == self.preset.opset < OPSET else self.opset
            if rounds or opset != self.opset:
                return replace(self, opset=opset, rounds_wide=rounds).laid_out(model)
        if not self.preset.channels_first or self.nchw:
            return self
        tensors = (graph.tensors[index] for index in (*graph.inputs, *graph.outputs))
        names = [each.name for each in tensors if len(each.shape) > _RANK_OF_LAYOUTS]
        return replace(self, nchw=tuple(dict.fromkeys(names)))

    def check(self, model: Model) -> None:
        """Refuse names of tensors that the model does not have, or that have no other layout.

        Raises:
            ExportError: with the names that there are.
        """
        graph = model.subgraphs[0]
        tensors = {graph.tensors[i].name: graph.tensors[i] for i in (*graph.inputs, *graph.outputs)}
        for name in self.nchw:
            _check_known(name, tensors)
            if len(tensors[name].shape) < _RANK_OF_LAYOUTS:
                shape = list(tensors[name].shape)
                raise ExportError(f"{name!r} {shape} has no channels that could be first")
        if isinstance(self.labels, str):
            raise TypeError(f"labels is a list of names, got {self.labels!r}")

    def write(
        self,
        model: ir.Model,
        source: Model,
        origin: Source | None,
        output: str | os.PathLike[str] | None,
    ) -> onnx.ModelProto:
        """Make the graph what this asks for, but for its opset and layout, which it has, and write
        it; returns it, without weights that are external.

        Args:
            source, origin: what it was made of, and what that was read from.

        Raises:
            ExportError: it does not fit a file, has no input or output of a name, or two would have
                one.
            OSError: it cannot be written.
        """
        model.metadata_props.update(properties(source, origin))
        if self.labels:
            model.metadata_props[LABELS] = json.dumps(list(self.labels))
        model.producer_version, model.doc_string = __version__, source.description
        if self.float16:
            halve(model.graph)
            say_shapes(model.graph, inferred(model))
        if self.rename:
            _rename(model, self.rename)
        if not self.state_defaults:
            take_first_values(model)
        size = sum(
            value.const_value.nbytes
            for value in model.graph.initializers.values()
            if value.const_value is not None
        )
        if output is None or (size <= _INLINE_LIMIT and not self.external_data):
            return _written_whole(model, output, size)
        if not is_replaceable(output):
            raise ExportError(f"weights of {size} bytes need a file beside {os.fspath(output)}")
        data = data_path(output, model.graph)
        earlier = earlier_data(output, data)
        with writing(output, data) as (graph, weights):
            places = write_weights(model.graph, weights, data.name)
            content = serialized(model, external=places, small=True)
            graph.write(content)
        for path in earlier:
            with suppress(OSError):  # the command reads it
                remove(path)
        return onnx.load_model_from_string(content)


def _has_wide_codes(graph: SubGraph) -> bool:
    """Whether tensors are 16-bit codes."""
    return any(
        tensor.type is TensorType.INT16 and tensor.quantization is not None
        for tensor in graph.tensors
    )


def _check_known(name: str, known: Collection[str]) -> None:
    if name not in known:
        there = ", ".join(map(repr, known))
        raise ExportError(
            f"no input or output {name!r}; there are {there}{suggestion(name, known)}"
        )


def _rename(model: ir.Model, names: Mapping[str, str]) -> None:
    """Give inputs and outputs other names; nothing else in the graph keeps such a name."""
    graph = model.graph
    boundary = {id(value): value for value in (*graph.inputs, *graph.outputs)}
    present = [value.name for value in boundary.values()]
    for name in names:
        _check_known(name, present)
    given = [names.get(name, name) for name in present]
    if twice := {name for name in given if given.count(name) > 1}:
        raise ExportError(f"several inputs or outputs would be called {min(twice)!r}")
    new = {names[value.name] for value in boundary.values() if value.name in names}
    for value in _values(graph):
        if value.name in new and id(value) not in boundary:
            value.name = f"{value.name}/inner"
    kept = list(graph.initializers.values())
    for value in boundary.values():
        value.name = names.get(value.name, value.name)
    graph.initializers.clear()
    graph.initializers.update((value.name, value) for value in kept)
    if (pairs := model.metadata_props.get(PAIRS)) is not None:
        renamed = [[names.get(name, name) for name in pair] for pair in json.loads(pairs)]
        model.metadata_props[PAIRS] = json.dumps(renamed)


def _values(graph: ir.Graph) -> Iterable[ir.Value]:
    """All values, each once."""
    computed = [value for node in graph.all_nodes() for value in node.outputs]
    read = [value for value, _, _ in graph.reads()]
    return {id(value): value for value in (*computed, *read)}.values()


def _written_whole(
    model: ir.Model, output: str | os.PathLike[str] | None, size: int
) -> onnx.ModelProto:
    if size > _INLINE_LIMIT:
        raise ExportError(f"weights of {size} bytes do not fit a protobuf: give an output path")
    content = serialized(model, small=True)
    if output is not None:
        write_bytes(output, content)
    return onnx.load_model_from_string(content)
