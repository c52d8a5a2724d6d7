"""Signatures: subgraphs as functions whose inputs and outputs have names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.checked_subgraph import CheckedSubgraph
from tflite_ort.schema import TensorError
from tflite_ort.signature import Signature


class SignatureRunner:
    """Calls one signature: arrays by input name in, a dictionary by output name out.

    Made by `Interpreter.get_signature_runner`. It works with the interpreter's own tensors: the
    call leaves inputs resized and their values set.
    """

    def __init__(self, signature: Signature, subgraph: Callable[[], CheckedSubgraph]) -> None:
        self._signature, self._subgraph = signature, subgraph
        # Tools of LiteRT read these of its own class.
        self._subgraph_index = signature.subgraph
        self._inputs, self._outputs = signature.inputs, signature.outputs.items()

    def __call__(self, **inputs: npt.ArrayLike) -> dict[str, Any]:
        """Run the subgraph once.

        Raises:
            TensorError: the names, a dtype or a shape are not those of the signature.
            BridgeError: as `Interpreter.allocate_tensors` and `Interpreter.invoke`.
        """
        expected, subgraph = self._signature.inputs, self._subgraph()
        if len(inputs) != len(expected):
            raise TensorError(
                "Invalid number of inputs provided for running a SignatureDef, expected "
                f"{len(expected)} vs provided {len(inputs)}"
            )
        for name, value in inputs.items():
            if name not in expected:
                raise TensorError(f"Invalid Input name ({name}) for SignatureDef")
            subgraph.resize(expected[name], np.shape(value))
        subgraph.allocate()
        for name, value in inputs.items():
            subgraph.set(expected[name], value)
        subgraph.invoke()
        return {name: subgraph.get(index) for name, index in self._signature.outputs.items()}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """By name, what `Interpreter.get_input_details` says of an input."""
        return self._details(self._signature.inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """By name, what `Interpreter.get_output_details` says of an output."""
        return self._details(self._signature.outputs)

    def _details(self, tensors: dict[str, int]) -> dict[str, dict[str, Any]]:
        subgraph = self._subgraph()
        return {name: subgraph.details(index) for name, index in tensors.items()}
