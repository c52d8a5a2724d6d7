"""Builds .tflite models from names: tensors, operators, subgraphs, signatures and metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from flatbuffers import flexbuffers

from tflite_ort.schema.file import strings
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS, TensorType, type_of
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.model import (
    Buffer,
    Metadata,
    Model,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    SparsityParameters,
    SubGraph,
    Tensor,
    TensorMap,
)
from tflite_ort.schema.file.tables import Array, Table
from tflite_ort.schema.file.unions import OPTIONS
from tflite_ort.schema.file.write import write_model
from tflite_ort.schema.values.semantics import pack, quantized_range

FLOAT32 = TensorType.FLOAT32
# Of numbers that have no dtype of their own.
_PLAIN = {"b": np.bool_, "i": np.int32, "f": np.float32}
_SCHEMA_VERSION = 3

CustomOptions = bytes | Mapping[str, Any]


class ModelBuilder:
    """A model under construction: its first subgraph is the main one.

    Every method of a subgraph returns the subgraph, so that calls can be chained. Subgraphs are
    called by their index, and tensors by their names, which are unique in their subgraph.

    >>> import numpy as np
    >>> from tflite_ort import Interpreter
    >>> from tflite_ort.schema import AddOptions, ModelBuilder, Op
    >>> builder = ModelBuilder("adds a half")
    >>> main = builder.subgraph("main").tensor("x", (2,)).tensor("y", (2,))
    >>> main = main.constant("half", np.float32([0.5]))
    >>> main = main.operator(Op.ADD, ["x", "half"], ["y"], AddOptions())
    >>> main = main.inputs("x").outputs("y").signature("add")
    >>> add = Interpreter(model_content=builder.write()).get_signature_runner("add")
    >>> print(add(x=np.float32([1, 2]))["y"])
    [1.5 2.5]

    Operators have version 1 unless `version` says otherwise;
    `tflite_ort.versioning.update_versions(builder.model())` gives each one the version that its
    types and options need.

    Args:
        description: what the file says of itself.
    """

    def __init__(self, description: str = "") -> None:
        self._description = description
        self._subgraphs: list[SubgraphBuilder] = []
        self._buffers = [Buffer()]
        self._codes: dict[tuple[Op | str, int], int] = {}
        self._signatures: dict[str, SignatureDef] = {}
        self._metadata: dict[str, int] = {}

    def subgraph(self, name: str = "") -> SubgraphBuilder:
        """One more subgraph, without tensors yet."""
        self._subgraphs.append(SubgraphBuilder(self, name, len(self._subgraphs)))
        return self._subgraphs[-1]

    def metadata(self, name: str, content: bytes) -> Self:
        """Bytes that the file carries under this name.

        Raises:
            ModelError: there is metadata of this name.
        """
        if name in self._metadata:
            raise ModelError(f"there is metadata {name!r} already")
        self._metadata[name] = self.add_buffer(content)
        return self

    def model(self) -> Model:
        """The model as tables.

        Raises:
            ModelError: there is no subgraph.
        """
        if not self._subgraphs:
            raise ModelError("a model needs a subgraph, and this one has none")
        return Model(
            version=_SCHEMA_VERSION,
            operator_codes=tuple(_code(*key) for key in self._codes),
            subgraphs=tuple(graph.table() for graph in self._subgraphs),
            description=self._description,
            buffers=tuple(self._buffers),
            metadata=tuple(Metadata(name, buffer) for name, buffer in self._metadata.items()),
            signature_defs=tuple(self._signatures.values()),
        )

    def write(self) -> bytes:
        """The bytes of the .tflite file.

        Raises:
            ModelError: there is no subgraph.
        """
        return write_model(self.model())

    def add_buffer(self, content: bytes) -> int:
        """The index of a buffer of these bytes; an operator or a table may refer to it."""
        self._buffers.append(Buffer(data=np.frombuffer(content, np.uint8)))
        return len(self._buffers) - 1

    def operator_code(self, op: Op | str, version: int) -> int:
        """The index of the code of an operator; the same for the same operator and version."""
        return self._codes.setdefault((op, version), len(self._codes))

    def add_signature(self, signature: SignatureDef) -> None:
        """Add a signature that is made elsewhere; `SubgraphBuilder.signature` makes one."""
        if signature.signature_key in self._signatures:
            raise ModelError(f"there is a signature {signature.signature_key!r} already")
        self._signatures[signature.signature_key] = signature


class SubgraphBuilder:
    """A subgraph under construction, made by `ModelBuilder.subgraph`.

    Attributes:
        name: of the subgraph.
        index: by which options call the subgraph, as in ``WhileOptions(test.index, body.index)``.
    """

    def __init__(self, model: ModelBuilder, name: str, index: int) -> None:
        self.name, self.index = name, index
        self._model = model
        self._places: dict[str, int] = {}
        self._tensors: list[Tensor] = []
        self._operators: list[Operator] = []
        self._inputs: tuple[int, ...] = ()
        self._outputs: tuple[int, ...] = ()

    def tensor(
        self,
        name: str,
        shape: Sequence[int] | None = (),
        type: TensorType = FLOAT32,
        quantization: QuantizationParameters | None = None,
        *,
        is_variable: bool = False,
        shape_signature: Sequence[int] | None = None,
    ) -> Self:
        """Declare a tensor that is an input, a variable, or made by an operator.

        Args:
            shape: a size of -1 is open until the model runs; None is a tensor of unknown rank.
            quantization: ``QuantizationParameters.affine(scale, zero_point)``, or None.
            is_variable: whether it keeps its value between invokes.
            shape_signature: the sizes with -1 for the open ones, where `shape` has others.

        Raises:
            ModelError: there is a tensor of this name, or a size is less than -1.
        """
        return self._add(name, shape, type, quantization, shape_signature, is_variable=is_variable)

    def constant(
        self,
        name: str,
        data: npt.ArrayLike | bytes,
        type: TensorType | None = None,
        quantization: QuantizationParameters | None = None,
        *,
        shape: Sequence[int] | None = None,
        sparsity: SparsityParameters | None = None,
    ) -> Self:
        """Declare a tensor whose data are in the file.

        Args:
            data: an array of the type's dtype; of int8 or uint8 for types of 2 and 4 bits, of bytes
                or str objects for STRING. Plain numbers become float32, int32 or bool. Bytes are
                stored as they are.
            type: follows from the array's dtype if it is left out.
            shape: of the tensor, if the array or the bytes have another one.
            sparsity: how a sparse tensor's data are ordered.

        Raises:
            ModelError: there is a tensor of this name, or data and type or shape do not fit.
        """
        if not isinstance(data, bytes):
            data, type, shape = self._encoded(name, data, type, shape, sparsity is not None)
        if type is None or shape is None:
            raise self._error(f"constant {name!r} of bytes needs a type and a shape")
        return self._add(
            name,
            shape,
            type,
            quantization,
            sparsity=sparsity,
            buffer=self._model.add_buffer(data),
        )

    def operator(
        self,
        op: Op | str,
        inputs: Sequence[str | None],
        outputs: Sequence[str],
        options: Table | CustomOptions | None = None,
        *,
        version: int = 1,
        intermediates: Sequence[str] = (),
        mutating_variable_inputs: Sequence[bool] = (),
    ) -> Self:
        """Add an operator after those that are there.

        Args:
            op: one of TFLite's, or the name of a custom operator.
            inputs: names of tensors; None is an optional input that is left out.
            options: the table of a TFLite operator; bytes, or a mapping that becomes a flexbuffer,
                of a custom one.
            intermediates: tensors that carry the scales of intermediate results.

        Raises:
            ModelError: there is no tensor of a name, or the options are another operator's.
        """
        custom = isinstance(op, str)
        expected = None if isinstance(op, str) else OPTIONS.get(op)
        if isinstance(options, Table) and (custom or not isinstance(options, expected or Table)):
            raise self._error(f"{_label(op)} does not take {options.__class__.__name__}")
        if isinstance(options, bytes | Mapping) and not custom:
            raise self._error(f"{_label(op)} takes no custom options")
        of_custom = options if isinstance(options, bytes | Mapping) else None
        self._operators.append(
            Operator(
                opcode_index=self._model.operator_code(op, version),
                inputs=tuple(None if name is None else self.place(name) for name in inputs),
                outputs=self._all(outputs),
                options=options if isinstance(options, Table) else None,
                custom_options=None if of_custom is None else _custom_options(of_custom),
                mutating_variable_inputs=tuple(mutating_variable_inputs),
                intermediates=self._all(intermediates),
            )
        )
        return self

    def inputs(self, *names: str) -> Self:
        """Make these tensors the subgraph's inputs, after those that it has."""
        self._inputs += self._all(names)
        return self

    def outputs(self, *names: str) -> Self:
        """Make these tensors the subgraph's outputs, after those that it has."""
        self._outputs += self._all(names)
        return self

    def signature(
        self,
        key: str,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
    ) -> Self:
        """Make the subgraph a function of the model.

        Args:
            inputs: the tensor of each argument; the subgraph's inputs under their own names if left
                out.
            outputs: the same for the results.

        Raises:
            ModelError: there is a signature of this key, or no tensor of a name.
        """
        self._model.add_signature(
            SignatureDef(
                inputs=self._named(inputs, self._inputs),
                outputs=self._named(outputs, self._outputs),
                signature_key=key,
                subgraph_index=self.index,
            )
        )
        return self

    def place(self, name: str) -> int:
        """The index of a tensor.

        Raises:
            ModelError: there is no tensor of this name.
        """
        if name not in self._places:
            known = ", ".join(map(repr, self._places)) or "none"
            raise self._error(f"there is no tensor {name!r}; there is {known}")
        return self._places[name]

    def __getitem__(self, name: str) -> Tensor:
        """A tensor as it is declared.

        Raises:
            ModelError: there is no tensor of this name.
        """
        return self._tensors[self.place(name)]

    def table(self) -> SubGraph:
        """The subgraph as it is so far."""
        return SubGraph(
            tensors=tuple(self._tensors),
            inputs=self._inputs,
            outputs=self._outputs,
            operators=tuple(self._operators),
            name=self.name,
        )

    def _add(
        self,
        name: str,
        shape: Sequence[int] | None,
        type: TensorType,
        quantization: QuantizationParameters | None,
        signature: Sequence[int] | None = None,
        **fields: Any,
    ) -> Self:
        """Add the table of a tensor with these further fields."""
        sizes = self._checked_sizes(name, shape or ())
        if -1 in sizes and signature is None:
            signature = sizes
        tensor = Tensor(
            shape=tuple(1 if size == -1 else size for size in sizes),
            name=name,
            type=type,
            quantization=quantization,
            shape_signature=None if signature is None else tuple(signature),
            has_rank=shape is not None,
            **fields,
        )
        self._places[name] = len(self._tensors)
        self._tensors.append(tensor)
        return self

    def _checked_sizes(self, name: str, shape: Sequence[int]) -> tuple[int, ...]:
        """The sizes of a new tensor; an error if its name is taken or a size is negative."""
        if name in self._places:
            raise self._error(f"there is a tensor {name!r} already")
        sizes = tuple(int(size) for size in shape)
        if any(size < -1 for size in sizes):
            raise self._error(f"tensor {name!r} has a negative size: {sizes}")
        return sizes

    def _encoded(
        self,
        name: str,
        data: npt.ArrayLike,
        type: TensorType | None,
        shape: Sequence[int] | None,
        is_sparse: bool,
    ) -> tuple[bytes, TensorType, Sequence[int]]:
        """The bytes of a constant, with its type and shape."""
        array = _array(data, type)
        type = type_of(array.dtype) if type is None else type
        if type is None or NUMPY_DTYPE[type] != array.dtype:
            what = "TFLite has no type of" if type is None else f"{type.name} does not hold"
            raise self._error(f"constant {name!r}: {what} {array.dtype}")
        shape = array.shape if shape is None else tuple(shape)
        if not is_sparse and math.prod(shape) != array.size:
            raise self._error(f"constant {name!r}: {array.size} values for the shape {shape}")
        if type is TensorType.STRING:
            return strings.encoded(array), type, shape
        if type in PACKED_BITS:
            low, high = quantized_range(type)
            if array.size and not low <= array.min() <= array.max() <= high:
                raise self._error(f"constant {name!r}: {type.name} holds {low} to {high} only")
            array = pack(array, PACKED_BITS[type])
        return np.ascontiguousarray(array).tobytes(), type, shape

    def _all(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.place(name) for name in names)

    def _named(self, names: Mapping[str, str] | None, own: Sequence[int]) -> tuple[TensorMap, ...]:
        if names is None:
            return tuple(TensorMap(self._tensors[index].name, index) for index in own)
        return tuple(TensorMap(argument, self.place(name)) for argument, name in names.items())

    def _error(self, what: str) -> ModelError:
        return ModelError(f"subgraph {self.name or self.index!r}: {what}")


