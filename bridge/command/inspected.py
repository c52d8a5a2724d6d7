"""What the verb ``inspect`` finds in a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tflite_ort.command.model_costs import Costs, costs
from tflite_ort.command.placements import Row
from tflite_ort.command.provider_advice import provider_advice
from tflite_ort.metadata import Metadata
from tflite_ort.model.missing_operators import MissingOperator
from tflite_ort.schema import Model, TensorType
from tflite_ort.versioning import version_warnings


@dataclass(frozen=True)
class Inspected:
    """A model, and how it would run.

    Args:
        size: of the file, in bytes.
        metadata: what the model says of itself; a text where that is damaged.
        rows: by operator and place, how many.
        problem: why it cannot run; empty where it can.
        choice: why it runs on these providers; empty where they were named.
        lacking: by key of a signature that cannot run, the operators that nothing runs.
    """

    path: Path
    size: int
    model: Model
    metadata: Metadata | str
    rows: Counter[Row]
    problem: str
    choice: str = ""
    lacking: Mapping[str, Sequence[MissingOperator]] = field(default_factory=dict)

    @cached_property
    def costs(self) -> Costs:
        """The costs of the primary subgraph."""
        return costs(self.model)

    @property
    def warnings(self) -> Sequence[str]:
        """What may go wrong elsewhere."""
        damaged = [self.metadata] if isinstance(self.metadata, str) else []
        return [*damaged, *map(str, version_warnings(self.model))]

    def record(self) -> dict[str, Any]:
        """All of it for JSON."""
        keys = ("operator", "version", "runs_on", "refused", "count")
        return {
            "model": str(self.path),
            "bytes": self.size,
            "runs": not self.problem,
            "problem": self.problem,
            "choice": self.choice,
            **asdict(self.costs),
            "signatures": [
                {**each, "missing": list(map(str, self.lacking.get(each["key"], ())))}
                for each in signatures(self.model)
            ],
            "subgraphs": [
                {
                    side: [_tensor(graph.tensors[index]) for index in getattr(graph, side)]
                    for side in ("inputs", "outputs")
                }
                for graph in self.model.subgraphs
            ],
            "operators": [
                dict(zip(keys, (*row, count), strict=True)) for row, count in self.rows.items()
            ],
            "advice": list(provider_advice(self.rows)),
            "warnings": list(self.warnings),
        }


def signatures(model: Model) -> list[dict[str, Any]]:
    """Key, subgraph and names of each signature."""
    return [
        {
            "key": each.signature_key,
            "subgraph": each.subgraph_index,
            "inputs": [entry.name for entry in each.inputs],
            "outputs": [entry.name for entry in each.outputs],
        }
        for each in model.signature_defs
    ]


def _tensor(tensor: Any) -> dict[str, Any]:
    quantization = tensor.quantization
    scales = None if quantization is None else quantization.scale
    found = {
        "name": tensor.name,
        "type": TensorType(tensor.type).name.lower(),
        "shape": list(tensor.shape),
        "shape_signature": list(tensor.shape_signature or tensor.shape),
    }
    if scales is not None and len(scales):
        points = quantization.zero_point
        found["scale"] = float(scales[0])
        found["zero_point"] = int(points[0]) if points is not None and len(points) else 0
    return found
