"""The StableHLO operators that LiteRT has kernels for, but for those with a body, against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnxruntime import InferenceSession

from tests.one_op import Case, T, check, one_op_model, ours
from tests.ops.versions import check_versions
from tests.oracle import litert
from tflite_ort import KernelError, ModelError, export_onnx
from tflite_ort.fallback_kernels import kernel
from tflite_ort.schema import (
    Op,
    RngAlgorithm,
    StablehloGatherOptions,
    StablehloPadOptions,
    StablehloRngBitGeneratorOptions,
    TensorType,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Shape = tuple[int, ...]
_T = TensorType

FLOATS = [_T.FLOAT32, _T.FLOAT64, _T.FLOAT16]
SIGNED = [_T.INT8, _T.INT16, _T.INT32, _T.INT64]
UNSIGNED = [_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64]
EXTREMES = [Op.STABLEHLO_MAXIMUM, Op.STABLEHLO_MINIMUM]
NUMBERS = [Op.STABLEHLO_ADD, Op.STABLEHLO_MULTIPLY, *EXTREMES]
# LiteRT's reference resolver lacks these.
OPTIMIZED_ONLY = {Op.STABLEHLO_AND, Op.STABLEHLO_SHIFT_LEFT}
TYPED = [
    *[(op, type) for op in NUMBERS for type in (*FLOATS, *SIGNED, *UNSIGNED, _T.BOOL)],
    *[(Op.STABLEHLO_AND, type) for type in (*SIGNED, *UNSIGNED, _T.BOOL)],
    *[(Op.STABLEHLO_SHIFT_LEFT, type) for type in SIGNED[:3]],
]


def whole_range(shape: Shape, type: TensorType, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Any integer, so that sums and products overflow; small real numbers."""
    dtype = NUMPY_DTYPE[type]
    if dtype.kind not in "iu":
        return T(shape, type).random(rng)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def elementwise(op: Op, type: TensorType, shape: Shape = (3, 4, 5), seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    feeds = [whole_range(shape, type, rng) for _ in range(2)]
    if op == Op.STABLEHLO_SHIFT_LEFT:
        feeds[1] = rng.integers(0, 32, shape).astype(NUMPY_DTYPE[type])
    both = T(shape, type)
    return Case(
        f"{op.name}-{type.name}-{shape}",
        op,
        [both, both],
        [both],
        quanta=0,
        rtol=1e-6,
        reference="optimized" if op in OPTIMIZED_ONLY else "reference",
        feeds=feeds,
    )


@pytest.mark.parametrize(("op", "type"), TYPED)
def test_elementwise(op: Op, type: TensorType) -> None:
    check(elementwise(op, type))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 1, 2, 1, 2, 1)])
@pytest.mark.parametrize("op", dict(TYPED))
def test_elementwise_shape(op: Op, shape: Shape) -> None:
    check(elementwise(op, _T.INT32, shape))


@pytest.mark.parametrize("op", [Op.STABLEHLO_MAXIMUM, Op.STABLEHLO_MINIMUM])
def test_the_left_operand_stays_where_either_is_not_a_number(op: Op) -> None:
    feeds = [np.array([np.nan, 1, -0.0, 0.0], np.float32), np.array([1, np.nan, 0.0, -0.0], "f")]
    check(replace(elementwise(op, _T.FLOAT32, (4,)), feeds=feeds))


@pytest.mark.parametrize("op", [*NUMBERS, Op.STABLEHLO_AND])
def test_nothing_is_broadcast(op: Op) -> None:
    model = one_op_model(op, [T((2, 3), _T.INT32), T((1, 3), _T.INT32)], [T((2, 3), _T.INT32)])
    feeds = [np.zeros((2, 3), np.int32), np.zeros((1, 3), np.int32)]
    with pytest.raises(ModelError, match=r"shapes \(2, 3\) and \(1, 3\) differ"):
        ours(model, feeds)


def test_reals_have_no_bits() -> None:
    both = T((2,))
    model = one_op_model(Op.STABLEHLO_AND, [both, both], [both])
    with pytest.raises(KernelError, match="float32 with float32 is not implemented"):
        ours(model, [np.zeros(2, np.float32)] * 2)


@pytest.mark.parametrize("op", dict(TYPED))
def test_versions(op: Op) -> None:
    check_versions(elementwise(op, _T.INT32))


@given(st.data())
def test_drawn_elementwise(data: st.DataObject) -> None:
    op, type = data.draw(st.sampled_from(TYPED))
    shape = data.draw(st.lists(st.integers(1, 4), max_size=5))
    check(elementwise(op, type, tuple(shape), data.draw(st.integers(0, 2**31))))


# STABLEHLO_PAD ----------------------------------------------------------------------------------


