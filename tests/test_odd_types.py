"""Files whose tensors have types that do not go together: ONNX Runtime and numpy draw one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, assert_close, one_op_model
from tests.oracle import litert
from tests.subgraph_models import Sub, model_of
from tflite_ort import BridgeError, Interpreter
from tflite_ort.schema import (
    BidirectionalSequenceRNNOptions,
    ConcatenationOptions,
    Op,
    PackOptions,
    RNNOptions,
    StablehloGatherOptions,
    StablehloScatterOptions,
    TensorType,
)

pytestmark = pytest.mark.usefixtures("unmeasured")

Array = npt.NDArray[Any]

I8, U8, I32 = TensorType.INT8, TensorType.UINT8, TensorType.INT32
CODES = T((2, 3), U8, scale=0.1)
OTHERS = T((2, 3), I8, scale=0.1)
PADDINGS = T.constant(np.array([[1, 1], [0, 2]], np.int32))
WEIGHTS = [T.constant(np.eye(3, dtype=np.float32)) for _ in range(2)]
BIAS = T.constant(np.ones(3, np.float32))
STATE = T((2, 3), is_variable=True)
PLAIN = T((2, 3))

REFUSED: dict[str, tuple[bytes, str]] = {
    "joined": (
        one_op_model(
            Op.CONCATENATION, [CODES, OTHERS], [T((4, 3), U8, scale=0.1)], ConcatenationOptions()
        ),
        "types UINT8 and INT8 differ",
    ),
    "stacked": (
        one_op_model(
            Op.PACK, [CODES, OTHERS], [T((2, 2, 3), U8, scale=0.1)], PackOptions(values_count=2)
        ),
        "types UINT8 and INT8 differ",
    ),
    "padded": (
        one_op_model(
            Op.PADV2, [CODES, PADDINGS, T((1,), I8, scale=0.1)], [T((4, 5), U8, scale=0.1)]
        ),
        "types UINT8 and INT8 differ",
    ),
    "updated with codes of another type": (
        one_op_model(Op.DYNAMIC_UPDATE_SLICE, [CODES, T((1, 1), I8), T((2,), I32)], [CODES]),
        "types UINT8 and INT8 differ",
    ),
    "updated": (
        one_op_model(Op.DYNAMIC_UPDATE_SLICE, [PLAIN, T((1, 1)), T((2,))], [PLAIN]),
        "FLOAT32 is not one of the types accepted: INT32, INT64",
    ),
    "a cell of floats that makes codes": (
        one_op_model(Op.RNN, [PLAIN, *WEIGHTS, BIAS, STATE], [OTHERS], RNNOptions()),
        "a result of INT8, expected FLOAT32",
    ),
    "a second cell of floats that makes codes": (
        one_op_model(
            Op.BIDIRECTIONAL_SEQUENCE_RNN,
            [T((1, 2, 3)), *[*WEIGHTS, BIAS, T((1, 3), is_variable=True)] * 2],
            [T((1, 2, 3)), T((1, 2, 3), I8, scale=0.1)],
            BidirectionalSequenceRNNOptions(),
        ),
        "a result of INT8, expected FLOAT32",
    ),
}


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, providers: list[str] | None) -> None:
    content, message = REFUSED[name]
    with pytest.raises(BridgeError, match=message):
        Interpreter(model_content=content, providers=providers).allocate_tensors()


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("bits", [TensorType.INT4, TensorType.INT2])
def test_codes_that_a_packed_type_lacks(bits: TensorType, providers: list[str] | None) -> None:
    """LiteRT keeps the bytes, and reads the first of them as packed codes."""
    table = T.constant(np.arange(-20, 20, dtype=np.int8).reshape(5, 8))
    rows = one_op_model(Op.EMBEDDING_LOOKUP, [T((2,), I32), table], [T((2, 8), bits)])
    for content in (one_op_model(Op.BITCAST, [T((2, 3), I8)], [T((2, 3), bits)]), rows):
        interpreter = Interpreter(model_content=content, providers=providers)
        with pytest.raises(BridgeError, match=f"{bits.name} lacks|{bits.name}"):
            interpreter.allocate_tensors()
            (given,) = interpreter.get_input_details()
            high = np.full(given["shape"], 4 if given["dtype"] is np.int32 else 99)
            interpreter.set_tensor(given["index"], high.astype(given["dtype"]))
            interpreter.invoke()


def scatter(indices: T, dimensions: tuple[int, int], result: T = PLAIN) -> bytes:
    options = StablehloScatterOptions(
        inserted_window_dims=(0, 1),
        scatter_dims_to_operand_dims=dimensions,
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    node = Node(Op.STABLEHLO_SCATTER, ["x", "i", "u"], ["y"], options)
    tensors = {"x": PLAIN, "i": indices, "u": T((2,)), "y": result}
    given = ["x", "u"] if indices.data is not None else ["x", "i", "u"]
    both = {"a": T(()), "b": T(())}
    return model_of(Sub(tensors, [node], given, ["y"]), Sub(both, [], ["a", "b"], ["b"]))


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("result", [I8, TensorType.INT2])
def test_a_scatter_to_another_type(result: TensorType, providers: list[str] | None) -> None:
    """LiteRT reads the bytes of its result as the other type."""
    content = scatter(T.constant(np.zeros((2, 2), np.int32)), (0, 1), T((2, 3), result))
    with pytest.raises(BridgeError, match=f"a result of {result.name}, expected FLOAT32"):
        interpreter = Interpreter(model_content=content, providers=providers)
        interpreter.allocate_tensors()
        interpreter.invoke()


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("fixed", [True, False])
def test_a_scatter_that_names_a_dimension_twice(fixed: bool, providers: list[str] | None) -> None:
    places = np.zeros((2, 2), np.int32)
    content = scatter(T.constant(places) if fixed else T((2, 2), I32), (1, 1))
    with pytest.raises(BridgeError):
        interpreter = Interpreter(model_content=content, providers=providers)
        interpreter.allocate_tensors()
        interpreter.invoke()


def check(content: bytes, feeds: list[Array]) -> None:
    """Both paths give what LiteRT gives."""
    want = litert(content, feeds)
    for providers in (None, []):
        interpreter = Interpreter(model_content=content, providers=providers)
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        details = interpreter.get_output_details()
        for detail, array in zip(details, want, strict=True):
            assert_close(interpreter.get_tensor(detail["index"]), array, 0, 1e-6, str(providers))


def model(op: Op | str, given: list[T], results: list[T], options: Any, count: int) -> bytes:
    """A model of one operator whose first inputs, `count` of them, are those of the graph; it has
    12 inputs at least, the last ones absent, if it is of TFLite."""
    names = [f"in{place}" for place in range(len(given))]
    made = [f"out{place}" for place in range(len(results))]
    read = [*names, *[None] * (12 - len(names) if isinstance(op, Op) else 0)]
    tensors = dict(zip([*names, *made], [*given, *results], strict=True))
    return model_of(Sub(tensors, [Node(op, read, made, options)], names[:count], made))


def test_a_variable_that_an_operator_reads_in_another_place_than_its_states() -> None:
    """An operator with states sets them alone: its data may be a variable, and is fed."""
    data = np.random.default_rng(0).uniform(-1, 1, (2, 4, 3)).astype(np.float32)
    inputs = [T((2, 4, 3), is_variable=True), *WEIGHTS, BIAS, STATE, *WEIGHTS, BIAS, STATE]
    options = BidirectionalSequenceRNNOptions(time_major=False)
    outputs = [T((2, 4, 3)), T((2, 4, 3))]
    check(model(Op.BIDIRECTIONAL_SEQUENCE_RNN, inputs, outputs, options, 1), [data])


def test_a_variable_that_a_custom_operator_of_ours_reads() -> None:
    inputs = [T((3, 5), I8, scale=0.1), T((3, 5), is_variable=True)]
    options = {"tolerance": 5.0, "log_if_failed": False}
    content = model("NumericVerify", inputs, [T((3, 5))], options, 2)
    rng = np.random.default_rng(0)
    codes = rng.integers(-128, 128, (3, 5)).astype(np.int8)
    check(content, [codes, rng.uniform(-1, 1, (3, 5)).astype(np.float32)])


def test_no_slices_of_a_gather() -> None:
    options = StablehloGatherOptions(
        offset_dims=(0,), start_index_map=(0,), index_vector_dim=2, slice_sizes=(1,)
    )
    starts = T.constant(np.zeros((0, 1, 1), np.int32))
    content = one_op_model(Op.STABLEHLO_GATHER, [T((4,)), starts], [T((1, 0, 1))], options)
    check(content, [np.arange(4, dtype=np.float32)])
