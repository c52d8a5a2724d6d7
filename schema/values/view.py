"""What translators, kernels and shape rules see of one operator: read-only, resolved, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record
from tflite_ort.schema.file.element_types import CODES, NUMPY_DTYPE, TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.sizes import UnknownSize

with late:
    from tflite_ort.schema.values import semantics

if TYPE_CHECKING:
    from tflite_ort.schema.file.enums import BuiltinOperator

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
# (subgraph, tensor) of a variable tensor; (container, name) of a variable; ("", id) of a table;
# (subgraph, operator) of how far an operator has got in its random numbers.
VariableKey = tuple[int, int] | tuple[str, str] | tuple[str, int] | tuple[int, str]


class Origin(str):
    """The name of an operator of TensorFlow, as the custom name of the code of one of TFLite's that
    stands in its place. No file has such a code."""

    __slots__ = ()


O = TypeVar("O")  # noqa: E741 - the options type of an operator


@record(eq=False)
class Quantization:
    """Affine quantization, real = scale * (stored - zero_point).

    Args:
        scale: float32 [1], or [n] along `axis`.
        zero_point: int64, the same length.
        axis: the quantized dimension; meaningless when there is one scale.
    """

    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.int64]
    axis: int = 0

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return self.scale.size > 1

    @property
    def sole_scale(self) -> np.float32:
        """The scale of all elements.

        Raises:
            ModelError: there are several; TFLite's kernels that take one compute with 0 then.
        """
        if self.per_channel:
            raise ModelError(f"{self.scale.size} scales where one is taken")
        return np.float32(self.scale[0])

    @property
    def scalar_scale(self) -> float:
        """`sole_scale` in double precision."""
        return float(self.sole_scale)

    @property
    def scalar_zero_point(self) -> int:
        """The single zero point; the first one when there are several."""
        return int(self.zero_point[0])

    def equals(self, other: Quantization | None) -> bool:
        """Whether both say the same of every element."""
        return (
            other is not None
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
            and (not self.per_channel or self.axis == other.axis)
        )


@record(eq=False)
class Blocks:
    """Blockwise quantization of a matrix, real = scale * stored: each `size` elements of a row have
    a scale of their own.

    Args:
        scale: float16 [rows, columns / size].
    """

    scale: npt.NDArray[np.float16]
    size: int


@record(eq=False)
class Packed:
    """Constant values of `bits` bits as the file has them; unpacked they would take up to four
    times the memory, so that is done anew for each use.

    Args:
        octets: the first value is in the lowest bits of the first.
    """

    octets: npt.NDArray[np.uint8]
    bits: int
    shape: Shape
    signed: bool = True

    def unpacked(self) -> Array:
        """The values as read-only int8 (uint8 if unsigned) of `shape`."""
        values = semantics.unpack(self.octets, math.prod(self.shape), self.bits, signed=self.signed)
        values.flags.writeable = False
        return values.reshape(self.shape)

    def used(self) -> npt.NDArray[np.uint8]:
        """The bytes that hold values of `shape`; the file may have more."""
        return self.octets.reshape(-1)[: math.ceil(math.prod(self.shape) * self.bits / 8)]


@record(eq=False)
class TensorView:
    """A tensor as its graph declares it.

    Args:
        index: position in the subgraph's tensors.
        shape: the shape the model is specialised for; a size that depends on data is an
            `UnknownSize`, the same object wherever the size is the same.
        constant: its values, if it is one: dense, typed, read-only; see `data`.
        quantization: None when the tensor carries no scale, or is of a type that no codes have:
            what the file says of floats, booleans, 64-bit integers and the like does not matter.
        blocks: its scales where they are blockwise; there is no `quantization` then.
        ranked: False where even the rank depends on data; `shape` means nothing then.
        sizes: of a list of sizes that is computed from shapes: what is known of it, as ints,
            `UnknownSize`s and, where nothing is, None.
        computed: of a constant, whether an operator makes it, so that it may follow from the
            shapes of inputs.
    """

    index: int
    name: str
    type: TensorType
    shape: Shape
    constant: Array | Packed | None = None
    quantization: Quantization | None = None
    is_variable: bool = False
    ranked: bool = True
    sizes: Array | None = None
    blocks: Blocks | None = None
    computed: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an array of the tensor's values."""
        return NUMPY_DTYPE[self.type]

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def dynamic(self) -> bool:
        """Whether the shape depends on data."""
        return UnknownSize in map(type, self.shape) or not self.ranked

    @property
    def data(self) -> Array | None:
        """A constant's values, 4- and 2-bit ones as int8; None for any other tensor."""
        return self.constant.unpacked() if isinstance(self.constant, Packed) else self.constant

    def packed(self, bits: int) -> npt.NDArray[np.uint8]:
        """A constant's values of 2 or 4 bits as flat bytes, the first in the lowest bits."""
        assert self.constant is not None
        if isinstance(self.constant, Packed):
            return self.constant.used()
        return semantics.pack(self.constant, bits)

    @property
    def is_constant(self) -> bool:
        """Whether the values are known before the model runs."""
        return self.constant is not None

    @property
    def is_given(self) -> bool:
        """Whether the file has the values, whatever the shapes of inputs are."""
        return self.constant is not None and not self.computed

    @property
    def is_quantized(self) -> bool:
        """Integer codes that stand for real values; TFLite takes INT32 as plain numbers, whatever
        scale it carries."""
        return self.quantization is not None and self.type in CODES

    @property
    def zero(self) -> int:
        """What stands for zero: the zero point of codes, else 0."""
        if self.quantization is None or not self.is_quantized:
            return 0
        return self.quantization.scalar_zero_point

    @property
    def edge_code(self) -> int:
        """What operators that pad write: `zero`. TFLite takes it for 0 where scales are several."""
        several = self.quantization is not None and self.quantization.per_channel
        return 0 if several else self.zero


