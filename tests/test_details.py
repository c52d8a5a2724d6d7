"""Every key of every dictionary equals LiteRT's, on every model that it loads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from tests.models import MODELS_DIR
from tests.test_models import BY_XNNPACK, GIVEN, drawn
from tflite_ort import Interpreter, UnresolvedOperator


def rows() -> list[Any]:
    index = MODELS_DIR / "index.json"
    return json.loads(index.read_text()) if index.exists() else []


LOADED = [row["file"] for row in rows() if row["litert_stage"] != "load"]
ALLOCATED = [row["file"] for row in rows() if row["litert"] == "ok"]
# Of a model that it finds inconsistent LiteRT makes no operators.
INCONSISTENT = {"litert__add_shared_tensors.tflite": ("operators",)}
# What LiteRT writes over what the file says when it allocates: ADD gives its output the type of
# its input, DENSIFY a name, and WHILE loses outputs that nobody uses.
OVERWRITTEN = {
    "litert__add_quantized_int8.tflite": ("tensors", "operators"),
    "litert__while_op_with_forwarding_input.tflite": ("operators",),
    "pypi-mediapipe__face_detection_full_range_sparse.tflite": ("tensors",),
    "tf__gru_f32.tflite": ("operators",),
}
# Shapes that LiteRT learns when it runs, and ours from other shapes.
LEARNT = {"pypi-word-activation-recognition__star_trek_activation_phrase_v2.tflite"}


def difference(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two structures of dictionaries, lists and arrays differ in type or value."""
    if type(ours) is not type(theirs):
        return [f"{path}: {ours!r} is no {type(theirs).__name__}, {theirs!r}"]
    if isinstance(theirs, dict):
        if list(ours) != list(theirs):
            return [f"{path}: keys {list(ours)}, expected {list(theirs)}"]
        return [d for key in theirs for d in difference(ours[key], theirs[key], f"{path}.{key}")]
    if isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [f"{path}: {len(ours)} items, expected {len(theirs)}"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for i, (a, b) in pairs for d in difference(a, b, f"{path}[{i}]")]
    if isinstance(theirs, np.ndarray):
        equal = ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    else:
        equal = bool(ours == theirs)
    return [] if equal else [f"{path}: {ours!r}, expected {theirs!r}"]


def dictionaries(interpreter: Any, counts: list[int], operators: int) -> dict[str, Any]:
    """All that the interpreter tells; of what LiteRT adds of its own, nothing."""
    keys = list(interpreter.get_signature_list())
    runners = {key: interpreter.get_signature_runner(key) for key in keys}
    return {
        "inputs": interpreter.get_input_details(),
        "outputs": interpreter.get_output_details(),
        "tensors": [interpreter.get_tensor_details(i)[:count] for i, count in enumerate(counts)],
        "operators": [interpreter._get_op_details(i) for i in range(operators)],
        "signatures": interpreter.get_signature_list(),
        "full signatures": interpreter._get_full_signature_list(),
        "signature inputs": {key: runners[key].get_input_details() for key in keys},
        "signature outputs": {key: runners[key].get_output_details() for key in keys},
    }


def assert_equal(ours: Any, theirs: Any, apart_from: Sequence[str] = ()) -> None:
    counts = [len(ours.get_tensor_details(i)) for i in range(ours.num_subgraphs())]
    operators = 0 if "operators" in apart_from else len(ours._get_ops_details())
    got, expected = (dictionaries(each, counts, operators) for each in (ours, theirs))
    kept = [key for key in expected if key not in apart_from]
    assert difference({k: got[k] for k in kept}, {k: expected[k] for k in kept}) == []


@pytest.mark.parametrize("name", LOADED)
def test_before_allocation(name: str) -> None:
    content = (MODELS_DIR / name).read_bytes()
    for compress in (False, True):
        option = {"experimental_compress_quantization_zero_points": compress}
        ours, theirs = (kind(model_content=content, **option) for kind in (Interpreter, LiteRT))
        assert ours.num_subgraphs() == theirs.num_subgraphs()
        assert_equal(ours, theirs, INCONSISTENT.get(name, ()))


@pytest.mark.parametrize("name", ALLOCATED)
def test_after_allocation_and_after_invoke(name: str) -> None:
    content, rng = (MODELS_DIR / name).read_bytes(), np.random.default_rng(0)
    kind = "AUTO" if name in BY_XNNPACK else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    ours = Interpreter(model_content=content)
    theirs = LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType[kind])
    theirs.allocate_tensors()
    try:
        ours.allocate_tensors()
    except UnresolvedOperator:
        return  # tests/test_models.py counts these
    overwritten = OVERWRITTEN.get(name, ())
    if name not in LEARNT:
        assert_equal(ours, theirs, overwritten)
    for position, detail in enumerate(ours.get_input_details()):
        value = GIVEN.get(name, {}).get(position, drawn(detail, rng))
        for interpreter in (ours, theirs):
            interpreter.set_tensor(detail["index"], value)
    ours.invoke()
    theirs.invoke()
    assert_equal(ours, theirs, overwritten)
