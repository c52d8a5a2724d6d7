"""Operators that numpy runs, in the cache: as data, and plans that are made of that data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cached import assert_same, is_hit, made
from tests.models import MODELS_DIR
from tests.one_op import Node, T, graph_model, one_op_model
from tests.ops.custom_op import custom_model
from tests.ops.test_control_flow import MODELS as CONTROL_FLOW
from tests.ops.test_mediapipe import VALID, pool_struct
from tests.ops.test_stablehlo_regions import windows_model
from tests.ops.test_state import MODELS as STATEFUL
from tests.ops.test_state_hash_tables import KNOWN as TABLES
from tests.subgraph_models import invoked
from tflite_ort import BridgeError, BudgetExceeded, Budgets, Interpreter
from tflite_ort.cache.folder import CacheFolder
from tflite_ort.cache.plans import StoredEntry
from tflite_ort.plan.operator_rows import Constants, OperatorRows
from tflite_ort.plan.steps import without_variables
from tflite_ort.plan.stored_operators import StoredOperators
from tflite_ort.plan.stored_rows import StoredArrays
from tflite_ort.providers.delegates import ExecutionProviderDelegate
from tflite_ort.schema import (
    AddOptions,
    FillOptions,
    FullyConnectedOptions,
    Op,
    OperatorView,
    StablehloReduceWindowOptions,
    SubOptions,
    TensorType,
    TensorView,
    WhereOptions,
)
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import Packed
from tflite_ort.specialize.called_subgraphs import CALLERS

NETWORKS = [path for path in sorted(MODELS_DIR.glob("*.tflite")) if path.stat().st_size < 1 << 19]
MODELS = CONTROL_FLOW | STATEFUL | TABLES


# Rows --------------------------------------------------------------------------------------------


def again(content: Any, operators: Sequence[OperatorView[Any]]) -> list[OperatorView[Any]]:
    """The operators as they come out of their rows."""
    constants = Constants(content, bytearray())
    rows = OperatorRows(constants)
    texts = json.dumps([rows.operator(op) for op in operators], allow_nan=False)
    views = json.loads(json.dumps(rows.tensors, allow_nan=False))
    arrays = StoredArrays(content, np.frombuffer(bytes(constants.computed), np.uint8))
    stored = StoredOperators({"views": views}, arrays, Meter())
    return [stored.operator(row) for row in json.loads(texts)]


def assert_same_operator(one: OperatorView[Any], other: OperatorView[Any]) -> None:
    assert (one.label, one.version, one.subgraph) == (other.label, other.version, other.subgraph)
    assert (one.options, one.custom_code) == (other.options, other.custom_code)
    assert one.names == other.names
    for name in ("inputs", "outputs", "intermediates"):
        for got, want in zip(getattr(one, name), getattr(other, name), strict=True):
            assert (got is None) == (want is None)
            if want is not None:
                assert_same_tensor(got, want)


def assert_same_tensor(one: TensorView, other: TensorView) -> None:
    assert (one.index, one.name, one.type) == (other.index, other.name, other.type)
    assert [is_known(size) and size for size in one.shape] == [
        is_known(size) and size for size in other.shape
    ]
    assert (one.is_variable, one.ranked) == (other.is_variable, other.ranked)
    assert isinstance(one.constant, Packed) == isinstance(other.constant, Packed)
    assert_same(one.data, other.data)
    assert (one.quantization is None) == (other.quantization is None)
    if one.quantization is not None:
        assert one.quantization.equals(other.quantization)
        assert one.quantization.scale.dtype == np.float32
    assert (one.blocks is None) == (other.blocks is None)
    if one.blocks is not None and other.blocks is not None:
        assert one.blocks.size == other.blocks.size
        assert_same(one.blocks.scale, other.blocks.scale)


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_operators_are_the_same_as_data(path: Path, tmp_path: Path) -> None:
    try:
        interpreter = Interpreter(path, cache=tmp_path)
        interpreter.allocate_tensors()
    except BridgeError:
        return  # refused
    graph, cache = interpreter._subgraph(0).executor._graph, interpreter._shared.cache
    assert graph is not None
    assert cache is not None
    operators = [without_variables(op) if op.op in CALLERS else op for op in graph.operators]
    for one, other in zip(again(cache._content, operators), operators, strict=True):
        assert_same_operator(one, other)


# Plans -------------------------------------------------------------------------------------------

REFUSING = ExecutionProviderDelegate(
    "CPUExecutionProvider", max_versions=dict.fromkeys((Op.ADD, Op.MUL, Op.WHILE, Op.IF), 0)
)


def hit(monkeypatch: pytest.MonkeyPatch, cache: Path, **given: Any) -> Interpreter:
    """An interpreter that finds its plan, without the means to make one or to read the model."""
    first = Interpreter(cache=cache, **given)
    first.allocate_tensors()
    assert not is_hit(first)
    with monkeypatch.context() as patch:
        patch.setattr("tflite_ort.interpreter.executor.build", None)
        patch.setattr("tflite_ort.interpreter.executor.specialization", None)
        patch.setattr("tflite_ort.interpreter.loading.read", None)
        found = Interpreter(cache=cache, **given)
        assert is_hit(found)
        return found


@pytest.mark.parametrize("providers", [[], [REFUSING], None], ids=["numpy", "both", "cpu"])
@pytest.mark.parametrize("name", MODELS)
def test_plans_with_called_subgraphs_and_variables(
    name: str, providers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, invokes = MODELS[name]
    given = {"model_content": model, "providers": providers}
    anew, found = Interpreter(cache=False, **given), hit(monkeypatch, tmp_path, **given)
    anew.allocate_tensors()
    for feeds in invokes:
        assert_same(invoked(found, feeds), invoked(anew, feeds))
    assert found.delegation() == anew.delegation()


@pytest.mark.parametrize("name", ["while in a while", "if whose branches make different shapes"])
def test_a_plan_with_called_subgraphs_needs_no_file_once_it_is_loaded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, invokes = MODELS[name]
    given = {"model_content": model, "providers": [REFUSING]}
    anew, found = Interpreter(cache=False, **given), hit(monkeypatch, tmp_path, **given)
    anew.allocate_tensors()
    assert CacheFolder(str(tmp_path), lambda: 1 << 30).clear()
    for feeds in invokes:
        assert_same(invoked(found, feeds), invoked(anew, feeds))


def test_damaged_sessions_of_called_subgraphs_are_made_anew(tmp_path: Path) -> None:
    model, (feeds, *_) = MODELS["while in a while"]
    given = {"model_content": model, "providers": [REFUSING]}
    first = Interpreter(cache=tmp_path, **given)
    first.allocate_tensors()
    want = invoked(first, feeds)
    del first
    for file in tmp_path.glob("*.[0-9]*"):
        if file.suffix != ".json":
            file.write_bytes(file.read_bytes()[:-1])
    again = Interpreter(cache=tmp_path, **given)
    assert not is_hit(again)
    assert_same(invoked(again, feeds), want)
    assert is_hit(Interpreter(cache=tmp_path, **given))


SINGLE = {
    "windows": windows_model(
        (4, 6),
        TensorType.FLOAT32,
        Op.STABLEHLO_MAXIMUM,
        StablehloReduceWindowOptions(
            window_dimensions=(2, 2), window_strides=(1, 2), body_subgraph_index=1
        ),
    ),
    "options of a custom operator": custom_model(
        "MaxPoolingWithArgmax2D",
        [T((1, 4, 4, 1))],
        [T((1, 2, 2, 1)), T((1, 2, 2, 1))],
        pool_struct(VALID, (2, 2), (2, 2)),
    ),
    "4 bits": one_op_model(
        Op.FULLY_CONNECTED,
        [
            T((2, 8), TensorType.INT8, 0.5),
            T.constant(np.arange(-8, 8).reshape(2, 8).astype(np.int8), TensorType.INT4, scale=0.25),
            None,
        ],
        [T((2, 2), TensorType.INT8, 2.0)],
        FullyConnectedOptions(),
        4,
    ),
    "a constant that is computed": graph_model(
        {
            "n": T.constant(np.int32([3, 2])),
            "v": T.constant(np.float32(1.5)),
            "f": T((3, 2)),
            "x": T((3, 2)),
            "y": T((3, 2)),
        },
        [
            Node(Op.FILL, ["n", "v"], ["f"], FillOptions()),
            Node(Op.ADD, ["x", "f"], ["y"], AddOptions()),
        ],
        ["y"],
    ),
    "sizes of data": one_op_model(
        Op.WHERE, [T((5,), TensorType.BOOL)], [T((0, 1), TensorType.INT64)], WhereOptions()
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_numpy_plans(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"model_content": SINGLE[name], "providers": []}
    want = made(Interpreter(cache=False, **given))
    assert_same(made(hit(monkeypatch, tmp_path, **given)), want)


def test_the_operators_of_a_plan_are_read_once_and_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["x", *(f"y{i}" for i in range(6))]
    nodes = [
        Node(op, [source, source], [target], options)
        for (source, target), (op, options) in zip(
            pairwise(names), [(Op.ADD, AddOptions()), (Op.SUB, SubOptions())] * 3, strict=True
        )
    ]
    model = graph_model(dict.fromkeys(names, T((2,))), nodes, [names[-1]])
    read = []
    scopes = StoredEntry.scopes
    monkeypatch.setattr(StoredEntry, "scopes", lambda self: (read.append(1), scopes(self))[1])
    found = hit(monkeypatch, tmp_path, model_content=model, providers=[REFUSING])
    assert len({row.partition for row in found.delegation()}) == 6
    assert not read
    for _ in range(2):
        found.invoke()
    assert len(read) == 1


def test_a_hit_keeps_the_budget_of_results(tmp_path: Path) -> None:
    model = one_op_model(Op.FILL, [T((1,), TensorType.INT32), T(())], [T((0,))], FillOptions())
    given = {"model_content": model, "providers": [], "budgets": Budgets(result_bytes=1000)}
    said = []
    for cache in (False, tmp_path, tmp_path):
        interpreter = Interpreter(cache=cache, **given)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.int32([100]))
        interpreter.invoke()
        interpreter.set_tensor(0, np.int32([1 << 20]))
        with pytest.raises(BudgetExceeded) as error:
            interpreter.invoke()
        said.append(str(error.value))
    assert is_hit(interpreter)
    assert said == [said[0]] * 3


def test_damaged_constants_are_made_anew(tmp_path: Path) -> None:
    given = {"model_content": SINGLE["a constant that is computed"], "providers": []}
    want = made(Interpreter(cache=tmp_path, **given))
    (file,) = tmp_path.glob("*.1")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    again = Interpreter(cache=tmp_path, **given)
    assert_same(made(again), want)
    assert not is_hit(again)
    assert is_hit(Interpreter(cache=tmp_path, **given))


@pytest.mark.parametrize("odd", [None, -1, 1 << 70, "x", [], {}], ids=repr)
def test_a_row_of_something_odd_is_a_typed_error(odd: object, tmp_path: Path) -> None:
    """In the place of each value of an operator and of its tensors; the checksum is right."""
    given = {"model_content": SINGLE["a constant that is computed"], "providers": []}
    made(Interpreter(cache=tmp_path, **given))
    folder = CacheFolder(str(tmp_path), lambda: 1 << 30)
    (entry,) = folder.entries()
    document = folder.read(entry.key)
    assert document is not None
    rest = document.rest()
    scope = rest["scopes"][""]
    rows = [*scope["kernels"]["0"], *scope["views"]]
    for row in rows:
        for place, value in enumerate(row):
            row[place] = odd
            folder.write(entry.key, document.hot, rest, ())
            interpreter = Interpreter(cache=tmp_path, **given)
            interpreter.allocate_tensors()
            with suppress(BridgeError):
                interpreter.invoke()
            row[place] = value
