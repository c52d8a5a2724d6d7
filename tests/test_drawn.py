"""Random inputs: integers that choose rows stay below the number of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import ExportError, Interpreter, export_onnx
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.export.check import check_export
from tflite_ort.schema import (
    CastOptions,
    GatherOptions,
    ModelBuilder,
    Op,
    SubgraphBuilder,
    TensorType,
    read_model,
)

INT32, INT64 = TensorType.INT32, TensorType.INT64


def _gather(graph: SubgraphBuilder) -> None:
    graph.constant("table", np.zeros((5, 3), np.float32))
    graph.tensor("rows", [1, 40, 3])
    graph.operator(Op.GATHER, ["table", "ids"], ["rows"], GatherOptions(axis=0), version=2)


def _gather_of_columns(graph: SubgraphBuilder) -> None:
    graph.constant("table", np.zeros((2, 5), np.float32))
    graph.tensor("rows", [2, 1, 40])
    graph.operator(Op.GATHER, ["table", "ids"], ["rows"], GatherOptions(axis=-1), version=2)


def _gather_nd(graph: SubgraphBuilder) -> None:
    graph.constant("table", np.zeros((9, 5, 3), np.float32))
    graph.constant("shape", np.array([20, 2], np.int32))
    graph.tensor("pairs", [20, 2], INT32)
    graph.operator(Op.RESHAPE, ["ids", "shape"], ["pairs"])
    graph.tensor("rows", [20, 3])
    graph.operator(Op.GATHER_ND, ["table", "pairs"], ["rows"])


def _two_tables(graph: SubgraphBuilder) -> None:
    graph.constant("small", np.zeros((5, 3), np.float32))
    graph.constant("large", np.zeros((7, 3), np.float32))
    graph.constant("shape", np.array([40], np.int32))
    graph.tensor("flat", [40], INT32)
    graph.tensor("long", [40], INT64)
    graph.operator(Op.RESHAPE, ["ids", "shape"], ["flat"])
    graph.operator(Op.CAST, ["flat"], ["long"], CastOptions(INT32, INT64))
    graph.tensor("first", [40, 3])
    graph.tensor("second", [40, 3])
    graph.tensor("rows", [40, 3])
    graph.operator(Op.EMBEDDING_LOOKUP, ["flat", "large"], ["first"])
    graph.operator(Op.GATHER, ["small", "long"], ["second"], GatherOptions(), version=2)
    graph.operator(Op.ADD, ["first", "second"], ["rows"])


@pytest.mark.parametrize("part", [_gather, _gather_of_columns, _gather_nd, _two_tables])
def test_indices_stay_below_the_smallest_table(part: Callable[[SubgraphBuilder], None]) -> None:
    builder = ModelBuilder()
    graph = builder.subgraph()
    graph.tensor("ids", [1, 40], INT32)
    part(graph)
    graph.inputs("ids")
    graph.outputs("rows")
    content = builder.write()

    model = read_model(content)
    limits = index_limits(model)
    assert list(limits.values()) == [5]
    interpreter = Interpreter(model_content=content)
    fed = random_inputs(interpreter.get_input_details(), 3, limits=limits)
    ids = fed[next(iter(limits))]
    assert set(np.unique(ids)) == set(range(5))
    assert random_inputs(interpreter.get_input_details(), 3)[next(iter(limits))].max() == 9
    check_export(export_onnx(content), None, model)


def test_inputs_that_choose_nothing_have_no_limit() -> None:
    builder = ModelBuilder()
    graph = builder.subgraph()
    graph.tensor("a", [4], INT32)
    graph.tensor("b", [4], INT32)
    graph.operator(Op.ADD, ["a", "a"], ["b"])
    graph.inputs("a")
    graph.outputs("b")
    assert index_limits(read_model(builder.write())) == {}


def _counted(graph: SubgraphBuilder) -> None:
    graph.tensor("data", [1, 3]).tensor("k", [], INT32)
    graph.tensor("values", [1, 0]).tensor("places", [1, 0], INT32)
    graph.operator(Op.TOPK_V2, ["data", "k"], ["values", "places"])
    graph.inputs("data", "k").outputs("values")


def _counting(graph: SubgraphBuilder) -> None:
    for name in ("start", "limit", "delta"):
        graph.tensor(name, [], INT32)
    graph.tensor("numbers", [0], INT32)
    graph.operator(Op.RANGE, ["start", "limit", "delta"], ["numbers"])
    graph.inputs("start", "limit", "delta").outputs("numbers")


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("batch", [None, 4, "N"])
@pytest.mark.parametrize("part", [_counted, _counting])
def test_an_export_is_checked_with_numbers_that_the_model_takes(
    part: Callable[[SubgraphBuilder], object], batch: int | str | None
) -> None:
    builder = ModelBuilder()
    part(builder.subgraph())
    export_onnx(builder.write(), batch=batch, check=True)


def test_an_export_that_takes_no_drawn_inputs_is_not_checked() -> None:
    builder = ModelBuilder()
    graph = builder.subgraph()
    graph.tensor("data", [1, 1009]).tensor("sizes", [2], INT32).tensor("laid", [0, 0])
    graph.operator(Op.RESHAPE, ["data", "sizes"], ["laid"])
    graph.inputs("data", "sizes").outputs("laid")
    content = builder.write()
    with pytest.raises(ExportError, match="not checked: the model takes none of 50 random inputs"):
        export_onnx(content, check=True)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("kind", "highest"), [(TensorType.INT4, 7), (TensorType.INT2, 1)])
def test_inputs_of_few_bits(kind: TensorType, highest: int, scaled: bool) -> None:
    """Their arrays are int8, which holds more than they do."""
    given = T((1, 99), kind, scale=0.5 if scaled else None)
    made = T((99,), kind, scale=0.5 if scaled else None)
    content = one_op_model(Op.RESHAPE, [given, T.constant(np.int32([99]))], [made])
    limits = index_limits(read_model(content))
    interpreter = Interpreter(model_content=content)
    (fed,) = random_inputs(interpreter.get_input_details(), 0, limits=limits).values()
    assert (fed.min(), fed.max()) == (-highest - 1 if scaled else 0, highest)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, fed)