@record(eq=False)
class OperatorView(Generic[O]):
    """One operator in its graph.

    ``op["filter"]`` is the input declared under that name, ``op.get("bias")`` an optional one.
    `options` is never None: an operator without an options table has the zeroed C struct TFLite
    gives its kernels, not the schema's defaults. A custom operator's are its flexbuffer map as a
    dictionary, or the bytes of `custom_options` where they are no such map. `bodies` are the
    subgraphs that it calls, in the order of its options. `origin` is the name of the operator of
    TensorFlow in whose place this one stands. `edges` are zeros around the image that a convolution
    reads, before and after its rows and its columns, beside those of its padding; no file has any.
    """

    op: BuiltinOperator
    version: int
    index: int
    inputs: tuple[TensorView | None, ...]
    outputs: tuple[TensorView, ...]
    options: O
    names: tuple[str, ...] = ()
    custom_code: str | None = None
    custom_options: Array | None = None
    subgraph: int = 0
    intermediates: tuple[TensorView, ...] = ()
    bodies: tuple[Specialized, ...] = ()
    origin: str = ""
    edges: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))

    @property
    def name(self) -> str:
        """Such as ``CONV_2D``; the custom name for a custom operator, also one that this stands
        for."""
        if self.custom_code is not None:
            return self.custom_code
        return self.origin or self.op._name_

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """Such as ``CONV_2D_12``: the operator and its index in the graph."""
        return f"{self.name}_{self.index}"

    @property
    def output(self) -> TensorView:
        """The first output."""
        return self.outputs[0]

    def makes(self, index: int) -> bool:
        """Whether tensor `index` is one of the outputs."""
        return index in [tensor.index for tensor in self.outputs]

    def get(self, name: str) -> TensorView | None:
        """The input declared as `name`, None where the model leaves it out."""
        position = self.names.index(name)
        return self.inputs[position] if position < len(self.inputs) else None

    def __getitem__(self, name: str) -> TensorView:
        position = self.names.index(name)
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            raise ModelError(f"{self.label} lacks input {name!r}")
        return tensor

    def every(self, name: str) -> Sequence[TensorView]:
        """The inputs from the one declared as `name` on; none may be absent."""
        tensors = self.inputs[self.names.index(name) :]
        if None in tensors:
            raise ModelError(f"{self.label} lacks one of {name!r}")
        return [tensor for tensor in tensors if tensor is not None]

    def present_inputs(self) -> Sequence[TensorView]:
        """The inputs without those that the model leaves out."""
        inputs: Any = self.inputs
        return inputs if None not in inputs else [each for each in inputs if each is not None]

    def variables(self) -> Sequence[TensorView]:
        """The inputs that keep a value from one invoke to the next; the operator sets them anew."""
        return [tensor for tensor in self.inputs if tensor is not None and tensor.is_variable]


@record(eq=False)
class Specialized:
    """A subgraph whose every tensor has its shape.

    Args:
        subgraph: which of the model's.
        tensors: as views; where a shape depends on data it has an `UnknownSize`. The resources
            that the subgraph or what it calls uses come after its own tensors.
        operators: those left to run, in execution order.
        folded: those whose results are constants now, or the names of resources.
        inputs, outputs: indices of tensors; of a called subgraph those that the caller's operator
            gives and takes, and after them the variables that it or another body of it uses.
        variables: the tensors that last from one invoke to the next.
        handles: the tensors that only name a resource.
    """

    subgraph: int
    tensors: Sequence[TensorView]
    operators: Sequence[OperatorView[Any]]
    folded: Sequence[OperatorView[Any]]
    inputs: Sequence[int]
    outputs: Sequence[int]
    variables: Mapping[int, VariableKey] = field(default_factory=dict)
    handles: Mapping[int, VariableKey] = field(default_factory=dict)

    def changed(self) -> set[int]:
        """The variables that an operator sets anew."""
        return {tensor.index for op in self.operators for tensor in op.variables()}
