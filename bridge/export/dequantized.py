"""A quantized model as one of floats, and quantized models whose inputs and outputs are floats.

The model itself is changed, not the graph that is made of it: its tensors of codes become floats,
and a MAXIMUM and a MINIMUM clip what an operator makes to the numbers that codes stood for. So all
that is known of models of floats holds for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.export.copied_codes import (
    MOVES,
    Reading,
    copied,
    recurrent_constants,
    shown,
)
from tflite_ort.opmap.graph.quantized_nodes import dequantized as real_numbers
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BridgeError,
    Buffer,
    CastOptions,
    ExportError,
    MaximumMinimumOptions,
    Model,
    ModelError,
    MulOptions,
    Op,
    Operator,
    OperatorCode,
    OperatorView,
    SubGraph,
    Tensor,
    TensorType,
    TensorView,
    with_own_data,
)
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.resolve import meter_of, operator_view, tensor_views
from tflite_ort.schema.values.semantics import (
    activation_bounds,
    quantized_range,
)

Array = npt.NDArray[Any]
View = OperatorView[Any]

# These take codes as numbers: of real numbers they would make something else.
_ON_CODES = frozenset({Op.BITCAST, Op.BITWISE_XOR, Op.CAST, Op.RIGHT_SHIFT})
# A custom operator that takes floats as well as codes.
_ON_BOTH = frozenset({"TFLite_Detection_PostProcess"})
# The graphs that these call clip their results.
CALLS = frozenset({Op.CALL_ONCE, Op.IF, Op.WHILE})
CELLS = frozenset(
    {
        *(Op.LSTM, Op.UNIDIRECTIONAL_SEQUENCE_LSTM, Op.BIDIRECTIONAL_SEQUENCE_LSTM),
        *(Op.RNN, Op.UNIDIRECTIONAL_SEQUENCE_RNN, Op.BIDIRECTIONAL_SEQUENCE_RNN, Op.SVDF),
    }
)
# Codes of numbers that tensors between operators stand for.
NARROW = frozenset({TensorType.INT8, TensorType.UINT8, TensorType.INT16})


def with_floats(model: Model, *, inside: type[Inside] | None, ends: bool) -> Model:
    """`model` with floats for its quantized tensors.

    Args:
        inside: what writes them for all but the inputs and outputs of the model; None: they stay.
        ends: for the inputs and outputs.

    Raises:
        ExportError: an operator has no form of floats.
        ModelError: a constant's data is not whole.
    """
    rewriting = _Model(with_own_data(model))
    graphs = list(model.subgraphs)
    if inside is not None:
        rewritten = (inside(rewriting, number, ends=ends) for number in range(len(graphs)))
        graphs = [each.graph() for each in rewritten]
    elif ends:
        graphs[0] = _Boundary(rewriting, 0).graph()
    return rewriting.of(graphs)


class _Model:
    """A model that is given operators and constants."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._buffers, self._codes = list(model.buffers), list(model.operator_codes)
        self._added = dict[tuple[Op, int], int]()

    def code(self, op: Op, version: int = 1) -> int:
        """The index of an operator."""
        if (op, version) not in self._added:
            self._added[op, version] = len(self._codes)
            self._codes.append(OperatorCode(builtin_code=op, version=version))
        return self._added[op, version]

    def buffer(self, array: Array) -> int:
        """The index of the buffer of a constant."""
        self._buffers.append(Buffer(data=np.frombuffer(array.tobytes(), np.uint8)))
        return len(self._buffers) - 1

    def of(self, graphs: Sequence[SubGraph]) -> Model:
        """The model of these graphs."""
        return replace(
            self.model,
            subgraphs=tuple(graphs),
            buffers=tuple(self._buffers),
            operator_codes=tuple(self._codes),
            external_buffers=(),
            external_buffer_groups=(),
        )


