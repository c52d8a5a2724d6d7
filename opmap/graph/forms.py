"""The forms that a TFLite tensor can have in the ONNX graph, the codes that carry quantized data,
and the target of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph.choices import Chooser, plainest
from tflite_ort.opmap.onnx_graph.opsets import OPSET
from tflite_ort.schema import TensorType, TensorView
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.sizes import is_one

Array = npt.NDArray[Any]
Size = TypeVar("Size", bound=int | str)


class Layout(Enum):
    """Where the channels of a tensor of rank 3 or more are.

    `ROWS` is channels-last with all other dimensions as a single one. A translator gets it only if
    it asks for it.
    """

    LAST = "channels-last"
    FIRST = "channels-first"
    ROWS = "rows"

    __hash__ = object.__hash__  # Enum's own is a function in Python, and slow

    @cache  # layouts last as long as the process, and ranks are few
    def permutation(self, rank: int) -> tuple[int, ...]:
        """From channels-last to this layout: (0, 3, 1, 2) for a rank-4 channels-first."""
        if self is Layout.LAST or rank < 3:
            return tuple(range(rank))
        return (0, rank - 1, *range(1, rank - 1))

    def inverse(self, rank: int) -> tuple[int, ...]:
        """From this layout to channels-last: (0, 2, 3, 1) for a rank-4 channels-first."""
        return tuple(map(self.permutation(rank).index, range(rank)))

    def axis(self, axis: int, rank: int) -> int:
        """Where channels-last axis `axis` (not negative) is in this layout."""
        return self.permutation(rank).index(axis)

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A channels-last shape in this layout."""
        return self.order(shape)

    def order(self, sizes: Sequence[Size]) -> tuple[Size, ...]:
        """As `shape`, for sizes of which some have names."""
        return tuple([sizes[i] for i in self.permutation(len(sizes))])


class Domain(Enum):
    """How the elements of a quantized tensor are represented; the same for all other tensors.

    `REAL` numbers, codes as they are `STORED` in the graph, codes as the `FILE` has them.
    """

    REAL = "real"
    STORED = "stored"
    FILE = "file"

    __hash__ = object.__hash__


def same_order(shape: Sequence[int]) -> bool:
    """Whether the elements have the same order in memory in both layouts."""
    return all(map(is_one, shape[1:-1])) or all(map(is_one, shape[-1:]))


Form = tuple[Layout, Domain]


def form_suffix(tensor: TensorView, form: Form) -> str:
    """The end of the name of a value that is `tensor` in `form`. It is empty for the form that
    TFLite has, and for carried codes."""
    layout, domain = form
    if domain is Domain.REAL and not tensor.is_quantized:
        return _SUFFIXES[layout]
    return _SUFFIXES[layout] + _SUFFIXES[domain]


_SUFFIXES: dict[Layout | Domain, str] = {
    Layout.LAST: "",
    Layout.FIRST: "/nchw",
    Layout.ROWS: "/rows",
    Domain.STORED: "",
    Domain.REAL: "/real",
    Domain.FILE: "/file",
}


def has_rows_alone(forms: Iterable[Form]) -> bool:
    """Whether a tensor with these forms has its rows, and not yet its own shape."""
    layouts = {layout for layout, _ in forms}
    return Layout.ROWS in layouts and Layout.LAST not in layouts


