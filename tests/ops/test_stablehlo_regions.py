"""STABLEHLO_REDUCE_WINDOW and STABLEHLO_SCATTER, whose subgraph names a function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Node, T, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tests.subgraph_models import Sub, check_invokes, model_of
from tflite_ort import ExportError, Interpreter, KernelError, ModelError, export_onnx
from tflite_ort.schema import (
    AddOptions,
    MaximumMinimumOptions,
    MulOptions,
    Op,
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
    TensorType,
)
from tflite_ort.schema.shapes.reduction import reduced_windows
from tflite_ort.schema.values.regions import WindowAttributes

Array = npt.NDArray[Any]
_T = TensorType

FUNCTIONS = [
    Op.STABLEHLO_ADD,
    Op.STABLEHLO_MULTIPLY,
    Op.STABLEHLO_MAXIMUM,
    Op.STABLEHLO_MINIMUM,
]
TFLITE_FUNCTIONS = {
    Op.ADD: AddOptions(),
    Op.MUL: MulOptions(),
    Op.MAXIMUM: MaximumMinimumOptions(),
    Op.MINIMUM: MaximumMinimumOptions(),
}


def region(op: Op | None, type: TensorType) -> Sub:
    """One operator over two numbers; None: the second one as it is."""
    scalar = T((), type)
    if op is None:
        return Sub({"a": scalar, "b": scalar}, [], ["a", "b"], ["b"])
    node = Node(op, ["a", "b"], ["r"], TFLITE_FUNCTIONS.get(op))
    return Sub({"a": scalar, "b": scalar, "r": scalar}, [node], ["a", "b"], ["r"])


# Windows -----------------------------------------------------------------------------------------


def windows_model(
    shape: tuple[int, ...], type: TensorType, op: Op, options: StablehloReduceWindowOptions
) -> bytes:
    each = WindowAttributes.of(options, len(shape))
    rows = reduced_windows(each.padded(shape), each.window, each.strides, each.dilations)
    result = T(tuple(count for count, *_ in rows), type)
    node = Node(Op.STABLEHLO_REDUCE_WINDOW, ["x", "init"], ["y"], options)
    tensors = {"x": T(shape, type), "init": T((), type), "y": result}
    return model_of(Sub(tensors, [node], ["x", "init"], ["y"]), region(op, type))


def window_feeds(shape: tuple[int, ...], type: TensorType, seed: int = 0) -> list[list[Array]]:
    rng = np.random.default_rng(seed)
    return [[T(shape, type).random(rng, -2, 2), T((), type).random(rng, 1, 2)]]


PLAIN = StablehloReduceWindowOptions(window_dimensions=(1, 2, 2), body_subgraph_index=1)
PADDED = replace(PLAIN, window_strides=(1, 2, 1), padding=(0, 0, 1, 1, 0, 1))
SPREAD = replace(PLAIN, base_dilations=(1, 2, 1), window_dilations=(1, 1, 2))
CUT = replace(PADDED, padding=(0, 0, 1, -1, 0, 1))


@pytest.mark.parametrize(
    "options", [PLAIN, PADDED, SPREAD, CUT], ids=["plain", "padded", "spread", "cut"]
)
@pytest.mark.parametrize("type", [_T.FLOAT32, _T.INT32, _T.INT8, _T.INT64])
@pytest.mark.parametrize("op", [*FUNCTIONS, *TFLITE_FUNCTIONS])
def test_windows(op: Op, type: TensorType, options: StablehloReduceWindowOptions) -> None:
    shape = (2, 4, 5)
    model, feeds = windows_model(shape, type, op, options), window_feeds(shape, type)
    check_invokes(model, feeds, {"ort"}, kernels="default")


@pytest.mark.parametrize("options", [PLAIN, PADDED, SPREAD, CUT])
def test_windows_over_an_open_batch(options: StablehloReduceWindowOptions) -> None:
    """Its windows are of one sample, so that it need not be known."""
    model = windows_model((2, 4, 5), _T.FLOAT32, Op.STABLEHLO_MAXIMUM, options)
    for batch in (1, 3):
        alike = windows_model((batch, 4, 5), _T.FLOAT32, Op.STABLEHLO_MAXIMUM, options)
        (feeds,) = window_feeds((batch, 4, 5), _T.FLOAT32)
        made = exported(model, feeds, input_shapes={"x": (None, 4, 5)})
        np.testing.assert_array_equal(made[0], litert(alike, feeds)[0])


@pytest.mark.parametrize("type", [_T.FLOAT32, _T.FLOAT64, _T.INT16, _T.BOOL])
@pytest.mark.parametrize("op", [*TFLITE_FUNCTIONS, Op.LOGICAL_AND, Op.LOGICAL_OR])
def test_windows_by_functions_that_have_not_their_type(op: Op, type: TensorType) -> None:
    """The region only names a function: LiteRT never runs it. Such types were refused."""
    shape = (2, 4, 5)
    model, feeds = windows_model(shape, type, op, PLAIN), window_feeds(shape, type)
    check_invokes(model, feeds, kernels="default")


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
)
def test_drawn_windows(shape: tuple[int, ...], data: st.DataObject, seed: int) -> None:
    def drawn(least: int, most: int, each: int = 1) -> tuple[int, ...]:
        count = each * len(shape)
        sizes = st.lists(st.integers(least, most), min_size=count, max_size=count)
        return tuple(data.draw(sizes))

    options = StablehloReduceWindowOptions(
        window_dimensions=drawn(1, 3),
        window_strides=drawn(1, 2),
        base_dilations=drawn(1, 2),
        window_dilations=drawn(1, 2),
        padding=drawn(0, 2, 2),
        body_subgraph_index=1,
    )
    model = windows_model(shape, _T.FLOAT32, Op.STABLEHLO_ADD, options)
    check_invokes(model, window_feeds(shape, _T.FLOAT32, seed), kernels="default")


def test_windows_of_what_is_cut_away_are_refused() -> None:
    options = replace(PLAIN, padding=(0, 0, -2, -2, 0, 0))
    interpreter = Interpreter(model_content=windows_model((2, 4, 5), _T.FLOAT32, Op.ADD, options))
    interpreter.allocate_tensors()
    with pytest.raises(KernelError, match="nothing is left of an input of shape"):
        interpreter.invoke()


# Scattering --------------------------------------------------------------------------------------

BLOCKS = StablehloScatterOptions(
    update_window_dims=(2, 3),
    inserted_window_dims=(0,),
    scatter_dims_to_operand_dims=(1, 0),
    index_vector_dim=2,
    update_computation_subgraph_index=1,
)
ELEMENTS = replace(
    BLOCKS,
    update_window_dims=(),
    scatter_dims_to_operand_dims=(0,),
    index_vector_dim=1,
)
# (options, operand, indices, updates); some places come twice, some are outside.
SCATTERED = {
    "blocks": (
        BLOCKS,
        (3, 4, 2),
        [[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]],
        (2, 3, 2, 2),
    ),
    "elements": (ELEMENTS, (5,), [[1], [1], [3], [-1], [2]], (5,)),
}


def scatter_model(
    name: str, op: Op | None, type: TensorType, indices: T
) -> tuple[bytes, list[Array]]:
    options, shape, places, updates = SCATTERED[name]
    tensors = {"x": T(shape, type), "u": T(updates, type), "y": T(shape, type), "i": indices}
    given = ["x", "u"] if indices.is_constant else ["x", "u", "i"]
    node = Node(Op.STABLEHLO_SCATTER, ["x", "i", "u"], ["y"], options)
    rng = np.random.default_rng(0)
    feeds = [tensors[key].random(rng) for key in ("x", "u")]
    if not indices.is_constant:
        feeds.append(np.array(places, np.int32))
    return model_of(Sub(tensors, [node], given, ["y"]), region(op, type)), feeds


@pytest.mark.parametrize(
    "type",
    [
        *(_T.FLOAT32, _T.FLOAT16, _T.INT8, _T.INT64),
        *(_T.UINT8, _T.UINT32, _T.UINT64, _T.BOOL),
    ],
)
@pytest.mark.parametrize("op", [None, *FUNCTIONS])
@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_scatter(name: str, op: Op | None, type: TensorType, index_type: Any) -> None:
    """Negative numbers are the largest ones of unsigned types."""
    indices = T.constant(np.array(SCATTERED[name][2], index_type))
    model, feeds = scatter_model(name, op, type, indices)
    rounded = type is _T.FLOAT16 and op in (Op.STABLEHLO_ADD, Op.STABLEHLO_MULTIPLY)
    check_invokes(model, [feeds], {"numpy" if rounded else "ort"}, kernels="default")


@pytest.mark.parametrize("type", [_T.COMPLEX64, _T.FLOAT8_E4M3FN])
def test_elements_that_onnx_does_not_move(type: TensorType) -> None:
    """An export of them could not be loaded."""
    indices = T.constant(np.array(SCATTERED["elements"][2], np.int32))
    model, _ = scatter_model("elements", None, type, indices)
    with pytest.raises(ExportError, match="elements are not moved in ONNX"):
        export_onnx(model)


@pytest.mark.parametrize("op", [None, *FUNCTIONS])
def test_scattered_nans(op: Op | None) -> None:
    """By numpy, as LiteRT does: a NaN is neither greater nor less than another number."""
    indices = T.constant(np.array(SCATTERED["elements"][2], np.int32))
    model, _ = scatter_model("elements", op, _T.FLOAT32, indices)
    nan = np.nan
    feeds = [np.float32([1, nan, 2, nan, 4]), np.float32([1, 2, nan, 3, nan])]
    for operand in (feeds[0], np.nan_to_num(feeds[0])):
        (want,), ((got,), _) = (
            litert(model, [operand, feeds[1]]),
            ours(model, [operand, feeds[1]], []),
        )
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", [None, *FUNCTIONS])
@pytest.mark.parametrize("name", SCATTERED)
def test_scatter_to_computed_places(name: str, op: Op | None) -> None:
    indices = T(np.shape(SCATTERED[name][2]), _T.INT32)
    model, feeds = scatter_model(name, op, _T.FLOAT32, indices)
    check_invokes(model, [feeds], {"ort"}, kernels="default")


def test_updates_of_another_type_are_refused() -> None:
    """LiteRT reads their bytes as if they were of the operand's type."""
    options, shape, places, updates = next(iter(SCATTERED.values()))
    indices = T.constant(np.array(places, np.int64))
    tensors = {"x": T(shape), "u": T(updates, _T.INT64), "y": T(shape), "i": indices}
    node = Node(Op.STABLEHLO_SCATTER, ["x", "i", "u"], ["y"], options)
    model = model_of(
        Sub(tensors, [node], ["x", "u"], ["y"]), region(Op.STABLEHLO_MULTIPLY, _T.FLOAT32)
    )
    for providers in (None, []):
        interpreter = Interpreter(model_content=model, providers=providers)
        interpreter.allocate_tensors()
        with pytest.raises(KernelError, match="int64 at int64 in float32"):
            interpreter.invoke()


def test_a_region_of_two_operators_is_refused() -> None:
    scalar = T((), _T.FLOAT32)
    nodes = [
        Node(Op.STABLEHLO_ADD, ["a", "b"], ["s"]),
        Node(Op.STABLEHLO_ADD, ["s", "b"], ["r"]),
    ]
    two = Sub({"a": scalar, "b": scalar, "s": scalar, "r": scalar}, nodes, ["a", "b"], ["r"])
    node = Node(Op.STABLEHLO_REDUCE_WINDOW, ["x", "init"], ["y"], PLAIN)
    tensors = {"x": T((2, 4, 5)), "init": scalar, "y": T((2, 3, 4))}
    model = model_of(Sub(tensors, [node], ["x", "init"], ["y"]), two)
    with pytest.raises(ModelError, match="a window is not reduced by"):
        Interpreter(model_content=model).allocate_tensors()
