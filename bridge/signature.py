"""A signature: a subgraph as a function whose inputs and outputs have names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_ort.records import record

if TYPE_CHECKING:
    from tflite_ort.schema import SignatureDef


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
