"""Composites run their decomposition, by ONNX Runtime and in an exported file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from flatbuffers import flexbuffers

from tests.models import model_path
from tests.one_op import Node, T, ours
from tests.oracle import litert
from tests.subgraph_models import Sub, model_of
from tflite_ort import Interpreter, ModelError, export_onnx
from tflite_ort.schema import (
    AddOptions,
    Op,
    StableHLOCompositeOptions,
    read_model,
    write_model,
)
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


@pytest.mark.parametrize("change", ["itself", "inputs"])
def test_decompositions_that_cannot_be_inlined(change: str) -> None:
    model = read_model(model_path(NAMES[0]))
    graph, body = model.subgraphs
    if change == "itself":
        (composite,) = graph.operators
        options = replace(composite.options, decomposition_subgraph_index=0)
        graph = replace(graph, operators=(replace(composite, options=options),))
    else:
        body = replace(body, inputs=(*body.inputs, 1))
    content = write_model(replace(model, subgraphs=(graph, body)))
    with pytest.raises(ModelError, match="subgraph"):
        Interpreter(model_content=content)


def _composite(*results: str) -> bytes:
    """A composite of ``x`` and ``y``, whose decomposition gives back ``results``: its inputs ``a``
    and ``b``, its constant ``k`` or their sum ``c``."""
    tensor, ones = T((2, 3)), T.constant(np.ones((2, 3), np.float32))
    options = StableHLOCompositeOptions(
        name="odml.any",
        decomposition_subgraph_index=1,
        composite_attributes=np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8),
    )
    outputs = [f"out{number}" for number in range(len(results))]
    node = Node(Op.STABLEHLO_COMPOSITE, ["x", "y"], outputs, options)
    add = Node(Op.ADD, ["a", "b"], ["c"], AddOptions())
    return model_of(
        Sub(dict.fromkeys(("x", "y", *outputs), tensor), [node], ["x", "y"], outputs),
        Sub({**dict.fromkeys("abc", tensor), "k": ones}, [add], ["a", "b"], results),
    )


@pytest.mark.parametrize("results", ["ca", "b", "ck", "ba", "cab"])
@pytest.mark.parametrize("rows", [2, 5])
def test_decompositions_that_give_back_what_they_are_given(results: str, rows: int) -> None:
    content, rng = _composite(*results), np.random.default_rng(0)
    feeds = [rng.normal(size=(rows, 3)).astype(np.float32) for _ in range(2)]
    want = litert(content, feeds)
    sizes = dict.fromkeys(("x", "y"), ("rows", 3))
    session = onnxruntime.InferenceSession(
        export_onnx(content, input_shapes=sizes).SerializeToString()
    )
    exported = session.run(None, dict(zip(("x", "y"), feeds, strict=True)))
    for providers in (None, []):
        got, _ = ours(content, feeds, providers)
        for a, b, c in zip(got, want, exported, strict=True):
            assert np.array_equal(a, b) and np.array_equal(c, b)


def test_a_decomposition_that_gives_one_tensor_twice() -> None:
    """LiteRT fills one of the results only."""
    feeds = [np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)]
    (one, other), _ = ours(_composite(*"cc"), feeds)
    assert np.array_equal(one, sum(feeds)) and np.array_equal(other, one)


def test_a_decomposition_that_gives_what_nothing_computes() -> None:
    model = read_model(_composite(*"ca"))
    graph, body = model.subgraphs
    content = write_model(
        replace(model, subgraphs=(graph, replace(body, operators=(), outputs=(2, 0))))
    )
    with pytest.raises(ModelError, match="lacks data"):
        Interpreter(model_content=content).allocate_tensors()
