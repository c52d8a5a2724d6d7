"""Sessions of graphs as translators make them."""

from __future__ import annotations

from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.opmap.rules.engine import rewrite_nodes
from tflite_ort.opmap.rules.rule import NodesAround, Stage
from tflite_ort.providers.graph_session import graph_session
from tflite_ort.providers.processor import multiplies_in_tiles
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
    """A session of `model`, whose quantized layers are those of ONNX Runtime's own kernels.

    Args:
        kept: the session is stored, or the model tuned: it may take longer to make, and run faster.
        others: see `graph_session`.

    Raises:
        DelegateError: ONNX Runtime could not make the session.
    """
    if optimized:
        suit_session(model.graph, provider, kept=kept)
    return graph_session(model, provider, optimized=optimized, **settings)


def suit_session(graph: ir.Graph, provider: Provider = ON_CPU, *, kept: bool = False) -> None:
    """Change a graph by the rules for sessions, as suits this processor.

    Args: see `model_session`.
    """
    runs = _MANY_RUNS if kept else _FEW_RUNS
    target = replace(traits_of(provider.name).target, tiles=multiplies_in_tiles())
    around = NodesAround(target, Constants(), multiplies_in_pairs, runs)
    rewrite_nodes(Stage.SESSION, graph, around)
