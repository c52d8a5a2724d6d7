"""Axes and lists that are inputs, each model run with several values of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from tests.one_op import Array, T, assert_close, one_op_model, ours
from tests.oracle import litert
from tflite_ort import Interpreter
from tflite_ort.schema import (
    ArgMaxOptions,
    ArgMinOptions,
    BridgeError,
    Op,
    ReverseV2Options,
    SplitOptions,
    SplitVOptions,
    TensorType,
)

INT32 = TensorType.INT32
SHAPE = (2, 6, 3)
X = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
DATA = T(SHAPE)
SCALAR = T((1,), INT32)
MODELS = {
    Op.ARG_MAX: one_op_model(
        Op.ARG_MAX, [DATA, SCALAR], [T((2, 3), INT32)], ArgMaxOptions(output_type=INT32)
    ),
    Op.ARG_MIN: one_op_model(
        Op.ARG_MIN, [DATA, SCALAR], [T((2, 3), INT32)], ArgMinOptions(output_type=INT32)
    ),
    Op.SPLIT: one_op_model(
        Op.SPLIT, [SCALAR, DATA], [T((2, 2, 3))] * 3, SplitOptions(num_splits=3)
    ),
    Op.SPLIT_V: one_op_model(
        Op.SPLIT_V, [DATA, T((3,), INT32), SCALAR], [T((2, 2, 3))] * 3, SplitVOptions(num_splits=3)
    ),
    Op.REVERSE_V2: one_op_model(Op.REVERSE_V2, [DATA, T((2,), INT32)], [DATA], ReverseV2Options()),
    Op.DILATE: one_op_model(Op.DILATE, [DATA, T((3,), INT32), T.constant(np.float32(-1))], [DATA]),
}


def list_of(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


RUNS: list[tuple[Op, Sequence[Array]]] = [
    *[(op, (X, list_of(axis))) for op in (Op.ARG_MAX, Op.ARG_MIN) for axis in range(-3, 3)],
    *[(Op.SPLIT, (list_of(axis), X)) for axis in (1, 2, -1, -2)],
    *[
        (Op.SPLIT_V, (X, list_of(*sizes), list_of(axis)))
        for sizes, axis in (
            ((3, 2, 1), 1),
            ((1, -1, 4), -2),
            ((-1, 4, 1), 1),
            ((1, 1, -1), 2),
        )
    ],
    *[(Op.REVERSE_V2, (X, list_of(*axes))) for axes in ((0, 1), (2, 1), (-1, 1), (-3, -2))],
    *[(Op.DILATE, (X, list_of(*steps))) for steps in permutations((1, 2, 4))],
]


@pytest.mark.parametrize(("op", "feeds"), RUNS, ids=lambda run: getattr(run, "name", ""))
def test_against_litert(op: Op, feeds: Sequence[Array]) -> None:
    wanted = litert(MODELS[op], feeds, "reference")
    for providers, place in ((None, "ort"), ([], "numpy")):
        got, runners = ours(MODELS[op], feeds, providers)
        assert runners == {place}
        for mine, want in zip(got, wanted, strict=True):
            assert_close(mine, want, 0, 0, f"{op.name} in {place}")


@pytest.mark.parametrize(
    ("op", "feeds"),
    [
        (Op.ARG_MAX, (X, list_of(3))),
        (Op.ARG_MIN, (X, list_of(-4))),
        (Op.SPLIT, (list_of(0), X)),
        (Op.SPLIT, (list_of(5), X)),
        (Op.SPLIT_V, (X, list_of(3, 2, 2), list_of(1))),
        (Op.SPLIT_V, (X, list_of(-1, -1, 6), list_of(1))),
        (Op.SPLIT_V, (X, list_of(5, 4, -3), list_of(1))),
        (Op.SPLIT_V, (X, list_of(7, -1, 0), list_of(1))),
        (Op.REVERSE_V2, (X, list_of(0, 2))),
        (Op.REVERSE_V2, (X, list_of(1, 1))),
        (Op.REVERSE_V2, (X, list_of(1, 3))),
        (Op.DILATE, (X, list_of(1, 0, 1))),
    ],
    ids=lambda run: getattr(run, "name", ""),
)
def test_what_does_not_fit_is_refused(op: Op, feeds: Sequence[Array]) -> None:
    for providers in (None, []):
        with pytest.raises(BridgeError, match=f"{op.name}_0"):
            ours(MODELS[op], feeds, providers)


def test_one_interpreter_takes_one_axis_after_the_other() -> None:
    interpreter = Interpreter(model_content=MODELS[Op.ARG_MAX])
    interpreter.allocate_tensors()
    data, axis = (detail["index"] for detail in interpreter.get_input_details())
    (result,) = (detail["index"] for detail in interpreter.get_output_details())
    interpreter.set_tensor(data, X)
    for along in range(3):
        interpreter.set_tensor(axis, list_of(along))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(result), X.argmax(along))
