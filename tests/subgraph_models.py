"""Models of several subgraphs, and invokes in a row held against LiteRT's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Node, T, add_subgraph, assert_close
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter
from tflite_ort.schema import ModelBuilder, TensorType

Array = npt.NDArray[Any]

HANDLE = T((), TensorType.RESOURCE)


@dataclass(frozen=True)
class Sub:
    """A subgraph: tensors by name, and the names of its inputs and outputs.

    Args:
        signature: the name under which it can be called, if any.
    """

    tensors: dict[str, T]
    nodes: Sequence[Node]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    signature: str = ""


def model_of(*subgraphs: Sub) -> bytes:
    """The bytes of a model; the first subgraph is the main one."""
    model = ModelBuilder()
    for number, sub in enumerate(subgraphs):
        graph = add_subgraph(model, f"subgraph_{number}", sub.tensors, sub.nodes)
        graph.inputs(*sub.inputs).outputs(*sub.outputs)
        if sub.signature:
            graph.signature(sub.signature)
    return model.write()


def invoked(interpreter: Any, feeds: Sequence[Array]) -> list[Array]:
    """The outputs of one more invoke; inputs are resized where the feeds have other shapes."""
    details = interpreter.get_input_details()
    resized = False
    for detail, array in zip(details, feeds, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
            resized = True
    if resized:
        interpreter.allocate_tensors()
    for detail, array in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def check_invokes(
    model: bytes,
    invokes: Sequence[Sequence[Array]],
    runs_on: set[str] | None = None,
    kernels: str = "reference",
) -> Interpreter:
    """Hold the outputs of invokes in a row against LiteRT's, through ONNX Runtime and in numpy.

    Args:
        runs_on: what the operators run on by default.

    Returns:
        The interpreter on ONNX Runtime.
    """
    theirs = litert_interpreter(model, kernels)
    mine = Interpreter(model_content=model, num_threads=1)
    numpy = Interpreter(model_content=model, num_threads=1, providers=[])
    for interpreter in (theirs, mine, numpy):
        interpreter.allocate_tensors()
    for number, feeds in enumerate(invokes):
        wanted = invoked(theirs, feeds)
        for name, interpreter in (("ORT", mine), ("numpy", numpy)):
            for want, got in zip(wanted, invoked(interpreter, feeds), strict=True):
                assert_close(got, want, 0, 1e-5, f"invoke {number} in {name}")
    if runs_on is not None:
        assert {row.runs_on for row in mine.delegation()} == runs_on
    return mine
