"""Products in 8 bits where these are faster, as by default: errors beside those of LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Case, Node, T, assert_close, graph_model, ours
from tests.optimised import optimised_graphs, optimised_nodes
from tests.oracle import litert
from tflite_ort import Interpreter
from tflite_ort.schema import (
    BatchMatMulOptions,
    FullyConnectedOptions,
    Op,
    ReducerOptions,
    TensorType,
)

Array = npt.NDArray[Any]
SEED = 12
_WHOLE = "DynamicQuantizeMatMul"
# Rows and depth and units: one row, few rows with large weights, many rows.
SHAPES = [(1, 512, 256), (3, 1024, 1024), (64, 256, 256), (130, 512, 160), (37, 256, 512)]
ROWS = {
    "normal": lambda rng, shape: rng.normal(0, 2, shape),
    "of one sign": lambda rng, shape: np.maximum(rng.normal(0, 2, shape), 0),
    "of all magnitudes": lambda rng, shape: (
        rng.normal(0, 1, shape) * 10.0 ** rng.uniform(-9, 6, (shape[0], 1))
    ),
    "zeros": lambda rng, shape: np.zeros(shape),
}


def dense(rows: int, depth: int, units: int, *, asymmetric: bool = False) -> Case:
    rng = np.random.default_rng(SEED)
    codes = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    weights = T.constant(codes, scale=rng.uniform(0.01, 0.02, units).tolist(), axis=0)
    bias = T.constant(rng.normal(0, 1, units).astype(np.float32))
    options = FullyConnectedOptions(asymmetric_quantize_inputs=asymmetric)
    inputs = [T((rows, depth)), weights, bias]
    return Case("rounded", Op.FULLY_CONNECTED, inputs, [T((rows, units))], options, 9)


def product(case: Case, x: Array) -> tuple[Array, Array]:
    """The true product in float64, and the sums of magnitudes of the weights."""
    _, weights, bias = case.inputs
    assert weights.data is not None and bias.data is not None
    reals = weights.data.astype(np.float64) * np.array(weights.scale)[:, np.newaxis]
    return x.astype(np.float64) @ reals.T + bias.data, np.abs(reals).sum(axis=1)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_error_is_half_a_step_of_the_row_and_no_more_than_litert_s(
    shape: tuple[int, int, int], kind: str
) -> None:
    print(f"seed {SEED}")
    case = dense(*shape)
    x = ROWS[kind](np.random.default_rng(SEED), shape[:2]).astype(np.float32)
    (got,), runners = ours(case.model(), [x])
    assert runners == {"ort"}
    true, weights = product(case, x)
    error = np.abs(got - true)
    # A step is the largest magnitude / 127; a zero point may be off by half a step too.
    step = np.abs(x).max(axis=1, keepdims=True) / 127
    assert (error <= step * weights + 1e-6 * np.abs(true).max(axis=1, keepdims=True)).all()
    sets = ("default", "optimized", "reference")
    theirs = [np.abs(litert(case.model(), [x], kernels)[0] - true) for kernels in sets]
    worst = max(float(np.sqrt((each**2).mean())) for each in theirs)
    # The same rounding of other halves, over thousands of results.
    assert float(np.sqrt((error**2).mean())) <= 1.02 * worst + 1e-6


def test_it_rounds_where_that_is_faster() -> None:
    for shape in SHAPES:
        case = dense(*shape)
        x = np.random.default_rng(SEED).normal(0, 1, shape[:2]).astype(np.float32)
        (got,), (exact,) = (ours(case.model(), [x], hybrid=each)[0] for each in ("auto", "float"))
        assert_close(exact, product(case, x)[0].astype(np.float32), 0, 1e-5, "in floats")
        assert np.abs(got - exact).max() > 1e-4 * np.abs(exact).max(), "nothing was rounded"


@pytest.mark.parametrize(
    ("shape", "asymmetric"),
    [((1, 64, 64), False), ((64, 256, 256), True), ((256, 256, 32), False), ((40, 96, 96), False)],
)
def test_floats_elsewhere(shape: tuple[int, int, int], asymmetric: bool) -> None:
    """With few weights they are as fast, and rows with zero points take too many nodes."""
    case = dense(*shape, asymmetric=asymmetric)
    x = np.random.default_rng(SEED).normal(0, 1, shape[:2]).astype(np.float32)
    (got,), _ = ours(case.model(), [x])
    assert_close(got, product(case, x)[0].astype(np.float32), 0, 1e-5, "in floats")


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 3e38])
def test_rows_do_not_reach_other_rows(odd: float) -> None:
    case = dense(64, 256, 256)
    x = np.random.default_rng(SEED).normal(0, 1, (64, 256)).astype(np.float32)
    (want,), _ = ours(case.model(), [x])
    x[7, 9] = odd
    (got,), _ = ours(case.model(), [x])
    others = np.arange(64) != 7
    np.testing.assert_array_equal(got[others], want[others])


def dense_of_4_bits(rows: int, depth: int, units: int) -> Case:
    rng = np.random.default_rng(SEED)
    codes, scales = rng.integers(-7, 8, (units, depth)), rng.uniform(0.1, 0.2, units)
    weights = T.constant(
        codes.astype(np.int8), TensorType.INT4, scale=scales.astype(np.float32).tolist(), axis=0
    )
    bias = T.constant(rng.normal(0, 1, units).astype(np.float32))
    inputs, outputs = [T((rows, depth)), weights, bias], [T((rows, units))]
    return Case("4 bits", Op.FULLY_CONNECTED, inputs, outputs, FullyConnectedOptions(), 10)


@pytest.mark.parametrize(
    ("shape", "node"),
    [
        ((1, 512, 256), "MatMulNBits"),
        ((1, 1024, 256), "MatMulNBits"),
        ((64, 256, 256), "MatMulIntegerToFloat"),
        ((3, 1024, 1024), "MatMulIntegerToFloat"),
    ],
    ids=str,
)
def test_products_of_4_bit_weights_are_as_near_as_litert_s(
    shape: tuple[int, int, int], node: str
) -> None:
    print(f"seed {SEED}")
    case = dense_of_4_bits(*shape)
    x = np.random.default_rng(SEED).normal(0, 2, shape[:2]).astype(np.float32)
    true, _ = product(case, x)
    (got,), (exact,) = (ours(case.model(), [x], hybrid=each)[0] for each in ("auto", "float"))
    assert_close(exact, true.astype(np.float32), 0, 1e-5, "in floats")
    sets = ("default", "optimized", "reference")
    theirs = [litert(case.model(), [x], kernels)[0] for kernels in sets]
    error, *others = (float(np.sqrt(((each - true) ** 2).mean())) for each in (got, *theirs))
    assert 0 < error <= 1.02 * max(others)
    assert optimised_nodes(case.model())[node] == 1


@pytest.mark.parametrize(("depth", "block"), [(512, 128), (320, 64), (288, 32)])
@pytest.mark.parametrize("hybrid", ["auto", "float", "xnnpack", "dynamic"])
def test_4_bit_weights_are_never_unpacked_for_a_single_row(
    depth: int, block: int, hybrid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = dense_of_4_bits(1, depth, 256)
    x = np.random.default_rng(SEED).normal(0, 2, (1, depth)).astype(np.float32)
    true, reach = product(case, x)
    content = case.model()

    def unpack(*_: Any, **__: Any) -> Array:
        raise AssertionError("unpacked")

    monkeypatch.setattr("tflite_ort.schema.values.semantics.unpack", unpack)
    (got,), _ = ours(content, [x], hybrid=hybrid)
    steps = np.abs(x).max() / (255 if hybrid == "xnnpack" else 127)
    assert (np.abs(got - true) <= 0.5 * steps * reach + 1e-3).all()
    (graph,) = optimised_graphs(content, hybrid=hybrid)
    (node,) = (each for each in graph.graph.node if each.op_type == "MatMulNBits")
    said = {each.name: each.i for each in node.attribute}
    assert said["block_size"] == block
    assert said["accuracy_level"] == (4 if hybrid == "auto" else 1)


@pytest.mark.parametrize("shape", [(1, 64, 64), (12, 64, 128)], ids=str)
def test_few_4_bit_weights_become_floats(shape: tuple[int, int, int]) -> None:
    case = dense_of_4_bits(*shape)
    x = np.random.default_rng(SEED).normal(0, 2, shape[:2]).astype(np.float32)
    (got,), _ = ours(case.model(), [x])
    assert_close(got, product(case, x)[0].astype(np.float32), 0, 1e-5, "in floats")
    assert set(optimised_nodes(case.model())) == {"Gemm"}


def factor(shape: tuple[int, ...], units: int, *, adj_x: bool, adj_y: bool, channels: bool) -> Case:
    """BATCH_MATMUL of `shape`, before it is turned, and a constant in codes."""
    rng, depth = np.random.default_rng(SEED), shape[-1]
    codes = rng.integers(-127, 128, (units, depth) if adj_y else (depth, units)).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, units).tolist()
    weights = (
        T.constant(codes, scale=scales, axis=0 if adj_y else 1)
        if channels
        else T.constant(codes, scale=0.01)
    )
    turned = (*shape[:-2], shape[-1], shape[-2]) if adj_x else shape
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y)
    return Case(
        "factor", Op.BATCH_MATMUL, [T(turned), weights], [T((*shape[:-1], units))], options, 4
    )


FACTORS = {
    f"{shape}-{adj_x}-{adj_y}-{channels}": factor(
        shape, 256, adj_x=adj_x, adj_y=adj_y, channels=channels
    )
    for shape in ((64, 256), (1, 64, 256), (2, 3, 32, 256), (1, 1024))
    for adj_x, adj_y in ((False, False), (False, True), (True, False))
    for channels in (False, True)
}


@pytest.mark.parametrize(
    ("depth", "node"),
    [
        (512, "MatMulNBits"),
        (320, "MatMulNBits"),
        (96, "MatMulNBits"),
        (500, "DynamicQuantizeMatMul"),
    ],
)
def test_a_single_row_is_rounded_in_runs(depth: int, node: str) -> None:
    """Sums of codes are exact, with the lowest and the highest weights too."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    codes = rng.integers(-128, 128, (1024, depth)).astype(np.int8)
    codes[0], codes[1] = 127, -128
    bias = T.constant(rng.integers(-9, 10, 1024).astype(np.float32))
    inputs = [T((1, depth)), T.constant(codes, scale=1.0), bias]
    options = FullyConnectedOptions()
    case = Case("row", Op.FULLY_CONNECTED, inputs, [T((1, 1024))], options, 9)
    assert optimised_nodes(case.model()) == {node: 1}
    x = rng.integers(-127, 128, (1, depth))
    x[0, :: 32 if node == "MatMulNBits" else 1] = 127
    (got,), _ = ours(case.model(), [x.astype(np.float32)])
    assert bias.data is not None
    want = (x @ codes.astype(np.int64).T + bias.data).astype(np.float32)
    assert_close(got, want, 0, 1e-6, "exact")