class _Rewritten:
    """One subgraph, whose tensors keep their numbers."""

    def __init__(self, whole: _Model, number: int) -> None:
        self.whole, self.number = whole, number
        self.old: SubGraph = whole.model.subgraphs[number]
        self.meter = meter_of(whole.model)
        self.views = tensor_views(whole.model, number, self.meter)
        self.tensors, self.operators = list(self.old.tensors), list[Operator]()

    def add(self, like: Tensor, suffix: str, **changes: Any) -> int:
        """A new tensor."""
        self.tensors.append(replace(like, name=like.name + suffix, buffer=0, **changes))
        return len(self.tensors) - 1

    def emit(self, op: Op, inputs: Sequence[int], output: int, options: Any = None) -> None:
        """A new operator."""
        code = self.whole.code(op)
        self.operators.append(
            Operator(opcode_index=code, inputs=tuple(inputs), outputs=(output,), options=options)
        )

    def made(self) -> SubGraph:
        """The subgraph as it is now."""
        return replace(self.old, tensors=tuple(self.tensors), operators=tuple(self.operators))

    def is_codes(self, index: int) -> bool:
        """Whether a tensor holds codes that nodes compute."""
        view = self.views[index]
        return view.is_quantized and view.type in NARROW and not view.is_given

    def moved(self, operator: Operator, places: dict[int, int]) -> Operator:
        """`operator` with other tensors."""
        inputs = tuple(None if i is None else places.get(i, i) for i in operator.inputs)
        outputs = tuple(places.get(i, i) for i in operator.outputs)
        return replace(operator, inputs=inputs, outputs=outputs)


FLOAT: dict[str, Any] = {"type": TensorType.FLOAT32, "quantization": None}


class _Boundary(_Rewritten):
    """Floats for the inputs and outputs: QUANTIZE and DEQUANTIZE behind and before them."""

    def graph(self) -> SubGraph:
        inner = dict[int, int]()
        for index in dict.fromkeys((*self.old.inputs, *self.old.outputs)):
            if self.is_codes(index):
                inner[index] = self.add(self.tensors[index], "/codes")
                self.tensors[index] = replace(self.tensors[index], **FLOAT)
        for index in dict.fromkeys(self.old.inputs):
            if index in inner:
                self.emit(Op.QUANTIZE, [index], inner[index])
        self.operators += [self.moved(operator, inner) for operator in self.old.operators]
        for index in dict.fromkeys(self.old.outputs):
            if index in inner and index not in self.old.inputs:
                self.emit(Op.DEQUANTIZE, [inner[index]], index)
        return self.made()


