"""Two integer LSTMs that do not see each other run in one Scan, bit for bit as LiteRT runs them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.lstm_models import Lstm, invokes
from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter
from tflite_ort.opmap.rules.operators import paired_cells
from tflite_ort.schema import Op, ReverseV2Options, TensorType
from tflite_ort.schema.values.lstm import LSTM_INPUTS

SEQUENCE = Op.UNIDIRECTIONAL_SEQUENCE_LSTM
CELL = Lstm(SEQUENCE, "8x8_16", batch=2, time=7, features=5, cells=6)
Tensors = dict[str, T]


def layer(lstm: Lstm, name: str, source: str, tensors: Tensors, **changed: T) -> Node:
    """`lstm` of codes reading `source`; it adds its own tensors, some of them `changed`."""
    given = {**lstm.tensors(), **lstm._intermediates(), **changed}
    own = {f"{name}/{key}": tensor for key, tensor in given.items() if key != "input"}
    tensors.update(own)
    state = given["output_state"]
    shape = lstm._outputs()["output0"].shape
    tensors[name] = T(shape, TensorType.INT8, state.scale, state.zero_point)
    inputs = [source, *(f"{name}/{key}".rstrip("?") for key in LSTM_INPUTS[1:])]
    scales = [key for key in own if "intermediate" in key]
    present = [key if key in own else None for key in inputs[1:]]
    return Node(SEQUENCE, [source, *present], [name], lstm.options(), intermediates=scales)


def other_quantisation(lstm: Lstm) -> Tensors:
    """Another scale and zero point of the state, and another zero point of the hidden value."""
    state = lstm.tensors()["output_state"]
    state = T(state.shape, TensorType.INT8, 0.0085, 11, is_variable=True)
    return {"output_state": state, "intermediate4": T((), TensorType.INT16, 0.0071, -2)}


def bidirectional(early: Lstm, late: Lstm, *, turned_first: bool, **changed: T) -> bytes:
    """A layer in both directions: the second one between two reversals of time."""
    tensors = {"input": early.tensors()["input"], "axis": T.constant(np.array([1], np.int32))}
    tensors["reversed"] = tensors["input"]
    forward = layer(early, "early", "input", tensors)
    backward = layer(late, "late", "reversed", tensors, **changed)
    tensors["turned"] = tensors["late"]
    turned = Node(Op.REVERSE_V2, ["late", "axis"], ["turned"], ReverseV2Options())
    nodes = [Node(Op.REVERSE_V2, ["input", "axis"], ["reversed"], ReverseV2Options())]
    nodes += [backward, turned, forward] if turned_first else [forward, backward, turned]
    return graph_model(tensors, nodes, ["early", "turned"])


def stacked(layers: int = 2) -> bytes:
    """Each layer reads the one before."""
    first = replace(CELL, features=6)
    tensors = {"input": first.tensors()["input"]}
    names = ["input", *(f"layer{number}" for number in range(layers))]
    nodes = [layer(first, name, source, tensors) for source, name in pairwise(names)]
    return graph_model(tensors, nodes, names[1:])


def results(model: bytes, invoked: int = 3) -> tuple[Any, Any, int]:
    """Ours, LiteRT's, and the number of Scans."""
    rng, scans = np.random.default_rng(3), optimised_nodes(model)["Scan"]
    interpreter = Interpreter(model_content=model, num_threads=1, cache=False)
    interpreter.allocate_tensors()
    shape = interpreter.get_input_details()[0]["shape"]
    feeds: list[list[npt.NDArray[Any]]] = [
        [rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(invoked)
    ]
    got, want = invokes(interpreter, feeds), invokes(litert_interpreter(model), feeds)
    return got, want, scans


CASES = {
    "alike": (CELL, replace(CELL, seed=1)),
    "coupled": (replace(CELL, coupled=True), replace(CELL, coupled=True, seed=1)),
    "time major": (replace(CELL, time_major=True), replace(CELL, time_major=True, seed=1)),
    "one row": (replace(CELL, batch=1), replace(CELL, batch=1, seed=1)),
    "clipped": (replace(CELL, cell_clip=2.0), replace(CELL, cell_clip=2.0, seed=1)),
}


@pytest.mark.parametrize("turned_first", [False, True])
@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_both_directions_are_one_scan(name: str, quantised: bool, turned_first: bool) -> None:
    early, late = CASES[name]
    changed = other_quantisation(late) if quantised else {}
    got, want, scans = results(bidirectional(early, late, turned_first=turned_first, **changed))
    np.testing.assert_equal(got, want)
    assert len(np.unique(want[0][0])) > 20
    assert scans == 1


@pytest.mark.parametrize("further", ["peephole", "layer_norm"])
def test_cells_with_further_weights_are_two_scans(further: str) -> None:
    early = replace(CELL, **{further: True})
    late = replace(early, seed=1)
    got, want, scans = results(bidirectional(early, late, turned_first=False))
    np.testing.assert_equal(got, want)
    assert scans == 2


@pytest.mark.parametrize(
    "late",
    [
        replace(CELL, cell_bits=10),
        replace(CELL, cells=5),
        replace(CELL, coupled=True),
        replace(CELL, cell_clip=1.5),
        replace(CELL, peephole=True),
    ],
    ids=lambda lstm: lstm.name,
)
def test_cells_that_differ_are_two_scans(late: Lstm) -> None:
    got, want, scans = results(bidirectional(CELL, late, turned_first=False))
    np.testing.assert_equal(got, want)
    assert scans == 2


def test_a_layer_that_reads_the_other_is_a_scan_of_its_own() -> None:
    got, want, scans = results(stacked())
    np.testing.assert_equal(got, want)
    assert scans == 2


def test_the_search_takes_time_with_the_number_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with its cube: 160 layers, a file of 450 KB, took 19 s."""
    counts, members = list[int](), paired_cells._members
    tried: list[int] = []

    def counted(operators: Any, first: int, second: int) -> Any:
        tried.append(first)
        return members(operators, first, second)

    monkeypatch.setattr(paired_cells, "_members", counted)
    for layers in (20, 40):
        results(stacked(layers), invoked=1)
        counts.append(len(tried))
        tried.clear()
    assert counts[0] > 0
    assert counts[1] < 2.5 * counts[0]