@record
class Target:
    """What a graph is made for; the defaults are exact on every ONNX runtime.

    Args:
        weights: the type that carries 8-bit weights, ``"uint8"`` or ``"int8"``. Unsigned ones are
            exact on every CPU; signed ones are faster where the CPU multiplies uint8 by int8
            without saturating (VNNI, Arm), and some accelerators take no others.
        cpu_kernels: ONNX Runtime's own kernels for the CPU run it. Rules ask it; translators ask
            the properties below, which say what they need.
        real_transposes: a quantized tensor is dequantized before a Transpose, not after it: the
            layout of a convolution is changed only where a Transpose of real numbers stands.
        paired_codes: a tensor of codes has one scale for all nodes, and every node of codes stands
            between a DequantizeLinear and a QuantizeLinear: NPUs know no others. Halves are rounded
            as the device does, not as TFLite does.
        symmetric_weights: signed weights are multiplied in 8 bits only where their zero point is 0.
        kept_axes: a reduction does not leave out the axes that it reduces; a Squeeze does.
        transforms_rows: a DFT is of rows [N, length, 1]. Its axis is 1, as it was before opset 20
            where none is said.
        real_means: means and sums of codes are computed as real numbers, within a quantum.
        parted_layers: another function stands behind layers that would be computed wrongly
            together with what reads them.
        usual_activations: recurrent nodes have no other activations than those of ONNX's defaults
            and Relu.
        hybrid: how float activations meet integer weights: ``"float"``, the weights dequantized, or
            the activations rounded to 8 bits at each invoke, ``"dynamic"`` as TFLite's own kernels
            do and ``"xnnpack"`` as LiteRT does by default; ``"auto"``, rounded where 8 bits are
            faster, by no more than LiteRT's kernels do, see `rounded_product`.
        carried_boundary: the graph's own int8 inputs and outputs are uint8 too, moved by 128; who
            runs it flips the top bit.
        exact: 16-bit activations are multiplied and rounded as TFLite does, in digits and 64-bit
            floats; otherwise in 32-bit floats, within one quantum an operator.
        exact_gates: HARD_SWISH of 8-bit codes makes TFLite's codes, by two nodes or a table where
            HardSwish makes others. ONNX Runtime's CPU has no HardSwish, but these two nodes.
        fallback: numpy kernels stand by: what ONNX says only nearly is left to them, such as
            strings, which are text in UTF-8 there and any bytes in TFLite.
        block: the channels in a block of ONNX Runtime's convolutions of floats; 0: there are none.
        tiles: the CPU multiplies 8-bit codes in tiles (AMX), several times as fast as in vectors.
        choose: which lowering an operator gets where it has several, see `Lowering`.
        exact_runs: whether ONNX Runtime's MatMulNBits of 8-bit weights rounds the runs of a single
            row and multiplies their codes exactly, on CPUs that do not take signed weights.
        result_bytes: a graph fails before it makes a larger tensor of computed sizes; None: it
            makes any.
        opset: of the nodes, from 17 to 24.
        fixed_counts: nodes make as many boxes as there can be at most, and zeros for those that are
            not there: no size depends on data.
        ignored_clip: LSTM cells are not clipped.
        long_runs: constants that broadcast are repeated where runs over them are short. Rules set
            this and the next three.
        channels_last: images of 8-bit codes change their layout by Transposes. ONNX Runtime's own
            layers of codes have one before and one after them, of which two cancel.
        code_tables: codes become other codes by a LeakyRelu, which ONNX Runtime makes one lookup.
            Functions of few codes along the last axis are a Gather.
        no_loops: why another delegate has a WHILE that becomes a Loop or a Scan; empty: it has not.
        no_floats: why floats are not moved, unless they are codes times a scale; empty: they are.
        channels_first: the names of the graph's own inputs and outputs that have their channels
            before their places.
    """

    weights: str = "uint8"
    cpu_kernels: bool = False
    real_transposes: bool = False
    paired_codes: bool = False
    symmetric_weights: bool = False
    kept_axes: bool = False
    transforms_rows: bool = False
    real_means: bool = False
    parted_layers: bool = False
    usual_activations: bool = False
    hybrid: str = "float"
    carried_boundary: bool = False
    exact: bool = False
    exact_gates: bool = False
    fallback: bool = False
    block: int = 0
    tiles: bool = False
    choose: Chooser = plainest
    exact_runs: Callable[[], bool] = bool  # False
    result_bytes: int | None = None
    opset: int = OPSET
    channels_first: frozenset[str] = frozenset()
    ignored_clip: bool = False
    long_runs: bool = False
    channels_last: bool = False
    code_tables: bool = False
    fixed_counts: bool = False
    no_loops: str = ""
    no_floats: str = ""

    @property
    def exact_integers(self) -> bool:
        """Whether integers are computed as ONNX Runtime's kernels for the CPU do it: products of
        8-bit codes are exact, also those of its own operators, 64-bit integers have 64 bits, a Cast
        to a type that does not hold a number keeps its lowest bits, and Gather counts indices below
        0 from the end."""
        return self.cpu_kernels

    @property
    def only_runs(self) -> bool:
        """Whether ONNX Runtime gets the graph at once. Constants that are repeated are held so; a
        file holds them once, with a node that the optimizer folds. So it is with the weights of
        LSTM cells whose states are clipped. Rules on nodes want the shapes of images."""
        return self.cpu_kernels

    @property
    def rounds(self) -> bool:
        """Whether activations are rounded wherever TFLite's kernels round them."""
        return self.hybrid in ("dynamic", "xnnpack")

    def layout(self, tensor: TensorView) -> Layout:
        """The layout of `tensor` as an input or output of the graph."""
        return Layout.FIRST if tensor.name in self.channels_first else Layout.LAST

    @property
    def boundary(self) -> Domain:
        """The domain of the graph's own inputs and outputs."""
        return Domain.STORED if self.carried_boundary else Domain.FILE

    def boundary_dtype(self, tensor: TensorView) -> np.dtype[Any]:
        """The dtype of `tensor` as an input or output of the graph."""
        if self.carried_boundary and tensor.is_quantized:
            return NUMPY_DTYPE[carried_type(tensor)]
        return tensor.dtype


def carried_type(tensor: TensorView) -> TensorType:
    """The type in which a quantized tensor's codes stand in the graph: uint8 for int8."""
    return TensorType.UINT8 if tensor.type is TensorType.INT8 else tensor.type


def carried_shift(tensor: TensorView) -> int:
    """How much larger a quantized tensor's codes are in the graph than in the file."""
    return 128 if tensor.type is TensorType.INT8 else 0


def carried(
    codes: Array, type_: TensorType, zero_point: npt.NDArray[np.int64], to: TensorType
) -> tuple[Array, Array]:
    """8-bit codes and their zero points as type `to`: moved by 128 where the signs differ."""
    return carried_codes(codes, type_, to), carried_zero_point(codes.dtype, type_, zero_point, to)


def carried_codes(codes: Array, type_: TensorType, to: TensorType) -> Array:
    """The codes that `carried` gives."""
    if not _moves(type_, to):
        return codes
    # Flipping the top bit adds 128 (int8 to uint8) or takes it away.
    flipped = np.bitwise_xor(np.asarray(codes, order="C").view(np.uint8), np.uint8(128))
    return flipped.view(NUMPY_DTYPE[to])


def carried_zero_point(
    dtype: np.dtype[Any], type_: TensorType, zero_point: npt.NDArray[np.int64], to: TensorType
) -> Array:
    """The zero points that `carried` gives for codes of `dtype`."""
    if not _moves(type_, to):
        return zero_point.astype(dtype)
    return (zero_point + (128 if to is TensorType.UINT8 else -128)).astype(NUMPY_DTYPE[to])


def _moves(type_: TensorType, to: TensorType) -> bool:
    return type_ is not to and type_ in (TensorType.INT8, TensorType.UINT8)