class Inside(_Rewritten):
    """Floats for all tensors.

    Args:
        ends: for the inputs and outputs of the whole model too.
    """

    def __init__(self, whole: _Model, number: int, *, ends: bool) -> None:
        super().__init__(whole, number)
        self._ends = ends
        self._constants = dict[tuple[int, bytes], int]()
        self._places = dict[int, int]()

    def graph(self) -> SubGraph:
        ends = () if self.number else dict.fromkeys((*self.old.inputs, *self.old.outputs))
        for index, tensor in enumerate(self.old.tensors):
            if not self.is_codes(index):
                continue
            if index in ends and (index in self.old.inputs or not self._ends):
                self._places[index] = self.add(tensor, "/real", **FLOAT)
            if index not in ends or self._ends:
                self.tensors[index] = replace(tensor, **FLOAT)
        for index in ends:
            if index in self._places and index in self.old.inputs:
                self._begin(index, self._places[index])
        self._all_operators()
        for index in ends:
            if index in self._places and index not in self.old.inputs:
                self.emit(Op.QUANTIZE, [self._places[index]], index)
        return self.made()

    def _all_operators(self) -> None:
        for place in range(len(self.old.operators)):
            view = operator_view(self.whole.model, self.number, place, self.views, self.meter)
            try:
                self._operator(self.old.operators[place], view)
            except BridgeError:
                raise
            except MALFORMED_OPERATOR as error:  # scales that do not fit, and the like
                raise ModelError(f"{view.label}: {said_of_file(error)}") from error

    def _begin(self, index: int, inside: int) -> None:
        """An input of the whole model."""
        if self._ends:
            self._clip(index, *_range(self.views[index]), inside)
        else:
            self.emit(Op.DEQUANTIZE, [index], inside)

    def _operator(self, operator: Operator, op: View) -> None:
        if op.op is Op.QUANTIZE:
            self._quantize(op)
        elif op.op is Op.DEQUANTIZE and op["input"].is_quantized:
            self._copy(self._given(op, 0), operator.outputs[0])
        elif op.op in _ON_CODES or (op.op is Op.CUSTOM and op.custom_code not in _ON_BOTH):
            self._on_codes(operator)
        else:
            self._on_floats(operator, op)

    def _on_floats(self, operator: Operator, op: View) -> None:
        """An operator on floats; what it makes is clipped to what codes stand for."""
        inputs = self._operands(op)
        bounds = {
            view.index: _bounds(op, view) for view in op.outputs if self._is_clipped(op, view)
        }
        raw = {
            index: self.add(self.tensors[self._place(index)], "/before_clip", is_variable=False)
            for index in bounds
        }
        outputs = [raw.get(index, self._place(index)) for index in operator.outputs]
        self._append(operator, inputs, outputs, plain=bool(bounds) and clamp(op) != (None, None))
        for index, (low, high) in bounds.items():
            self._clip(self._read_as(raw[index], shown(op)), low, high, self._place(index))

    def _operands(self, op: View) -> list[int | None]:
        """The tensors of floats that an operator has as inputs."""
        inputs = [
            None if view is None else self._given(op, position)
            for position, view in enumerate(op.inputs)
        ]
        for view, reals in recurrent_constants(op):
            inputs[op.inputs.index(view)] = self._constant(view, reals, b"recurrent")
        for position, source, reading in copied(op, inputs):
            inputs[position] = self._read_as(source, reading)
        return inputs

    def _read_as(self, source: int, reading: Reading | None) -> int:
        """Numbers whose codes are read in another quantization."""
        if reading is None:
            return source
        scaled, moved = (self.add(self.tensors[source], "/read", is_variable=False) for _ in "ab")
        self.emit(Op.MUL, [source, self._number(reading.factor)], scaled, MulOptions())
        self.emit(Op.ADD, [scaled, self._number(reading.term)], moved, AddOptions())
        return moved

    def _append(
        self,
        operator: Operator,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        *,
        plain: bool,
    ) -> None:
        """`operator` on other tensors; a plain one has no activation."""
        options: Any = operator.options
        if plain:
            options = replace(options, fused_activation_function=ActivationFunctionType.NONE)
        self.operators.append(
            replace(
                operator,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                options=options,
                intermediates=(),
            )
        )

    def _quantize(self, op: View) -> None:
        """Clip to what codes stand for; nothing is rounded."""
        if op.output.type not in NARROW or op["input"].type is TensorType.INT32:
            raise ExportError(f"{op.label}: {op.output.type.name} codes cannot be dequantized")
        self._clip(self._given(op, 0), *_range(op.output), self._place(op.output.index))

    def _on_codes(self, operator: Operator) -> None:
        """An operator that has codes: they are made for it."""
        places = dict[int, int]()
        for index in dict.fromkeys(i for i in operator.inputs if i is not None):
            if self.is_codes(index):
                places[index] = self.add(self.old.tensors[index], "/codes")
                self.emit(Op.QUANTIZE, [self._place(index)], places[index])
        made = [index for index in operator.outputs if self.is_codes(index)]
        places |= {index: self.add(self.old.tensors[index], "/codes") for index in made}
        self.operators.append(self.moved(operator, places))
        for index in made:
            self.emit(Op.DEQUANTIZE, [places[index]], self._place(index))

    def _copy(self, source: int, output: int) -> None:
        """The same floats as another tensor."""
        kind = TensorType.FLOAT32
        self.emit(Op.CAST, [source], output, CastOptions(in_data_type=kind, out_data_type=kind))

    def _place(self, index: int) -> int:
        return self._places.get(index, index)

    def _real(self, index: int) -> int:
        """The tensor of the numbers that codes stand for."""
        return self._place(index)

    def _given(self, op: View, position: int) -> int:
        """The tensor of floats that an operator has as an input."""
        view = op.inputs[position]
        assert view is not None
        if not view.is_given:
            if view.is_quantized and view.type not in NARROW:
                raise ExportError(f"{op.label}: codes of {view.type.name} cannot be dequantized")
            return self._real(view.index)
        name = op.names[min(position, len(op.names) - 1)] if op.names else ""
        if view.type in (TensorType.INT32, TensorType.INT64):
            return self._bias(op, view) if name.endswith("bias") else view.index
        if view.blocks is not None:
            return self._constant(view, _of_blocks(view), b"blocks")
        if not view.is_quantized or view.quantization is None:
            return view.index
        assert view.data is not None
        key = view.quantization.scale.tobytes() + view.quantization.zero_point.tobytes()
        return self._constant(view, real_numbers(view.data, view.quantization), key)

    def _bias(self, op: View, view: TensorView) -> int:
        """A bias of 32-bit codes: its scale is that of the input times those of the weights, else
        its own."""
        named = dict(zip(op.names, op.inputs, strict=False))
        weights, data, assumed = named.get("filter"), named.get("input"), None
        if weights is not None and data is not None:
            if data.quantization is None or weights.quantization is None or not data.is_quantized:
                return view.index
            assumed = np.float64(data.quantization.scalar_scale) * weights.quantization.scale
        elif view.quantization is not None:
            assumed = view.quantization.scale.astype(np.float64)
        elif data is None or not data.is_quantized:
            return view.index
        if assumed is None or view.data is None:
            raise ExportError(f"{op.label}: the bias {view.name!r} has no scale")
        return self._constant(view, (view.data * assumed).astype(np.float32), assumed.tobytes())

    def _constant(self, view: TensorView, reals: npt.NDArray[np.float32], key: bytes) -> int:
        if (view.index, key) not in self._constants:
            index = self.add(self.old.tensors[view.index], "", **FLOAT, sparsity=None)
            made = replace(self.tensors[index], buffer=self.whole.buffer(reals))
            self.tensors[index] = replace(made, external_buffer=0)
            self._constants[view.index, key] = index
        return self._constants[view.index, key]

    def _is_clipped(self, op: View, view: TensorView) -> bool:
        """Whether what an operator makes can be beyond what codes stand for."""
        if not self.is_codes(view.index) or op.op in CALLS:
            return False
        return not (op.op in MOVES and same_codes(op, view))

    def _clip(self, source: int, low: float, high: float, output: int) -> None:
        middle = self.add(self.tensors[output], "/raised", is_variable=False)
        for op, given, bound, made in (
            (Op.MAXIMUM, source, low, middle),
            (Op.MINIMUM, middle, high, output),
        ):
            self.emit(op, [given, self._number(bound)], made, MaximumMinimumOptions())

    def _number(self, value: float | Array) -> int:
        """A constant of a number, or of one for each channel."""
        array = np.asarray(value, np.float32)
        key = (-1, array.tobytes())
        if key not in self._constants:
            self.tensors.append(
                Tensor(
                    shape=array.shape, type=TensorType.FLOAT32, buffer=self.whole.buffer(array),
                    name="number", has_rank=True,
                )
            )  # fmt: skip
            self._constants[key] = len(self.tensors) - 1
        return self._constants[key]