def pad(
    shape: Shape, low: Shape, high: Shape, interior: Shape, type: TensorType = _T.FLOAT32
) -> Case:
    sizes = [
        n + max(0, n - 1) * i + a + b for n, a, b, i in zip(shape, low, high, interior, strict=True)
    ]
    result = tuple(sizes) if min(sizes) > 0 else (0,) * len(sizes)
    value = T.constant(np.array(1, NUMPY_DTYPE[type]), type)
    return Case(
        f"{shape}-{low}-{high}-{interior}-{type.name}",
        Op.STABLEHLO_PAD,
        [T(shape, type), value],
        [T(result, type)],
        StablehloPadOptions(
            edge_padding_low=low, edge_padding_high=high, interior_padding=interior
        ),
        quanta=0,
        rtol=0,
    )


PADS = [
    ((3, 4), (1, 2), (0, 3), (0, 0)),
    ((3, 4), (0, 0), (0, 0), (2, 1)),
    ((3, 4), (2, 1), (1, 0), (1, 3)),
    ((5, 4), (-1, -2), (0, -1), (0, 0)),
    ((3, 4), (-2, 1), (-1, -3), (1, 2)),
    ((3, 4), (-5, 0), (4, 0), (0, 0)),
    ((3, 1, 2), (-1, 2, 1), (1, -1, -1), (3, 4, 1)),
    ((3, 4), (-2, 0), (-1, 0), (0, 0)),
    ((7,), (-3,), (2,), (5,)),
]


@pytest.mark.parametrize("row", PADS)
def test_pad(row: tuple[Shape, Shape, Shape, Shape]) -> None:
    check(pad(*row))


@pytest.mark.parametrize("type", [*FLOATS, *SIGNED, *UNSIGNED, _T.BOOL])
def test_pad_of_type(type: TensorType) -> None:
    check(pad(*PADS[4], type))


def test_value_computed_at_run_time() -> None:
    case = pad(*PADS[2])
    check(replace(case, inputs=[case.inputs[0], T(())]))


def test_version_of_pad() -> None:
    check_versions(pad(*PADS[0]))


def test_negative_interior_padding_is_refused() -> None:
    model = replace(pad((4,), (0,), (0,), (-1,)), outputs=[T((1,))]).model()
    with pytest.raises(ModelError, match=r"interior padding \(-1,\) is negative"):
        ours(model, [np.zeros(4, np.float32)])


