"""TILE to BATCH_TO_SPACE_ND: LiteRT, ONNX Runtime and numpy agree exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.across.channels_first import check_channels_first
from tests.one_op import Case, T, check, ours
from tests.ops.moved import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    TYPES,
    UINT8,
    ints,
    moves,
    tensor,
)
from tests.ops.versions import check_versions, one_per_operator
from tflite_ort.schema import BridgeError, Op, ReverseSequenceOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

SEQUENCES = (FLOAT32, UINT8, INT16, INT32, INT64)
DIAGONALS = (FLOAT32, INT8, TensorType.UINT32, *SEQUENCES[1:])
# TFLite moves these by their size alone; ONNX Runtime takes no arrays of the first of the last two,
# and of the other one only some operators stand in graphs.
WIDE = tuple(TensorType[name] for name in ("FLOAT16", "FLOAT64", "UINT16", "UINT32", "UINT64"))
NOT_IN_ONNX = (TensorType.BFLOAT16,)
Shape = tuple[int, ...]


def sequence(seq_dim: int, batch_dim: int) -> ReverseSequenceOptions:
    return ReverseSequenceOptions(seq_dim=seq_dim, batch_dim=batch_dim)


def dilated(
    name: str, shape: Shape, steps: Sequence[int], types: Sequence[TensorType] = TYPES
) -> list[Case]:
    """DILATE with the code 1 between the elements."""
    result = tuple((n - 1) * step + 1 for n, step in zip(shape, steps, strict=True))
    return [
        case
        for type in types
        for case in moves(
            f"dilate-{name}",
            Op.DILATE,
            [shape],
            [result],
            after=[ints(*steps), replace(tensor((), type), data=np.array(1, NUMPY_DTYPE[type]))],
            types=[type],
        )
    ]


CASES = [
    *moves("tile", Op.TILE, [(2, 3)], [(4, 9)], after=[ints(2, 3)]),
    *moves("tile-wide", Op.TILE, [(2, 3)], [(4, 9)], after=[ints(2, 3)], types=WIDE),
    *moves("tile-4d", Op.TILE, [(1, 2, 3, 2)], [(2, 2, 9, 4)], after=[ints(2, 1, 3, 2)]),
    *moves("tile-int64", Op.TILE, [(3,)], [(6,)], after=[ints(2, dtype=np.int64)]),
    *moves("tile-none", Op.TILE, [(2, 3)], [(0, 3)], after=[ints(0, 1)], types=[FLOAT32]),
    *moves("tile-9d", Op.TILE, [(1,) * 9], [(2,) * 9], after=[ints(*[2] * 9)], types=[FLOAT32]),
    *moves(
        "broadcast_to", Op.BROADCAST_TO, [(3, 1)], [(2, 3, 4)], after=[ints(2, 3, 4)], version=2
    ),
    *moves(
        "broadcast_to-wide",
        Op.BROADCAST_TO,
        [(3, 1)],
        [(3, 4)],
        after=[ints(3, 4)],
        types=WIDE,
        version=2,
    ),
    *moves(
        "broadcast_to-int64",
        Op.BROADCAST_TO,
        [(1, 2, 1, 3)],
        [(2, 2, 4, 3)],
        after=[ints(2, 2, 4, 3, dtype=np.int64)],
        version=3,
    ),
    *moves(
        "broadcast_to-scalar",
        Op.BROADCAST_TO,
        [()],
        [(2, 3)],
        after=[ints(2, 3)],
        types=[FLOAT32],
        version=2,
    ),
    *[
        Case(
            f"broadcast_args-{name}",
            Op.BROADCAST_ARGS,
            [T((len(a),), type), T((len(b),), type)],
            [T((max(len(a), len(b)),), type)],
            feeds=[np.array(a, dtype), np.array(b, dtype)],
        )
        for name, a, b, type, dtype in (
            ("same", [2, 1, 3], [1, 5, 3], INT32, np.int32),
            ("longer", [4, 1, 3], [7, 1], INT64, np.int64),
            ("shorter", [3], [2, 1, 1], INT32, np.int32),
            ("zero", [0, 1], [1, 2], INT32, np.int32),
        )
    ],
    *moves("reverse", Op.REVERSE_V2, [(2, 3)], [(2, 3)], after=[ints(1)]),
    *moves("reverse-half", Op.REVERSE_V2, [(2, 3)], [(2, 3)], after=[ints(0)], types=WIDE[:1]),
    *moves("reverse-two", Op.REVERSE_V2, [(2, 3, 4, 2)], [(2, 3, 4, 2)], after=[ints(-2, 1)]),
    *moves("reverse-all", Op.REVERSE_V2, [(4,)], [(4,)], after=[ints(0)]),
    *moves(
        "reverse_sequence",
        Op.REVERSE_SEQUENCE,
        [(3, 4, 2)],
        [(3, 4, 2)],
        sequence(1, 0),
        after=[ints(4, 0, 2)],
        types=SEQUENCES,
    ),
    *moves(
        "reverse_sequence-time-first",
        Op.REVERSE_SEQUENCE,
        [(4, 3)],
        [(4, 3)],
        sequence(0, 1),
        after=[ints(1, 4, 3, dtype=np.int64)],
        types=SEQUENCES,
    ),
    *moves(
        "reverse_sequence-elsewhere",
        Op.REVERSE_SEQUENCE,
        [(2, 3, 4, 2)],
        [(2, 3, 4, 2)],
        sequence(1, 3),
        after=[ints(2, 3)],
        types=SEQUENCES,
    ),
    *moves("matrix_diag", Op.MATRIX_DIAG, [(2, 3)], [(2, 3, 3)], types=DIAGONALS),
    *moves("matrix_diag-1d", Op.MATRIX_DIAG, [(4,)], [(4, 4)], types=DIAGONALS),
    *moves(
        "matrix_set_diag",
        Op.MATRIX_SET_DIAG,
        [(2, 3, 4), (2, 3)],
        [(2, 3, 4)],
        types=DIAGONALS,
    ),
    *moves(
        "matrix_set_diag-high", Op.MATRIX_SET_DIAG, [(3, 2), (2,)], [(3, 2)], types=[FLOAT32, INT8]
    ),
    *dilated("1d", (4,), [3]),
    *dilated("some", (2, 3, 2), [1, 2, 1]),
    *dilated("ones", (1, 3, 1), [9, 2, 4]),
    *dilated("wide", (2, 3), [2, 2], WIDE),
    *dilated("all", (2, 3, 2, 3), [2, 1, 3, 2]),
    *dilated("none", (2, 3), [1, 1], types=[FLOAT32]),
    *moves(
        "space_to_batch",
        Op.SPACE_TO_BATCH_ND,
        [(2, 3, 4, 2)],
        [(8, 2, 3, 2)],
        after=[ints(2, 2), ints([0, 1], [1, 1])],
        types=(*TYPES, *WIDE),
    ),
    *moves(
        "space_to_batch-3d",
        Op.SPACE_TO_BATCH_ND,
        [(2, 5, 3)],
        [(6, 2, 3)],
        after=[ints(3), ints([1, 0])],
        types=(*TYPES, *WIDE),
    ),
    *moves(
        "batch_to_space",
        Op.BATCH_TO_SPACE_ND,
        [(8, 2, 3, 2)],
        [(2, 3, 4, 2)],
        after=[ints(2, 2), ints([0, 1], [1, 1])],
        types=(*TYPES, *WIDE),
    ),
    *moves(
        "batch_to_space-3d",
        Op.BATCH_TO_SPACE_ND,
        [(6, 2, 3)],
        [(2, 5, 3)],
        after=[ints(3), ints([1, 0])],
        types=(*TYPES, *WIDE),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("type", NOT_IN_ONNX, ids=lambda type: type.name)
def test_types_that_only_numpy_moves(type: TensorType) -> None:
    rows = (
        moves("tile", Op.TILE, [(2, 3)], [(4, 9)], after=[ints(2, 3)], types=NOT_IN_ONNX[:1]),
        moves(
            "blocks",
            Op.SPACE_TO_BATCH_ND,
            [(1, 3, 2)],
            [(2, 2, 2)],
            after=[ints(2), ints([0, 1])],
            types=[type],
        ),
    )
    for (case,) in rows:
        check(replace(case, runs_on="numpy"))


@st.composite
def _spread(draw: st.DrawFn) -> Case:
    """Any operator that needs no more than a shape and small integers."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    numbers = [draw(st.integers(1, 3)) for _ in shape]
    first = draw(st.integers(0, len(shape) - 1))
    axes = range(first, draw(st.integers(first + 1, len(shape))))
    signed = [axis - draw(st.sampled_from([0, len(shape)])) for axis in axes]
    thin = tuple(draw(st.sampled_from([1, size])) for size in shape[first:])
    tiled = tuple(size * number for size, number in zip(shape, numbers, strict=True))
    rows: tuple[tuple[Op, Any, Any, list[T]], ...] = (
        (Op.TILE, shape, tiled, [ints(*numbers)]),
        (Op.BROADCAST_TO, thin, shape, [ints(*shape)]),
        (Op.REVERSE_V2, shape, shape, [ints(*signed)]),
        (Op.MATRIX_DIAG, shape, (*shape, shape[-1]), []),
    )
    type = draw(st.sampled_from(DIAGONALS))
    op, before, result, after = draw(st.sampled_from(rows))
    version = 2 if op is Op.BROADCAST_TO else 1
    spread = moves("drawn", op, [before], [result], after=after, types=[type], version=version)
    dilation = dilated("drawn", shape, numbers, [type])
    return draw(st.sampled_from([*spread, *dilation]))


