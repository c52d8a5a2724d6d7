"""The graphs that ONNX Runtime really runs for a model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import onnx
import onnxruntime

from tflite_ort import Interpreter
from tflite_ort.providers.settings import Settings
from tflite_ort.providers.trials import exact_weight_type, multiplies_in_pairs


def optimised_nodes(model: bytes | Path, **arguments: Any) -> Counter[str]:
    """How many nodes of each operator ONNX Runtime runs at an invoke, bodies not counted."""
    graphs = optimised_graphs(model, **arguments)
    return Counter(node.op_type for graph in graphs for node in graph.graph.node)


def optimised_graphs(model: bytes | Path, **arguments: Any) -> list[onnx.ModelProto]:
    """The graphs that ONNX Runtime runs at an invoke."""
    content = model.read_bytes() if isinstance(model, Path) else model
    exact_weight_type(), multiplies_in_pairs()  # tried once a process, in sessions of their own
    plain = onnxruntime.SessionOptions
    with TemporaryDirectory() as folder:

        def kept() -> onnxruntime.SessionOptions:
            options = plain()
            made = len(list(Path(folder).iterdir()))
            options.optimized_model_filepath = str(Path(folder) / f"{made}.onnx")
            return options

        own = patch.object(Settings, "shared_options", Settings.options)
        with patch.object(onnxruntime, "SessionOptions", kept), own:
            Interpreter(model_content=content, cache=False, **arguments).allocate_tensors()
        graphs = [onnx.load(file, load_external_data=False) for file in Path(folder).iterdir()]
    assert graphs, "no session was made"
    return graphs