@pytest.mark.parametrize(
    ("before", "node"),
    [(Op.RELU, _WHOLE), (Op.RELU6, _WHOLE), (Op.RELU_N1_TO_1, "MatMulNBits")],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_row_without_negative_numbers_has_all_codes(before: Op, node: str) -> None:
    """Behind a mean too, its steps are those of the largest number / 255, as LiteRT's default."""
    print(f"seed {SEED}")
    case, rng = dense(1, 512, 256), np.random.default_rng(SEED)
    _, weights, bias = case.inputs
    tensors = {
        **{name: T((1, 4, 4, 512)) for name in ("x", "active")},
        "axes": T.constant(np.array([1, 2], np.int32)),
        "mean": T((1, 512)),
        "w": weights,
        "b": bias,
        "y": T((1, 256)),
    }
    nodes = [
        Node(before, ["x"], ["active"]),
        Node(Op.MEAN, ["active", "axes"], ["mean"], ReducerOptions()),
        Node(Op.FULLY_CONNECTED, ["mean", "w", "b"], ["y"], FullyConnectedOptions()),
    ]
    model = graph_model(tensors, nodes, ["y", "mean"])
    assert optimised_nodes(model)[node] == 1
    (y, mean), _ = ours(model, [rng.normal(0, 2, (1, 4, 4, 512)).astype(np.float32)])
    want, magnitudes = product(case, mean)
    codes = 255 if node == _WHOLE else 127
    bound = np.abs(mean).max() / codes / 2 * magnitudes + 1e-5 * np.abs(want).max()
    assert (np.abs(y - want) <= bound).all()


@pytest.mark.parametrize("case", FACTORS.values(), ids=FACTORS)
def test_batch_matmul_by_one_matrix_rounds_as_litert(case: Case) -> None:
    """With both roundings, as near to the true product as LiteRT's kernels."""
    print(f"seed {SEED}")
    x = np.random.default_rng(SEED).normal(0.2, 2, case.inputs[0].shape).astype(np.float32)
    ((true,), _) = ours(case.model(), [x], hybrid="float")
    sets = ("default", "optimized", "reference")
    theirs = [litert(case.model(), [x], kernels)[0] for kernels in sets]
    others = max(float(np.sqrt(((each - true) ** 2).mean())) for each in theirs)
    for hybrid in ("dynamic", "xnnpack"):
        (got,), runners = ours(case.model(), [x], hybrid=hybrid)
        assert runners == {"ort"}
        assert 0 < float(np.sqrt(((got - true) ** 2).mean())) <= 1.02 * others


def test_the_default_is_auto() -> None:
    with pytest.raises(ValueError, match="'auto', 'float', 'dynamic', 'xnnpack'"):
        Interpreter(model_content=dense(1, 8, 8).model(), hybrid="none")


@pytest.mark.parametrize(("rows", "width"), [(48, 256), (96, 256), (300, 256), (48, 192)])
def test_rows_that_several_products_read_are_rounded_once(rows: int, width: int) -> None:
    found = optimised_nodes(side_by_side(rows, width, [width] * 3))
    assert (found["QuantizeLinear"], found["MatMulIntegerToFloat"]) == (1, 3)


@pytest.mark.parametrize(
    ("units", "asymmetric"), [([128], 0), ([128, 64, 64], 0), ([128] * 3, 3), ([128] * 2, 1)]
)
def test_rows_are_not_rounded_for_one_small_product(units: list[int], asymmetric: int) -> None:
    """Others are of another size, or round with a zero point."""
    found = optimised_nodes(side_by_side(48, 128, units, asymmetric))
    assert not found["QuantizeLinear"] and not found["MatMulIntegerToFloat"]
    assert found["Gemm"] + found["MatMul"] == len(units)


def side_by_side(rows: int, depth: int, units: list[int], asymmetric: int = 0) -> bytes:
    """Layers that read the same rows; the first ones round them with a zero point."""
    rng = np.random.default_rng(SEED)
    tensors, nodes = {"x": T((rows, depth))}, list[Node]()
    names = [f"y_{number}" for number in range(len(units))]
    for name, size in zip(names, units, strict=True):
        codes = rng.integers(-127, 128, (size, depth)).astype(np.int8)
        tensors |= {f"w_{name}": T.constant(codes, scale=0.01), name: T((rows, size))}
        options = FullyConnectedOptions(asymmetric_quantize_inputs=len(nodes) < asymmetric)
        nodes.append(Node(Op.FULLY_CONNECTED, ["x", f"w_{name}"], [name], options))
    return graph_model(tensors, nodes, names)


def test_the_error_of_products_that_share_rows_is_no_more_than_litert_s() -> None:
    print(f"seed {SEED}")
    model = side_by_side(48, 192, [192] * 3)
    x = np.random.default_rng(SEED).normal(0, 2, (48, 192)).astype(np.float32)
    exact, _ = ours(model, [x], hybrid="float")
    got, _ = ours(model, [x])
    theirs = litert(model, [x], kernels="reference")
    for true, mine, other in zip(exact, got, theirs, strict=True):
        errors = [float(np.sqrt(((each - true) ** 2).mean())) for each in (mine, other)]
        assert 0 < errors[0] <= 1.02 * errors[1]
