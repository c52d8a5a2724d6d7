"""Datasets that are no loops are refused, in bounded time. Those that are have models, see
`test_models.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.flex.nodes import declared_options
from tflite_ort import BridgeError, Interpreter
from tflite_ort.schema import ModelBuilder, Op, TensorType
from tflite_ort.schema.builder import SubgraphBuilder

T = TensorType
OF_FLOATS = {"output_types": ["float"], "output_shapes": [[]]}
Stages = list[tuple[str, Mapping[str, Any]]]


def stages(graph: SubgraphBuilder, given: Stages) -> str:
    """Add the operators of a dataset of the slices of x; the name of the last one's result."""
    sliced = {"Toutput_types": ["float"], "output_shapes": [[]]}
    last = ""
    for number, (name, told) in enumerate([("TensorSliceDataset", sliced), *given]):
        made = f"made{number}"
        counts = {"BatchDatasetV2": ["size", "drops"], "RepeatDataset": ["size"]}.get(name, [])
        graph.tensor(made, (), T.VARIANT)
        options = declared_options(
            name, {**({} if name.startswith("Tensor") else OF_FLOATS), **told}
        )
        graph.operator(f"Flex{name}", [last or "x", *counts], [made], options)
        last = made
    return last


def model(given: Stages, size: int = 2, inner: Stages | None = None) -> bytes:
    """The sum of a dataset of the slices of x; `inner` is that of the function "parts"."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (4,)).constant("start", np.float32(0))
    main.constant("size", np.int64(size)).constant("drops", np.array(False))
    last = stages(main, given)
    told = {"f": "sum", "Tstate": ["float"], "Targuments": [], **OF_FLOATS}
    main.tensor("y")
    main.operator(
        "FlexReduceDataset", [last, "start"], ["y"], declared_options("ReduceDataset", told)
    )
    main.inputs("x").outputs("y")
    added = builder.subgraph("sum")
    added.tensor("a").tensor("b").tensor("c")
    added.operator(Op.ADD, ["a", "b"], ["c"])
    added.inputs("a", "b").outputs("c")
    if inner is not None:
        parts = builder.subgraph("parts")
        parts.tensor("x", (4,))
        parts.inputs("x").outputs(stages(parts, inner))
    return builder.write()


def flat(function: str) -> tuple[str, Mapping[str, Any]]:
    return "FlatMapDataset", {"f": function, "Targuments": []}


def mapped(function: str) -> tuple[str, Mapping[str, Any]]:
    return "MapDataset", {"f": function, "Targuments": []}


BATCH: tuple[str, Mapping[str, Any]] = ("BatchDatasetV2", {})
REPEAT: tuple[str, Mapping[str, Any]] = ("RepeatDataset", {})
REFUSED: dict[str, Callable[[], bytes]] = {
    "a function that is not there": lambda: model([mapped("nothing")]),
    "a function of two inputs": lambda: model([mapped("sum")]),
    "a function that makes no dataset": lambda: model([flat("sum")]),
    "a function that calls itself": lambda: model([flat("parts")], inner=[flat("parts")]),
    "batches in batches": lambda: model([BATCH] * 30),
    "batches of elements of other shapes": lambda: model([BATCH, BATCH]),
    "very many operators": lambda: model([REPEAT] * 40),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(BridgeError, match="Dataset"):
        interpreter = Interpreter(model_content=REFUSED[name]())
        interpreter.allocate_tensors()


def test_repeated() -> None:
    """An element of an element is counted as often; a dataset that is repeated for ever and empty
    ends."""
    twice = Interpreter(model_content=model([REPEAT, REPEAT]))
    twice.allocate_tensors()
    twice.set_tensor(0, np.float32([1, 2, 3, 4]))
    twice.invoke()
    assert twice.get_tensor(twice.get_output_details()[0]["index"]) == 40
    endless = Interpreter(model_content=model([REPEAT], size=-1))
    endless.resize_tensor_input(0, [0])
    endless.allocate_tensors()
    endless.invoke()
    assert endless.get_tensor(endless.get_output_details()[0]["index"]) == 0
