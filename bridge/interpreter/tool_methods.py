"""The private methods of ``tf.lite.Interpreter`` that LiteRT's own tools call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tflite_ort.interpreter.details import op_details
from tflite_ort.schema import TensorError

if TYPE_CHECKING:
    from tflite_ort.interpreter.checked_subgraph import CheckedSubgraph
    from tflite_ort.model.opened_model import Signature
    from tflite_ort.schema import Model


class ToolMethods(ABC):
    """What LiteRT's own tools ask of an interpreter."""

    _compress_zero_points: bool

    @property
    @abstractmethod
    def _model(self) -> Model: ...

    @property
    @abstractmethod
    def _signatures(self) -> Mapping[str, Signature]: ...

    @abstractmethod
    def _subgraph(self, index: int) -> CheckedSubgraph: ...

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """Whether details show equal zero points once."""
        return self._compress_zero_points

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        return self._subgraph(subgraph_index).details(tensor_index)

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        if not 0 <= op_index < len(self._model.subgraphs[0].operators):
            raise TensorError(f"Invalid node index {op_index}")
        return op_details(self._model, op_index)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        """One dictionary per operator; see `op_details`."""
        return [self._get_op_details(i) for i in range(len(self._model.subgraphs[0].operators))]

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            key: {"inputs": dict(each.inputs), "outputs": dict(each.outputs)}
            for key, each in self._signatures.items()
        }
