"""Heads, caches and the position of one token in the shapes that nodes want: the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.test_cache_rows import look_up
from tests.rules.trees import answers, unfused
from tflite_ort import Interpreter
from tflite_ort.plan import parts
from tflite_ort.schema import (
    AddOptions,
    BatchMatMulOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    PackOptions,
    SoftmaxOptions,
    SubOptions,
    TensorType,
)

Array = npt.NDArray[Any]
TOKENS, DEPTH, SIZE, GROUPS = 280, 384, 32, 2
SEED = 5


@dataclass(frozen=True)
class Decoder:
    """The attention of one token, whose queries, keys and values one product makes.

    Args:
        share: how many heads of queries each group has.
        angles: keys are turned by other angles than queries.
        also: a tensor that is read once more, and given.
    """

    share: int = 3
    angles: bool = False
    also: str = ""

    def content(self) -> bytes:
        table = np.triu(np.full((TOKENS, TOKENS), -np.inf, np.float32), 1)
        tensors, nodes = look_up(1, table=table.reshape(TOKENS, 1, TOKENS))
        rng, units = np.random.default_rng(SEED), (self.share + 2) * SIZE * GROUPS
        weights = rng.integers(-127, 128, (units, DEPTH)).astype(np.int8)
        cache = (1, TOKENS, GROUPS, SIZE)
        factors = 1 / 10.0 ** (np.arange(SIZE // 2) / 4).reshape(1, 1, -1)
        tensors |= {
            "token": T((1, 1, DEPTH)),
            "k": T(cache),
            "v": T(cache),
            "w": T.constant(weights, scale=rng.uniform(1e-3, 2e-3, units).tolist()),
            "factors": T.constant(factors.astype(np.float32)),
            "others": T.constant((factors / 3).astype(np.float32)),
            "scale": T.constant(np.float32(0.01)),
            "none": T.constant(np.int32([]), TensorType.INT32),
        }
        types = dict.fromkeys(("at", "number", "column", "z"), TensorType.INT32)
        steps = [*self._parts(tensors), *self._written(), *self._weighed(tensors)]
        if self.also:
            shape = next(shape for _, _, name, shape, _ in steps if name == self.also)
            steps.append((Op.NEG, [self.also], "also", shape, None))
            types["also"] = types.get(self.also, TensorType.FLOAT32)
        for op, inputs, output, shape, options in steps:
            names = [self._numbers(tensors, x) if isinstance(x, tuple) else x for x in inputs]
            tensors[output] = T(tuple(shape), types.get(output, TensorType.FLOAT32))
            version = 2 if op is Op.BROADCAST_TO else 9 if op is Op.FULLY_CONNECTED else 1
            nodes.append(Node(op, names, [output], options, version=version))
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        tensors = {name: each for name, each in tensors.items() if name in used}
        outputs = ["k_out", "v_out", "y", *(["also"] if self.also else [])]
        return graph_model(tensors, nodes, outputs)

    @staticmethod
    def _numbers(tensors: dict[str, T], numbers: Sequence[int]) -> str:
        name = f"numbers_{'_'.join(map(str, numbers))}"
        tensors[name] = T.constant(np.int32(numbers))
        return name

    def _parts(self, tensors: dict[str, T]) -> Iterator[Any]:
        """Queries and keys, turned, and values."""
        heads, angles = self.share * GROUPS, (1, 1, SIZE // 2)
        width = (self.share + 2) * SIZE
        yield (
            Op.FULLY_CONNECTED,
            ["token", "w"],
            "made",
            (1, 1, width * GROUPS),
            (FullyConnectedOptions(keep_num_dims=True)),
        )
        whole = (1, 1, GROUPS, width)
        yield Op.RESHAPE, ["made", whole], "grouped", whole, None
        begin = 0
        for name, count in (("q", self.share), ("nk", 1), ("nv", 1)):
            shape = (1, 1, GROUPS, count * SIZE)
            yield Op.SLICE, ["grouped", (0, 0, 0, begin), shape], f"{name}0", shape, None
            begin += count * SIZE
        yield Op.RESHAPE, ["x", (1, 1, 1)], "column", (1, 1, 1), None
        yield Op.CAST, ["column"], "real", (1, 1, 1), None
        for name, count in (("q", heads), ("nk", GROUPS)):
            factors = "others" if self.angles and name == "nk" else "factors"
            yield Op.MUL, ["real", factors], f"{name}a", angles, MulOptions()
            yield Op.COS, [f"{name}a"], f"{name}c", angles, None
            yield Op.SIN, [f"{name}a"], f"{name}s", angles, None
            yield from self._turned(name, (1, count, 1, SIZE))

    @staticmethod
    def _turned(name: str, shape: tuple[int, ...]) -> Iterator[Any]:
        low, half = (*shape[:-1], SIZE // 2), SIZE // 2
        join = ConcatenationOptions(axis=3)
        yield Op.RESHAPE, [f"{name}0", shape], f"{name}1", shape, None
        yield Op.SLICE, [f"{name}1", (0, 0, 0, 0), low], f"{name}2", low, None
        yield Op.SLICE, [f"{name}1", (0, 0, 0, half), low], f"{name}3", low, None
        for made, source, angle in (
            ("4", "2", "c"),
            ("5", "3", "s"),
            ("6", "3", "c"),
            ("7", "2", "s"),
        ):
            yield Op.MUL, [name + source, name + angle], name + made, low, MulOptions()
        yield Op.SUB, [f"{name}4", f"{name}5"], f"{name}8", low, SubOptions()
        yield Op.ADD, [f"{name}6", f"{name}7"], f"{name}9", low, AddOptions()
        yield Op.CONCATENATION, [f"{name}8", f"{name}9"], f"{name}t", shape, join

    @staticmethod
    def _written() -> Iterator[Any]:
        """Caches with the row of the token."""
        row, cache = (1, 1, GROUPS, SIZE), (1, TOKENS, GROUPS, SIZE)
        yield Op.RESHAPE, ["nkt", row], "nk_row", row, None
        yield Op.RESHAPE, ["x", "none"], "number", (), None
        yield Op.RESHAPE, ["zero", "none"], "z", (), None
        yield Op.PACK, ["z", "number", "z", "z"], "at", (4,), PackOptions(values_count=4)
        yield Op.DYNAMIC_UPDATE_SLICE, ["k", "nk_row", "at"], "k_out", cache, None
        yield Op.DYNAMIC_UPDATE_SLICE, ["v", "nv0", "at"], "v_out", cache, None

    def _weighed(self, tensors: dict[str, T]) -> Iterator[Any]:
        """Values weighed by queries and keys."""
        heads, turned = self.share * GROUPS, (1, GROUPS, TOKENS, SIZE)
        query, scores = (heads, 1, SIZE), (heads, 1, TOKENS)
        for name in "kv":
            shapes = (*turned[:2], 1, *turned[2:]), (*turned[:2], self.share, *turned[2:])
            yield Op.TRANSPOSE, [f"{name}_out", (0, 2, 1, 3)], f"{name}1", turned, None
            yield Op.RESHAPE, [f"{name}1", shapes[0]], f"{name}2", shapes[0], None
            yield Op.BROADCAST_TO, [f"{name}2", shapes[1]], f"{name}3", shapes[1], None
            whole = (heads, TOKENS, SIZE)
            yield Op.RESHAPE, [f"{name}3", whole], f"{name}4", whole, None
        yield Op.RESHAPE, ["qt", query], "query", query, None
        yield Op.MUL, ["query", "scale"], "scaled", query, MulOptions()
        adjoint = BatchMatMulOptions(adj_y=True)
        yield Op.BATCH_MATMUL, ["scaled", "k4"], "scores", scores, adjoint
        yield Op.ADD, ["scores", "result"], "masked", scores, AddOptions()
        yield Op.SOFTMAX, ["masked"], "weights", scores, SoftmaxOptions(beta=1.0)
        yield Op.BATCH_MATMUL, ["weights", "v4"], "y", query, BatchMatMulOptions()


def inputs(content: bytes, position: int) -> list[Array]:
    rng = np.random.default_rng(SEED)
    return [
        np.int32([position])
        if each["dtype"] is np.int32
        else rng.normal(0, 1, each["shape"]).astype(np.float32)
        for each in Interpreter(model_content=content).get_input_details()
    ]


@contextmanager
def as_nodes_stand() -> Iterator[None]:
    """Without what is tested."""
    with patch.object(parts, "_take_token", lambda *_: None):
        yield


def check(content: bytes, positions: Sequence[int] = (0, 1, 17, TOKENS - 1, -1, -TOKENS)) -> None:
    """The numbers of the same nodes where they stood, and of LiteRT."""
    print(f"seed {SEED}")
    for position in positions:
        given = inputs(content, position)
        got = answers(content, given)
        with as_nodes_stand():
            before = answers(content, given)
        for mine, same, plain, theirs in zip(
            got, before, unfused(content, given), litert(content, given), strict=True
        ):
            np.testing.assert_array_equal(mine, same)
            for other, far in ((plain, 4e-6), (theirs, 2e-2)):  # LiteRT rounds whole rows
                np.testing.assert_allclose(mine, other, rtol=0, atol=far * np.abs(other).max())


@pytest.mark.parametrize("share", [1, 3])
def test_heads_are_turned_by_one_node(share: int) -> None:
    content = Decoder(share).content()
    check(content)
    counts = optimised_nodes(content)
    assert counts == {
        "MatMulNBits": 1,
        "Reshape": 2,  # of the product, and of the result
        "RotaryEmbedding": 1,
        "Split": 1,
        "ScatterND": 2,
        "Slice": 2,
        "FusedMatMul": 2,
        "Softmax": 1,
        "Gather": 3,
    }


OTHERS = {
    "other angles": Decoder(angles=True),
    "a product that is given": Decoder(also="made"),
    "a part that is given": Decoder(also="nv0"),
    "keys that are read before": Decoder(also="nk0"),
    "heads that are read once more": Decoder(also="qt"),
}


@pytest.mark.parametrize("decoder", OTHERS.values(), ids=OTHERS)
def test_others_have_the_same_numbers(decoder: Decoder) -> None:
    check(decoder.content(), [3, 40])


def test_other_angles_have_nodes_of_their_own() -> None:
    assert optimised_nodes(Decoder(angles=True).content())["RotaryEmbedding"] == 2


@pytest.mark.parametrize("also", ["k_out", "number"])
def test_what_something_else_reads_has_its_shape(also: str) -> None:
    content = Decoder(also=also).content()
    check(content, [3, 40])


def test_plans_of_the_cache_have_these_shapes(tmp_path: Path) -> None:
    content = Decoder().content()
    given = inputs(content, 9)
    path = tmp_path / "decoder.tflite"
    path.write_bytes(content)
    results = []
    for _ in range(2):
        interpreter = Interpreter(path, cache=tmp_path / "plans")
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        results.append([interpreter.get_tensor(each["index"]) for each in outputs])
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
