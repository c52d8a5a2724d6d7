"""GATHER and GATHER_ND: LiteRT, ONNX Runtime and numpy agree exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, check, graph_model, one_op_model, ours
from tests.ops.moved import FLOAT32, INT16, INT32, INT64, ints, moves, tensor
from tests.oracle import litert
from tflite_ort import KernelError, export_onnx
from tflite_ort.schema import BridgeError, GatherOptions, Op, TensorType

INT4 = TensorType.INT4


def gather(
    name: str,
    shape: tuple[int, ...],
    positions: np.ndarray,
    axis: int = 0,
    batch_dims: int = 0,
) -> Case:
    """A float row; numpy says the result's shape."""
    at = axis % len(shape)
    batch = batch_dims + positions.ndim if batch_dims < 0 else batch_dims
    result = (*shape[:at], *positions.shape[batch:], *shape[at + 1 :])
    return Case(
        f"gather-{name}",
        Op.GATHER,
        [tensor(shape), T.constant(positions)],
        [tensor(result)],
        GatherOptions(axis=axis, batch_dims=batch_dims),
        rtol=0,
    )


def picks(*values: object, dtype: type = np.int32) -> np.ndarray:
    return np.array(values, dtype)


CASES = [
    *moves("gather", Op.GATHER, [(4, 3)], [(3, 3)], GatherOptions(), after=[ints(3, 0, 3)]),
    *moves(
        "gather-4d",
        Op.GATHER,
        [(1, 4, 2, 3)],
        [(1, 4, 2, 2)],
        GatherOptions(axis=-1),
        after=[ints(2, 0, dtype=np.int64)],
    ),
    gather("scalar", (4, 3), np.array(2, np.int32), axis=1),
    gather("matrix", (4, 3), picks([0, 3], [2, 1]), axis=0),
    gather("int16", (4, 3), picks(2, 1, dtype=np.int16), axis=1),
    gather("batch", (2, 4, 3), picks([0, 3, 3], [2, 1, 0]), axis=1, batch_dims=1),
    gather("in-order", (2, 4, 3), picks(*range(4)), axis=1),
    gather("in-order-matrix", (4, 3), picks([0, 1, 2, 3]), axis=0),
    gather("first-in-order", (2, 4, 3), picks(0, 1, 2), axis=1),
    gather("batch-axis", (2, 5, 4, 3), picks([0, 3, 3], [2, 1, 0]), axis=2, batch_dims=1),
    gather("batch-all", (2, 4, 3), picks(1, 3), axis=1, batch_dims=1),
    gather("batch-far", (2, 5, 4), picks(1, 3), axis=2, batch_dims=1),
    gather("batch-negative", (2, 4, 3), picks([0, 3, 3], [2, 1, 0]), axis=1, batch_dims=-1),
    gather("batch-two", (2, 3, 4, 2), np.arange(12).reshape(2, 3, 2).astype(np.int32) % 4, 2, 2),
    gather("batch-matrix", (2, 5, 4), np.arange(12).reshape(2, 2, 3).astype(np.int32) % 4, 2, 1),
    *moves("gather_nd", Op.GATHER_ND, [(3, 4, 2)], [(2, 2)], after=[ints([2, 0], [1, 3])]),
    *moves(
        "gather_nd-points", Op.GATHER_ND, [(3, 4)], [(3,)], after=[ints([2, 0], [1, 3], [0, 0])]
    ),
    *moves(
        "gather_nd-all",
        Op.GATHER_ND,
        [(2, 3, 2)],
        [(1, 2, 3, 2)],
        after=[ints(*np.argwhere(np.ones((1, 2, 3)))[:, 1:].reshape(1, 2, 3, 2).tolist())],
    ),
    *moves(
        "gather_nd-turned",
        Op.GATHER_ND,
        [(2, 3)],
        [(6,)],
        after=[ints(*[[row, column] for column in range(3) for row in range(2)])],
    ),
    *moves(
        "gather_nd-int16",
        Op.GATHER_ND,
        [(3, 4)],
        [(1, 2, 4)],
        after=[ints([[2], [0]], dtype=np.int16)],
        types=[FLOAT32],
    ),
    *[
        Case(
            f"{op.name.lower()}-computed-{type.name}",
            op,
            [tensor((4, 3)), T((2, 1), type)],
            [tensor(result)],
            GatherOptions() if op == Op.GATHER else None,
            rtol=0,
            feeds=[np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[3], [1]], dtype)],
        )
        for op, result in ((Op.GATHER, (2, 1, 3)), (Op.GATHER_ND, (2, 3)))
        for type, dtype in ((INT32, np.int32), (INT64, np.int64))
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(case)


