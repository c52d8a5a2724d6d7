"""What an LSTM cell requires of its tensors: B batch, I input, C cells, O outputs, A auxiliary."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, log2, prod
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.lstm import GATES, PEEPHOLE_GATES, LstmKind
from tflite_ort.schema.values.sizes import Shape
from tflite_ort.schema.values.view import OperatorView, TensorView

View = OperatorView[Any]

# Name, gates it stands for, dimensions, what its type follows.
_TENSORS = (
    ("input_to_{}_weights", GATES, "CI", "weights"),
    ("recurrent_to_{}_weights", GATES, "CO", "weights"),
    ("cell_to_{}_weights", PEEPHOLE_GATES, "C", "peephole"),
    ("{}_gate_bias", GATES, "C", "bias"),
    ("projection_weights", ("",), "OC", "weights"),
    ("projection_bias", ("",), "O", "bias"),
    ("{}_layer_norm_coefficients", GATES, "C", "norm"),
)
_REQUIRED = ("input_to_{}_weights", "recurrent_to_{}_weights", "{}_gate_bias")
_NEEDED_BY_NARROW = ("forget_layer_norm_coefficients", "projection_weights", "projection_bias")
_FLOAT, _HYBRID = TensorType.FLOAT32, (TensorType.INT8, TensorType.UINT8)


def require(holds: bool, op: View, what: str) -> None:
    """Raises ModelError, naming the operator, unless `holds`."""
    if not holds:
        raise ModelError(f"{op.label}: {what}")


def present(op: View, name: str) -> TensorView:
    """The input `name`, which the operator cannot do without."""
    tensor = op.get(name)
    if tensor is None:
        raise ModelError(f"{op.label} lacks {name}")
    return tensor


def matrix(op: View, name: str) -> tuple[int, int]:
    """The rows and columns of the input `name`."""
    shape = present(op, name).shape
    require(len(shape) == 2, op, f"{name} has rank {len(shape)}, expected 2")
    return shape[0], shape[1]


def of_shape(op: View, name: str, expected: Shape) -> None:
    """`name` has this shape, if it is there."""
    tensor = op.get(name)
    if tensor is not None and tensor.shape != expected:
        raise ModelError(f"{op.label}: {name} has shape {tensor.shape}, expected {expected}")


def of_type(op: View, name: str, *expected: TensorType) -> None:
    """`name` has one of these types, if it is there."""
    tensor = op.get(name)
    if tensor is not None and tensor.type not in expected:
        names = " or ".join(type.name for type in expected)
        raise ModelError(f"{op.label}: {name} is {tensor.type.name}, expected {names}")


def is_variable(op: View, name: str, size: int) -> None:
    """`name` is a variable of `size` elements, whatever its rank."""
    tensor = present(op, name)
    require(tensor.is_variable, op, f"{name} is not a variable tensor")
    found = prod(tensor.shape)
    require(found == size, op, f"{name} has {found} elements, expected {size}")


def scaled(op: View, tensor: TensorView, name: str) -> float:
    """The scale of `tensor`, which has to have one."""
    quantization = tensor.quantization
    if quantization is None:
        raise ModelError(f"{op.label}: {name} has no scale")
    scale = quantization.scalar_scale
    require(0 < scale < inf, op, f"{name} has scale {scale}, expected a positive number")
    return scale


@record
class CellCheck:
    """One cell of an LSTM operator whose inputs are named; each method raises ModelError.

    Args:
        prefix: of the names of its tensors: empty, or that of a direction.
        diagonal: recurrent weights may be vectors, the diagonals of square matrices.
    """

    op: View
    prefix: str = ""
    diagonal: bool = False

    @property
    def integer(self) -> bool:
        """Whether the cell computes in codes."""
        return LstmKind.of(self.op) is not LstmKind.FLOAT

    @property
    def sizes(self) -> dict[str, int]:
        """I, C and O, from the weights of the output gate."""
        cells, features = matrix(self.op, f"{self.prefix}input_to_output_weights")
        name = f"{self.prefix}recurrent_to_output_weights"
        if self.diagonal and present(self.op, name).rank == 1:
            return {"I": features, "C": cells, "O": cells}
        return {"I": features, "C": cells, "O": matrix(self.op, name)[1]}

    def everything(self, batch: int, features: int) -> None:
        """All that LiteRT checks, for an input of `batch` rows of `features`."""
        sizes = self.sizes
        require(
            sizes["I"] == features,
            self.op,
            f"weights take {sizes['I']} features, the input has {features}",
        )
        if not self._has("projection_weights"):
            outputs, cells = sizes["O"], sizes["C"]
            require(outputs == cells, self.op, f"{outputs} outputs of {cells} cells, unprojected")
        for option in ("cell_clip", "proj_clip"):
            value = getattr(self.op.options, option)
            require(value >= 0, self.op, f"{option} is {value}, expected at least 0")
        self._presence()
        self._tensors(sizes)
        self._states(batch, sizes)
        self._scales()

    def _has(self, name: str) -> bool:
        return self.op.get(self.prefix + name) is not None

    def _presence(self) -> None:
        """The input gate with all its tensors or none; peepholes and layer norm likewise."""
        for pattern in _REQUIRED:
            for gate in GATES[1:]:
                present(self.op, self.prefix + pattern.format(gate))
        coupled = not self._has("input_to_input_weights")
        for pattern in _REQUIRED[1:]:
            self._agree(pattern.format("input"), not coupled, "input_to_input_weights")
        peephole = self._has("cell_to_forget_weights")
        self._agree("cell_to_output_weights", peephole, "cell_to_forget_weights")
        if not coupled or not peephole:
            self._agree("cell_to_input_weights", peephole, "cell_to_forget_weights")
        if self._has("projection_bias"):
            present(self.op, self.prefix + "projection_weights")
        if not self.prefix:
            normalized = self._has("forget_layer_norm_coefficients")
            for gate, expected in zip(GATES, (not coupled, True, True, True), strict=True):
                name = f"{gate}_layer_norm_coefficients"
                self._agree(name, normalized and expected, "forget_layer_norm_coefficients")

    def _agree(self, name: str, expected: bool, other: str) -> None:
        found = self._has(name)
        counts = f"expected {int(expected)} of {self.prefix}{name}, got {int(found)}"
        require(found == expected, self.op, f"{counts}, as follows from {self.prefix}{other}")

    def _tensors(self, sizes: Mapping[str, int]) -> None:
        types = self._types()
        for pattern, gates, letters, kind in _TENSORS:
            for gate in gates:
                name = self.prefix + pattern.format(gate)
                tensor = self.op.get(name) if name in self.op.names else None
                if tensor is None:
                    continue
                if self.diagonal and not self.integer and letters == "CO" and tensor.rank == 1:
                    of_type(self.op, name, _FLOAT)
                    for letter in letters:  # one output for each cell
                        of_shape(self.op, name, (sizes[letter],))
                else:
                    of_type(self.op, name, types[kind])
                    of_shape(self.op, name, tuple(sizes[letter] for letter in letters))

    def _types(self) -> dict[str, TensorType]:
        """All weights have the type of the output gate's."""
        name = f"{self.prefix}input_to_output_weights"
        of_type(self.op, "input", _FLOAT, TensorType.INT8)
        if self.integer:
            of_type(self.op, name, TensorType.INT8)
            kinds = {"peephole": TensorType.INT16, "norm": TensorType.INT16}
            return {"weights": TensorType.INT8, "bias": TensorType.INT32, **kinds}
        of_type(self.op, name, _FLOAT, *_HYBRID)
        weights = self.op[name].type
        return {"weights": weights, "peephole": weights, "bias": _FLOAT, "norm": _FLOAT}

    def _states(self, batch: int, sizes: Mapping[str, int]) -> None:
        types = (TensorType.INT8, TensorType.INT16) if self.integer else (_FLOAT, _FLOAT)
        for name, letter, type in zip(("output_state", "cell_state"), "OC", types, strict=True):
            is_variable(self.op, self.prefix + name, batch * sizes[letter])
            of_type(self.op, self.prefix + name, type)

    def _scales(self) -> None:
        """All codes stand for reals, those of a cell state in units of a power of two."""
        for pattern, gates, _, kind in _TENSORS:
            for gate in gates if kind != "bias" else ():
                self._scaled(self.prefix + pattern.format(gate))
        if not self.integer:
            return
        for name in ("input", "output_state"):
            self._scaled(name)
        scaled(self.op, self.op.output, "the output")
        scale = scaled(self.op, self.op["cell_state"], "cell_state")
        bits, narrow = -log2(scale), LstmKind.of(self.op) is LstmKind.NARROW
        least, most = (15, 15) if narrow else (0, 30)
        holds = abs(bits - round(bits)) < 1e-3 and least <= round(bits) <= most
        expected = "2**-15" if narrow else "2**-30 to 1, a power of two"
        require(holds, self.op, f"cell_state has scale {scale}, expected {expected}")

    def _scaled(self, name: str) -> None:
        tensor = self.op.get(name) if name in self.op.names else None
        if tensor is not None and tensor.type is not _FLOAT:
            scaled(self.op, tensor, name)

    def intermediates(self, *accepted: LstmKind) -> None:
        """An integer cell is of one of these kinds, and its intermediates have scales. Those of
        the sums of the INTEGER kind are only read for layer normalisation."""
        found, counts = self.op.intermediates, [kind.value for kind in accepted]
        if not self.integer:
            return
        expected = " or ".join(map(str, counts))
        require(len(found) in counts, self.op, f"{len(found)} intermediates, expected {expected}")
        narrow = LstmKind.of(self.op) is LstmKind.NARROW
        unused = 0 if narrow or self._has("forget_layer_norm_coefficients") else len(found) - 1
        for i, tensor in enumerate(found[unused:], unused):
            scaled(self.op, tensor, f"intermediate {i}")
        for name in _NEEDED_BY_NARROW if narrow else ():
            present(self.op, name)