@given(st.data())
def test_drawn_pads(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    lists = [
        tuple(data.draw(st.lists(st.integers(*ends), min_size=rank, max_size=rank)))
        for ends in ((1, 5), (-3, 3), (-3, 3), (0, 3))
    ]
    check(pad(*lists), seed=data.draw(st.integers(0, 2**31)))


# STABLEHLO_GATHER -------------------------------------------------------------------------------


def gather(
    shape: Shape,
    starts: npt.ArrayLike,
    sizes: Shape,
    offsets: Shape,
    collapsed: Shape,
    mapped: Shape,
    vector: int,
    type: TensorType = _T.FLOAT32,
) -> Case:
    indices = np.asarray(starts, np.int32)
    kept = iter(size for axis, size in enumerate(sizes) if axis not in collapsed)
    batches = iter(size for axis, size in enumerate(indices.shape) if axis != vector)
    rank = len(offsets) + indices.ndim - (vector < indices.ndim)
    result = tuple(next(kept if axis in offsets else batches) for axis in range(rank))
    return Case(
        f"{shape}-{indices.shape}-{sizes}-{offsets}-{collapsed}-{mapped}-{vector}-{type.name}",
        Op.STABLEHLO_GATHER,
        [T(shape, type), T.constant(indices)],
        [T(result, type)],
        StablehloGatherOptions(
            offset_dims=offsets,
            collapsed_slice_dims=collapsed,
            start_index_map=mapped,
            index_vector_dim=vector,
            slice_sizes=sizes,
        ),
        quanta=0,
        rtol=0,
    )


GATHERS: dict[str, tuple[Any, ...]] = {
    "rows": ((5, 4), [[3], [0], [9]], (1, 4), (1,), (0,), (0,), 1),
    "rows before": ((5, 4), [[3], [0], [1]], (1, 4), (0,), (0,), (0,), 1),
    "columns": ((5, 4), [[3], [0]], (5, 1), (0,), (1,), (1,), 1),
    "blocks": ((5, 4), [[3, 2], [0, 0], [4, 4]], (2, 3), (1, 2), (), (0, 1), 1),
    "blocks, axes swapped": ((5, 4), [[3, 2], [0, 0]], (2, 3), (0, 2), (), (1, 0), 1),
    "vector first": ((5, 4), [[3, 0, 9], [2, 1, 0]], (2, 1), (1,), (1,), (0, 1), 0),
    "elements": ((5, 4), [[3, 2], [0, 1]], (1, 1), (), (0, 1), (0, 1), 1),
    "middle axis": ((3, 4, 2), [[[1], [3]], [[0], [2]]], (2, 2, 2), (1, 2, 4), (), (1,), 2),
    "one index": ((3, 4, 2), [1, 2], (1, 2, 2), (0, 1), (0,), (0, 1), 0),
    "whole": ((3, 4), [[0], [2]], (3, 4), (1, 2), (), (0,), 1),
}


@pytest.mark.parametrize("row", GATHERS)
def test_gather(row: str) -> None:
    check(gather(*GATHERS[row]))


@pytest.mark.parametrize("type", [*FLOATS, *SIGNED, *UNSIGNED, _T.BOOL])
def test_gather_of_type(type: TensorType) -> None:
    check(gather(*GATHERS["blocks"], type))


@pytest.mark.parametrize("type", [_T.INT32, _T.INT64])
def test_starts_computed_at_run_time(type: TensorType) -> None:
    case = gather(*GATHERS["middle axis"])
    operand, starts = case.inputs
    assert operand is not None and starts is not None and starts.data is not None
    feeds = [operand.random(np.random.default_rng(0)), starts.data.astype(NUMPY_DTYPE[type])]
    check(replace(case, inputs=[operand, T(starts.shape, type)], feeds=feeds))


def test_an_index_can_be_a_scalar() -> None:
    """LiteRT reads beyond the shape of such indices."""
    cases = (gather((5, 4), starts, (1, 4), (1,), (0,), (0,), 1) for starts in ([[3], [9]], [3, 9]))
    feeds = [np.arange(20, dtype=np.float32).reshape(5, 4)]
    for case in cases:
        for providers in (None, []):
            (got,), _ = ours(case.model(), feeds, providers)
            assert np.array_equal(got, feeds[0][[3, 4]])


def test_version_of_gather() -> None:
    check_versions(gather(*GATHERS["rows"]))


def test_slices_beyond_the_operand_are_refused() -> None:
    model = gather((5, 4), [[3]], (1, 5), (1,), (0,), (0,), 1).model()
    with pytest.raises(ModelError, match=r"slices of \(1, 5\) .* do not fit shape \(5, 4\)"):
        ours(model, [np.zeros((5, 4), np.float32)])


@given(st.data())
def test_drawn_gathers(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axes = range(len(shape))
    sizes = [data.draw(st.integers(1, size)) for size in shape]
    collapsed = sorted(data.draw(st.sets(st.sampled_from(axes))))
    for axis in collapsed:
        sizes[axis] = 1
    mapped = data.draw(st.permutations(axes))[: data.draw(st.integers(1, len(shape)))]
    batches = data.draw(st.lists(st.integers(1, 3), max_size=2))
    vector = data.draw(st.integers(0, len(batches)))  # there is always an axis for it
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    starts = rng.integers(-2, 7, (*batches[:vector], len(mapped), *batches[vector:]))
    rank = len(batches) + len(shape) - len(collapsed)
    offsets = sorted(data.draw(st.permutations(range(rank)))[: len(shape) - len(collapsed)])
    check(gather(shape, starts, (*sizes,), (*offsets,), (*collapsed,), (*mapped,), vector))


# STABLEHLO_RNG_BIT_GENERATOR --------------------------------------------------------------------

STATES: list[tuple[RngAlgorithm, list[int]]] = [
    (RngAlgorithm.PHILOX, [7, 9]),
    (RngAlgorithm.DEFAULT, [2**63 + 1, 2**32 - 1]),
    (RngAlgorithm.PHILOX, [2**40, 2**64 - 1, 2**50]),
    (RngAlgorithm.THREEFRY, [7, 9]),
    (RngAlgorithm.THREEFRY, [2**63 + 5, 2**64 - 2]),
]


@pytest.mark.parametrize("type", [_T.INT32, _T.UINT32, _T.INT64, _T.UINT64])
@pytest.mark.parametrize("shape", [(7,), (3, 5), ()])
@pytest.mark.parametrize(("algorithm", "state"), STATES)
def test_random_bits(
    algorithm: RngAlgorithm, state: list[int], shape: Shape, type: TensorType
) -> None:
    states = T((len(state),), _T.UINT64)
    options = StablehloRngBitGeneratorOptions(algorithm=algorithm)
    outputs = [states, T(shape, type)]
    model = one_op_model(Op.STABLEHLO_RNG_BIT_GENERATOR, [states], outputs, options)
    feeds = [np.array(state, np.uint64)]
    session = InferenceSession(export_onnx(model).SerializeToString())
    results = {
        "ort": ours(model, feeds),
        "numpy": ours(model, feeds, providers=[]),
        "export": (session.run(None, {session.get_inputs()[0].name: feeds[0]}), {"export"}),
    }
    for name, (got, runners) in results.items():
        assert runners == {name}
        for want, mine in zip(litert(model, feeds), got, strict=True):
            assert mine.dtype == want.dtype
            assert np.array_equal(mine, want)


def test_a_state_of_another_size_is_refused() -> None:
    states = T((3,), _T.UINT64)
    options = StablehloRngBitGeneratorOptions(algorithm=RngAlgorithm.THREEFRY)
    model = one_op_model(
        Op.STABLEHLO_RNG_BIT_GENERATOR, [states], [states, T((1,), _T.INT32)], options
    )
    with pytest.raises(KernelError, match=r"state is uint64 \(3,\)"):
        ours(model, [np.zeros(3, np.uint64)])


def test_version_of_random_bits() -> None:
    assert kernel.versions(Op.STABLEHLO_RNG_BIT_GENERATOR) == [1]