def test_all_elements_in_their_order_are_not_moved() -> None:
    tensors = {"x": T((2, 4)), "p": T.constant(picks(*range(4))), "y": T((2, 4)), "z": T((2, 4))}
    nodes = [Node(Op.GATHER, ["x", "p"], ["y"], GatherOptions(axis=1)), Node(Op.NEG, ["y"], ["z"])]
    made = export_onnx(graph_model(tensors, nodes, ["z"]))
    assert [node.op_type for node in made.graph.node] == ["Neg"]


@st.composite
def _gather(draw: st.DrawFn) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axis = draw(st.integers(0, len(shape) - 1))
    batch = draw(st.integers(0, axis))
    rest = draw(st.lists(st.integers(1, 3), max_size=2))
    positions = np.random.default_rng(draw(st.integers(0, 99))).integers(
        0, shape[axis], (*shape[:batch], *rest)
    )
    return gather("drawn", shape, positions.astype(np.int32), axis, batch)


@given(_gather())
def test_drawn_gather(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("index", [-1, 4])
@pytest.mark.parametrize("op", [Op.GATHER, Op.GATHER_ND])
@pytest.mark.parametrize("providers", [None, []])
def test_an_index_out_of_bounds_is_refused(op: Op, index: int, providers: list[Any] | None) -> None:
    result = (1, 3) if op == Op.GATHER else (3,)
    options = GatherOptions() if op == Op.GATHER else None
    case = Case("out", op, [tensor((4, 3)), ints(index)], [tensor(result)], options)
    with pytest.raises(KernelError, match="index out of bounds"):
        ours(case.model(), case.arrays(np.random.default_rng(0)), providers)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("index", [-1, 4, "lowest"])
@pytest.mark.parametrize("batch_dims", [0, 1, None])
def test_a_computed_index_out_of_bounds_is_refused(
    batch_dims: int | None, index: int | str, dtype: type
) -> None:
    """ONNX would count a negative one from the end."""
    op = Op.GATHER_ND if batch_dims is None else Op.GATHER
    options = None if batch_dims is None else GatherOptions(axis=1, batch_dims=batch_dims)
    at = np.array([[2, np.iinfo(dtype).min if index == "lowest" else index]], dtype)
    positions = T((1, 2), {2: INT16, 4: INT32, 8: INT64}[at.itemsize])
    result = {None: (1,), 0: (3, 1, 2), 1: (1, 2)}[batch_dims]
    values = np.zeros((3 if batch_dims != 1 else 1, 4), np.float32)
    case = Case("out", op, [tensor(values.shape), positions], [tensor(result)], options)
    for providers in (None, []):
        with pytest.raises(BridgeError, match="ind"):
            ours(case.model(), [values, at], providers)


def test_a_mask_that_is_taken_whole_is_only_shaped() -> None:
    """As Transformers write masks; few runtimes pick booleans."""
    places = np.stack(np.meshgrid(0, np.arange(4), indexing="ij"), axis=-1)
    mask = T((1, 4), TensorType.BOOL)
    made = T((1, 1, 1, 4), TensorType.BOOL)
    content = one_op_model(
        Op.GATHER_ND, [mask, T.constant(places[None, None].astype(np.int32))], [made]
    )
    proto = export_onnx(content)
    assert [node.op_type for node in proto.graph.node] == ["Reshape"]


@pytest.mark.parametrize("op", [Op.GATHER, Op.GATHER_ND])
def test_types_that_litert_has_no_kernel_for_are_refused(op: Op) -> None:
    options = GatherOptions() if op == Op.GATHER else None
    float64 = T((4,), TensorType.FLOAT64)
    for inputs in ([float64, ints([1])], [T((4,)), T((1, 1), TensorType.UINT8)]):
        case = Case("refused", op, inputs, [T((1,), inputs[0].type)], options)
        with pytest.raises(BridgeError, match="is not one of the types"):
            ours(case.model(), case.arrays(np.random.default_rng(0)))


def test_rows_of_a_4_bit_table() -> None:
    table, rows = T((3, 8), INT4, scale=0.1, raw=bytes(range(96, 108))), T((2, 8), INT4, scale=0.1)
    model = graph_model(
        {"table": table, "at": T((2,), INT32), "rows": rows, "reals": T((2, 8))},
        [
            Node(Op.GATHER, ["table", "at"], ["rows"], GatherOptions(), 4),
            Node(Op.DEQUANTIZE, ["rows"], ["reals"], None, 6),
        ],
        ["reals"],
    )
    feeds = [np.array([2, 0], np.int32)]
    (want,) = litert(model, feeds, "reference")
    for providers in (None, []):
        assert np.array_equal(ours(model, feeds, providers)[0][0], want)
