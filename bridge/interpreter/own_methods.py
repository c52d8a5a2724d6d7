"""Methods of an interpreter that ``tf.lite.Interpreter`` does not have, or keeps private."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.interpreter.details import op_details
from tflite_ort.model.opening import model_source
from tflite_ort.schema import TensorError

with late:
    from tflite_ort import metadata as model_metadata
    from tflite_ort.interpreter import shown
    from tflite_ort.plan import profiling

if TYPE_CHECKING:
    from tflite_ort.interpreter.checked_subgraph import CheckedSubgraph
    from tflite_ort.interpreter.loading import LoadedModel
    from tflite_ort.interpreter.signatures import SignatureRunner
    from tflite_ort.model.opened_model import Signature
    from tflite_ort.plan.placements import LoadTimes, Placement
    from tflite_ort.schema import Model


class ToolMethods(ABC):
    """The private methods of ``tf.lite.Interpreter`` that LiteRT's own tools call."""

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


class OwnMethods(ToolMethods):
    """The methods that only this library's interpreter has."""

    _arguments: dict[str, Any]
    _loaded: LoadedModel

    @abstractmethod
    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner: ...

    def delegation(self, signature: str | None = None) -> tuple[Placement, ...]:
        """Where each operator runs, and why other delegates refused it.

        Args:
            signature: the key of a signature, which is made ready if it was not called yet; None
                for the primary subgraph.

        Raises:
            StateError: `allocate_tensors` was not called.
            TensorError: there is no such signature.
        """
        if signature is not None:
            return self.get_signature_runner(signature).delegation()
        return self._subgraph(0).placements()

    def __repr__(self) -> str:
        return self._shown(shown.summary)

    def _repr_html_(self) -> str:
        """As a notebook shows it: inputs, outputs, and where the operators run."""
        return self._shown(shown.html)

    def _shown(self, write: Callable[..., str]) -> str:
        source = self._arguments["model_path"] or self._arguments["model_content"]
        name, subgraph = type(self).__name__, self._shown_subgraph()
        if subgraph is None:
            return f"{name} (closed)"
        ready = subgraph.executor.plan is not None
        tensors = {
            "input": [subgraph.details(index) for index in subgraph.declared.inputs],
            "output": [subgraph.details(index) for index in subgraph.declared.outputs],
        }
        return write(name, source, tensors, subgraph.placements() if ready else None)

    @abstractmethod
    def _shown_subgraph(self) -> CheckedSubgraph | None:
        """The primary subgraph; None of what is closed."""

    @cached_property
    def metadata(self) -> model_metadata.Metadata:
        """The model's metadata: descriptions, normalisation, labels and other files.

        Raises:
            MalformedModel: its metadata is damaged.
        """
        given = self._arguments
        source = given.get("model_path") or given.get("model_content")
        assert source is not None
        inner = model_source(source, given.get("model"), given.get("budgets"))
        return model_metadata.model_metadata(self._model, inner)

    def profile(
        self, runs: int = 50, signature: str | None = None
    ) -> Sequence[profiling.OperatorTime]:
        """The time of each operator over `runs` invokes on the present inputs, the longest first.
        ONNX Runtime's profiling takes some time itself.

        Args:
            signature: as of `delegation`.

        Raises:
            StateError: `allocate_tensors` was not called.
            TensorError: there is no such signature.
            DelegateError, KernelError: an operator failed.
        """
        if signature is not None:
            return self.get_signature_runner(signature).profile(runs)
        self.delegation()
        subgraph = self._subgraph(0)
        return subgraph.calls.alone(subgraph.executor.profiled, runs)

    @property
    def load_times(self) -> LoadTimes:
        """Seconds that reading, translating and making sessions took at the last allocation. For
        those of a signature see `SignatureRunner.load_times`."""
        self.delegation()
        return self._subgraph(0).executor.load_times(self._loaded.seconds)
