"""EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE and HASHTABLE_LOOKUP: LiteRT, ONNX Runtime, numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, check, graph_model, one_op_model, ours
from tests.ops.moved import FLOAT32, INT8, INT16, INT32, INT64, UINT8, ints, moves, tensor
from tests.ops.operands import with_blocks
from tests.ops.versions import check_versions, one_per_operator
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.opmap.rules.lowerings import unpacked_tables
from tflite_ort.schema import (
    BridgeError,
    CombinerType,
    EmbeddingLookupSparseOptions,
    Op,
    TensorType,
)

Shape = tuple[int, ...]
FLOAT16, INT4, INT2 = TensorType.FLOAT16, TensorType.INT4, TensorType.INT2
RNG = np.random.default_rng(5)
BYTES = RNG.integers(0, 256, (5, 8)).astype(np.uint8)
ROWS = (0.5, 0.25, 1.5, 0.75, 0.1)


def hybrid(
    name: str, type: TensorType, table: T, computed: bool, out: TensorType = FLOAT32
) -> Case:
    ids = np.array([4, 0, 2, 2], np.int32)
    return Case(
        f"embedding_lookup-{name}-{type.name}{'-computed' * computed}",
        Op.EMBEDDING_LOOKUP,
        [T((4,), INT32) if computed else T.constant(ids), replace(table, type=type)],
        [T((4, *table.shape[1:]), out)],
        feeds=[ids] if computed else None,
        runs_on="ort" if computed else "constant",
        # Halves of the same float32 products.
        rtol=0 if out is FLOAT16 else 1e-5,
    )


def sparse(
    combiner: CombinerType,
    indices: Any,
    dense: Sequence[int],
    params: Shape = (5, 3),
    type: TensorType = TensorType.FLOAT32,
    **more: Any,
) -> Case:
    """Weights and params are computed."""
    count = len(indices)
    ids = (np.arange(count) * 3 % params[0]).astype(np.int32)
    return Case(
        f"embedding_lookup_sparse-{combiner.name}-{len(dense)}d-{len(params)}d",
        Op.EMBEDDING_LOOKUP_SPARSE,
        [T.constant(ids), ints(*indices), ints(*dense), T((count,)), T(params, type)],
        [T((*dense[:-1], *params[1:]))],
        EmbeddingLookupSparseOptions(combiner=combiner),
        low=0.5,
        **more,
    )


def table(values: T, lookups: Sequence[int] = (7, 1, 3, -(2**31), 9), **more: Any) -> Case:
    count = values.shape[0]
    return Case(
        f"hashtable_lookup-{values.type.name}-{len(values.shape)}d",
        Op.HASHTABLE_LOOKUP,
        [ints(*lookups), ints(*range(-1, 2 * count - 1, 2)), values],
        [
            replace(values, shape=(len(lookups), *values.shape[1:])),
            T((len(lookups),), UINT8),
        ],
        quanta=0,
        **more,
    )


FIRST = [[0, 0], [0, 1], [2, 0], [2, 3], [2, 1]]
PAIRS = [[0, 0, 1], [0, 2, 0], [1, 0, 0], [1, 0, 3]]

CASES = [
    *moves(
        "embedding_lookup",
        Op.EMBEDDING_LOOKUP,
        [(5, 3)],
        [(4, 3)],
        before=[ints(4, 0, 2, 2)],
        types=[FLOAT32, INT32, INT64, UINT8, INT8, INT16],
    ),
    *moves("embedding_lookup-3d", Op.EMBEDDING_LOOKUP, [(5, 3, 2)], [(1, 3, 2)], before=[ints(3)]),
    *[
        hybrid(name, type, T(shape, scale=scale, raw=BYTES.tobytes()), computed, out)
        for name, scale in (("scale", 0.3), ("row-scales", ROWS))
        for type, shape in (
            (INT8, (5, 8)),
            (UINT8, (5, 2, 4)),
            (INT4, (5, 16)),
            (INT2, (5, 4, 8)),
        )
        for computed in (False, True)
        for out in (FLOAT32, FLOAT16)
    ],
    *[sparse(combiner, FIRST, (4, 5)) for combiner in CombinerType],
    *[sparse(combiner, PAIRS, (2, 3, 4), (5, 2, 2)) for combiner in CombinerType],
    *[sparse(combiner, [[0], [1], [5]], (7,)) for combiner in CombinerType],
    # A bucket that comes again after another is divided twice.
    *[
        sparse(combiner, [[0, 0], [1, 0], [0, 1], [0, 2], [1, 1], [0, 3]], (3, 4))
        for combiner in CombinerType
    ],
    *[table(tensor((6, 2), type)) for type in (FLOAT32, INT32, INT64, UINT8, INT8, INT16)],
    table(tensor((4,))),
    table(tensor((1, 2, 2))),
]


def test_a_key_that_is_not_there_finds_an_empty_string() -> None:
    words = T((3,), TensorType.STRING)
    keys, found = T((3,), INT32), T((3,), UINT8)
    model = one_op_model(Op.HASHTABLE_LOOKUP, [keys, keys, words], [words, found])
    names = np.array([b"a", b"bb", b"ccc"], np.object_)
    feeds = [np.int32([1, 2, 9]), np.int32([0, 1, 9]), names]
    for providers in (None, []):
        (texts, hits), _ = ours(model, feeds, providers)
        for got, want in zip((texts, hits), litert(model, feeds), strict=True):
            assert got.tolist() == want.tolist()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "case", [each for each in CASES if "-computed" in each.name], ids=lambda case: case.name
)
def test_large_tables_stay_codes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert optimised_nodes(case.model())["Mul"] == (case.outputs[0].type is FLOAT16)
    monkeypatch.setattr(unpacked_tables, "_MOST_UNPACKED", 0)
    assert optimised_nodes(case.model())["Mul"] == 1
    check(case)


@pytest.mark.parametrize("out", [FLOAT32, FLOAT16], ids=lambda type: type.name)
@pytest.mark.parametrize("type", [INT4, INT2], ids=lambda type: type.name)
def test_embeddings_of_blocks(type: TensorType, out: TensorType) -> None:
    """A scale for every 8 elements of a row, in a tensor that no operator takes."""
    columns = 16 if type is INT4 else 32
    scales = RNG.uniform(0.01, 1, (5, columns // 8)).astype(np.float16)
    tensors = {
        "ids": T((4,), INT32),
        "table": T((5, columns), type, raw=BYTES.tobytes()),
        "scales": T.constant(scales),
        "rows": T((4, columns), out),
    }
    nodes = [Node(Op.EMBEDDING_LOOKUP, ["ids", "table"], ["rows"], version=4)]
    content = with_blocks(graph_model(tensors, nodes, ["rows"]), 1, 2, 8)
    feeds = [ints(4, 0, 2, 2).data]
    (want,) = litert(content, feeds)
    for providers, where in ((None, "ort"), ([], "numpy")):
        (got,), runners = ours(content, feeds, providers)
        assert runners == {where}
        np.testing.assert_array_equal(got, want)


def test_a_hash_table_whose_keys_are_computed() -> None:
    case = table(tensor((4, 2)))
    values, keys = RNG.uniform(size=(4, 2)).astype(np.float32), np.array([1, 3, 3, 9], np.int32)
    inputs = [ints(3, 9, 2, 1, 10), T((4,), INT32), case.inputs[2]]
    check(replace(case, inputs=inputs, feeds=[keys, values]))


@pytest.mark.parametrize(
    "keys", [[3, 3, 3, 3], [9, 1, 3, 4], [2, 2, 5, 5], [2**31 - 1, -(2**31), 0, 9]]
)
def test_keys_that_are_not_ascending_are_searched_as_litert_does(keys: list[int]) -> None:
    case = table(tensor((4, 2)))
    check(replace(case, inputs=[ints(3, 9, 1, 2, 5), ints(*keys), case.inputs[2]]))


def test_no_rows_to_combine() -> None:
    case = sparse(CombinerType.MEAN, FIRST, (4, 5))
    none = [T((0,), INT32), T((0, 2), INT32), case.inputs[2], T((0,)), case.inputs[4]]
    check(replace(case, inputs=none))


@st.composite
def _sparse(draw: st.DrawFn) -> Case:
    """Sorted indices into a dense shape of up to three dimensions."""
    dense = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rng, count = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(1, 6))
    indices = sorted(rng.integers(0, dense, (count, len(dense))).tolist())
    params = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=3)))
    return sparse(draw(st.sampled_from(CombinerType)), indices, dense, params)


@st.composite
def _table(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    lookups = draw(st.lists(st.integers(-2, 9), min_size=1, max_size=5))
    return table(tensor(shape, draw(st.sampled_from([FLOAT32, INT32, INT8]))), lookups)


@given(_sparse())
def test_drawn_sparse_lookup(case: Case) -> None:
    check(case)


@given(_table())
def test_drawn_table(case: Case) -> None:
    check(case)


@given(st.integers(1, 6), st.lists(st.integers(0, 5), max_size=5), st.sampled_from([FLOAT32, INT8]))
def test_drawn_lookup(rows: int, ids: list[int], type: TensorType) -> None:
    index = np.array([i % rows for i in ids], np.int32)
    inputs, result = [T(index.shape, INT32), tensor((rows, 2), type)], tensor((len(ids), 2), type)
    feeds = [index, inputs[1].random(RNG)]
    check(Case("drawn", Op.EMBEDDING_LOOKUP, inputs, [result], quanta=0, rtol=0, feeds=feeds))


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@pytest.mark.parametrize("providers", [None, []])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("id", [-1, 3])
def test_an_id_out_of_bounds_is_refused(
    id: int, constant: bool, providers: Sequence[Any] | None
) -> None:
    ids = np.array([0, id], np.int32)
    inputs = [T.constant(ids) if constant else T((2,), INT32), tensor((3, 2))]
    case = Case("refused", Op.EMBEDDING_LOOKUP, inputs, [tensor((2, 2))])
    feeds = [np.zeros((3, 2), np.float32)]
    with pytest.raises(BridgeError):
        ours(case.model(), feeds if constant else [ids, *feeds], providers)


REFUSED = [
    (
        hybrid("zero-point", INT8, T((5, 8), scale=0.1, zero_point=3, raw=BYTES.tobytes()), True),
        "3",
    ),
    (hybrid("no-scale", INT8, T((5, 8), raw=BYTES.tobytes()), True), "float32 rows"),
    (hybrid("codes", INT8, T((5, 8), scale=ROWS, raw=BYTES.tobytes()), True, INT8), "INT8 rows"),
    (
        hybrid("axis", INT8, T((5, 8), scale=[0.1] * 8, axis=1, raw=BYTES.tobytes()), True),
        "8 scales",
    ),
    (sparse(CombinerType.SUM, [[0, 0], [4, 0]], (4, 2)), "of 4"),
    (
        sparse(CombinerType.SUM, [[0, 0]], (4, 2), type=TensorType.BOOL),
        "BOOL is not one of the types",
    ),
    (sparse(CombinerType.SUM, [[0, 0]], (4, 2, 1)), "dense shape"),
]


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_does_not_fit_is_refused(case: Case, message: str) -> None:
    feeds = case.arrays(np.random.default_rng(0))
    for providers in (None, []):
        with pytest.raises(BridgeError, match=message):
            ours(case.model(), feeds, providers)
