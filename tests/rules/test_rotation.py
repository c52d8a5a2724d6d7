"""Rotary embedding as one node, against the unfused graph and LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tflite_ort import export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    MulOptions,
    Op,
    SubOptions,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rotation:
    """Rotary embedding of x [1, heads, tokens, size] by computed angles [1, tokens, size / 2].

    Args:
        halves: as litert-torch's examples write it, half by half; else as transformers do.
        minus: what the second half is multiplied by.
        begin: where the second half begins.
        swapped: the two frequencies of transformers' form are two tensors.
        batch: of x.
        clamped: the sum at its end has a fused activation.
    """

    halves: bool
    heads: int = 3
    tokens: int = 5
    size: int = 8
    minus: float = -1.0
    begin: int | None = None
    swapped: bool = False
    batch: int = 1
    clamped: bool = False

    def content(self) -> bytes:
        """The model; its inputs are x and the angles."""
        half = self.size // 2
        shape = self.batch, self.heads, self.tokens, self.size
        low = *shape[:-1], half
        begin = half if self.begin is None else self.begin
        tensors = {"x": T(shape), "angles": T((1, self.tokens, half))}
        for name, value in (("b1", [0, 0, 0, 0]), ("b2", [0, 0, 0, begin]), ("n", list(low))):
            tensors[name] = T.constant(np.int32(value))
        nodes = [Node(Op.SLICE, ["x", "b1", "n"], ["x1"]), Node(Op.SLICE, ["x", "b2", "n"], ["x2"])]
        tensors |= {"x1": T(low), "x2": T(low)}
        more = self._by_halves(low) if self.halves else self._whole(low)
        for op, inputs, output, size, options in more:
            tensors[output] = T(tuple(size))
            if self.clamped and output == "y":
                options = AddOptions(fused_activation_function=ActivationFunctionType.RELU6)
            nodes.append(Node(op, inputs, [output], options))
        if not self.halves:
            tensors["minus"] = T.constant(np.float32(self.minus))
        tensors["y"] = T(shape)
        return graph_model(tensors, nodes, ["y"])

    def _by_halves(self, low: Sequence[int]) -> list[Any]:
        angles = (1, self.tokens, self.size // 2)
        join = ConcatenationOptions(axis=3)
        return [
            (Op.COS, ["angles"], "c", angles, None),
            (Op.SIN, ["angles"], "s", angles, None),
            (Op.MUL, ["x1", "c"], "a", low, MulOptions()),
            (Op.MUL, ["x2", "s"], "b", low, MulOptions()),
            (Op.SUB, ["a", "b"], "d", low, SubOptions()),
            (Op.MUL, ["x2", "c"], "e", low, MulOptions()),
            (Op.MUL, ["x1", "s"], "f", low, MulOptions()),
            (Op.ADD, ["e", "f"], "g", low, AddOptions()),
            (Op.CONCATENATION, ["d", "g"], "y", (*low[:-1], self.size), join),
        ]

    def _whole(self, low: Sequence[int]) -> list[Any]:
        half, whole = (1, self.tokens, self.size // 2), (1, self.tokens, self.size)
        shape = (*low[:-1], self.size)
        other = "shifted" if self.swapped else "angles"
        return [
            (Op.ADD, ["angles", "angles"], "shifted", half, AddOptions()),
            (Op.CONCATENATION, ["angles", other], "f", whole, ConcatenationOptions(axis=2)),
            (Op.COS, ["f"], "c", whole, None),
            (Op.SIN, ["f"], "s", whole, None),
            (Op.MUL, ["x2", "minus"], "m", low, MulOptions()),
            (Op.CONCATENATION, ["m", "x1"], "t", shape, ConcatenationOptions(axis=3)),
            (Op.MUL, ["t", "s"], "u", shape, MulOptions()),
            (Op.MUL, ["x", "c"], "v", shape, MulOptions()),
            (Op.ADD, ["v", "u"], "y", shape, AddOptions()),
        ]

    def inputs(self) -> list[Array]:
        """Random numbers."""
        rng = np.random.default_rng(0)
        shapes = (self.batch, self.heads, self.tokens, self.size), (1, self.tokens, self.size // 2)
        return [rng.normal(0, 2, shape).astype(np.float32) for shape in shapes]


def compare(model: Rotation) -> None:
    content, inputs = model.content(), model.inputs()
    got, want, theirs = (f(content, inputs)[0] for f in (answers, unfused, litert))
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())
    np.testing.assert_allclose(got, theirs, rtol=0, atol=2e-6 * np.abs(want).max())


FORMS = [Rotation(halves=True), Rotation(halves=False)]
ONE = [*FORMS, *(replace(each, tokens=1) for each in FORMS), *(replace(f, batch=2) for f in FORMS)]


@pytest.mark.parametrize("model", ONE, ids=str)
def test_it_is_one_node(model: Rotation) -> None:
    counts = optimised_nodes(model.content())
    assert counts["RotaryEmbedding"] == 1
    assert set(counts) <= {"RotaryEmbedding", "Cos", "Sin", "Reshape"}
    compare(model)


OTHER = [
    Rotation(halves=False, minus=-2.0),
    Rotation(halves=False, swapped=True),
    Rotation(halves=True, begin=2),
    Rotation(halves=False, begin=2),
    Rotation(halves=False, clamped=True),
]


@pytest.mark.parametrize("model", OTHER, ids=str)
def test_what_is_another_rotation_stays(model: Rotation) -> None:
    assert not optimised_nodes(model.content())["RotaryEmbedding"]
    compare(model)


def test_exports_have_no_node_of_onnx_runtime() -> None:
    for model in FORMS:
        assert all(not node.domain for node in export_onnx(model.content()).graph.node)
