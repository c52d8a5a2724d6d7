"""Models of one RNN operator or SVDF in every form, with inputs for several invokes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tests.one_op import T, one_op_model
from tflite_ort.schema import (
    ActivationFunctionType,
    BidirectionalSequenceRNNOptions,
    Op,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    TensorType,
)

Array = npt.NDArray[Any]
Weights = Literal["float", "int8", "uint8"]


def weights(rng: np.random.Generator, kind: Weights, rows: int, columns: int) -> T:
    """Random weights: floats, int8 codes, or int8 codes whose type says uint8."""
    if kind == "float":
        return reals(rng, rows, columns)
    codes = rng.integers(-127, 128, (rows, columns)).astype(np.int8)
    return T.constant(codes.view(np.uint8) if kind == "uint8" else codes, scale=0.006)


def reals(rng: np.random.Generator, *shape: int) -> T:
    return T.constant(rng.uniform(-1, 1, shape).astype(np.float32))


def draws(tensors: list[T], seed: int, invokes: int) -> list[list[Array]]:
    """Random inputs for several invokes."""
    rng = np.random.default_rng(seed)
    return [[t.random(rng, -2, 2) for t in tensors] for _ in range(invokes)]


@dataclass(frozen=True)
class Rnn:
    """One RNN operator.

    Args:
        backward_cells: the cells of the backward direction.
        auxiliary: the second input of a bidirectional operator. It has weights of its own
            ("weights"), or it replaces the input of the backward direction ("linked").
    """

    op: Op = Op.UNIDIRECTIONAL_SEQUENCE_RNN
    batch: int = 2
    time: int = 3
    features: int = 4
    cells: int = 5
    backward_cells: int = 5
    auxiliary_features: int = 4
    weights: Weights = "float"
    asymmetric: bool = False
    activation: ActivationFunctionType = ActivationFunctionType.TANH
    time_major: bool = False
    auxiliary: Literal["", "weights", "linked"] = ""
    merge_outputs: bool = False
    seed: int = 0

    @property
    def name(self) -> str:
        """The fields that differ from their defaults."""
        plain = Rnn()
        found = [
            f"{key}={getattr(value, 'name', value)}"
            for key in self.__dataclass_fields__
            if (value := getattr(self, key)) != getattr(plain, key)
        ]
        return "-".join(found) or "plain"

    def model(self) -> bytes:
        rng = np.random.default_rng(self.seed)
        inputs: list[T | None] = [self._sequence(self.features), *self._cell(rng, self.cells)]
        outputs = [self._sequence(self.cells)]
        if self.op is Op.BIDIRECTIONAL_SEQUENCE_RNN:
            inputs += [*self._cell(rng, self.backward_cells), *self._auxiliary(rng)]
            outputs.append(self._sequence(self.backward_cells))
            if self.merge_outputs:
                outputs = [self._sequence(self.cells + self.backward_cells)]
        version = 3 if self.asymmetric else 2 if self.weights != "float" else 1
        return one_op_model(self.op, inputs, outputs, self._options(), version)

    def feeds(self, invokes: int = 3) -> list[list[Array]]:
        tensors = [self._sequence(self.features)]
        if self.auxiliary:
            tensors.append(self._sequence(self._auxiliary_width))
        return draws(tensors, self.seed + 1, invokes)

    @property
    def _auxiliary_width(self) -> int:
        return self.auxiliary_features if self.auxiliary == "weights" else self.features

    def _sequence(self, width: int) -> T:
        if self.op is Op.RNN:
            return T((self.batch, width))
        first = (self.time, self.batch) if self.time_major else (self.batch, self.time)
        return T((*first, width))

    def _cell(self, rng: np.random.Generator, cells: int) -> list[T]:
        return [
            weights(rng, self.weights, cells, self.features),
            weights(rng, self.weights, cells, cells),
            reals(rng, cells),
            T((self.batch, cells), is_variable=True),
        ]

    def _auxiliary(self, rng: np.random.Generator) -> list[T | None]:
        width = self._auxiliary_width
        given = self._sequence(width) if self.auxiliary else None
        if self.auxiliary != "weights":
            return [given, None, None]
        sizes = (self.cells, self.backward_cells)
        return [given, *(weights(rng, self.weights, cells, width) for cells in sizes)]

    def _options(self) -> Any:
        given: dict[str, Any] = {
            "fused_activation_function": self.activation,
            "asymmetric_quantize_inputs": self.asymmetric,
        }
        if self.op is Op.RNN:
            return RNNOptions(**given)
        given["time_major"] = self.time_major
        if self.op is Op.UNIDIRECTIONAL_SEQUENCE_RNN:
            return SequenceRNNOptions(**given)
        return BidirectionalSequenceRNNOptions(merge_outputs=self.merge_outputs, **given)


@dataclass(frozen=True)
class Svdf:
    """One SVDF operator.

    Args:
        weights: the type of the weights. With "integer" the activations are codes too.
        narrow: whether the state and the weights in time of an integer operator have 8 bits.
        scale: of the output of an integer operator.
        zero_point: of the state of an integer operator, if it has 16 bits.
    """

    batch: int = 2
    features: int = 6
    units: int = 4
    rank: int = 1
    memory: int = 5
    weights: Weights | Literal["integer"] = "float"
    bias: bool = True
    activation: ActivationFunctionType = ActivationFunctionType.NONE
    asymmetric: bool = False
    narrow: bool = False
    scale: float = 0.03
    zero_point: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        return "-".join(f"{key}={getattr(self, key)}" for key in self.__dataclass_fields__)

    def model(self) -> bytes:
        rng = np.random.default_rng(self.seed)
        filters, integer = self.units * self.rank, self.weights == "integer"
        state = T((self.batch, filters * self.memory), is_variable=True)
        output = T((self.batch, self.units))
        if integer:
            feature = weights(rng, "int8", filters, self.features)
            time = self._weights_in_time(rng)
            bias = T.constant(rng.integers(-20000, 20000, self.units).astype(np.int32), scale=1e-5)
            kind = (TensorType.INT16, 2.0**-12, self.zero_point)
            if self.narrow:
                kind = (TensorType.INT8, 0.02, -5)
            state = T(state.shape, *kind, is_variable=True)
            output = T(output.shape, TensorType.INT8, self.scale, -128)
        else:
            given: Any = self.weights
            feature = weights(rng, given, filters, self.features)
            time, bias = weights(rng, given, filters, self.memory), reals(rng, self.units)
        inputs = [self._input(), feature, time, bias if self.bias else None, state]
        options = SVDFOptions(self.rank, self.activation, self.asymmetric)
        version = 4 if self.asymmetric else 3 if integer else 2 if self.weights != "float" else 1
        return one_op_model(Op.SVDF, inputs, [output], options, version)

    def feeds(self, invokes: int = 8) -> list[list[Array]]:
        return draws([self._input()], self.seed + 1, invokes)

    def _weights_in_time(self, rng: np.random.Generator) -> T:
        shape, dtype = (self.units * self.rank, self.memory), np.int8 if self.narrow else np.int16
        limit = np.iinfo(dtype).max
        return T.constant(rng.integers(-limit, limit + 1, shape).astype(dtype), scale=1 / limit)

    def _input(self) -> T:
        shape = (self.batch, self.features)
        return T(shape, TensorType.INT8, 0.05, -7) if self.weights == "integer" else T(shape)
