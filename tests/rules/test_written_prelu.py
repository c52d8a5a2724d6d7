"""PRELU as converters write it out: one operator, with the results of the single ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.one_op import Node, T, graph_model
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort import export_onnx
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, TensorType

Array = npt.NDArray[Any]
Rows = Sequence[tuple[Op, Sequence[str], str]]
SHAPE = (1, 6, 5, 4)
EDGES = np.float32([-np.inf, np.inf, -0.0, 0.0, 1e-30, -1e-30, 3e38, -3e38])
X = np.concatenate([np.linspace(-9, 9, 112, dtype=np.float32), EDGES]).reshape(SHAPE)
SLOPES = np.float32([0.25, -0.5, 2, 0])
RULE = "written PRELU"

_OPPOSITE: Rows = ((Op.NEG, ["x"], "n"), (Op.RELU, ["n"], "o"), (Op.RELU, ["x"], "p"))
FORMS: dict[str, Rows] = {
    "greater": (
        (Op.GREATER, ["x", "zero"], "c"),
        (Op.MUL, ["slopes", "x"], "m"),
        (Op.SELECT, ["c", "x", "m"], "y"),
    ),
    "greater or equal": (
        (Op.GREATER_EQUAL, ["x", "zero"], "c"),
        (Op.MUL, ["x", "slopes"], "m"),
        (Op.SELECT_V2, ["c", "x", "m"], "y"),
    ),
    "less": (
        (Op.LESS, ["x", "zero"], "c"),
        (Op.MUL, ["x", "slopes"], "m"),
        (Op.SELECT_V2, ["c", "m", "x"], "y"),
    ),
    "sum": (
        *_OPPOSITE,
        (Op.NEG, ["o"], "q"),
        (Op.MUL, ["q", "slopes"], "m"),
        (Op.ADD, ["p", "m"], "y"),
    ),
    "sum of opposite": (*_OPPOSITE, (Op.MUL, ["o", "slopes"], "m"), (Op.ADD, ["p", "m"], "y")),
    "difference": (*_OPPOSITE, (Op.MUL, ["o", "slopes"], "m"), (Op.SUB, ["p", "m"], "y")),
}


def model(rows: Rows, outputs: Sequence[str] = ("y",), **constants: Array) -> bytes:
    """These rows over `x`, with others in place of the constants."""
    given = {"slopes": SLOPES, "zero": np.zeros((), np.float32), **constants}
    tensors = {"x": T(SHAPE)} | {name: T.constant(array) for name, array in given.items()}
    tensors |= {name: T(SHAPE) for _, _, name in rows}
    tensors["c"] = T(SHAPE, TensorType.BOOL)
    used = {name for _, inputs, output in rows for name in (*inputs, output)}
    nodes = [Node(op, inputs, [output]) for op, inputs, output in rows]
    return graph_model({k: v for k, v in tensors.items() if k in used}, nodes, outputs)


def names(content: bytes, folder: Path) -> list[str]:
    """The nodes of its export."""
    export_onnx(content, folder / "x.onnx")
    return [node.op_type for node in onnx.load(folder / "x.onnx").graph.node]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("slopes", [SLOPES, SLOPES[0], SLOPES[:1], SLOPES.reshape(1, 1, 1, 4)])
def test_the_numbers_of_single_operators(form: str, slopes: Array, tmp_path: Path) -> None:
    content = model(FORMS[form], slopes=slopes)
    (ours,) = answers(content, [X])
    with without(RULE):
        (single,) = answers(content, [X])
    assert np.array_equal(ours, single, equal_nan=True)
    assert np.array_equal(ours, litert(content, [X])[0], equal_nan=True)
    assert names(content, tmp_path) == ["PRelu"]


def test_slopes_that_others_read_too(tmp_path: Path) -> None:
    rows = (*FORMS["sum of opposite"], (Op.MUL, ["y", "slopes"], "z"))
    content = model(rows, ["z"])
    assert np.array_equal(answers(content, [X])[0], litert(content, [X])[0], equal_nan=True)
    assert names(content, tmp_path) == ["PRelu", "Mul"]


@pytest.mark.parametrize(
    ("changed", "outputs"),
    [
        ({"zero": np.float32(1e-9)}, ["y"]),
        ({"slopes": np.float32([1, np.inf, 1, 1])}, ["y"]),
        ({"slopes": np.float32([1, np.nan, 1, 1])}, ["y"]),
        ({}, ["y", "m"]),
        ({}, ["y", "c"]),
    ],
)
def test_what_is_no_prelu_stays(
    changed: dict[str, Array], outputs: list[str], tmp_path: Path
) -> None:
    content = model(FORMS["greater"], outputs, **changed)
    assert "PRelu" not in names(content, tmp_path)
    for ours, theirs in zip(answers(content, [X]), litert(content, [X]), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)


def test_a_choice_between_others_stays(tmp_path: Path) -> None:
    rows = (
        (Op.GREATER, ["x", "zero"], "c"),
        (Op.MUL, ["x", "slopes"], "m"),
        (Op.SELECT, ["c", "m", "x"], "y"),
    )
    content = model(rows)
    assert "PRelu" not in names(content, tmp_path)
    assert np.array_equal(answers(content, [X])[0], litert(content, [X])[0], equal_nan=True)
