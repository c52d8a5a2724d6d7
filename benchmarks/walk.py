"""Which files one reads to see what an operator becomes.

    python -m benchmarks.walk [MODEL] [--all]

A reader begins in the translator and follows each call of a function of this library, in the order
in which they happen, the first time that the function is called. He *enters* a file that he has
not seen, and *comes back* to one that he has left. Types are not followed: records, ONNX values,
and what `schema` says of tensors and sizes; `--all` follows them too. The graph is the portable
one. Without a model the operators are a CONV_2D of floats and one of codes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Conv2DOptions,
    Model,
    ModelBuilder,
    Op,
    OperatorView,
    Padding,
    QuantizationParameters,
    TensorType,
    read_model,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.specialize.specialization import specialize

# The modules of types.
TYPES = (
    *("tflite_ort.base.", "tflite_ort.schema", "tflite_ort.versioning."),
    *("tflite_ort.opmap.graph.forms", "tflite_ort.opmap.onnx_graph.ir"),
)


class Walk:
    """What `sys.setprofile` calls while an operator is translated.

    Attributes:
        files: the modules that are entered, in this order.
        returns: how often the reader comes back to a file.
    """

    def __init__(self, types: tuple[str, ...]) -> None:
        self.files: list[str] = []
        self.returns = 0
        self._types, self._read, self._here = types, set[CodeType](), ""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Follow a call, unless the function was read before."""
        code = frame.f_code
        if event != "call" or code in self._read or "<" in code.co_qualname:
            return
        self._read.add(code)
        name = str(frame.f_globals.get("__name__"))
        if not name.startswith("tflite_ort.") or name.startswith(self._types):
            return
        if name == self._here:
            return
        self.returns += name in self.files
        if name not in self.files:
            self.files.append(name)
        self._here = name


def walk(op: OperatorView[Any], types: tuple[str, ...]) -> Walk:
    """The walk from the translator of `op` to its nodes."""
    entry = translator.of(op)
    assert entry is not None
    g, reader = Graph(Target(exact=True)), Walk(types)
    for tensor in op.present_inputs():
        if not tensor.is_constant:
            g.add_input(tensor, tensor.name, tensor.shape)
    bound = entry.inputs.bind(op)
    with g.at(op):
        sys.setprofile(reader)
        try:
            if entry.check is not None:
                entry.check(bound)
            entry.function(bound, g)
        finally:
            sys.setprofile(None)
    return reader


def operators(model: Model) -> Sequence[OperatorView[Any]]:
    """The operators of a model, with all shapes."""
    return specialize(model, 0, {}, BuiltinOpResolver().kernels).operators


def one_convolution(type_: TensorType) -> Model:
    """A CONV_2D of floats or of codes."""
    codes = type_ is TensorType.INT8
    affine = QuantizationParameters.affine
    builder = ModelBuilder("convolution")
    main = builder.subgraph("main")
    main.tensor("x", (1, 8, 8, 3), type_, affine(0.1, 3) if codes else None)
    weights, bias = np.ones((4, 3, 3, 3), NUMPY_DTYPE[type_]), np.ones(4, np.int32)
    main.constant("w", weights, type_, affine(0.1, 0) if codes else None)
    main.constant("b", bias if codes else bias.astype(np.float32))
    main.tensor("y", (1, 8, 8, 4), type_, affine(0.2, 3) if codes else None)
    options = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    main.operator(Op.CONV_2D, ["x", "w", "b"], ["y"], options, version=3)
    main.inputs("x").outputs("y")
    return read_model(builder.write())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, help="another file; else a CONV_2D")
    parser.add_argument("--all", action="store_true", help="follow types too")
    options = parser.parse_args()
    types = () if options.all else TYPES
    if options.model is not None:
        models = [read_model(options.model.read_bytes())]
    else:
        models = [one_convolution(each) for each in (TensorType.FLOAT32, TensorType.INT8)]
    for model in models:
        for op in operators(model):
            reader = walk(op, types)
            kind = op.output.type.name
            print(f"{op.name} {kind}: {len(reader.files)} files, {reader.returns} returns")
            for name in reader.files:
                print(f"    {name}")


if __name__ == "__main__":
    main()