def tensor_type(dtype: npt.DTypeLike) -> TensorType:
    """The type whose elements numpy has as `dtype`.

    Raises:
        ModelError: TFLite has no such type.
    """
    type = type_of(dtype)
    if type is None:
        raise ModelError(f"TFLite has no type of {np.dtype(dtype)} elements")
    return type


def _array(data: Any, type: TensorType | None) -> Array:
    """`data` as an array; numbers without a dtype get the type's, texts become bytes."""
    array = np.asarray(data)
    if type is TensorType.STRING or array.dtype.kind in "US" or array.dtype == np.object_:
        texts = [t.encode() if isinstance(t, str) else bytes(t) for t in array.reshape(-1)]
        objects = np.empty(len(texts), np.object_)
        objects[:] = texts
        return objects.reshape(array.shape)
    if isinstance(data, np.ndarray | np.generic):
        return array
    dtype = _PLAIN.get(array.dtype.kind) if type is None else NUMPY_DTYPE[type]
    return array if dtype is None else array.astype(dtype)


def _code(op: Op | str, version: int) -> OperatorCode:
    if isinstance(op, str):
        return OperatorCode(builtin_code=Op.CUSTOM, custom_code=op, version=version)
    return OperatorCode(builtin_code=op, version=version)


def _label(op: Op | str) -> str:
    return f"custom operator {op!r}" if isinstance(op, str) else op.name


def _custom_options(options: CustomOptions) -> Array:
    content = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(dict(options)))
    return np.frombuffer(content, np.uint8)
