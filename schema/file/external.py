"""Data that a model keeps in files of its own (`Model.external_buffers`)."""

from __future__ import annotations

from tflite_ort.base.records import replace
from tflite_ort.schema.file.errors import MalformedModel, ModelError, UnreadableModel
from tflite_ort.schema.file.model import Buffer, ExternalBuffer, Model, SubGraph, Tensor
from tflite_ort.schema.file.plain_files import content_below
from tflite_ort.schema.file.tables import Array


class ExternalData:
    """The external files of a model, each read when its first tensor is asked for."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._buffers = {buffer.id: buffer for buffer in model.external_buffers}
        self._files: dict[int, Array] = {}

    def data(self, tensor: Tensor) -> Array | None:
        """The uint8 bytes of a tensor as a read-only view; None when it has no external data.

        Raises:
            MalformedModel: they are not all there.
            ModelError: the file cannot be read, or is outside the folders that are allowed.
        """
        if not tensor.external_buffer:
            return None
        buffer = self._buffers[tensor.external_buffer]
        content = self._file(buffer)
        if buffer.offset + buffer.length > content.size:
            raise MalformedModel(
                f"external buffer {buffer.id} ends at byte {buffer.offset + buffer.length} of a "
                f"file of {content.size}"
            )
        return content[buffer.offset : buffer.offset + buffer.length]

    def _file(self, buffer: ExternalBuffer) -> Array:
        groups = self._model.external_buffer_groups
        if buffer.group not in self._files:
            folder, roots = self._model.folder, self._model.external_roots
            folders = roots if folder is None else (folder, *roots)
            try:
                self._files[buffer.group] = content_below(groups[buffer.group].name, folders)
            except (OSError, UnreadableModel) as error:
                raise ModelError(f"external buffer {buffer.id} cannot be read: {error}") from error
        return self._files[buffer.group]


def with_own_data(model: Model) -> Model:
    """`model` with the data of external files as buffers of its own, so that it can be written
    anywhere.

    Raises:
        ModelError: a file cannot be read, or is outside the folders that are allowed.
    """
    if not model.external_buffers:
        return model
    external, buffers = ExternalData(model), list(model.buffers)
    places: dict[int, int] = {}  # by id of an external buffer

    def own(tensor: Tensor) -> Tensor:
        data = external.data(tensor)
        if data is None:
            return tensor
        if tensor.external_buffer not in places:
            places[tensor.external_buffer] = len(buffers)
            buffers.append(Buffer(data=data))
        return replace(tensor, buffer=places[tensor.external_buffer], external_buffer=0)

    def of(graph: SubGraph) -> SubGraph:
        return replace(graph, tensors=tuple(map(own, graph.tensors)))

    graphs = tuple(map(of, model.subgraphs))
    return replace(
        model,
        subgraphs=graphs,
        buffers=tuple(buffers),
        external_buffers=(),
        external_buffer_groups=(),
    )
