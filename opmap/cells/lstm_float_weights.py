"""The weights of LSTM cells that compute in floats: I input, C cells, O outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.cells.directions import ONNX_ACTIVATIONS
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.hybrid import Rounding
from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.lstm import GATES, PEEPHOLE_GATES
from tflite_ort.schema.values.sizes import is_known

Array = npt.NDArray[Any]
View = OperatorView[Any]
_CODED = (TensorType.INT8, TensorType.UINT8)


@record
class FloatWeights:
    """The weights of one LSTM cell, with the gates in the order input, forget, update, output.

    Args:
        input_weights: [4 * C, I], of the input and of an auxiliary input.
        recurrent_weights: [4 * C, O].
        bias: [4, C].
        peephole: [3, C], of the input, forget and output gate.
        norm: [4, C], coefficients of the layer normalisation.
        projection: [O, C].
        projection_bias: [O].
        activation: of the update and of the cell state.
        cell_clip, proj_clip: 0 for none.
        rounding: of the rows that meet the weights; None for none.
    """

    input_weights: tuple[WeightMatrix, ...]
    recurrent_weights: WeightMatrix
    bias: Array
    peephole: Array | None
    norm: Array | None
    projection: WeightMatrix | None
    projection_bias: Array | None
    activation: ActivationFunctionType
    cell_clip: float
    proj_clip: float
    rounding: Rounding | None = None

    @property
    def matrices(self) -> tuple[WeightMatrix, ...]:
        """The weights of all that a step reads: the inputs, and the last output."""
        return (*self.input_weights, self.recurrent_weights)

    @property
    def is_plain(self) -> bool:
        """Whether the ONNX LSTM computes the same, except for the clip of the cell state."""
        parts = (self.projection, self.norm, self.rounding)
        return all(part is None for part in parts) and self.activation in ONNX_ACTIVATIONS

    @property
    def size(self) -> int:
        """The number of cells, C."""
        return len(self.bias[0])

    def added(self, g: Graph) -> ir.Value | None:
        """The bias of the gates' sums; None with layer normalisation, which adds it later."""
        return g.constant(self.bias.reshape(-1)) if self.norm is None else None


def read_float_weights(
    op: View, prefix: str = "", rounding: Rounding | None = None
) -> FloatWeights:
    """The weights of the cell of `op`, an LSTM whose inputs have the prefix; 8-bit ones stay codes.

    Without an input gate TFLite takes 1 - forget gate. That is sigmoid(-z): an input gate with
    the negated weights of the forget gate.

    Raises:
        Untranslatable: weights that are not constant, or a cell that ONNX cannot express.
    """
    coupled = op.get(f"{prefix}input_to_input_weights") is None

    def gates(pattern: str, names: Sequence[str] = GATES, mirror: int = -1) -> Array | None:
        found = [reals(op, prefix + pattern.format(gate)) for gate in names]
        kept = [array for array in found[1:] if array is not None]
        if not kept:
            return None
        return np.stack([mirror * kept[0] if coupled or found[0] is None else found[0], *kept])

    def weights(pattern: str) -> WeightMatrix | None:
        found = [weight_matrix(op, prefix + pattern.format(gate)) for gate in GATES]
        kept = [each for each in found[1:] if each is not None]
        if not kept:
            return None
        return WeightMatrix.stacked([-kept[0] if coupled or found[0] is None else found[0], *kept])

    inputs = [weights("input_to_{}_weights"), weights("aux_input_to_{}_weights")]
    recurrent = weights("recurrent_to_{}_weights")
    bias = gates("{}_gate_bias")
    if recurrent is None or bias is None:
        raise Untranslatable("gates without weights")
    recurrents = (op.get(f"{prefix}recurrent_to_{gate}_weights") for gate in GATES)
    if rounding is not None and any(t is not None and t.rank == 1 for t in recurrents):
        raise Untranslatable("rounded activations beside diagonal weights")
    options = op.options
    if options.fused_activation_function is ActivationFunctionType.NONE:
        _refuse_unfinished(op, prefix)
    return FloatWeights(
        tuple(each for each in inputs if each is not None),
        recurrent,
        bias,
        gates("cell_to_{}_weights", PEEPHOLE_GATES),
        gates("{}_layer_norm_coefficients", mirror=1),
        weight_matrix(op, f"{prefix}projection_weights"),
        reals(op, f"{prefix}projection_bias"),
        options.fused_activation_function,
        options.cell_clip,
        options.proj_clip,
        rounding,
    )


def _refuse_unfinished(op: View, prefix: str) -> None:
    """Refuses a float cell without activation whose update TFLite computes only in part."""
    auxiliary = f"{prefix}aux_input_to_cell_weights"
    added = auxiliary in op.names and op.get(auxiliary) is not None
    diagonal = op[f"{prefix}recurrent_to_cell_weights"].rank == 1
    real = op[f"{prefix}input_to_cell_weights"].type is TensorType.FLOAT32
    if real and (added or diagonal):
        raise Untranslatable("TFLite leaves out a part of an update without activation")


def weight_matrix(op: View, name: str) -> WeightMatrix | None:
    """The constant input `name` as a matrix, also from a diagonal [N]; None if it is absent."""
    weights, tensor = reals(op, name), op.get(name) if name in op.names else None
    if weights is None or tensor is None or tensor.data is None:
        return None
    if weights.ndim == 1:
        return WeightMatrix(np.diag(weights))
    if tensor.quantization is None or tensor.type not in _CODED:
        return WeightMatrix(weights)
    scale = np.full(len(weights), tensor.quantization.sole_scale, np.float32)
    return WeightMatrix(tensor.data.view(np.int8), scale)


def reals(op: View, name: str) -> npt.NDArray[np.float32] | None:
    """The constant input `name` as floats; None if it is absent.

    TFLite reads uint8 codes of weights as int8 ones, and ignores their zero point.
    """
    tensor = op.get(name) if name in op.names else None
    if tensor is None:
        return None
    if tensor.data is None:
        raise Untranslatable(f"{name} is not a constant")
    if tensor.type in _CODED:
        if tensor.quantization is None:
            raise Untranslatable(f"{name} has no scale")
        codes = tensor.data.view(np.int8).astype(np.float32)
        return codes * tensor.quantization.sole_scale
    return tensor.data.astype(np.float32)


def stays_inside(cell: FloatWeights, state: TensorView, steps: int) -> bool:
    """Whether the cell state cannot go beyond its clip: from a constant on, each step adds at most
    1 to its absolute value, since gates are at most 1 and so is tanh. In floats too: sums of whole
    numbers are exact, and rounding keeps the order."""
    if not cell.cell_clip or state.data is None or not is_known(steps):
        return False
    if cell.activation is not ActivationFunctionType.TANH:
        return False
    first = float(np.ceil(np.abs(state.data).max(initial=0)))
    return first + steps <= cell.cell_clip
