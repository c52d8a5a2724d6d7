"""Models in which numbers are not rounded: hybrid layers of floats, and operators without codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import real_values
from tflite_ort.export.dequantized import Inside, with_floats
from tflite_ort.schema import Buffer, Model, OperatorView, Tensor, TensorType, TensorView
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.verification.known import is_hybrid
from tflite_ort.verification.runtimes import OurInterpreter, Settings

Array = npt.NDArray[Any]

# A model whose hybrid layers multiply floats: LiteRT that does not round their activations.


def in_floats(model: Model, operators: Sequence[OperatorView[Any]]) -> Model | None:
    """`model` with float weights in the hybrid layers among `operators`, which are those of its
    primary subgraph; None where there are none."""
    hybrid = [op for op in operators if is_hybrid(op)]
    if not hybrid:
        return None
    graph = model.subgraphs[0]
    tensors, buffers, made = list(graph.tensors), list(model.buffers), list(graph.operators)
    new: dict[int, int] = {}
    for op in hybrid:
        for view in op.present_inputs():
            if view.index not in new and view.is_quantized and view.data is not None:
                new[view.index] = len(tensors)
                tensors.append(_as_floats(graph.tensors[view.index], len(buffers)))
                buffers.append(_reals(view))
        inputs = made[op.index].inputs
        made[op.index] = replace(
            made[op.index], inputs=tuple(i if i is None else new.get(i, i) for i in inputs)
        )
    first = replace(graph, tensors=tuple(tensors), operators=tuple(made))
    return replace(model, subgraphs=(first, *model.subgraphs[1:]), buffers=tuple(buffers))


def _as_floats(tensor: Tensor, buffer: int) -> Tensor:
    return replace(
        tensor,
        type=TensorType.FLOAT32,
        buffer=buffer,
        quantization=None,
        sparsity=None,
        external_buffer=0,
    )


def _reals(view: TensorView) -> Buffer:
    assert view.data is not None and view.quantization is not None
    reals = real_values(view.data, view.quantization).astype("<f4")
    return Buffer(data=np.frombuffer(reals.tobytes(), np.uint8))


# What a quantized operator makes of real numbers.


class _Unclipped(Inside):
    """Floats that may lie beyond what codes stand for."""

    def _is_clipped(self, op: OperatorView[Any], view: TensorView) -> bool:
        return False

    def _clip(self, source: int, low: float, high: float, output: int) -> None:
        self._copy(source, output)


class RealNumbers(OurInterpreter):
    """The numpy kernels on the real numbers that codes stand for; results are neither rounded nor
    clipped. It runs single operators only."""

    def __init__(self, model: Model) -> None:
        super().__init__(model, Settings(kernels=True), "real numbers")

    def _runs(
        self, alone: Model, outputs: Sequence[int], samples: Iterable[Sequence[Array]]
    ) -> Iterator[Mapping[int, Array]]:
        views = tensor_views(alone, 0)
        given = [views[index] for index in alone.subgraphs[0].inputs]
        floats = with_floats(alone, inside=_Unclipped, ends=True)
        reals = (list(map(_real, given, arrays)) for arrays in samples)
        yield from super()._runs(floats, outputs, reals)


def _real(view: TensorView, array: Array) -> Array:
    """The numbers that an input's codes stand for."""
    if not view.is_quantized or view.quantization is None:
        return array
    return real_values(array, view.quantization).astype(np.float32)