def _range(view: TensorView) -> tuple[float, float]:
    """The lowest and the highest number that codes of a tensor stand for."""
    found = view.quantization
    assert found is not None
    if found.per_channel:
        raise ExportError(f"{view.name!r} has several scales and cannot be dequantized")
    low, high = quantized_range(view.type)
    steps = [end - found.scalar_zero_point for end in (low, high)]
    ends = [float(np.float32(found.scalar_scale * step)) for step in steps]
    return min(ends), max(ends)


def _bounds(op: View, view: TensorView) -> tuple[float, float]:
    """What an output is clipped to: the numbers of its codes, and those of a fused activation."""
    low, high = _range(view)
    lowest, highest = clamp(op)
    low = low if lowest is None else max(low, lowest)
    return low, max(low, high if highest is None else min(high, highest))


def clamp(op: View) -> tuple[float | None, float | None]:
    """What the fused activation of an operator clamps its result to, if it does that alone: a cell
    has its activation inside."""
    none = ActivationFunctionType.NONE
    fused: ActivationFunctionType = getattr(op.options, "fused_activation_function", none)
    return (None, None) if op.op in CELLS else activation_bounds(fused)


def same_codes(op: View, view: TensorView) -> bool:
    """Whether all codes that an operator has stand for what those of its output do."""
    given = [each for each in op.present_inputs() if each.is_quantized]
    return bool(given) and all(
        each.type is view.type
        and each.quantization is not None
        and each.quantization.equals(view.quantization)
        for each in given
    )


def _of_blocks(view: TensorView) -> npt.NDArray[np.float32]:
    """Weights with a scale for each block of a row."""
    assert view.blocks is not None
    assert view.data is not None
    scales = np.repeat(view.blocks.scale.astype(np.float32), view.blocks.size, axis=1)
    return view.data.astype(np.float32) * scales
