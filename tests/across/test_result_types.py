"""Files that say another type of a result than its operator makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.one_op import Array, T, one_op_model, ours
from tests.ops.custom_op import custom_model, interpreter_of
from tests.ops.operands import exported
from tests.oracle import litert, litert_interpreter
from tests.samples import SAMPLES, sample, types
from tflite_ort import AllocationError, Interpreter, schema
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.result_types import _AS_DATA, _FLOATS_ALONE, _LIKE_DATA

FLOAT32, INT8, UINT8 = TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8
INT16, INT32, INT64 = TensorType.INT16, TensorType.INT32, TensorType.INT64
INDEX = T.constant(np.int32(1))


def saying(model: bytes, type: TensorType) -> bytes:
    """`model` with another type of its results in the file."""
    whole = schema.read_model(model)
    (graph,) = whole.subgraphs
    tensors = tuple(
        replace(tensor, type=type) if index in graph.outputs else tensor
        for index, tensor in enumerate(graph.tensors)
    )
    return schema.write_model(replace(whole, subgraphs=(replace(graph, tensors=tensors),)))


@pytest.mark.parametrize("said", [INT32, INT64], ids=lambda type: type.name)
@pytest.mark.parametrize("option", [INT32, INT64], ids=lambda type: type.name)
@pytest.mark.parametrize("op", [Op.ARG_MAX, Op.ARG_MIN, Op.SHAPE], ids=lambda op: op.name)
def test_an_option_decides(op: Op, option: TensorType, said: TensorType) -> None:
    """The result, and what is told of it before and after allocation."""
    options = {
        Op.ARG_MAX: schema.ArgMaxOptions(option),
        Op.ARG_MIN: schema.ArgMinOptions(option),
        Op.SHAPE: schema.ShapeOptions(option),
    }[op]
    inputs = [T((2, 3))] if op is Op.SHAPE else [T((2, 3)), INDEX]
    model = one_op_model(op, inputs, [T((2,), said)], options)
    feeds = [np.array([[1, 2, 3], [5, 4, 3]], np.float32)]
    want = litert(model, feeds)[0]
    for got in (ours(model, feeds)[0], ours(model, feeds, [])[0], exported(model, feeds)):
        np.testing.assert_array_equal(got[0], want)
        assert got[0].dtype == want.dtype
    told = []
    for interpreter in (litert_interpreter(model), Interpreter(model_content=model)):
        before = interpreter.get_output_details()[0]["dtype"]
        interpreter.allocate_tensors()
        told.append((before, interpreter.get_output_details()[0]["dtype"]))
    assert told[0] == told[1]


def test_the_data_decide_of_fake_quant() -> None:
    """LiteRT reads beyond its input where that is of another type: it has no sample."""
    options = schema.FakeQuantOptions(min=-1, max=1, num_bits=8)
    model = one_op_model(Op.FAKE_QUANT, [T((2, 3))], [T((2, 3))], options)
    feeds = [np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)]
    same_when_told_otherwise(model, feeds, INT32)


@pytest.mark.parametrize("said", [INT8, INT16, INT32], ids=lambda type: type.name)
def test_differences_are_floats(said: TensorType) -> None:
    """NumericVerify's; codes of them would be another result."""
    inputs = [T((3,), INT8, scale=0.5), T((3,))]
    feeds = [np.array([1, -2, 3], np.int8), np.array([0.25, 1, 2], np.float32)]
    scaled = T((3,), said, scale=0.02 if said is not INT32 else None)
    model = custom_model("NumericVerify", inputs, [scaled])
    want = litert(model, feeds)[0]
    for got in (ours(model, feeds)[0], ours(model, feeds, [])[0], exported(model, feeds)):
        np.testing.assert_array_equal(got[0], want)
        assert got[0].dtype == want.dtype == np.float32


# By name, how many inputs they have.
INPUTS = {"Mfcc": 2, "MaxUnpooling2D": 2, "Convolution2DTransposeBias": 3}
# By name, the types of inputs that are not all floats.
TYPES = {"KmeansEmbeddingLookup": (INT32, UINT8, FLOAT32)}


@pytest.mark.parametrize("name", sorted(_FLOATS_ALONE))
def test_custom_operators_that_make_floats_alone(name: str) -> None:
    second = name.startswith(("Transform", "Landmarks2"))
    count = INPUTS.get(name, 2 if name.startswith("Transform") else 1)
    result = T((1, 4, 4, 1), INT8, scale=0.5)
    inputs = [T((1, 4, 4, 1), each) for each in TYPES.get(name, (FLOAT32,) * count)]
    model = custom_model(name, inputs, [result], version=1 + second)
    for providers in (None, []):
        with pytest.raises(AllocationError, match="a result of INT8, expected FLOAT32"):
            interpreter_of(model, providers)


@pytest.mark.parametrize("op", sorted(_AS_DATA & SAMPLES.keys()), ids=lambda op: op.name)
def test_the_data_decide(op: Op) -> None:
    """The result has the type of the data."""
    type = INT32 if INT32 in types(op) else FLOAT32
    try:
        model, feeds = sample(op, type)
        ours(model, feeds)
    except AllocationError:  # not of integers
        model, feeds = sample(op, type := FLOAT32)
    same_when_told_otherwise(model, feeds, INT64 if type is INT32 else INT32)


