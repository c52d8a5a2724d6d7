"""Models of one LSTM operator in every form, with inputs for several invokes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tests.one_op import Node, T, graph_model
from tflite_ort.schema import (
    ActivationFunctionType,
    BidirectionalSequenceLSTMOptions,
    LSTMKernelType,
    LSTMOptions,
    Op,
    TensorType,
    UnidirectionalSequenceLSTMOptions,
)
from tflite_ort.schema.values.lstm import (
    BASIC_LSTM_INPUTS,
    BIDIRECTIONAL_LSTM_INPUTS,
    GATES,
    LSTM_INPUTS,
    PEEPHOLE_GATES,
)

Array = npt.NDArray[Any]
FLOAT32, INT8, UINT8 = TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8
INT16, INT32 = TensorType.INT16, TensorType.INT32
Arithmetic = Literal["float", "hybrid", "hybrid-uint8", "8x8_16", "8x8_8"]

_INPUT_SCALE, _INPUT_ZERO_POINT = 0.02, 11
_STATE_SCALE, _STATE_ZERO_POINT = 0.009, -7
_HIDDEN_SCALE, _HIDDEN_ZERO_POINT = 0.0078, 4
_NORM_SCALE = 2.0**-14


@dataclass(frozen=True)
class Lstm:
    """One LSTM operator.

    Args:
        outputs: the outputs of the projection. Without a projection there is one for each cell.
        coupled: whether the input gate is 1 - forget gate (CIFG).
        auxiliary: the second input of a bidirectional operator. It has weights of its own
            ("weights"), or it replaces the input of the backward direction ("linked").
        diagonal: the gates whose recurrent weights are vectors.
        cell_bits: the cell state of an integer operator has the unit ``2**-cell_bits``.
        short: whether the inputs for layer normalisation are left out, as in the oldest files.
        halves: whether the file stores the weights of a float operator as float16.
    """

    op: Op = Op.UNIDIRECTIONAL_SEQUENCE_LSTM
    arithmetic: Arithmetic = "float"
    batch: int = 2
    time: int = 3
    features: int = 4
    cells: int = 6
    outputs: int = 5
    auxiliary_features: int = 3
    coupled: bool = False
    peephole: bool = False
    projection: bool = False
    projection_bias: bool = False
    layer_norm: bool = False
    activation: ActivationFunctionType = ActivationFunctionType.TANH
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    time_major: bool = False
    asymmetric: bool = False
    diagonal: tuple[str, ...] = ()
    auxiliary: Literal["", "weights", "linked"] = ""
    merge_outputs: bool = False
    cell_bits: int = 11
    short: bool = False
    halves: bool = False
    version: int = 1
    seed: int = 0

    @property
    def name(self) -> str:
        """The fields that differ from their defaults."""
        plain = Lstm()
        found = [
            key if value is True else f"{key}={getattr(value, 'name', value)}"
            for key in self.__dataclass_fields__
            if (value := getattr(self, key)) != getattr(plain, key)
        ]
        return "-".join(found) or "plain"

    @property
    def integer(self) -> bool:
        return self.arithmetic in ("8x8_16", "8x8_8")

    @property
    def bidirectional(self) -> bool:
        return self.op is Op.BIDIRECTIONAL_SEQUENCE_LSTM

    @property
    def units(self) -> int:
        """The number of outputs of one direction."""
        return self.outputs if self.projection else self.cells

    def tensors(self) -> dict[str, T]:
        """The operator's inputs by name."""
        rng = np.random.default_rng(self.seed)
        tensors = {"input": self._sequence(self.features)}
        for prefix in ("fw_", "bw_") if self.bidirectional else ("",):
            cell = self._cell(rng)
            tensors.update({f"{prefix}{key}": tensor for key, tensor in cell.items()})
        if self.auxiliary:
            width = self.auxiliary_features if self.auxiliary == "weights" else self.features
            tensors["aux_input"] = self._sequence(width)
        return tensors

    def model(
        self, changed: Mapping[str, T | None] = MappingProxyType({}), intermediates: int = 12
    ) -> bytes:
        """A model of this operator. Its variables start at zero.

        Args:
            changed: inputs by name that replace those of `tensors`; None leaves one out.
            intermediates: how many intermediate tensors are kept.
        """
        tensors = {**self.tensors(), **changed}
        tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        names = BIDIRECTIONAL_LSTM_INPUTS if self.bidirectional else LSTM_INPUTS
        inputs = [name.rstrip("?") for name in names[: 20 if self.short else None]]
        outputs, scales = self._outputs(), self._intermediates()
        node = Node(
            self.op,
            [name if name in tensors else None for name in inputs],
            list(outputs),
            self.options(),
            self.version,
            intermediates=list(scales)[:intermediates],
        )
        nodes = [*(_widened(tensors) if self.halves else []), node]
        return graph_model({**tensors, **scales, **outputs}, nodes, list(outputs))

    def options(self) -> Any:
        given: dict[str, Any] = {
            "fused_activation_function": self.activation,
            "cell_clip": self.cell_clip,
            "proj_clip": self.proj_clip,
            "asymmetric_quantize_inputs": self.asymmetric,
        }
        if self.op is Op.LSTM:
            return LSTMOptions(**given)
        given["time_major"] = self.time_major
        if self.bidirectional:
            return BidirectionalSequenceLSTMOptions(merge_outputs=self.merge_outputs, **given)
        diagonal = bool(self.diagonal)
        return UnidirectionalSequenceLSTMOptions(diagonal_recurrent_tensors=diagonal, **given)

    def feeds(self, invokes: int = 3, high: float = 2.0) -> list[list[Array]]:
        """Random inputs for several invokes."""
        rng = np.random.default_rng(self.seed + 1)
        given = [
            self.tensors()[name] for name in ("input", "aux_input")[: 1 + bool(self.auxiliary)]
        ]
        return [[t.random(rng, -high, high) for t in given] for _ in range(invokes)]

    def _shape(self, width: int) -> tuple[int, ...]:
        if self.op is Op.LSTM:
            return self.batch, width
        first = (self.time, self.batch) if self.time_major else (self.batch, self.time)
        return *first, width

    def _sequence(self, width: int) -> T:
        if self.integer:
            return T(self._shape(width), INT8, _INPUT_SCALE, _INPUT_ZERO_POINT)
        return T(self._shape(width))

    def _outputs(self) -> dict[str, T]:
        widths = [self.units] * (2 if self.bidirectional else 1)
        if self.bidirectional and self.merge_outputs:
            widths = [2 * self.units]
        type, scale = (INT8, _STATE_SCALE) if self.integer else (FLOAT32, None)
        return {
            f"output{i}": T(self._shape(width), type, scale, _STATE_ZERO_POINT)
            for i, width in enumerate(widths)
        }

    def _intermediates(self) -> dict[str, T]:
        """Tensors that carry the scales of the gates' sums and the hidden state, or of all sums."""
        if self.arithmetic == "8x8_16":
            scales = [*((0.004, 0.0037, 0.005, 0.0041) if self.layer_norm else (2.0**-12,) * 4)]
            scales.append(_HIDDEN_SCALE)
            zero_points = [0, 0, 0, 0, _HIDDEN_ZERO_POINT]
        elif self.arithmetic == "8x8_8":
            scales = [0.007, 0.03, 0.02, 0.0061, 0.027, 0.021, 0.008, 0.031, 0.018]
            scales += [0.0073, 0.029, 0.023]
            zero_points = [0, -3, 5, 2, 9, -12, 1, 4, -6, 0, 8, -1]
        else:
            return {}
        # Their values are never held anywhere.
        return {
            f"intermediate{i}": T((), INT16, scale, zero_point)
            for i, (scale, zero_point) in enumerate(zip(scales, zero_points, strict=True))
        }

    def _cell(self, rng: np.random.Generator) -> dict[str, T]:
        """The weights and states of one direction."""
        gates = GATES[1:] if self.coupled else GATES
        tensors = {}
        for gate in gates:
            recurrent = self._weights(rng, self.cells, self.units)
            if gate in self.diagonal:
                recurrent = T.constant(rng.uniform(-1, 1, self.cells).astype(np.float32))
            tensors[f"input_to_{gate}_weights"] = self._weights(rng, self.cells, self.features)
            tensors[f"recurrent_to_{gate}_weights"] = recurrent
            tensors[f"{gate}_gate_bias"] = self._bias(rng, self.cells, self.layer_norm)
            if self.auxiliary == "weights":
                wide = self._weights(rng, self.cells, self.auxiliary_features)
                tensors[f"aux_input_to_{gate}_weights"] = wide
            if self.peephole and gate in PEEPHOLE_GATES:
                tensors[f"cell_to_{gate}_weights"] = self._diagonal(rng)
            if self.layer_norm:
                tensors[f"{gate}_layer_norm_coefficients"] = self._norm(rng)
        if self.projection:
            tensors["projection_weights"] = self._weights(rng, self.units, self.cells)
        if self.projection_bias:
            tensors["projection_bias"] = self._bias(rng, self.units, False)
        tensors["output_state"] = self._state((self.batch, self.units), INT8)
        tensors["cell_state"] = self._state((self.batch, self.cells), INT16)
        return tensors

    def _weights(self, rng: np.random.Generator, rows: int, columns: int) -> T:
        if self.arithmetic == "float":
            return T.constant(rng.uniform(-1, 1, (rows, columns)).astype(np.float32))
        codes = rng.integers(-127, 128, (rows, columns)).astype(np.int8)
        scale = float(np.float32(rng.uniform(0.004, 0.009)))
        if self.arithmetic == "hybrid-uint8":  # signed codes under another name
            return T.constant(codes.view(np.uint8), scale=scale)
        return T.constant(codes, scale=scale)

    def _bias(self, rng: np.random.Generator, size: int, normalized: bool) -> T:
        real = rng.uniform(-1, 1, size)
        if not self.integer:
            return T.constant(real.astype(np.float32))
        scale = _NORM_SCALE * 2.0**-10 if normalized else _INPUT_SCALE * 0.006
        return T.constant(np.rint(real / scale).astype(np.int32), scale=scale)

    def _diagonal(self, rng: np.random.Generator) -> T:
        if self.arithmetic == "float":
            return T.constant(rng.uniform(-1, 1, self.cells).astype(np.float32))
        dtype, scale = (np.int16, 2.0**-15) if self.integer else (np.int8, 2.0**-7)
        limit = np.iinfo(dtype).max
        codes = rng.integers(-limit, limit + 1, self.cells).astype(dtype)
        if self.arithmetic == "hybrid-uint8":
            return T.constant(codes.view(np.uint8), scale=scale)
        return T.constant(codes, scale=scale)

    def _norm(self, rng: np.random.Generator) -> T:
        real = rng.uniform(0.2, 1.9, self.cells)
        if not self.integer:
            return T.constant(real.astype(np.float32))
        return T.constant((real / _NORM_SCALE).astype(np.int16), scale=_NORM_SCALE)

    def _state(self, shape: tuple[int, int], type: TensorType) -> T:
        if not self.integer:
            return T(shape, is_variable=True)
        if type is INT16:
            bits = 15 if self.arithmetic == "8x8_8" else self.cell_bits
            return T(shape, type, 2.0**-bits, is_variable=True)
        return T(shape, type, _STATE_SCALE, _STATE_ZERO_POINT, is_variable=True)


