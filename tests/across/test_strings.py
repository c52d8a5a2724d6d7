"""Tensors of strings: moved and compared by numpy kernels as bytes, in exported files as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import Op, TensorType, TileOptions

STRING, BOOL = TensorType.STRING, TensorType.BOOL
WORDS = np.array([["one", "two", "three"], ["", "zwei", "drei"]], np.object_)


def ints(values: Any) -> T:
    return T.constant(np.array(values, np.int32))


@dataclass(frozen=True)
class Moved:
    """An operator on WORDS [2, 3] and constants."""

    op: Op
    more: list[T]
    result: T
    options: Any = None


CASES = [
    Moved(Op.RESHAPE, [ints([3, 2])], T((3, 2), STRING)),
    Moved(Op.GATHER_ND, [ints([[1, 2], [0, 1]])], T((2,), STRING)),
    Moved(Op.SLICE, [ints([0, 1]), ints([2, 2])], T((2, 2), STRING)),
    Moved(Op.TILE, [ints([1, 2])], T((2, 6), STRING), TileOptions()),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op.name)
def test_words_are_moved(case: Moved) -> None:
    model = one_op_model(case.op, [T((2, 3), STRING), *case.more], [case.result], case.options)
    as_bytes = np.char.encode(WORDS.astype(str)).astype(np.object_)
    (want,) = litert(model, [as_bytes])
    (got,), runners = ours(model, [as_bytes])
    assert (got.tolist(), runners) == (want.tolist(), {"numpy"})
    (text,) = exported(model, [WORDS])
    assert np.char.encode(text.astype(str)).tolist() == want.tolist()


@pytest.mark.parametrize("op", [Op.EQUAL, Op.NOT_EQUAL])
def test_words_are_compared(op: Op) -> None:
    model = one_op_model(op, [T((2, 3), STRING), T((2, 3), STRING)], [T((2, 3), BOOL)])
    feeds = [WORDS, WORDS[::-1]]
    (want,) = litert(model, [np.char.encode(feed.astype(str)) for feed in feeds])
    np.testing.assert_array_equal(exported(model, feeds)[0], want)
    assert want.any() == (op is Op.NOT_EQUAL)


def test_any_bytes_pass_through_the_interpreter() -> None:
    """ONNX Runtime hands out UTF-8 only."""
    words = np.array([b"\xff\xfe", b"a\0b"], np.object_)
    model = one_op_model(Op.RESHAPE, [T((2,), STRING), ints([2, 1])], [T((2, 1), STRING)])
    (got,), _ = ours(model, [words])
    assert got.tolist() == [[b"\xff\xfe"], [b"a\0b"]]