def same_when_told_otherwise(model: bytes, feeds: list[Array], type: TensorType) -> None:
    """The results do not change if the file says that they are of `type`."""
    want, _ = ours(model, feeds)
    other = saying(model, type)
    for got in (ours(other, feeds)[0], ours(other, feeds, [])[0], exported(other, feeds)):
        np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
        assert got[0].dtype == want[0].dtype == litert(other, feeds)[0].dtype


@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MAXIMUM, Op.PRELU], ids=lambda op: op.name)
def test_codes_have_the_scale_that_the_file_says(op: Op) -> None:
    """Even if it says that they are floats."""
    model, feeds = sample(op, INT8)
    other = saying(model, FLOAT32)
    want = litert(other, feeds)[0]
    for got in (ours(other, feeds)[0], ours(other, feeds, [])[0], exported(other, feeds)):
        assert got[0].dtype == want.dtype == np.int8
        np.testing.assert_allclose(got[0], want, atol=1)
    details = []
    for interpreter in (litert_interpreter(other), Interpreter(model_content=other)):
        interpreter.allocate_tensors()
        details.append(interpreter.get_output_details()[0]["quantization"])
    assert details[0] == details[1] != (0.0, 0)


@pytest.mark.parametrize("op", sorted(_LIKE_DATA), ids=lambda op: op.name)
def test_another_type_is_refused(op: Op) -> None:
    """Codes of one type would be taken for those of another."""
    model, feeds = sample(op, INT8 if op is not Op.L2_POOL_2D else FLOAT32)
    other = saying(model, UINT8)
    with pytest.raises((RuntimeError, ValueError)):
        litert(other, feeds)
    with pytest.raises(AllocationError, match="expected"):
        ours(other, feeds)


WINDOWS = {"padding": schema.Padding.SAME, "stride_w": 1, "stride_h": 1}
IMAGE, FILTER = (1, 2, 2, 2), (2, 1, 1, 2)
SIZES = T.constant(np.array(IMAGE, np.int32))
# Shapes of the data, the weights and the result, what comes first, and the options.
PRODUCTS = {
    Op.BATCH_MATMUL: ((2, 2), (2, 2), (2, 2), [], schema.BatchMatMulOptions()),
    Op.FULLY_CONNECTED: ((2, 2), (2, 2), (2, 2), [], schema.FullyConnectedOptions()),
    Op.CONV_2D: (IMAGE, FILTER, IMAGE, [], schema.Conv2DOptions(**WINDOWS)),
    Op.DEPTHWISE_CONV_2D: (
        *(IMAGE, (1, 1, 1, 2), IMAGE, []),
        schema.DepthwiseConv2DOptions(depth_multiplier=1, **WINDOWS),
    ),
    Op.TRANSPOSE_CONV: (IMAGE, FILTER, IMAGE, [SIZES], schema.TransposeConvOptions(**WINDOWS)),
}


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize(
    ("given", "made"),
    [(FLOAT32, INT8), (FLOAT32, INT16), (FLOAT32, INT32), (INT8, FLOAT32), (INT16, INT32)],
    ids=lambda type: type.name,
)
@pytest.mark.parametrize("op", PRODUCTS, ids=lambda op: op.name)
def test_products_are_floats_or_codes(
    op: Op, given: TensorType, made: TensorType, providers: list[str] | None
) -> None:
    """LiteRT refuses the others, but for BATCH_MATMUL, which writes floats over the codes."""
    data, weights, result, first, options = PRODUCTS[op]
    plain = given is FLOAT32
    x = T(data, given, scale=None if plain else 0.5)
    ones = np.ones(weights, np.float32 if plain else np.int8)
    filter = T.constant(ones, scale=None if plain else 0.5)
    pair = [filter, x] if first else [x, filter]
    model = one_op_model(op, [*first, *pair], [T(result, made, scale=0.5)], options)
    feeds = [np.ones(data, NUMPY_DTYPE[given])]
    with pytest.raises(AllocationError, match=f"a result of {made.name} of {given.name} input"):
        ours(model, feeds, providers)


def test_sums_of_codes_are_those_of_int8() -> None:
    """Where ONNX Runtime refuses other codes, numpy does."""
    for type in (INT8, UINT8, INT16):
        tensors = [T((2, 2), INT8, scale=0.5), T((2, 2), type, scale=0.5)]
        model = one_op_model(
            Op.BATCH_MATMUL, tensors, [T((2, 2), INT32, scale=0.25)], schema.BatchMatMulOptions()
        )
        feeds = [np.eye(2, dtype=np.int8), np.array([[1, 2], [3, 4]], NUMPY_DTYPE[type])]
        for providers in (None, []):
            if type is INT8:
                assert (
                    ours(model, feeds, providers)[0][0].tolist() == litert(model, feeds)[0].tolist()
                )
                continue
            with pytest.raises(schema.BridgeError, match=type.name):
                ours(model, feeds, providers)