def _widened(tensors: dict[str, T]) -> list[Node]:
    """Store the constants as float16, and return the operators that make float32 of them."""
    nodes = []
    for name, tensor in list(tensors.items()):
        if tensor.data is not None:
            tensors[f"{name}_half"] = T.constant(tensor.data.astype(np.float16))
            tensors[name] = replace(tensor, data=None)
            nodes.append(Node(Op.DEQUANTIZE, [f"{name}_half"], [name], version=3))
    return nodes


@dataclass(frozen=True)
class BasicLstm:
    """LSTM with the basic kernel. Its states are inputs and outputs."""

    quantized: bool = False
    batch: int = 2
    features: int = 5
    cells: int = 4
    seed: int = 0

    def model(self, bias: int | None = None) -> bytes:
        """A model of this operator; with `bias`, all codes of its bias are this number."""
        rng = np.random.default_rng(self.seed)
        shape, rows = (self.batch, self.cells), 4 * self.cells
        total = self.features + self.cells
        values = rng.uniform(-1, 1, (rows, total)), rng.uniform(-1, 1, rows)
        if self.quantized:
            data = T((self.batch, self.features), UINT8, 2.0**-7, 128)
            output, state = replace(data, shape=shape), T(shape, INT16, 2.0**-11)
            codes = np.rint(values[0] * 80 + 117).astype(np.uint8)
            scale = float(np.float32(2.0**-7 * 0.0123))
            weights = T.constant(codes, scale=0.0123, zero_point=117)
            codes = np.rint(values[1] / scale) if bias is None else np.full(rows, bias)
            biases = T.constant(codes.astype(np.int32), scale=scale)
        else:
            data, output, state = T((self.batch, self.features)), T(shape), T(shape)
            weights, biases = (T.constant(value.astype(np.float32)) for value in values)
        inputs = [
            data,
            replace(output, is_variable=True),
            weights,
            biases,
            replace(state, is_variable=True),
        ]
        scratch = replace(state, shape=(self.batch, rows))
        if self.quantized:
            scratch = replace(scratch, scale=2.0**-12)
        outputs = [output, state, replace(data, shape=(self.batch, total)), scratch]
        tensors = dict(zip(BASIC_LSTM_INPUTS, inputs, strict=True))
        made = {f"output{i}": tensor for i, tensor in enumerate(outputs)}
        options = LSTMOptions(
            fused_activation_function=ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC
        )
        node = Node(Op.LSTM, BASIC_LSTM_INPUTS, list(made), options, version=2)
        return graph_model({**tensors, **made}, [node], list(made))

    def feeds(self, invokes: int = 3) -> list[list[Array]]:
        rng = np.random.default_rng(self.seed + 1)
        type, scale = (UINT8, 2.0**-7) if self.quantized else (FLOAT32, None)
        data = T((self.batch, self.features), type, scale, 128)
        return [[data.random(rng, -2, 2)] for _ in range(invokes)]


def invokes(interpreter: Any, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of several invokes of an interpreter, LiteRT's or ours."""
    interpreter.allocate_tensors()
    results = []
    for arrays in feeds:
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        details = interpreter.get_output_details()
        results.append([np.array(interpreter.get_tensor(d["index"])) for d in details])
    return results
