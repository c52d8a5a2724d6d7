"""Tensors of more dimensions than ONNX Runtime and parts of numpy take: the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import T, one_op_model, ours
from tflite_ort import Interpreter
from tflite_ort.schema import (
    AddOptions,
    EmbeddingLookupSparseOptions,
    ModelBuilder,
    Op,
    StablehloScatterOptions,
    StridedSliceOptions,
    TensorType,
)
from tflite_ort.schema.file.budgets import MOST_DIMENSIONS

pytestmark = pytest.mark.usefixtures("unmeasured")

Array = npt.NDArray[Any]
I32 = TensorType.INT32
# Some operators need one dimension more.
RANKS = sorted({min(rank, MOST_DIMENSIONS - 1) for rank in (32, 33, 63)})


def wide(array: npt.ArrayLike, rank: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """`array` with dimensions of 1 at the end, `rank` in all."""
    values = np.asarray(array, dtype)
    return values.reshape(*values.shape, *[1] * (rank - values.ndim))


def check(op: Op, inputs: Sequence[Array], wanted: Array, options: Any = None) -> None:
    """What `op` gives of inputs and of constants, on both paths."""
    types = {np.dtype(np.float32): TensorType.FLOAT32, np.dtype(np.int32): I32}
    given = [T(each.shape, types[each.dtype]) for each in inputs]
    constants = [T.constant(each) for each in inputs]
    made = T(wanted.shape, types[wanted.dtype])
    # The list of sizes of a scatter has to be known.
    fed = [constants[2] if op is Op.SCATTER_ND and at == 2 else t for at, t in enumerate(given)]
    feeds = [each for each, t in zip(inputs, fed, strict=True) if not t.is_constant]
    for tensors, values in ((fed, feeds), (constants, [])):
        model = one_op_model(op, tensors, [made], options)
        for providers in (None, []):
            (got,), _ = ours(model, values, providers)
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("rank", RANKS)
def test_operands(rank: int) -> None:
    x, two = wide([-1, 2, 3], rank), wide(2, rank)
    check(Op.ADD, [x, two], x + 2, AddOptions())
    check(Op.PRELU, [x, two], np.where(x < 0, 2 * x, x))
    check(Op.MAXIMUM, [x, two], np.maximum(x, 2))
    check(Op.POW, [x, two], x**2)
    check(
        Op.POW,
        [wide([3, 4], rank, np.int32), wide(2, rank, np.int32)],
        wide([9, 16], rank, np.int32),
    )


@pytest.mark.parametrize("rank", RANKS)
def test_rows_by_index(rank: int) -> None:
    rows = wide([[1, 2], [3, 4], [5, 6]], rank)
    ids, twice = np.array([0, 1, 1], np.int32), wide([[1, 2], [8, 10]], rank)
    check(Op.SEGMENT_SUM, [rows, ids], twice)
    count = np.array(2, np.int32)
    check(Op.UNSORTED_SEGMENT_SUM, [rows, ids, count], twice)
    places, shape = ids.reshape(3, 1), np.array(twice.shape, np.int32)
    check(Op.SCATTER_ND, [places, rows, shape], twice)
    check(Op.GATHER_ND, [rows, places], rows[ids])


@pytest.mark.parametrize("rank", RANKS)
def test_elements_by_index(rank: int) -> None:
    x = wide([1, 2, 3], rank)
    tuples = wide([[2], [0]], rank, np.int32).reshape(2, 1)
    tuples = np.pad(tuples, [(0, 0), (0, rank - 1)])
    check(Op.GATHER_ND, [x, tuples], np.array([3, 1], np.float32))
    updates, shape = np.array([5, 7], np.float32), np.array(x.shape, np.int32)
    check(Op.SCATTER_ND, [tuples, updates, shape], wide([7, 0, 5], rank))


@pytest.mark.parametrize("rank", RANKS)
def test_largest_elements(rank: int) -> None:
    x = np.array([2, np.nan, 3, 3], np.float32).reshape(*[1] * (rank - 1), 4)
    tensors = [T(x.shape), T.constant(np.int32(3))]
    made = T((*x.shape[:-1], 3))
    model = one_op_model(Op.TOPK_V2, tensors, [made, replace(made, type=I32)])
    for providers in (None, []):
        (values, places), _ = ours(model, [x], providers)
        assert values.reshape(-1).tolist() == [3, 3, 2]
        assert places.reshape(-1).tolist() == [2, 3, 0]


@pytest.mark.parametrize("rank", [MOST_DIMENSIONS - 1, MOST_DIMENSIONS])
def test_complex_numbers(rank: int) -> None:
    """In ONNX Runtime they have one dimension more."""
    x = wide([1 + 2j, -3j], rank, np.complex64)
    model = one_op_model(Op.COMPLEX_ABS, [T(x.shape, TensorType.COMPLEX64)], [T(x.shape)])
    np.testing.assert_allclose(ours(model, [x])[0][0], np.abs(x), rtol=1e-6)


@pytest.mark.parametrize("rank", RANKS)
def test_rows_of_tables(rank: int) -> None:
    table, ids = wide([[1, 2], [3, 4]], rank), np.array([1, 0, 1], np.int32)
    indices = np.array([[0, 0], [0, 1], [1, 0]], np.int32)
    sizes, weights = np.array([2, 2], np.int32), np.ones(3, np.float32)
    wanted = wide([[4, 6], [3, 4]], rank)
    inputs = [ids, indices, sizes, weights, table]
    check(Op.EMBEDDING_LOOKUP_SPARSE, inputs, wanted, EmbeddingLookupSparseOptions())


@pytest.mark.parametrize("function", [Op.STABLEHLO_ADD, None])
@pytest.mark.parametrize("rank", RANKS)
def test_scatter_of_stablehlo(rank: int, function: Op | None) -> None:
    model = ModelBuilder()
    main, region = model.subgraph("main"), model.subgraph("region")
    region.tensor("a", ()).tensor("b", ()).tensor("c", ()).inputs("a", "b")
    if function is None:
        region.outputs("b")
    else:
        region.operator(function, ["a", "b"], ["c"]).outputs("c")
    shape = (3, *[1] * (rank - 1))
    options = StablehloScatterOptions(
        update_window_dims=tuple(range(1, rank)),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        update_computation_subgraph_index=region.index,
    )
    main.tensor("x", shape).constant("at", np.array([[2], [0]], np.int32)).tensor("y", shape)
    main.constant("updates", wide([5, 7], rank)).inputs("x").outputs("y")
    main.operator(Op.STABLEHLO_SCATTER, ["x", "at", "updates"], ["y"], options)
    wanted = wide([7, 2, 5] if function is None else [8, 2, 8], rank)
    for providers in (None, []):
        (got,), _ = ours(model.write(), [wide([1, 2, 3], rank)], providers)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("rank", RANKS)
def test_slices_of_the_first_dimensions(rank: int) -> None:
    """LiteRT has 32 bits for what lists do not name: from 33 dimensions on the first ones too."""
    x = wide(np.arange(24).reshape(4, 6), rank)
    wanted = wide(np.arange(24).reshape(4, 6)[1::2, 1::3], rank)
    lists = [np.array(each, np.int32) for each in ([1, 1], [4, 6], [2, 3])]
    check(Op.STRIDED_SLICE, [x, *lists], wanted, StridedSliceOptions())


@pytest.mark.parametrize("rank", RANKS)
def test_texts(rank: int) -> None:
    shape = [1] * rank
    model = one_op_model(
        Op.FILL,
        [T.constant(np.array(shape, np.int32)), T((), TensorType.STRING)],
        [T(tuple(shape), TensorType.STRING)],
    )
    (got,), _ = ours(model, [np.array("é", object)])
    assert got.shape == tuple(shape)
    assert got.reshape(-1).tolist() == ["é".encode()]


@pytest.mark.parametrize("rank", RANKS)
def test_texts_that_are_given(rank: int) -> None:
    graph = ModelBuilder()
    graph.subgraph("main").tensor("x", [1] * rank, TensorType.STRING).inputs("x").outputs("x")
    interpreter = Interpreter(model_content=graph.write())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.full([1] * rank, "é"))
    assert interpreter.get_tensor(0).reshape(-1).tolist() == ["é".encode()]
