"""Whether two threads run a network sooner than one: by what its layers take, loops by a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.walk import operators
from tests.one_op import Node, T
from tests.subgraph_models import Sub, model_of
from tflite_ort.plan.session_step import saves_time
from tflite_ort.schema import (
    AddOptions,
    FullyConnectedOptions,
    LessOptions,
    Op,
    TensorType,
    WhileOptions,
    read_model,
)

COUNT, FLAG = T((), TensorType.INT32), T((), TensorType.BOOL)


def layer(units: int) -> tuple[dict[str, T], Node]:
    """A layer of so many inputs and units."""
    tensors = {"w": T((units, units), data=np.zeros((units, units), np.float32))}
    return tensors, Node(Op.FULLY_CONNECTED, ["x", "w"], ["y"], FullyConnectedOptions())


def network(units: int) -> bytes:
    tensors, node = layer(units)
    rows = T((1, units))
    return model_of(Sub({"x": rows, "y": rows, **tensors}, [node], ["x"], ["y"]))


def loop(units: int) -> bytes:
    """A layer that a loop repeats."""
    tensors, node = layer(units)
    rows, state = T((1, units)), ["i", "n", "x"]
    known = {"i": COUNT, "n": COUNT, "x": rows}
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    results = ["oi", "on", "y"]
    found = {"oi": COUNT, "on": COUNT, "y": rows}
    main = Sub({**known, **found}, [Node(Op.WHILE, state, results, options)], state, results)
    test = Node(Op.LESS, ["i", "n"], ["t"], LessOptions())
    one = T((), TensorType.INT32, data=np.array(1, np.int32))
    count = Node(Op.ADD, ["i", "one"], ["j"], AddOptions())
    body = {**known, **tensors, "one": one, "j": COUNT, "y": rows}
    return model_of(
        main,
        Sub({**known, "t": FLAG}, [test], state, ["t"]),
        Sub(body, [count, node], state, ["j", "n", "y"]),
    )


@pytest.mark.parametrize("make", [network, loop])
@pytest.mark.parametrize(("units", "saved"), [(16, False), (64, False), (1024, True)])
def test_small_layers_stay_on_one_thread(
    make: Callable[[int], bytes], units: int, saved: bool
) -> None:
    assert saves_time(operators(read_model(make(units)))) is saved
