"""Complex numbers that are moved: in ONNX, pairs of reals with one more dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import (
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    StridedSliceOptions,
    TensorType,
)

REFLECT, SYMMETRIC = map(MirrorPadOptions, MirrorPadMode)
SHRINK, NEW = StridedSliceOptions(shrink_axis_mask=2), StridedSliceOptions(new_axis_mask=2)
# A mask has bits for entries that are not there.
MORE = StridedSliceOptions(shrink_axis_mask=252, begin_mask=252)
Shape = tuple[int, ...]
# What is told of the operator: the input, lists, the result and options.
ROWS: dict[str, tuple[Op, Shape, list[Any], Shape, Any]] = {
    "slice": (Op.SLICE, (2, 3, 4), [[0, 1, 2], [2, -1, 1]], (2, 2, 1), None),
    "slice by one list": (Op.SLICE, (3, 3), [[1, 1], [1, 1]], (1, 1), None),
    "steps": (
        Op.STRIDED_SLICE,
        (2, 5, 4),
        [[0, 4, 1], [2, 0, 4], [1, -2, 1]],
        (2, 2, 3),
        StridedSliceOptions(),
    ),
    "first axis": (Op.STRIDED_SLICE, (3, 4, 5), [[0], [2], [1]], (2, 4, 5), StridedSliceOptions()),
    "shrunk axis": (
        Op.STRIDED_SLICE,
        (2, 5, 4),
        [[0, -1, 1], [2, 0, 4], [1, 1, 2]],
        (2, 2),
        SHRINK,
    ),
    "new axis": (Op.STRIDED_SLICE, (2, 5), [[0, 0, 1], [2, 0, 4], [1, 1, 2]], (2, 1, 2), NEW),
    "longer masks": (Op.STRIDED_SLICE, (3, 4), [[0, 1], [2, 3], [1, 1]], (2, 2), MORE),
    "transpose": (Op.TRANSPOSE, (2, 3, 4), [[2, 0, 1]], (4, 2, 3), None),
    "transpose of four axes": (Op.TRANSPOSE, (2, 3, 4, 5), [[0, 3, 1, 2]], (2, 5, 3, 4), None),
    "transpose from behind": (Op.TRANSPOSE, (2, 3), [[-1, 0]], (3, 2), None),
    "tile": (Op.TILE, (2, 3), [[2, 2]], (4, 6), None),
    "broadcast": (Op.BROADCAST_TO, (3, 1), [[2, 3, 4]], (2, 3, 4), None),
    "reflect": (Op.MIRROR_PAD, (3, 4), [[[1, 1], [2, 0]]], (5, 6), REFLECT),
    "symmetric": (Op.MIRROR_PAD, (3, 4), [[[1, 1], [2, 0]]], (5, 6), SYMMETRIC),
    "space to batch": (
        Op.SPACE_TO_BATCH_ND,
        (1, 4, 5, 3),
        [[2, 3], [[0, 0], [0, 1]]],
        (6, 2, 2, 3),
        None,
    ),
    "space to batch of three axes": (
        Op.SPACE_TO_BATCH_ND,
        (2, 4, 3),
        [[2], [[1, 1]]],
        (4, 3, 3),
        None,
    ),
    "batch to space": (
        Op.BATCH_TO_SPACE_ND,
        (6, 2, 2, 3),
        [[2, 3], [[0, 0], [0, 1]]],
        (1, 4, 5, 3),
        None,
    ),
}
VERSIONS = {Op.BROADCAST_TO: 2}


def numbers(shape: Shape, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


def complexes(*shape: int) -> T:
    return T(shape, TensorType.COMPLEX64)


def assert_moved(model: bytes, feeds: list[Any]) -> None:
    (want,) = litert(model, feeds)
    for providers, place in ((None, "ort"), ([], "numpy")):
        (got,), places = ours(model, feeds, providers)
        assert places == {place}
        np.testing.assert_array_equal(got, want)
    pairs = [np.stack([x.real, x.imag], axis=-1) if np.iscomplexobj(x) else x for x in feeds]
    np.testing.assert_array_equal(exported(model, pairs)[0], np.stack([want.real, want.imag], -1))


@pytest.mark.parametrize("name", ROWS)
def test_movement(name: str) -> None:
    op, shape, lists, result, options = ROWS[name]
    inputs = [complexes(*shape), *(T.constant(np.array(each, np.int32)) for each in lists)]
    version = VERSIONS.get(op, 1)
    model = one_op_model(op, inputs, [complexes(*result)], options, version)
    assert_moved(model, [numbers(shape)])


def test_fill() -> None:
    inputs = [T.constant(np.array([2, 3], np.int32)), complexes()]
    assert_moved(one_op_model(Op.FILL, inputs, [complexes(2, 3)]), [numbers(())])


def test_an_update_of_a_slice() -> None:
    start = T.constant(np.array([1, 9], np.int32))
    inputs = [complexes(4, 5), complexes(2, 2), start]
    model = one_op_model(Op.DYNAMIC_UPDATE_SLICE, inputs, [complexes(4, 5)])
    assert_moved(model, [numbers((4, 5)), numbers((2, 2), 1)])


@pytest.mark.parametrize("op", [Op.SLICE, Op.TILE])
def test_computed_lists_are_left_to_numpy(op: Op) -> None:
    """Such a list would have to be made longer in the graph."""
    given = [T((2,), TensorType.INT32)] * (2 if op is Op.SLICE else 1)
    model = one_op_model(op, [complexes(3, 3), *given], [complexes(1, 1)])
    feeds = [numbers((3, 3)), *[np.array([1, 1], np.int32)] * len(given)]
    (got,), places = ours(model, feeds)
    assert places == {"numpy"}
    np.testing.assert_array_equal(got, litert(model, feeds)[0])


@pytest.mark.parametrize(
    ("op", "condition", "x", "y"),
    [
        (Op.SELECT, (2, 3), (2, 3), (2, 3)),
        (Op.SELECT, (2,), (2, 3), (2, 3)),
        (Op.SELECT, (), (2, 3), (2, 3)),
        (Op.SELECT_V2, (2, 1), (3,), (2, 3)),
        (Op.SELECT_V2, (2, 3), (), (1,)),
        (Op.SELECT_V2, (), (4, 1), (3,)),
    ],
)
def test_selection(op: Op, condition: Shape, x: Shape, y: Shape) -> None:
    inputs = [T(condition, TensorType.BOOL), complexes(*x), complexes(*y)]
    result = np.broadcast_shapes(x if len(condition) < 2 else condition, x, y)
    model = one_op_model(op, inputs, [complexes(*result)])
    for seed in range(2):
        chosen = np.random.default_rng(seed).random(condition) < 0.5
        assert_moved(model, [np.asarray(chosen), numbers(x, 1), numbers(y, 2)])
