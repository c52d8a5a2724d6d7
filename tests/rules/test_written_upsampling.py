"""Repeated rows and columns as one resizing: the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.one_op import T, graph_model
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort import export_onnx
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, TensorType

SEED = 5
RULE = "written upsampling"
FLOAT = T((), TensorType.FLOAT32)
CODES = T((), TensorType.INT8, scale=0.5, zero_point=3)
KINDS = {
    "floats": FLOAT,
    "int8": CODES,
    "uint8": replace(CODES, type=TensorType.UINT8),
    "int16": T((), TensorType.INT16, scale=0.01),
}
IMAGE = (2, 3, 5, 4)
Steps = Sequence[tuple[Op, Sequence[int]]]


def keras(down: int, across: int, shape: Sequence[int] = IMAGE) -> Steps:
    """As Keras writes it."""
    n, h, w, c = shape
    steps: Steps = (
        (Op.RESHAPE, (n, h, 1, w, c)),
        (Op.TILE, (n, h, down, w, c)),
        (Op.RESHAPE, (n, h * down, w, 1, c)),
        (Op.TILE, (n, h * down, w, across, c)),
        (Op.RESHAPE, (n, h * down, w * across, c)),
    )
    return steps


def model(
    steps: Steps, like: T = FLOAT, shape: Sequence[int] = IMAGE, also: int | None = None
) -> bytes:
    """These operators by the shapes that they make; `also`: the number of one whose result is a
    result of the model too."""
    b = Builder()
    b.tensors["x"], source, made = replace(like, shape=tuple(shape)), "x", list[str]()
    for op, to in steps:
        given = b.tensors[source].shape
        wanted = to if op is not Op.TILE else np.array(to) // np.array(given)
        source = b.op(op, [source, b.constant(wanted, np.int32)], to)
        b.tensors[source] = replace(like, shape=tuple(to))
        made.append(source)
        if op is Op.BROADCAST_TO:
            b.nodes[-1] = replace(b.nodes[-1], version=2)
    return graph_model(b.tensors, b.nodes, [source, *([] if also is None else [made[also]])])


def image(like: T, shape: Sequence[int] = IMAGE) -> npt.NDArray[Any]:
    return replace(like, shape=tuple(shape)).random(np.random.default_rng(SEED))


def check(content: bytes, x: npt.NDArray[Any]) -> None:
    got, wanted = answers(content, [x]), litert(content, [x])
    with without(RULE):
        single = answers(content, [x])
    for one, other, plain in zip(got, wanted, single, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, plain)


def names(content: bytes, folder: Path) -> list[str]:
    """The nodes of its export."""
    export_onnx(content, folder / "x.onnx")
    return [node.op_type for node in onnx.load(folder / "x.onnx").graph.node]


ONE: Steps = (
    (Op.RESHAPE, (2, 3, 1, 5, 1, 4)),
    (Op.TILE, (2, 3, 2, 5, 3, 4)),
    (Op.RESHAPE, (2, 6, 15, 4)),
)
FORMS: dict[str, Steps] = {
    "twice both": keras(2, 2),
    "three rows": keras(3, 2),
    "seven columns": keras(2, 7),
    "rows and columns at once": ONE,
    "broadcast": [(Op.BROADCAST_TO if op is Op.TILE else op, to) for op, to in ONE],
    "behind other shapes": ((Op.RESHAPE, (6, 20)), (Op.RESHAPE, (2, 3, 5, 4)), *keras(2, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_repeated_cells_are_one_operator(form: str, kind: str, tmp_path: Path) -> None:
    content = model(FORMS[form], KINDS[kind])
    check(content, image(KINDS[kind]))
    made = names(content, tmp_path)
    assert {"Tile", "Expand"}.isdisjoint(made)
    assert "Reshape" not in made


STAYS: dict[str, Steps] = {
    "whole images in a row": (
        (Op.RESHAPE, (2, 1, 3, 5, 4)),
        (Op.TILE, (2, 2, 3, 5, 4)),
        (Op.RESHAPE, (2, 6, 5, 4)),
    ),
    "all rows in a row": ((Op.TILE, (2, 6, 5, 4)), (Op.RESHAPE, (2, 6, 5, 4))),
    "channels": (
        (Op.RESHAPE, (2, 3, 5, 4, 1)),
        (Op.TILE, (2, 3, 5, 4, 2)),
        (Op.RESHAPE, (2, 3, 5, 8)),
    ),
    "rows alone": keras(3, 1),
    "columns alone": keras(1, 7),
    "columns as rows": (
        (Op.RESHAPE, (2, 3, 5, 1, 4)),
        (Op.TILE, (2, 3, 5, 2, 4)),
        (Op.RESHAPE, (2, 6, 5, 4)),
    ),
}


@pytest.mark.parametrize("form", STAYS)
def test_what_is_repeated_otherwise(form: str, tmp_path: Path) -> None:
    content = model(STAYS[form])
    check(content, image(FLOAT))
    assert "Tile" in names(content, tmp_path)


def test_what_others_read_too(tmp_path: Path) -> None:
    content = model(keras(2, 2), also=1)
    check(content, image(FLOAT))
    assert names(content, tmp_path).count("Tile") == 2
    content = model(keras(2, 2), also=2)
    check(content, image(FLOAT))


def test_a_dimension_of_one_is_repeated_by_any_operator() -> None:
    shape = (1, 1, 1, 3)
    content = model(keras(4, 4, shape), shape=shape)
    check(content, image(FLOAT, shape))
