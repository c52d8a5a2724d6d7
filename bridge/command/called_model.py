"""A model that is called: its primary subgraph, or a signature, with its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.command.arrays import set_inputs
from tflite_ort.command.outputs import Output
from tflite_ort.command.terminal import say
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.metadata import Metadata
from tflite_ort.model.signature_model import absent
from tflite_ort.prediction.pictures import pictures_of
from tflite_ort.prediction.tensors import InputColumn, described_inputs, unique_names
from tflite_ort.schema import MalformedModel, TensorError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CalledModel:
    """What is run: the primary subgraph, or a signature.

    Args:
        signature: its key; None for the primary subgraph.
        inputs, outputs: their details, by the names that are used.
    """

    interpreter: Interpreter
    signature: str | None
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]
    metadata: Metadata

    @classmethod
    def of(cls, interpreter: Interpreter, signature: str | None) -> CalledModel:
        """The signature of this key, or the primary subgraph.

        Raises:
            TensorError: there is no such signature.
        """
        if signature is None:
            found = interpreter.get_input_details(), interpreter.get_output_details()
            return cls(interpreter, None, *found, _metadata(interpreter))
        keys = list(interpreter.get_signature_list())
        if signature not in keys:
            raise TensorError(absent(signature, keys))
        runner = interpreter.get_signature_runner(signature)
        inputs, outputs = (
            [{**each, "name": name} for name, each in details.items()]
            for details in (runner.get_input_details(), runner.get_output_details())
        )
        return cls(interpreter, signature, inputs, outputs, Metadata())

    @property
    def subgraph(self) -> int:
        """The number of what is run."""
        keys = self.interpreter._signatures
        return 0 if self.signature is None else int(keys[self.signature].subgraph)

    @cached_property
    def columns(self) -> Sequence[InputColumn]:
        """The inputs, with what is known of them."""
        pictures = pictures_of(lambda: self.interpreter._model, self.metadata, self.subgraph)
        return described_inputs(self.inputs, self.metadata.inputs, pictures)

    def missing(self, arrays: Mapping[int, Array]) -> list[str]:
        """The names of the inputs that `arrays`, by tensor index, have not."""
        return [each.name for each in self.columns if each.details["index"] not in arrays]

    def drawn(self, seed: int) -> dict[int, Array]:
        """Random values for all inputs, by tensor index."""
        model = self.interpreter._model
        limits = index_limits(model, self.subgraph)
        return random_inputs(self.inputs, seed, limits=limits, budgets=model.budgets)

    def run(self, arrays: Mapping[int, Array]) -> list[Output]:
        """The outputs for inputs by tensor index."""
        if self.signature is None:
            set_inputs(self.interpreter, arrays)
            self.interpreter.invoke()
            details = self.interpreter.get_output_details()
            values = [self.interpreter.get_tensor(each["index"]) for each in details]
        else:
            runner = self.interpreter.get_signature_runner(self.signature)
            found = runner(**{each["name"]: arrays[each["index"]] for each in self.inputs})
            details = [dict(each) for each in self.outputs]
            values = [found[each["name"]] for each in details]
        described: Sequence[Any] = self.metadata.outputs
        if len(described) != len(details):
            described = [None] * len(details)
        rows = zip(unique_names(details), map(np.asarray, values), details, described, strict=True)
        return [Output(*row) for row in rows]


def _metadata(interpreter: Interpreter) -> Metadata:
    """What the model says of itself; nothing, with a warning, where that is damaged."""
    try:
        return interpreter.metadata
    except MalformedModel as error:
        say(f"warning: {error}", error=True)
        return Metadata()
