"""Sessions of graphs as translators make them."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.graph import ir
from tflite_ort.opmap.graph.joined_scales import join_scales
from tflite_ort.opmap.graph.paired_layers import make_paired
from tflite_ort.opmap.graph.quantized_layers import fuse_layers
from tflite_ort.opmap.graph.symmetric_layers import make_symmetric
from tflite_ort.providers.graph_session import graph_session
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.session import Session
from tflite_ort.providers.traits import traits_of
from tflite_ort.providers.trials import multiplies_in_pairs

# What takes time to find has to save it within so many runs; within many where it is kept.
_FEW_RUNS, _MANY_RUNS = 0, 1000


def model_session(
    model: ir.Model,
    provider: Provider = ON_CPU,
    *,
    optimized: bool = True,
    kept: bool = False,
    **settings: Any,
) -> Session:
    """A session of `model`, whose quantised layers are those of ONNX Runtime's own kernels.

    Args:
        kept: the session is stored, or the model tuned: it may take longer to make, and run faster.
        others: see `graph_session`.

    Raises:
        DelegateError: ONNX Runtime could not make the session.
    """
    if optimized and traits_of(provider.name).target.cpu_kernels:
        _fuse(model.graph, _MANY_RUNS if kept else _FEW_RUNS)
    return graph_session(model, provider, optimized=optimized, **settings)


def _fuse(graph: ir.Graph, runs: int) -> None:
    """Change quantised layers into those of ONNX Runtime's own kernels."""
    found = {node.op_type for node in graph.nodes}
    if "QuantizeLinear" in found and "Conv" in found:
        fuse_layers(graph)
        found.update([node.op_type for node in graph.nodes])
    if "QLinearConv" in found:
        make_symmetric(graph)
        make_paired(graph, multiplies_in_pairs, runs)
        join_scales(graph)
