"""A quantized model as one of floats that are rounded to the numbers that codes stand for.

A tensor of codes becomes floats that count its steps: code - zero point. A convolution of steps and
of weights in steps is a sum of whole numbers, which 32-bit floats hold exactly up to 2**24. It is
multiplied by the scales, rounded and clipped, as LiteRT does. What only moves numbers moves steps.
All other operators read real numbers, and their results are rounded to steps. Recurrent cells keep
states of real numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace as changed
from tflite_ort.export.copied_codes import COPIES, MOVES, copied, shown
from tflite_ort.export.dequantized import (
    CALLS,
    CELLS,
    FLOAT,
    NARROW,
    Inside,
    View,
    clamp,
    same_codes,
)
from tflite_ort.opmap.graph.quantized_nodes import dequantized as real_numbers
from tflite_ort.opmap.idioms.rescaled_codes import Codes
from tflite_ort.opmap.idioms.squares import factors, has_codes, step_of_floats, units_of_squares
from tflite_ort.schema import (
    AddOptions,
    CastOptions,
    DivOptions,
    ExportError,
    GatherOptions,
    Model,
    MulOptions,
    Op,
    Operator,
    SubGraph,
    SubOptions,
    TensorType,
    TensorView,
)
from tflite_ort.schema.arithmetic.code_functions import inverse_root_codes
from tflite_ort.schema.values.semantics import quantized_range

_PRODUCTS = frozenset({Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.FULLY_CONNECTED, Op.TRANSPOSE_CONV})
_WEIGHTS = (TensorType.INT4, TensorType.INT8, TensorType.UINT8)
_CODES = (TensorType.INT8, TensorType.UINT8)
# With the same codes on both sides they compute steps of steps, which are no whole numbers.
_MEANS = frozenset({Op.AVERAGE_POOL_2D, Op.MEAN, Op.RESIZE_BILINEAR})
# A factor that moves halves away from zero, and no other mean of less than 2000 codes past a half.
_FARTHER = 1 + 2.0**-20
Ends = tuple[float, float]
Scales = npt.NDArray[np.float64]


def rounds_all(model: Model) -> bool:
    """Whether all is rounded that LiteRT rounds: recurrent cells do so inside too."""
    return not any(code.builtin_code in CELLS for code in model.operator_codes)


class Rounded(Inside):
    """Floats for all tensors, which count steps inside."""

    def graph(self) -> SubGraph:
        self._reals = dict[int, int]()
        # Inputs and outputs of the whole model that stay codes.
        outside = () if self.number or self._ends else (*self.old.inputs, *self.old.outputs)
        self._coded = frozenset(outside)
        codes = [index for index in range(len(self.old.tensors)) if self.is_codes(index)]
        for index in codes:
            tensor = self.old.tensors[index]
            if index not in self._coded:
                self.tensors[index] = replace(tensor, **FLOAT)
            if not self.number and not tensor.is_variable:  # called graphs are given steps
                self._places[index] = self.add(tensor, "/steps", **FLOAT, is_variable=False)
        for index in dict.fromkeys(self.old.inputs):
            if index in self._places:
                view, given = self.views[index], index
                if index in self._coded:
                    given = self.add(self.tensors[index], "/real", **FLOAT)
                    self.emit(Op.DEQUANTIZE, [index], given)
                self._fit(given, _scale(view), _steps(view), self._places[index])
        self._all_operators()
        for index in dict.fromkeys(self.old.outputs):
            if index in self._places and index not in self.old.inputs:
                real = self._real(index)
                if index in self._coded:
                    self.emit(Op.QUANTIZE, [real], index)
        return self.made()

    def _real(self, index: int) -> int:
        if not self.is_codes(index) or self.tensors[index].is_variable:
            return index
        if index not in self._reals:
            like, own = self.tensors[self._place(index)], index in self._places
            own = own and index not in self._coded
            real = index if own and index not in self.old.inputs else self.add(like, "/real")
            scale = self._number(_scale(self.views[index]))
            self.emit(Op.MUL, [self._place(index), scale], real, MulOptions())
            self._reals[index] = real
        return self._reals[index]

    def _on_floats(self, operator: Operator, op: View) -> None:
        made = [view for view in op.outputs if self.is_codes(view.index)]
        states = any(view is not None and view.is_variable for view in op.inputs)
        if op.op not in CALLS and states:  # they are real numbers
            self._on_reals(operator, op, made)
        elif op.op in CALLS or (made and self._keeps_steps(op, made)):
            self._move(operator, op, made)
        elif op.op in _PRODUCTS and made and self._sums_steps(op):
            self._multiply(operator, op)
        elif op.op is Op.BATCH_MATMUL and made and _are_single(op):
            self._multiply_both(operator, op)
        elif op.op is Op.RSQRT and made and op["input"].type is TensorType.INT8:
            self._look_up(op)
        elif op.op is Op.SQUARED_DIFFERENCE and made and (step := _step_of_squares(op)):
            self._square(op, step)
        else:
            self._on_reals(operator, op, made)

    def _keeps_steps(self, op: View, made: Sequence[TensorView]) -> bool:
        """Whether an operator makes steps of steps: of the same scale, or where it copies codes."""
        if op.op not in MOVES | _MEANS or clamp(op) != (None, None):
            return False
        return op.op in COPIES or all(same_codes(op, view) for view in made)

    def _move(self, operator: Operator, op: View, made: Sequence[TensorView]) -> None:
        inputs = [
            None if view is None else self._steps_of(op, position, view)
            for position, view in enumerate(op.inputs)
        ]
        for position, source, reading in copied(op, inputs):
            inputs[position] = self._added(source, reading.steps, op.outputs[0])
        raw = {view.index: self._raw(view) for view in made if op.op in _MEANS}
        outputs = [raw.get(index, self._place(index)) for index in operator.outputs]
        self._append(operator, inputs, outputs, plain=False)
        for view in made if raw else ():
            self._round_mean(op, raw[view.index], view)

    def _round_mean(self, op: View, source: int, view: TensorView) -> None:
        """Round steps as LiteRT rounds codes: halves upwards where it resizes, away from the code 0
        where it pools, to even codes in a mean. Every second mean of two codes is a half."""
        output, quantization = self._place(view.index), view.quantization
        assert quantization is not None
        zero = quantization.scalar_zero_point
        if op.op is Op.RESIZE_BILINEAR:
            raised = self._added(source, 0.5, view)
            whole = self._raw(view)
            self.emit(Op.FLOOR, [raised], whole)
            self._clip(whole, *_steps(view), output)
            return
        pools = op.op is Op.AVERAGE_POOL_2D
        moved = zero if pools or zero % 2 else 0
        codes = self._added(source, moved, view)
        if pools:
            farther = self._raw(view)
            self.emit(Op.MUL, [codes, self._number(_FARTHER)], farther, MulOptions())
            codes = farther
        whole = self._raw(view)
        self.emit(Op.ROUND, [codes], whole)
        self._clip(self._added(whole, -moved, view), *_steps(view), output)

    def _added(self, source: int, number: float, view: TensorView) -> int:
        if not number:
            return source
        made = self._raw(view)
        self.emit(Op.ADD, [source, self._number(number)], made, AddOptions())
        return made

    def _steps_of(self, op: View, position: int, view: TensorView) -> int:
        if not view.is_given:
            return self._place(view.index)
        if not view.is_quantized or view.type not in NARROW:
            return self._given(op, position)
        return self._constant_steps(view)

    def _constant_steps(self, view: TensorView) -> int:
        """The steps of a constant of codes."""
        assert view.data is not None
        assert view.quantization is not None
        ones = changed(view.quantization, scale=np.ones_like(view.quantization.scale))
        return self._constant(view, real_numbers(view.data, ones), b"steps")

    def _sums_steps(self, op: View) -> bool:
        """Whether an operator makes sums of products of 8-bit codes and constant weights."""
        named = dict(zip(op.names, op.inputs, strict=False))
        data, weights, bias = (named.get(name) for name in ("input", "filter", "bias"))
        if data is None or weights is None or data.type not in _CODES:
            return False
        if not self.is_codes(data.index) or weights.data is None or weights.blocks is not None:
            return False
        if weights.type not in _WEIGHTS or weights.quantization is None:
            return False
        return bias is None or (bias.type is TensorType.INT32 and bias.data is not None)

    def _multiply(self, operator: Operator, op: View) -> None:
        """A convolution of steps; what it sums up are steps of the scale of both operands."""
        named = dict(zip(op.names, op.inputs, strict=False))
        data, weights, bias = named["input"], named["filter"], named.get("bias")
        assert data is not None
        assert weights is not None
        assert weights.quantization is not None
        places = {data.index: self._place(data.index), weights.index: self._constant_steps(weights)}
        if bias is not None:
            assert bias.data is not None
            sums = self._constant(bias, bias.data.astype(np.float32), b"steps")
            places[bias.index] = sums
        inputs = [None if i is None else places.get(i, i) for i in operator.inputs]
        scales = weights.quantization.scale.astype(np.float64).reshape(-1)
        self._sum_up(operator, op, inputs, _scale(data) * scales)

    def _multiply_both(self, operator: Operator, op: View) -> None:
        """A product of steps and steps."""
        inputs, scale = list[int | None](), np.ones(1)
        for position, view in enumerate(op.present_inputs()):
            inputs.append(self._steps_of(op, position, view))
            scale *= _scale(view)
        self._sum_up(operator, op, inputs, scale)

    def _sum_up(
        self, operator: Operator, op: View, inputs: Sequence[int | None], scales: Scales
    ) -> None:
        """An operator whose sums have these scales, one or one for each channel."""
        raw, scaled = self._raw(op.output), self._raw(op.output)
        self._append(operator, inputs, [raw], plain=clamp(op) != (None, None))
        factor = (scales / _scale(op.output)).astype(np.float32)
        factors = self._number(factor if len(factor) > 1 else factor[0])
        self.emit(Op.MUL, [raw, factors], scaled, MulOptions())
        self._round(scaled, _bounds(op, op.output), self._place(op.output.index))

    def _look_up(self, op: View) -> None:
        """RSQRT, whose fixed point floats do not give, in a table of all codes."""
        source, target = Codes.of(op["input"]), Codes.of(op.output)
        roots = inverse_root_codes(
            np.maximum(source.steps(), 0), np.float32(source.scale), np.float32(target.scale)
        )
        low, high = _steps(op.output)
        table = np.clip(roots, low, high).astype(np.float32)
        moved = self._added(self._place(op["input"].index), -_steps(op["input"])[0], op["input"])
        place = self.add(self.tensors[moved], "/place", type=TensorType.INT32, is_variable=False)
        kinds = {"in_data_type": TensorType.FLOAT32, "out_data_type": TensorType.INT32}
        self.emit(Op.CAST, [moved], place, CastOptions(**kinds))
        output = self._place(op.output.index)
        self.emit(Op.GATHER, [self._number(table), place], output, GatherOptions())

    def _square(self, op: View, step: float) -> None:
        """SQUARED_DIFFERENCE as TFLite rounds it: both operands, and what they make."""
        units = units_of_squares(op)
        rounded = []
        for position, ratio in enumerate(units.operands):
            view = op.inputs[position]
            assert view is not None
            value = self._steps_of(op, position, view)
            for factor in factors(ratio):
                if factor != 1.0:
                    scaled, whole = self._raw(view), self._raw(view)
                    self.emit(Op.MUL, [value, self._number(factor)], scaled, MulOptions())
                    self.emit(Op.ROUND, [scaled], whole)
                    value = whole
            rounded.append(value)
        difference, square, parts = (self._raw(op.output) for _ in range(3))
        self.emit(Op.SUB, rounded, difference, SubOptions())
        self.emit(Op.MUL, [difference, difference], square, MulOptions())
        self.emit(Op.DIV, [square, self._number(step)], parts, DivOptions())
        self._round(parts, _bounds(op, op.output), self._place(op.output.index))

    def _on_reals(self, operator: Operator, op: View, made: Sequence[TensorView]) -> None:
        inputs = self._operands(op)
        raw = {view.index: self._raw(view) for view in made}
        outputs = [raw.get(index, self._place(index)) for index in operator.outputs]
        self._append(operator, inputs, outputs, plain=bool(made) and clamp(op) != (None, None))
        for view in made:
            real = self._read_as(raw[view.index], shown(op))
            self._fit(real, _scale(view), _bounds(op, view), self._place(view.index))

    def _quantize(self, op: View) -> None:
        if op.output.type not in NARROW or op["input"].type is TensorType.INT32:
            raise ExportError(f"{op.label}: {op.output.type.name} codes cannot be dequantized")
        place = self._place(op.output.index)
        self._fit(self._given(op, 0), _scale(op.output), _steps(op.output), place)

    def _on_codes(self, operator: Operator) -> None:
        places = dict[int, int]()
        for index in dict.fromkeys(i for i in operator.inputs if i is not None):
            if self.is_codes(index):
                places[index] = self.add(self.old.tensors[index], "/codes")
                self.emit(Op.QUANTIZE, [self._real(index)], places[index])
        made = [index for index in operator.outputs if self.is_codes(index)]
        places |= {index: self.add(self.old.tensors[index], "/codes") for index in made}
        self.operators.append(self.moved(operator, places))
        for index in made:
            view = self.views[index]
            real = self._raw(view)
            self.emit(Op.DEQUANTIZE, [places[index]], real)
            self._fit(real, _scale(view), _steps(view), self._place(index))

    def _raw(self, view: TensorView) -> int:
        """What an operator makes of `view` before it is rounded."""
        return self.add(self.tensors[self._place(view.index)], "/raw", is_variable=False)

    def _fit(self, source: int, scale: float, ends: Ends, output: int) -> None:
        """The steps next to real numbers."""
        parts = self.add(self.tensors[output], "/parts", is_variable=False)
        self.emit(Op.DIV, [source, self._number(scale)], parts, DivOptions())
        self._round(parts, ends, output)

    def _round(self, source: int, ends: Ends, output: int) -> None:
        whole = self.add(self.tensors[output], "/whole", is_variable=False)
        self.emit(Op.ROUND, [source], whole)
        self._clip(whole, *ends, output)


def _are_single(op: View) -> bool:
    """Whether all operands are 8-bit codes of one scale."""
    return all(
        view.type in _CODES and view.quantization is not None and not view.quantization.per_channel
        for view in op.present_inputs()
    )


def _step_of_squares(op: View) -> float | None:
    """What squares are divided by such that floats round them as TFLite does."""
    if op.output.type is not TensorType.INT8 or not has_codes(op):
        return None
    return step_of_floats(units_of_squares(op).square)


def _scale(view: TensorView) -> float:
    """The scale of the codes of a tensor."""
    found = view.quantization
    assert found is not None
    if found.per_channel or not 0 < found.scalar_scale < np.inf:
        raise ExportError(f"{view.name!r} has no single scale and cannot be rounded")
    return float(found.scalar_scale)


def _steps(view: TensorView) -> Ends:
    """The lowest and the highest step of a tensor."""
    assert view.quantization is not None
    low, high = (end - view.quantization.scalar_zero_point for end in quantized_range(view.type))
    return float(low), float(high)


def _bounds(op: View, view: TensorView) -> Ends:
    """What steps are clipped to: those of the codes, and those of a fused activation."""
    low, high = _steps(view)
    lowest, highest = (None if e is None else float(np.rint(e / _scale(view))) for e in clamp(op))
    low = low if lowest is None else max(low, lowest)
    return low, max(low, high if highest is None else min(high, highest))
