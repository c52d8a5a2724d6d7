"""Sessions of graphs as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import Place, serialized
from tflite_ort.providers.large_weights import read_in_place
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.session import Session, SessionGraph, Weights
from tflite_ort.providers.shared_sessions import may_share, shared_session
from tflite_ort.providers.traits import traits_of

if TYPE_CHECKING:
    import pathlib

Array = npt.NDArray[Any]

# Below this size an initializer stays in the protobuf, where graph optimisations look at it.
_INLINE_BYTES = 1024
# Sizes and places have to be there when it infers shapes.
_INLINE_SIZES = 1 << 17
_HANDED_OVER = Place("bound", 0)
_RANDOM = ("Random", "Multinomial", "Bernoulli")
_SCORED = frozenset({"Attention", "Softmax"})
# What adds a mask to scores, or puts low ones in their place.
_MASKING = frozenset({"Add", "Where"})


def graph_session(
    model: ir.Model,
    provider: Provider = ON_CPU,
    *,
    num_threads: int = 0,
    config: Mapping[str, str] | None = None,
    optimized: bool = True,
    profile: str | None = None,
    save: pathlib.Path | None = None,
) -> Session:
    """A session of `model`, whose initializers are handed over as views, not serialised.

    Args: see `Session`.

    Raises:
        DelegateError: ONNX Runtime could not make the session.
    """
    traits = traits_of(provider.name)
    in_place = traits.weights_in_place
    fed = read_in_place(model.graph) if in_place else {}
    weights = _handed_over(model.graph, fed)
    handed_over = dict.fromkeys(weights, _HANDED_OVER)
    kinds = [node.op_type for node in model.graph.all_nodes()]
    operators, alone = frozenset(kinds), len(kinds) == 1 and bool(model.graph.inputs)
    content = serialized(model, external=handed_over, fed=fed)
    masked = not _SCORED.isdisjoint(operators) and _masks_scores(model.graph)
    graph = SessionGraph(content, weights, fed, operators, alone, masked)
    special = config is not None or profile is not None or save is not None or not optimized
    draws = any(name.startswith(_RANDOM) for name in operators)  # its session has a generator
    if may_share(provider, num_threads) and not (special or draws):
        # They share the weights as well, and what ONNX Runtime packs of them.
        make = partial(Session, graph, num_threads=1)
        return shared_session(content, make, lambda other: _has(other, graph))
    return Session(
        graph,
        provider,
        num_threads=num_threads,
        config=config,
        optimized=optimized,
        profile=profile,
        save=save,
    )


def _masks_scores(graph: ir.Graph) -> bool:
    """Whether an attention of `graph` may have a mask."""
    for node in graph.nodes:
        if node.op_type == "Attention" and len(node.inputs) > 3 and node.inputs[3] is not None:
            return True
        if node.op_type == "MatMul":
            softmax = _maker(node.inputs[0], "Softmax")
            scores = None if softmax is None else softmax.inputs[0]
            if any(_maker(scores, each) is not None for each in _MASKING):
                return True
    return False


def _maker(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """The node of this type that makes a value, behind any Reshape."""
    node = None if value is None else ir.before_reshapes(value).producer()
    return node if node is not None and node.op_type == op_type else None


def _has(session: Session, graph: SessionGraph) -> bool:
    """Whether `session`, which was made of an equal graph, has the same weights."""
    pairs = [(each.array, graph.weights[name].array) for name, each in session.weights.items()]
    pairs += [(each, graph.in_place[name]) for name, each in session.in_place.items()]
    return all(_is_same(a, b) for a, b in pairs)


def _is_same(a: Array, b: Array) -> bool:
    """Whether arrays of the same type and shape have the same bytes."""
    return a.ctypes.data == b.ctypes.data or _bytes(a) == _bytes(b)


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _handed_over(graph: ir.Graph, fed: Collection[str]) -> dict[str, Weights]:
    """The large initializers of `graph`, without those that are `fed` at each run."""
    return {
        name: _weights(value.const_value)
        for name, value in graph.initializers.items()
        if name not in fed and value.const_value is not None and _is_large(value.const_value)
    }


def _is_large(tensor: ir.Tensor) -> bool:
    dtype = tensor.array.dtype
    # ONNX Runtime takes no texts, no complex numbers and, but for INT4, no types that numpy lacks.
    if tensor.dtype is not ir.DataType.INT4 and (dtype.isbuiltin != 1 or dtype.kind in "OUSc"):
        return False
    return tensor.nbytes >= (_INLINE_SIZES if tensor.dtype is ir.DataType.INT64 else _INLINE_BYTES)


def _weights(tensor: ir.Tensor) -> Weights:
    if tensor.dtype is not ir.DataType.INT4:
        return Weights.of(tensor.array)
    return Weights.packed(tensor.array, tensor.shape, int(tensor.dtype))
