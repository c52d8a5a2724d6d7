"""Outputs whose shapes depend on data: details, values and dtypes are LiteRT's at each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tests.one_op import Node, T, graph_model, one_op_model
from tests.oracle import litert
from tests.subgraph_models import invoked
from tests.test_details import difference
from tflite_ort import Budgets, Interpreter, KernelError, TensorError
from tflite_ort.schema import (
    CastOptions,
    Op,
    RangeOptions,
    ReshapeOptions,
    ShapeOptions,
    SqueezeOptions,
    StridedSliceOptions,
    TensorType,
    TileOptions,
    UniqueOptions,
)

Array = npt.NDArray[Any]

BOOL, INT32, INT64 = TensorType.BOOL, TensorType.INT32, TensorType.INT64


@dataclass(frozen=True)
class Case:
    """A model, and its inputs of two invokes."""

    model: Callable[[], bytes]
    feeds: tuple[list[Array], list[Array]]


def one(op: Op, inputs: list[T], output: T, options: Any = None) -> Callable[[], bytes]:
    return lambda: one_op_model(op, inputs, [output], options)


def positions() -> bytes:
    """Where the input is true, as floats and as integers."""
    tensors = {"c": T((4,), BOOL), "w": T((1, 1), INT64), "y": T((1, 1))}
    cast = CastOptions(in_data_type=INT64, out_data_type=TensorType.FLOAT32)
    nodes = [Node(Op.WHERE, ["c"], ["w"]), Node(Op.CAST, ["w"], ["y"], cast)]
    return graph_model(tensors, nodes, ["y", "w"])


def distinct() -> bytes:
    outputs = [T((1,)), T((4,), INT32)]
    return one_op_model(Op.UNIQUE, [T((4,))], outputs, UniqueOptions())


def narrow_sizes(type: TensorType) -> bytes:
    """The sizes of [how many are true, 300] in another type, and the second one alone."""
    table = np.zeros((4, 300), np.float32)
    place = {name: T.constant(np.int32([k])) for name, k in (("at", 1), ("to", 2), ("by", 1))}
    tensors = {"c": T((4,), BOOL), "w": T((1, 1), INT64), "table": T.constant(table), **place}
    tensors |= {"rows": T((1, 300)), "sizes": T((2,), INT32), "y": T((2,), type), "z": T((), type)}
    nodes = [
        Node(Op.WHERE, ["c"], ["w"]),
        Node(Op.GATHER_ND, ["table", "w"], ["rows"]),
        Node(Op.SHAPE, ["rows"], ["sizes"], ShapeOptions(out_type=INT32)),
        Node(Op.CAST, ["sizes"], ["y"], CastOptions(in_data_type=INT32, out_data_type=type)),
        Node(
            Op.STRIDED_SLICE,
            ["y", "at", "to", "by"],
            ["z"],
            StridedSliceOptions(shrink_axis_mask=1),
        ),
    ]
    return graph_model(tensors, nodes, ["z", "y"])


def number_as_counted() -> bytes:
    """A constant number in the shape of the places where the input is true."""
    tensors = {"c": T((4,), BOOL), "w": T((1, 1), INT64), "number": T.constant(np.int32([5]))}
    tensors |= {"sizes": T((2,), INT32), "y": T((1, 1), INT32)}
    nodes = [
        Node(Op.WHERE, ["c"], ["w"]),
        Node(Op.SHAPE, ["w"], ["sizes"], ShapeOptions(out_type=INT32)),
        Node(Op.RESHAPE, ["number", "sizes"], ["y"], ReshapeOptions()),
    ]
    return graph_model(tensors, nodes, ["y"])


PLAIN, PAIR = np.ones((2, 3), np.float32), np.float32([1, 2])
CASES = {
    "reshape": Case(
        one(Op.RESHAPE, [T((2, 3)), T((2,), INT32)], T((3, 2)), ReshapeOptions()),
        ([PLAIN, np.int32([6, 1])], [PLAIN, np.int32([1, 6])]),
    ),
    "where": Case(positions, ([np.array([1, 0, 1, 1], bool)], [np.array([0, 0, 0, 1], bool)])),
    "unique": Case(distinct, ([np.float32([1, 2, 1, 3])], [np.float32([1, 1, 1, 1])])),
    "fill": Case(
        one(Op.FILL, [T((2,), INT32), T(())], T((1, 1))),
        ([np.int32([2, 3]), np.float32(4)], [np.int32([1, 1]), np.float32(4)]),
    ),
    "range": Case(
        one(Op.RANGE, [T((), INT32)] * 3, T((1,), INT32), RangeOptions()),
        ([*np.int32([0, 5, 2])], [*np.int32([0, 2, 1])]),
    ),
    "tile": Case(
        one(Op.TILE, [T((2,)), T((1,), INT32)], T((4,)), TileOptions()),
        ([PAIR, np.int32([3])], [PAIR, np.int32([1])]),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("keep_all", [False, True])
@pytest.mark.filterwarnings("ignore:Warning. Enabling")
def test_every_step(name: str, keep_all: bool) -> None:
    case = CASES[name]
    ours, theirs = both = [
        kind(model_content=case.model(), experimental_preserve_all_tensors=keep_all)
        for kind in (Interpreter, LiteRT)
    ]
    outputs = [detail["index"] for detail in ours.get_output_details()]

    def same(tell: Callable[[Any], Any]) -> None:
        assert difference(*map(tell, both)) == []

    def told(interpreter: Any) -> list[Any]:
        return [interpreter.get_input_details(), interpreter.get_output_details()]

    def allocate() -> None:
        for interpreter in both:
            interpreter.allocate_tensors()

    same(told)
    allocate()
    same(told)
    with pytest.raises(TensorError, match="no value before an invoke"):
        ours.get_tensor(outputs[0])
    for feeds in case.feeds:
        for interpreter in both:
            for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
                interpreter.set_tensor(detail["index"], array)
            interpreter.invoke()
        same(told)
        same(lambda interpreter: [interpreter.get_tensor(index) for index in outputs])
        same(lambda interpreter: [interpreter.tensor(index)().copy() for index in outputs])
        for index in outputs:
            assert ours.get_tensor(index).dtype.type is theirs.get_tensor(index).dtype.type
    allocate()
    same(told)
    shape = case.feeds[0][0].shape
    if shape:
        for interpreter in both:
            interpreter.resize_tensor_input(0, (2 * shape[0], *shape[1:]))
        same(told)
        allocate()
        same(told)


def test_a_size_beyond_32_bits_of_an_empty_result() -> None:
    """However much a caller allows: it takes no memory, and no array of shapes holds it."""
    given = [T((2, 3), BOOL), T((2,), INT32)]
    model = one_op_model(Op.TILE, given, [T((2, 3), BOOL)], TileOptions())
    interpreter = Interpreter(model_content=model, budgets=Budgets(result_bytes=1 << 40))
    interpreter.allocate_tensors()
    _, multiples = interpreter.get_input_details()
    interpreter.set_tensor(multiples["index"], np.int32([2**31 - 1, 0]))
    with pytest.raises(KernelError, match=r"\[4294967294, 0\]: beyond 32 bits"):
        interpreter.invoke()
    interpreter.set_tensor(multiples["index"], np.int32([2, 0]))
    interpreter.invoke()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [4, 0]


@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.INT16, INT32, INT64])
def test_sizes_that_do_not_fit_their_type_wrap(type: TensorType) -> None:
    model, given = narrow_sizes(type), np.array([1, 0, 1, 1], bool)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    pairs = zip(litert(model, [given]), invoked(interpreter, [given]), strict=True)
    for wanted, got in pairs:
        np.testing.assert_array_equal(got, wanted)


def one_for_each_size(declared: tuple[int, ...]) -> bytes:
    """Ones of the shape that the places of true elements have without sizes of 1.

    Args:
        declared: what the file says of the shape without sizes of 1.
    """
    tensors = {
        "x": T((4,), BOOL),
        "places": T((1, 1), INT64, shape_signature=(-1, 1)),
        "squeezed": T(declared, INT64),
        "sizes": T((len(declared),), INT32),
        "one": T.constant(np.float32(1)),
        "ones": T(declared),
    }
    nodes = [
        Node(Op.WHERE, ["x"], ["places"]),
        Node(Op.SQUEEZE, ["places"], ["squeezed"], SqueezeOptions(squeeze_dims=())),
        Node(Op.SHAPE, ["squeezed"], ["sizes"], ShapeOptions(out_type=INT32)),
        Node(Op.FILL, ["sizes", "one"], ["ones"]),
    ]
    return graph_model(tensors, nodes, ["ones"])


@pytest.mark.parametrize("declared", [(), (1,), (1, 1)])
def test_sizes_of_a_tensor_whose_rank_depends_on_data(declared: tuple[int, ...]) -> None:
    """By numpy, which alone runs such tensors."""
    model = one_for_each_size(declared)
    interpreter = Interpreter(model_content=model, providers=[])
    interpreter.allocate_tensors()
    for given in ([1, 0, 1, 1], [0, 1, 0, 0]):
        x = np.array(given, bool)
        (got,) = invoked(interpreter, [x])
        np.testing.assert_array_equal(got, litert(model, [x])[0], strict=True)


@pytest.mark.parametrize("providers", [None, []])
def test_constants_take_a_shape_that_is_known_in_part(providers: list[str] | None) -> None:
    model, given = number_as_counted(), np.array([0, 0, 1, 0], bool)
    interpreter = Interpreter(model_content=model, providers=providers)
    interpreter.allocate_tensors()
    (got,) = invoked(interpreter, [given])
    np.testing.assert_array_equal(got, litert(model, [given])[0], strict=True)
