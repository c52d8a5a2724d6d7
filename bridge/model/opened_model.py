"""A model that is read when somebody asks for more of it than is known already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import record

with late:
    from tflite_ort.schema.file import model as model_tables

if TYPE_CHECKING:
    from tflite_ort.schema import Model, SignatureDef, Tensor, TensorType

Array = npt.NDArray[Any]


@record
class Signature:
    """A signature with its tensors by name, in the order of the names as LiteRT has them."""

    inputs: dict[str, int]
    outputs: dict[str, int]
    subgraph: int

    @classmethod
    def of(cls, definition: SignatureDef) -> Signature:
        """The signature that a file defines."""
        inputs = {entry.name: entry.tensor_index for entry in definition.inputs}
        outputs = {entry.name: entry.tensor_index for entry in definition.outputs}
        return cls(
            dict(sorted(inputs.items())), dict(sorted(outputs.items())), definition.subgraph_index
        )


@record
class KnownQuantization:
    """The quantization of a tensor as `QuantizationParameters` has it."""

    scale: npt.NDArray[np.float32] | None
    zero_point: npt.NDArray[np.int64] | None
    quantized_dimension: int
    details: None = None


@record
class KnownTensor:
    """A tensor without a constant value, as `Tensor` has it."""

    shape: tuple[int, ...]
    type: TensorType
    name: str
    quantization: KnownQuantization | None
    is_variable: bool
    shape_signature: tuple[int, ...] | None
    has_rank: bool
    buffer: int = 0
    external_buffer: int = 0
    sparsity: None = None


def _declared(tensor: KnownTensor) -> Tensor:
    """`tensor`, which has all that an interpreter asks of one."""
    return cast("Tensor", tensor)


class DeclaredSubgraph(Protocol):
    """What a file declares of a subgraph, as far as an interpreter shows it."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """The tensors of the subgraph by index."""

    @property
    def inputs(self) -> Sequence[int]:
        """Indices of tensors."""

    @property
    def outputs(self) -> Sequence[int]:
        """Indices of tensors."""


class KnownTensors(Protocol):
    """Some tensors of a subgraph."""

    def get(self, index: int) -> KnownTensor | None:
        """The tensor of an index; None of one that is not known."""


@record
class Face:
    """What a stored plan says of its model.

    Args:
        subgraphs: how many there are.
        signatures: by key.
        subgraph: the one that the plan is of.
        count: how many tensors that has.
        tensors: some of them, which have no constant value.
    """

    subgraphs: int
    signatures: Mapping[str, Signature]
    subgraph: int
    count: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    tensors: KnownTensors


class OpenedModel:
    """A model of which some is known before it is read.

    Args:
        read: reads it.
        face: what is known.
    """

    def __init__(self, read: Callable[[], Model], face: Face | None = None) -> None:
        self._whole, self._face = _Whole(read), face
        self._faces: dict[int, Face] = {} if face is None else {face.subgraph: face}
        self._known: dict[int, DeclaredSubgraph] = {}

    def shows(self, subgraph: int) -> bool:
        """Whether it uses what a stored plan says of a subgraph."""
        return subgraph in self._faces

    def show(self, face: Face) -> None:
        """Use what a stored plan says of another subgraph."""
        self._faces[face.subgraph] = face

    @property
    def model(self) -> Model:
        """All of it."""
        return self._whole.model

    @property
    def subgraph_count(self) -> int:
        """How many subgraphs there are."""
        return len(self.model.subgraphs) if self._face is None else self._face.subgraphs

    @cached_property
    def signatures(self) -> Mapping[str, Signature]:
        """The signatures by key, in the order of the file."""
        if self._face is not None:
            return self._face.signatures
        return {each.signature_key: Signature.of(each) for each in self.model.signature_defs}

    def declared(self, subgraph: int) -> DeclaredSubgraph:
        """What the file declares of a subgraph."""
        known = self._known.get(subgraph)
        if known is None:
            face = self._faces.get(subgraph)
            if face is None:
                return self.model.subgraphs[subgraph]
            known = _Known(_Tensors(face, self._whole), face.inputs, face.outputs)
            self._known[subgraph] = known
        return known

    def constant(self, tensor: Tensor) -> Array | None:
        """The uint8 bytes that the file has for a tensor; None without any."""
        return model_tables.stored_data(self.model, tensor) if tensor.buffer else None


class _Whole:
    """A model that is read when it is first asked for. What is known of it refers to this, not to
    the `OpenedModel`, which is freed at once when it is dropped."""

    def __init__(self, read: Callable[[], Model]) -> None:
        self._read = read

    @cached_property
    def model(self) -> Model:
        return self._read()


@record
class _Known:
    tensors: Sequence[Tensor]
    inputs: Sequence[int]
    outputs: Sequence[int]


class _Tensors(Sequence["Tensor"]):
    """The tensors of a subgraph, read from the file where one is asked for that is not known."""

    def __init__(self, face: Face, whole: _Whole) -> None:
        self._face, self._whole = face, whole

    def __len__(self) -> int:
        return self._face.count

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tensor]: ...
    def __getitem__(self, index: Any) -> Any:
        known = self._face.tensors.get(index) if isinstance(index, int) else None
        if known is not None:
            return _declared(known)
        return self._whole.model.subgraphs[self._face.subgraph].tensors[index]
