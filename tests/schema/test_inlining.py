"""Composites run their decomposition, by ONNX Runtime and in an exported file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest

from tests.models import model_path
from tests.one_op import ours
from tests.oracle import litert
from tflite_ort import Interpreter, ModelError, export_onnx
from tflite_ort.schema import Op, read_model, write_model
from tflite_ort.schema.values.inlining import flat, inlined

NAMES = (
    "litert__l2_norm_composite.tflite",
    "litert__simple_group_norm_op.tflite",
    "litert__odml_sdpa_composite_gqa.tflite",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_composite_gives_what_litert_gives(name: str) -> None:
    rng = np.random.default_rng(0)
    details = Interpreter(model_path(name)).get_input_details()
    feeds = [rng.normal(size=tuple(d["shape"])).astype(d["dtype"]) for d in details]
    content = model_path(name).read_bytes()
    got, runners = ours(content, feeds)
    assert "numpy" not in runners
    want = litert(content, feeds)
    session = onnxruntime.InferenceSession(export_onnx(content).SerializeToString())
    exported = session.run(
        None, {v.name: x for v, x in zip(session.get_inputs(), feeds, strict=True)}
    )
    for a, b, c in zip(got, want, exported, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * float(np.abs(b).max()))
        np.testing.assert_allclose(c, b, atol=1e-5 * float(np.abs(b).max()))


def test_the_models_own_tensors_keep_their_indices() -> None:
    model = read_model(model_path(NAMES[0]))
    flat = inlined(model)
    own = model.subgraphs[0].tensors
    assert flat.subgraphs[0].tensors[: len(own)] == own
    codes = {
        flat.operator_codes[op.opcode_index].builtin_code for op in flat.subgraphs[0].operators
    }
    assert Op.STABLEHLO_COMPOSITE not in codes
    interpreter = Interpreter(model_path(NAMES[0]))
    assert len(interpreter.get_tensor_details()) == len(own)


def test_a_model_without_composites_is_itself() -> None:
    model = read_model(model_path("tflite2onnx__add.float32.tflite"))
    assert inlined(model) is model
    assert flat(model) is model


def test_a_flat_model_has_no_composite_in_any_subgraph() -> None:
    """Such as one in the body of a loop, which is run as a signature too."""
    model = read_model(model_path(NAMES[0]))
    twice = flat(replace(model, subgraphs=(*model.subgraphs, model.subgraphs[0])))
    for graph in twice.subgraphs:
        codes = {twice.operator_codes[op.opcode_index].builtin_code for op in graph.operators}
        assert Op.STABLEHLO_COMPOSITE not in codes


@pytest.mark.parametrize("change", ["itself", "inputs", "passes"])
def test_decompositions_that_cannot_be_inlined(change: str) -> None:
    model = read_model(model_path(NAMES[0]))
    graph, body = model.subgraphs
    if change == "itself":
        (composite,) = graph.operators
        options = replace(composite.options, decomposition_subgraph_index=0)
        graph = replace(graph, operators=(replace(composite, options=options),))
    elif change == "inputs":
        body = replace(body, inputs=(*body.inputs, 1))
    else:
        body = replace(body, outputs=body.inputs)
    content = write_model(replace(model, subgraphs=(graph, body)))
    with pytest.raises(ModelError, match="subgraph"):
        Interpreter(model_content=content)
