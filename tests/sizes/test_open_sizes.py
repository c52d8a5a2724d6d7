"""Sizes that an export leaves open: the file gives what the interpreter gives, or it fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.fuzz.corpus import fixed_corpus
from tests.fuzz.litert import LiteRT
from tests.one_op import Array, Node, T, assert_close, graph_model, one_op_model, ours
from tests.oracle import litert as outputs_of
from tests.oracle import litert_interpreter
from tests.rnn_models import Rnn, Svdf
from tests.sizes.trial import WRONG, trial
from tests.subgraph_models import Sub, model_of
from tflite_ort import Interpreter, export_onnx
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BitcastOptions,
    Conv3DOptions,
    DynamicUpdateSliceOptions,
    EmbeddingLookupSparseOptions,
    FullyConnectedOptions,
    GatherOptions,
    MirrorPadMode,
    MirrorPadOptions,
    MulOptions,
    Op,
    Padding,
    ReducerOptions,
    ShapeOptions,
    SqueezeOptions,
    TensorType,
    TransposeConvOptions,
)

pytestmark = pytest.mark.usefixtures("unmeasured")

INT32 = TensorType.INT32
# Of the models of tests/fuzz/seeds.xz one in so many is tried.
_SAMPLED = 120


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    process = LiteRT()
    yield process
    process.close()


@pytest.mark.filterwarnings("ignore")
def test_models_of_all_operators(request: pytest.FixtureRequest, litert: LiteRT) -> None:
    """A sample of what ``python -m tests.sizes`` tries; with --thorough, the smallest of each kind
    of operators and types."""
    seed = request.config.getoption("--seed")
    step = 1 if request.config.getoption("--thorough") else _SAMPLED
    print("seed", seed)
    counts, wrong = Counter[str](), list[str]()
    for model in fixed_corpus().seeds[seed % step :: step]:
        found = trial(model.content, litert, seed)
        for row in found.rows() if found is not None else ():
            counts[row.kind] += 1
            if row.kind in WRONG:
                wrong.append(f"{row.kind} {row.opening.axes} {dict(row.shapes)} {row.text}")
    assert not wrong
    assert counts["same"] > 20


def wide(*data: Any) -> T:
    return T.constant(np.array(data, np.int32))


RAGGED = {
    "reshape of rows": one_op_model(Op.RESHAPE, [T((2, 3)), wide(2, 3)], [T((2, 3))]),
    "reshape of codes": one_op_model(
        Op.RESHAPE,
        [T((2, 3), TensorType.INT8, 0.5), wide(2, 3)],
        [T((2, 3), TensorType.INT8, 0.5)],
    ),
    "joined bits": one_op_model(
        Op.BITCAST, [T((5, 2), TensorType.INT16)], [T((5,), TensorType.INT32)], BitcastOptions()
    ),
    "equal shapes": one_op_model(Op.STABLEHLO_ADD, [T((3, 2)), T((3, 2))], [T((3, 2))]),
    "dropped size": one_op_model(
        Op.SQUEEZE, [T((1, 3, 1))], [T((1, 3))], SqueezeOptions(squeeze_dims=(2,))
    ),
    "segments": one_op_model(
        Op.UNSORTED_SEGMENT_MAX, [T((5, 2), INT32), T((5,), INT32), wide(4)], [T((4, 2), INT32)]
    ),
    "values of keys": one_op_model(
        Op.HASHTABLE_LOOKUP,
        [wide(1, 9, 2), wide(1, 2, 5), T((3, 2))],
        [T((3, 2)), T((3,), TensorType.UINT8)],
    ),
    "values of places": one_op_model(
        Op.SPARSE_TO_DENSE,
        [wide([0, 1], [1, 0]), wide(2, 2), T((2,)), T.constant(np.float32(7))],
        [T((2, 2))],
    ),
    "replaced region": one_op_model(
        Op.DYNAMIC_UPDATE_SLICE,
        [T((3, 4)), T((2, 2)), T((2,), INT32)],
        [T((3, 4))],
        DynamicUpdateSliceOptions(),
    ),
    "list of begins": one_op_model(Op.SLICE, [T((4, 5)), T((2,), INT32), wide(1, 1)], [T((1, 1))]),
    "scales of places": one_op_model(
        Op.QUANTIZE, [T((2, 3))], [T((2, 3), TensorType.INT8, [0.1, 0.2], [0, 0])]
    ),
    "places of scales": one_op_model(
        Op.DEQUANTIZE, [T((2, 3), TensorType.INT8, [0.1, 0.2], [0, 0])], [T((2, 3))], version=3
    ),
    "mean of nothing": one_op_model(Op.MEAN, [T((2, 0)), wide(1)], [T((2,))], ReducerOptions()),
    **{
        f"mirror {mode.name}": one_op_model(
            Op.MIRROR_PAD,
            [T((5, 4)), wide([0, 0], [3, 0])],
            [T((5, 7))],
            MirrorPadOptions(mode=mode),
        )
        for mode in MirrorPadMode
    },
    "boxes of four": one_op_model(
        Op.NON_MAX_SUPPRESSION_V5,
        [T((3, 4)), T((3,)), T.constant(np.int32(2)), *map(T.constant, np.float32([0.5, 0, 1]))],
        [T((2,), INT32), T((2,)), T((), INT32)],
    ),
    "no ids": one_op_model(
        Op.EMBEDDING_LOOKUP_SPARSE,
        [T((0,), INT32), T((0, 2), INT32), wide(2, 3), T((0,)), T((4, 5))],
        [T((2, 5))],
        EmbeddingLookupSparseOptions(),
    ),
    "volumes of a batch": one_op_model(
        Op.CONV_3D_TRANSPOSE,
        [wide(2, 4, 4, 4, 3), T.constant(np.ones((2, 2, 2, 3, 2), np.float32)), T((2, 2, 2, 2, 2))],
        [T((2, 4, 4, 4, 3))],
        Conv3DOptions(Padding.SAME, stride_d=2, stride_w=2, stride_h=2),
    ),
    "batches to gather from": one_op_model(
        Op.GATHER,
        [T((2, 4, 3)), wide(1, 3)],
        [T((2, 3))],
        GatherOptions(axis=1, batch_dims=1),
    ),
    **{
        f"rows of rank {len(shape)} that stay": one_op_model(
            Op.FULLY_CONNECTED,
            [T(shape), T.constant(np.ones((3, 8), np.int8), scale=0.1)],
            [T((*shape[:-1], 3))],
            FullyConnectedOptions(keep_num_dims=True),
        )
        for shape in ((2, 8), (1, 2, 8))
    },
    "rows of another number": model_of(
        Sub(
            {
                "x": T((1, 5, 6, 1)),
                "wanted": wide(1, 10, 1, 3),
                "order": wide(1, 3, 0, 2),
                "y": T((1, 10, 1, 3)),
                "z": T((10, 3, 1, 1)),
            },
            [Node(Op.RESHAPE, ["x", "wanted"], ["y"]), Node(Op.TRANSPOSE, ["y", "order"], ["z"])],
            ["x"],
            ["z"],
        )
    ),
    **{
        f"SVDF of one step, {weights}": Svdf(
            memory=1, weights=weights, activation=ActivationFunctionType.RELU
        ).model()
        for weights in ("float", "int8", "integer")
    },
    "transposed": one_op_model(
        Op.TRANSPOSE_CONV,
        [wide(1, 6, 6, 2), T.constant(np.ones((2, 3, 3, 2), np.float32)), T((1, 3, 3, 2))],
        [T((1, 6, 6, 2))],
        TransposeConvOptions(padding=Padding.SAME, stride_h=2, stride_w=2),
    ),
}


@pytest.mark.filterwarnings("ignore::tflite_ort.BatchWarning")
@pytest.mark.parametrize("name", RAGGED)
def test_what_does_not_fit_is_no_answer(name: str, litert: LiteRT) -> None:
    found = trial(RAGGED[name], litert, 0)
    assert found is not None
    rows = list(found.rows())
    assert not [row for row in rows if row.kind in WRONG]
    assert {row.kind for row in rows} - {"refused"}


@pytest.mark.parametrize("shape", [(2, 6, 4), (1, 3, 4), (2, 3, 7)])
def test_an_input_that_no_kernel_reads_has_any_size(shape: tuple[int, ...]) -> None:
    """An auxiliary input without weights, where the batch comes first."""
    rnn = Rnn(Op.BIDIRECTIONAL_SEQUENCE_RNN, auxiliary="linked")
    rng = np.random.default_rng(0)
    given = [rng.normal(size=size).astype(np.float32) for size in ((2, 3, 4), shape)]
    for wanted, got in zip(
        outputs_of(rnn.model(), given), ours(rnn.model(), given)[0], strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def sizes_of_transposed() -> Iterator[tuple[Padding, int, int, int]]:
    """Padding, filter, stride, and an output of three cells of the input."""
    for kernel, stride in ((2, 2), (3, 2), (4, 2), (3, 1), (3, 3), (4, 3)):
        for size in range(3 * stride - stride + 1, 3 * stride + 1):
            yield Padding.SAME, kernel, stride, size
        yield Padding.VALID, kernel, stride, 2 * stride + kernel
        yield Padding.VALID, kernel, stride, 2 * stride + kernel + stride - 1


@pytest.mark.parametrize(("padding", "kernel", "stride", "size"), [*sizes_of_transposed()])
@pytest.mark.parametrize("codes", [False, True])
def test_transposed_convolutions_of_any_size(
    padding: Padding, kernel: int, stride: int, size: int, codes: bool
) -> None:
    """XNNPACK adds or takes a stride for each cell, whatever output_shape says."""
    model = transposed(padding, kernel, stride, size, codes)
    shapes: tuple[int | str, ...] = (1, "h", "w", 2)
    session = OnnxSession(export_onnx(model, input_shapes={"in2": shapes}), precise=True)
    ours, theirs = Interpreter(model_content=model), litert_interpreter(model)
    theirs.allocate_tensors()  # XNNPACK looks at the sizes of the file
    for cells in ((3, 3), (5, 4), (1, 2), (7, 7)):
        rng = np.random.default_rng(sum(cells))
        image = rng.integers(-100, 100, (1, *cells, 2)).astype(np.int8 if codes else np.float32)
        want = resized(theirs, image)
        assert want.shape[1:3] == tuple(size + stride * (each - 3) for each in cells)
        for got in (resized(ours, image), session.run({"in2": image})[0]):
            assert_close(got, want, 1, 1e-5, f"{cells}")


def doubled(padding: Padding, size: int, zero_point: int, relu: bool) -> bytes:
    """A TRANSPOSE_CONV of int8 codes whose output_shape is twice the image's, and `size` more."""
    rng = np.random.default_rng(size)
    scales = rng.uniform(0.002, 0.02, 4).tolist()
    bias = rng.integers(-2000, 2000, 4).astype(np.int32)
    image = T((1, 5, 6, 3), TensorType.INT8, 0.05, zero_point, shape_signature=(-1, -1, -1, 3))
    activation = ActivationFunctionType.RELU if relu else ActivationFunctionType.NONE
    tensors = {
        "x": image,
        "sizes": T((4,), INT32),
        "times": wide(1, 2, 2, 0),
        "more": wide(0, size, size, 4),
        "twice": T((4,), INT32),
        "listed": T((4,), INT32),
        "w": T.constant(rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), scale=scales),
        "b": T.constant(bias, scale=[0.05 * scale for scale in scales]),
        "y": T((1, 10 + size, 12 + size, 4), TensorType.INT8, 0.1, zero_point),
    }
    options = TransposeConvOptions(padding, 2, 2, activation)
    nodes = [
        Node(Op.SHAPE, ["x"], ["sizes"], ShapeOptions(INT32)),
        Node(Op.MUL, ["sizes", "times"], ["twice"], MulOptions()),
        Node(Op.ADD, ["twice", "more"], ["listed"], AddOptions()),
        Node(Op.TRANSPOSE_CONV, ["listed", "w", "x", "b"], ["y"], options, 4),
    ]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("zero_point", [3, -128])