@st.composite
def _blocked(draw: st.DrawFn) -> Case:
    """SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND of 1 or 2 spatial dimensions."""
    count, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    batch = draw(st.integers(1, 2))
    blocks = [draw(st.integers(1, 3)) for _ in range(count)]
    inner = [draw(st.integers(1, 3)) for _ in range(count)]
    whole = [size * block for size, block in zip(inner, blocks, strict=True)]
    frame = []
    for size in whole:
        before = draw(st.integers(0, size - 1))
        frame.append([before, draw(st.integers(0, size - 1 - before))])
    image = (batch, *(size - sum(pair) for size, pair in zip(whole, frame, strict=True)), channels)
    stack = (batch * int(np.prod(blocks)), *inner, channels)
    to_batch = draw(st.booleans())
    return moves(
        "drawn",
        Op.SPACE_TO_BATCH_ND if to_batch else Op.BATCH_TO_SPACE_ND,
        [image if to_batch else stack],
        [stack if to_batch else image],
        after=[ints(*blocks), ints(*frame)],
        types=[draw(st.sampled_from(TYPES))],
    )[0]


@given(_spread(), st.booleans())
def test_drawn_spread(case: Case, channels_first: bool) -> None:
    check(case)
    if channels_first:
        check_channels_first(case)


