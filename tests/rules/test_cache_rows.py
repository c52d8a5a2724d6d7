"""Places of caches and rows of masks: the numbers of the unfused graph, and LiteRT's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node as Operator
from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tflite_ort import Interpreter
from tflite_ort.schema import (
    BridgeError,
    CastOptions,
    ConcatenationOptions,
    Op,
    PackOptions,
    ReducerOptions,
    TensorType,
)

Array = npt.NDArray[Any]
INT32, BOOL = TensorType.INT32, TensorType.BOOL
TOKENS, SEED = 40, 7
LOWEST, HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
POSITIONS = [0, 1, 17, TOKENS - 1, TOKENS, 1 << 25, HIGHEST, -1, -TOKENS, -TOKENS - 1, LOWEST]


def written(how: str, axis: int, rows: int = 1) -> bytes:
    """A cache [1, 2, 40, 8], or with its last two axes turned, that is written along `axis`.

    Args:
        how: the list of places is made of the position: as integers, packed or joined, or as
            floats, "sliced" of several positions.
    """
    sizes, new = [1, 2, 8, 8], [1, 2, 8, 8]
    sizes[axis], new[axis] = TOKENS, rows
    tensors = {
        "position": T((3 if how == "sliced" else 1,), INT32),
        "cache": T(tuple(sizes)),
        "rows": T(tuple(new)),
        "at": T((4,), INT32),
        "result": T(tuple(sizes)),
    }
    operators = list[Operator]()
    zero: Any = np.float32([0]) if how in ("floats", "sliced") else np.int32([0])
    tensors["zero"] = T.constant(zero if how != "packed" else zero.reshape(()))
    parts = ["zero"] * 4
    if how == "packed":
        tensors |= {"none": T.constant(np.int32([])), "scalar": T((), INT32)}
        operators.append(Operator(Op.RESHAPE, ["position", "none"], ["scalar"]))
        parts[axis] = "scalar"
        operators.append(Operator(Op.PACK, parts, ["at"], PackOptions(values_count=4)))
    elif how == "joined":
        parts[axis] = "position"
        operators.append(Operator(Op.CONCATENATION, parts, ["at"], ConcatenationOptions()))
    else:
        tensors |= {"all": T(tensors["position"].shape), "real": T((1,)), "reals": T((4,))}
        tensors |= {"first": T.constant(np.int32([1])), "one": T.constant(np.int32([1]))}
        sliced, to_float = how == "sliced", CastOptions(INT32, TensorType.FLOAT32)
        cast = "all" if sliced else "real"
        operators.append(Operator(Op.CAST, ["position"], [cast], to_float))
        if sliced:
            operators.append(Operator(Op.SLICE, ["all", "first", "one"], ["real"]))
        parts[axis] = "real"
        operators.append(Operator(Op.CONCATENATION, parts, ["reals"], ConcatenationOptions()))
        to_int = CastOptions(TensorType.FLOAT32, INT32)
        operators.append(Operator(Op.CAST, ["reals"], ["at"], to_int))
    operators.append(Operator(Op.DYNAMIC_UPDATE_SLICE, ["cache", "rows", "at"], ["result"]))
    return graph_model(tensors, operators, ["result"])


def arrays(model: bytes, position: int) -> list[Array]:
    """The position, and caches and rows drawn from a seed."""
    rng = np.random.default_rng(SEED)
    return [
        np.int32([5, position, 7])
        if each["shape"][0] == 3
        else np.full(1, position, np.int32)
        if each["dtype"] is np.int32
        else rng.normal(0, 1, each["shape"]).astype(np.float32)
        for each in Interpreter(model_content=model).get_input_details()
    ]


def check(model: bytes, inputs: list[Array]) -> None:
    print(f"seed {SEED}")
    (got,), (want,) = answers(model, inputs), unfused(model, inputs)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(got, litert(model, inputs)[0])


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("how", ["packed", "joined", "floats", "sliced"])
def test_rows_are_written_where_they_were(how: str, axis: int) -> None:
    for rows in (1, 5):
        model = written(how, axis, rows)
        for position in POSITIONS:
            check(model, arrays(model, position))


@pytest.mark.parametrize("how", ["packed", "joined", "floats"])
def test_places_are_a_constant_and_a_number(how: str) -> None:
    counts = optimised_nodes(written(how, 2))
    assert counts == {"Clip": 1, "Cast": 1, "TensorScatter": 1}


def test_two_positions_are_left_as_they_are() -> None:
    tensors = {
        "position": T((1,), INT32),
        "cache": T((6, TOKENS)),
        "rows": T((2, 3)),
        "at": T((2,), INT32),
        "result": T((6, TOKENS)),
    }
    operators = [
        Operator(Op.CONCATENATION, ["position", "position"], ["at"], ConcatenationOptions()),
        Operator(Op.DYNAMIC_UPDATE_SLICE, ["cache", "rows", "at"], ["result"]),
    ]
    model = graph_model(tensors, operators, ["result"])
    for position in POSITIONS:
        check(model, arrays(model, position))


def looked_up(indices: int, *, last: int = TOKENS - 1, turned: bool = False) -> bytes:
    """The model of `look_up`."""
    return graph_model(*look_up(indices, last=last, turned=turned), ["result"])


def look_up(
    indices: int, *, last: int | None = None, turned: bool = False, table: Array | None = None
) -> tuple[dict[str, T], list[Operator]]:
    """Rows of a table by indices, those below 0 from its end, as JAX's take makes them.

    Args:
        turned: the rows get another shape before the others are filled.
        table: of rows [1, ...].
    """
    if table is None:
        table = np.random.default_rng(SEED).normal(0, 1, (TOKENS, 1, 6)).astype(np.float32)
    count, _, width = table.shape
    wanted = (1, indices, width) if turned else (indices, 1, width)
    last = count - 1 if last is None else last
    tensors = {
        "x": T((indices,), INT32),
        "table": T.constant(table),
        "zero": T.constant(np.int32([0])),
        "count": T.constant(np.int32([count])),
        "first": T.constant(np.int32([[0]])),
        "last": T.constant(np.int32([[last]])),
        "axis": T.constant(np.int32([1])),
        "tuple": T.constant(np.int32([indices, 1])),
        "shape": T.constant(np.int32([*wanted[:2], 1])),
        "wanted": T.constant(np.int32(wanted)),
        "nan": T.constant(np.float32(np.nan)),
        **{name: T((indices,), BOOL) for name in ("negative", "all")},
        **{name: T((indices,), INT32) for name in ("later", "wrapped")},
        "index": T((indices, 1), INT32),
        **{name: T((indices, 1), BOOL) for name in ("above", "below", "both")},
        "inside": T((*wanted[:2], 1), BOOL),
        "gathered": T((indices, 1, width)),
        **{name: T(wanted) for name in ("rows", "result")},
    }
    operators = [
        Operator(Op.LESS, ["x", "zero"], ["negative"]),
        Operator(Op.ADD, ["x", "count"], ["later"]),
        Operator(Op.SELECT, ["negative", "later", "x"], ["wrapped"]),
        Operator(Op.RESHAPE, ["wrapped", "tuple"], ["index"]),
        Operator(Op.GREATER_EQUAL, ["index", "first"], ["above"]),
        Operator(Op.LESS_EQUAL, ["index", "last"], ["below"]),
        Operator(Op.LOGICAL_AND, ["above", "below"], ["both"]),
        Operator(Op.REDUCE_ALL, ["both", "axis"], ["all"], ReducerOptions()),
        Operator(Op.GATHER_ND, ["table", "index"], ["gathered"]),
        Operator(Op.RESHAPE, ["gathered", "wanted"], ["rows"]),
        Operator(Op.RESHAPE, ["all", "shape"], ["inside"]),
        Operator(Op.SELECT_V2, ["inside", "rows", "nan"], ["result"]),
    ]
    return tensors, operators


@pytest.mark.parametrize("turned", [False, True])
def test_rows_are_looked_up_by_one_node(turned: bool) -> None:
    model = looked_up(5, turned=turned)
    check(model, [np.int32([0, TOKENS - 1, -1, -TOKENS, 9])])
    assert optimised_nodes(model) == {"Gather": 1, **({"Reshape": 1} if turned else {})}


@pytest.mark.parametrize("index", [TOKENS, -TOKENS - 1, LOWEST, HIGHEST])
def test_an_index_beyond_the_table_is_refused(index: int) -> None:
    """As by LiteRT, whose GATHER_ND fails."""
    model, given = looked_up(1), [np.int32([index])]
    with pytest.raises(RuntimeError, match="GATHER_ND"):
        litert(model, given)
    with pytest.raises(BridgeError):
        answers(model, given)


def test_other_bounds_are_left_as_they_are() -> None:
    model = looked_up(2, last=TOKENS - 2)
    assert optimised_nodes(model)["GatherND"] == 1
    check(model, [np.int32([3, TOKENS - 1])])
