"""Models of several subgraphs, compared with LiteRT over several invokes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from tests.one_op import Node, T, add_subgraph, assert_close
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import ModelBuilder, TensorType

Array = npt.NDArray[Any]

HANDLE = T((), TensorType.RESOURCE)


@dataclass(frozen=True)
class Sub:
    """A subgraph: its tensors by name, its operators, and the names of its inputs and outputs.

    Args:
        signature: the key of the signature that calls it, or empty.
    """

    tensors: dict[str, T]
    nodes: Sequence[Node]
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    signature: str = ""


def model_of(*subgraphs: Sub) -> bytes:
    """The bytes of a model. The first subgraph is the main one."""
    model = ModelBuilder()
    for number, sub in enumerate(subgraphs):
        graph = add_subgraph(model, f"subgraph_{number}", sub.tensors, sub.nodes)
        graph.inputs(*sub.inputs).outputs(*sub.outputs)
        if sub.signature:
            graph.signature(sub.signature)
    return model.write()


def invoked(interpreter: Any, feeds: Sequence[Array]) -> list[Array]:
    """The outputs of one more invoke. Inputs take the shapes of `feeds`."""
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
    """Compare the outputs of several invokes with LiteRT's, in ONNX Runtime and in numpy.

    Args:
        invokes: the inputs of each invoke.
        runs_on: where the operators have to run by default.
        kernels: the kernels of LiteRT that are compared with.

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


def check_otherwise(
    model: bytes, invokes: Sequence[Sequence[Array]], interpreter: Interpreter, other: Interpreter
) -> None:
    """The results of another interpreter and of the export are those of `interpreter`."""
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    for each in invokes:
        wanted = invoked(interpreter, each)
        named = {v.name: x for v, x in zip(session.get_inputs(), each, strict=True)}
        for others in (invoked(other, each), session.run(None, named)):
            for want, got in zip(wanted, others, strict=True):
                assert got.shape == want.shape
                assert_close(got, want, 0, 1e-5, "otherwise")