@given(_blocked(), st.booleans())
def test_drawn_blocks(case: Case, channels_first: bool) -> None:
    check(case)
    if channels_first:
        check_channels_first(case)


@st.composite
def _sequences(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    time, batch = draw(st.permutations(range(len(shape))))[:2]
    lengths = [draw(st.integers(0, shape[time])) for _ in range(shape[batch])]
    type, computed = draw(st.sampled_from(SEQUENCES)), draw(st.booleans())
    after = [T((len(lengths),), INT32) if computed else ints(*lengths)]
    (case,) = moves(
        "drawn",
        Op.REVERSE_SEQUENCE,
        [shape],
        [shape],
        sequence(time, batch),
        after=after,
        types=[type],
    )
    if not computed:
        return case
    data = tensor(shape, type).random(np.random.default_rng(draw(st.integers(0, 99))))
    return replace(case, feeds=[data, np.array(lengths, np.int32)])


@given(_sequences())
def test_drawn_sequences(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


REFUSED = [
    (Op.TILE, [tensor((2, 3)), ints(2)], (4, 3), None, r"multiples \[2\] do not tile"),
    (Op.TILE, [tensor((2,)), ints(-1)], (2,), None, r"multiples \[-1\] do not tile"),
    (Op.BROADCAST_TO, [tensor((3,)), ints(2)], (2,), None, r"\(3,\) does not broadcast to \(2,\)"),
    (Op.BROADCAST_TO, [tensor((1, 3)), ints(3)], (3,), None, "does not broadcast"),
    (Op.REVERSE_V2, [tensor((2, 3, 4)), ints(0, 2)], (2, 3, 4), None, "not neighbours"),
    (Op.REVERSE_V2, [tensor((2, 3)), ints(2)], (2, 3), None, "2"),
    (Op.REVERSE_SEQUENCE, [tensor((2, 3)), ints(1, 4)], (2, 3), sequence(1, 0), "of 3"),
    (Op.REVERSE_SEQUENCE, [tensor((2, 3)), ints(1)], (2, 3), sequence(1, 0), "for 2 sequences"),
    (Op.REVERSE_SEQUENCE, [tensor((2, 3)), ints(1, 1)], (2, 3), sequence(0, 0), "axis 0"),
    (Op.REVERSE_SEQUENCE, [tensor((2, 3), INT8), ints(1, 1)], (2, 3), sequence(1, 0), "INT8"),
    (Op.MATRIX_SET_DIAG, [tensor((2, 3)), tensor((3,))], (2, 3), None, "not the diagonal"),
    (Op.DILATE, [tensor((2,)), ints(0), ints(1)], (2,), None, "padding of INT32"),
    (Op.SPACE_TO_BATCH_ND, [tensor((1, 3, 2)), ints(2), ints([0, 0])], (2, 1, 2), None, "tile"),
    (Op.BATCH_TO_SPACE_ND, [tensor((3, 3, 2)), ints(2), ints([0, 0])], (2, 6, 2), None, "2 blocks"),
]


@pytest.mark.parametrize(
    ("op", "inputs", "shape", "options", "message"), REFUSED, ids=lambda value: str(value)[:20]
)
def test_what_does_not_fit_is_refused(
    op: Op, inputs: list[T], shape: Shape, options: Any, message: str
) -> None:
    version = 2 if op is Op.BROADCAST_TO else 1
    case = Case("refused", op, inputs, [tensor(shape, inputs[0].type)], options, version)
    for providers in (None, []):
        with pytest.raises(BridgeError, match=message):
            ours(case.model(), case.arrays(np.random.default_rng(0)), providers)


@pytest.mark.parametrize("providers", [None, []])
def test_shapes_that_do_not_broadcast_are_refused(providers: list[Any] | None) -> None:
    shapes = [np.array([2, 3], np.int32), np.array([2, 4], np.int32)]
    case = Case("refused", Op.BROADCAST_ARGS, [T((2,), INT32)] * 2, [T((2,), INT32)], feeds=shapes)
    with pytest.raises(BridgeError):
        ours(case.model(), shapes, providers)


@pytest.mark.parametrize("providers", [None, []])
def test_a_sequence_longer_than_its_axis_is_refused(providers: list[Any] | None) -> None:
    """ONNX Runtime looks at the lengths too."""
    inputs, result = [tensor((2, 3)), T((2,), INT32)], [tensor((2, 3))]
    feeds = [np.zeros((2, 3), np.float32), np.array([1, 4], np.int32)]
    case = Case("refused", Op.REVERSE_SEQUENCE, inputs, result, sequence(1, 0), feeds=feeds)
    with pytest.raises(BridgeError, match="4"):
        ours(case.model(), feeds, providers)


def test_shapes_computed_at_run_time() -> None:
    """The shape follows from data."""
    inputs = [tensor((1, 3)), T((2,), INT32)]
    feeds = [np.arange(3, dtype=np.float32).reshape(1, 3), np.array([2, 3], np.int32)]
    for op, version, shape in ((Op.TILE, 1, (2, 9)), (Op.BROADCAST_TO, 2, (2, 3))):
        case = Case("computed", op, inputs, [tensor(shape)], None, version)
        check(replace(case, feeds=feeds))