@pytest.mark.parametrize(("padding", "size"), [(Padding.SAME, 0), (Padding.VALID, 1)])
def test_codes_of_a_computed_size(padding: Padding, size: int, zero_point: int) -> None:
    """XNNPACK takes none of these: all of LiteRT's kernels round the sums twice."""
    model = doubled(padding, size, zero_point, relu=zero_point < 0)
    session = OnnxSession(export_onnx(model, exact=True), precise=True)
    rng = np.random.default_rng(0)
    for shape in ((1, 5, 6, 3), (2, 30, 31, 3)):
        image = rng.integers(-128, 128, shape).astype(np.int8)
        (want,), (reference,) = (
            outputs_of(model, [image], kernels) for kernels in ("default", "reference")
        )
        assert np.array_equal(want, reference)
        for providers in (None, []):
            ((got,), _) = ours(model, [image], providers)
            assert np.array_equal(got, want)
        assert np.array_equal(session.run({"x": image})[0], want)


def transposed(padding: Padding, kernel: int, stride: int, size: int, codes: bool) -> bytes:
    rng = np.random.default_rng(kernel)
    listed = wide(1, size, size, 4)
    options = TransposeConvOptions(padding=padding, stride_h=stride, stride_w=stride)
    if not codes:
        filter = T.constant(rng.normal(size=(4, kernel, kernel, 2)).astype(np.float32))
        image, output = T((1, 3, 3, 2)), T((1, size, size, 4))
        return one_op_model(Op.TRANSPOSE_CONV, [listed, filter, image], [output], options)
    weights = rng.integers(-127, 128, (4, kernel, kernel, 2)).astype(np.int8)
    filter = T.constant(weights, scale=[0.01] * 4, zero_point=[0] * 4)
    image = T((1, 3, 3, 2), TensorType.INT8, 0.1, 3)
    output = T((1, size, size, 4), TensorType.INT8, 1.0, -4)
    return one_op_model(Op.TRANSPOSE_CONV, [listed, filter, image], [output], options, version=3)


def resized(interpreter: Any, image: Array) -> Array:
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, image.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, image)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
