"""GroupNormalization as a LayerNormalization of groups, against the unfused graph and LiteRT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tflite_ort.schema import AddOptions, MulOptions, Op, ReducerOptions, SubOptions

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Groups:
    """GroupNormalization of x [batch, groups * share, *places], as litert-torch writes it."""

    batch: int = 2
    groups: int = 3
    share: int = 2
    places: tuple[int, ...] = (4, 5)
    axes: tuple[int, ...] = (2, 3)
    minus: float = -1.0
    epsilon: float = 1e-5

    def content(self) -> bytes:
        """The model."""
        tensors: dict[str, T] = {}
        nodes: list[Node] = []
        whole = (self.batch, self.groups * self.share, *self.places)
        groups = (self.batch, self.groups, self.share, prod(self.places))
        kept = tuple(1 if i in self.axes else n for i, n in enumerate(groups))
        rng = np.random.default_rng(5)
        tensors["x"] = T(whole)
        vector = (1, self.groups, self.share, 1)
        for name, data in {
            "axes": np.int32(self.axes),
            "in groups": np.int32(groups),
            "kept": np.int32(kept),
            "beside": np.int32((self.batch, whole[1], *(1 for _ in self.places))),
            "minus": np.float32(self.minus),
            "epsilon": np.float32(self.epsilon),
            "scale": rng.uniform(0.5, 2, vector).astype(np.float32),
            "bias": rng.uniform(-1, 1, vector).astype(np.float32),
        }.items():
            tensors[name] = T.constant(data)
        flat = tuple(n for i, n in enumerate(groups) if i not in self.axes)
        factor = np.broadcast_shapes(kept, vector)
        beside = (self.batch, whole[1], *(1 for _ in self.places))
        for op, inputs, name, shape, options in (
            (Op.RESHAPE, ["x", "in groups"], "g", groups, None),
            (Op.MEAN, ["g", "axes"], "mean", kept, ReducerOptions(keep_dims=True)),
            (Op.SUB, ["g", "mean"], "centred", groups, SubOptions()),
            (Op.MUL, ["centred", "centred"], "squares", groups, MulOptions()),
            (Op.MEAN, ["squares", "axes"], "var", flat, ReducerOptions()),
            (Op.ADD, ["var", "epsilon"], "padded", flat, AddOptions()),
            (Op.RESHAPE, ["padded", "kept"], "padded4", kept, None),
            (Op.RSQRT, ["padded4"], "inverse", kept, None),
            (Op.MUL, ["inverse", "scale"], "factor", factor, MulOptions()),
            (Op.MUL, ["mean", "minus"], "below", kept, MulOptions()),
            (Op.MUL, ["below", "factor"], "shift", factor, MulOptions()),
            (Op.ADD, ["shift", "bias"], "offset", factor, AddOptions()),
            (Op.RESHAPE, ["factor", "beside"], "f", beside, None),
            (Op.RESHAPE, ["offset", "beside"], "o", beside, None),
            (Op.MUL, ["x", "f"], "scaled", whole, MulOptions()),
            (Op.ADD, ["scaled", "o"], "y", whole, AddOptions()),
        ):
            tensors[name] = T(tuple(shape))
            nodes.append(Node(op, inputs, [name], options))
        return graph_model(tensors, nodes, ["y"])

    def inputs(self) -> list[Array]:
        """Random numbers around 1."""
        shape = (self.batch, self.groups * self.share, *self.places)
        return [np.random.default_rng(1).normal(1, 2, shape).astype(np.float32)]


def compare(model: Groups) -> None:
    got, want, theirs = (f(model.content(), model.inputs())[0] for f in (answers, unfused, litert))
    limit = 3e-6 * np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=limit)
    np.testing.assert_allclose(got, theirs, rtol=0, atol=limit)


PLAIN = Groups()
ONE = [
    PLAIN,
    replace(PLAIN, batch=1, groups=1),
    replace(PLAIN, share=1, places=(7,)),
    replace(PLAIN, places=(2, 3, 4)),
]
OTHER = [
    replace(PLAIN, minus=-2.0),
    replace(PLAIN, epsilon=0.0),
    replace(PLAIN, axes=(3,)),
]


@pytest.mark.parametrize("model", ONE, ids=str)
def test_the_means_are_one_node(model: Groups) -> None:
    counts = optimised_nodes(model.content())
    assert counts["LayerNormalization"] == 1
    assert not counts["ReduceMean"], counts
    compare(model)


@pytest.mark.parametrize("model", OTHER, ids=str)
def test_what_is_another_norm_stays(model: Groups) -> None:
    assert not optimised_nodes(model.content())["LayerNormalization"]
    compare(model)
