"""Products in 8 bits on x86 without VNNI, which every CPU can compute, beside LiteRT's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Case, Node, T, assert_close, graph_model, ours
from tests.ops.operands import with_blocks
from tests.optimised import optimised_graphs, optimised_nodes
from tests.oracle import litert
from tflite_ort.plan import context
from tflite_ort.providers import trials
from tflite_ort.schema import FullyConnectedOptions, Op, TensorType
from tflite_ort.tuning import session_target

Array = npt.NDArray[Any]
SEED = 21
SETS = ("default", "optimized", "reference")
# Rows, depth, units; the node of the product where MatMulNBits is exact, and where it is not.
LAYERS = {
    (1, 512, 256): ("MatMulNBits", "DynamicQuantizeMatMul"),
    (1, 500, 256): ("DynamicQuantizeMatMul", "DynamicQuantizeMatMul"),
    (3, 1024, 1024): ("MatMulIntegerToFloat", "MatMulIntegerToFloat"),
    (64, 256, 256): ("MatMulIntegerToFloat", "MatMulIntegerToFloat"),
    (128, 384, 512): ("MatMulIntegerToFloat", "MatMulIntegerToFloat"),
}


@pytest.fixture(params=[True, False], ids=["exact runs", "no exact runs"])
def exact_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The weights are uint8, which every CPU multiplies exactly; MatMulNBits is taken only where it
    is exact on this one."""
    if request.param and not trials.exact_runs():
        pytest.skip("MatMulNBits is not exact on this processor")
    monkeypatch.setattr(session_target, "exact_weight_type", lambda: "uint8")
    monkeypatch.setattr(context, "exact_runs", lambda: request.param)
    return bool(request.param)


def layer(rows: int, codes: Array, scale: list[float] | float, bias: Array | None = None) -> Case:
    units, depth = codes.shape
    axis = {} if isinstance(scale, float) else {"axis": 0}
    inputs = [T((rows, depth)), T.constant(codes.astype(np.int8), scale=scale, **axis)]
    inputs += [] if bias is None else [T.constant(bias.astype(np.float32))]
    options = FullyConnectedOptions()
    return Case("layer", Op.FULLY_CONNECTED, inputs, [T((rows, units))], options, 9)


@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_the_sums_of_the_largest_codes_are_exact(
    shape: tuple[int, int, int], exact_runs: bool
) -> None:
    """Pairs of such products exceed 16 bits in kernels that add them there."""
    print(f"seed {SEED}")
    rng, (rows, depth, units) = np.random.default_rng(SEED), shape
    codes = rng.integers(-128, 128, (units, depth))
    codes[0], codes[1], codes[2, ::2], codes[3, 1::2] = 127, -128, -128, -128
    x = rng.integers(-127, 128, (rows, depth))
    x[0], x[:, ::32] = 127, 127
    x[-1, 1:] = np.where(np.arange(1, depth) % 32, -127, 127)
    if not exact_runs or depth % 32:
        x[0, 0], x[0, 1] = -127, 128  # steps of 1 with a zero point too
    bias = rng.integers(-9, 10, units)
    case = layer(rows, codes, 1.0, bias)
    assert optimised_nodes(case.model())[LAYERS[shape][not exact_runs]] == 1
    if rows > 1:
        x = np.clip(x, -127, 127)
    (got,), runners = ours(case.model(), [x.astype(np.float32)])
    assert runners == {"ort"}
    want = (x.astype(np.int64) @ codes.T + bias).astype(np.float32)
    assert_close(got, want, 0, 2e-7, "sums of codes")


@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_the_error_is_no_more_than_litert_s(shape: tuple[int, int, int], exact_runs: bool) -> None:
    print(f"seed {SEED}")
    rng, (rows, depth, units) = np.random.default_rng(SEED), shape
    codes = rng.integers(-127, 128, (units, depth))
    scales = rng.uniform(0.01, 0.02, units).astype(np.float32)
    case = layer(rows, codes, scales.tolist(), rng.normal(0, 1, units))
    squares = np.zeros(1 + len(SETS))
    for _ in range(6):
        x = rng.normal(0, 2, (rows, depth)).astype(np.float32)
        (got,), (true,) = (ours(case.model(), [x], hybrid=each)[0] for each in ("auto", "float"))
        theirs = [litert(case.model(), [x], kernels)[0] for kernels in SETS]
        squares += [float(((each - true) ** 2).mean()) for each in (got, *theirs)]
    error, *others = np.sqrt(squares)
    assert 0 < error <= 1.02 * max(others)
    assert optimised_nodes(case.model())[LAYERS[shape][not exact_runs]] == 1


@pytest.mark.parametrize("hybrid", ["dynamic", "xnnpack"])
@pytest.mark.parametrize("shape", [(1, 512, 256), (5, 96, 700), (130, 64, 80)], ids=str)
def test_rows_are_rounded_as_litert_rounds_them(
    shape: tuple[int, int, int], hybrid: str, exact_runs: bool
) -> None:
    print(f"seed {SEED}")
    rng, (rows, depth, units) = np.random.default_rng(SEED), shape
    codes = rng.integers(-127, 128, (units, depth))
    codes[0], codes[1] = 127, -127
    case = layer(rows, codes, 0.03, rng.normal(0, 1, units))
    x = rng.normal(0, 2, (rows, depth)).astype(np.float32)
    x[0] = np.abs(x[0]).max()
    kernels = "default" if hybrid == "xnnpack" else "reference"
    (want,) = litert(case.model(), [x], kernels)
    (got,), _ = ours(case.model(), [x], hybrid=hybrid)
    assert_close(got, want, 0, 1e-5, hybrid)
    nodes = optimised_nodes(case.model(), hybrid=hybrid)  # one of a scale of its own is fused
    coded = nodes["MatMulInteger"] + nodes["MatMulIntegerToFloat"]
    assert coded == (units * depth >= 2**16)


@pytest.mark.parametrize("hybrid", ["dynamic", "xnnpack"])
@pytest.mark.parametrize("shape", [(1, 512, 256), (5, 96, 700), (3, 1, 16)], ids=str)
def test_rows_of_tiny_numbers_have_steps_of_their_own(
    shape: tuple[int, int, int], hybrid: str, exact_runs: bool
) -> None:
    print(f"seed {SEED}")
    rng, (rows, depth, units), tiny = np.random.default_rng(SEED), shape, np.float32(2.0**-112)
    case = layer(rows, rng.integers(-127, 128, (units, depth)), 0.03)
    x = tiny * rng.normal(0, 2, (rows, depth)).astype(np.float32)
    kernels = "default" if hybrid == "xnnpack" else "reference"
    (want,), (got,) = litert(case.model(), [x], kernels), ours(case.model(), [x], hybrid=hybrid)[0]
    assert_close(got / tiny, want / tiny, 0, 1e-5, hybrid)


@pytest.mark.parametrize("units", [512, 511])
def test_a_single_row_in_digits_is_as_exact_as_floats(units: int, exact_runs: bool) -> None:
    print(f"seed {SEED}")
    rng, depth = np.random.default_rng(SEED), 1024
    codes = rng.integers(-128, 128, (units, depth))
    codes[0], codes[1] = 127, -128
    case = layer(1, codes, 0.01)
    x = rng.normal(0, 1, (1, depth)) * 10.0 ** rng.uniform(-6, 0, (1, depth))
    x[0, :64] = np.abs(x).max()
    (got,), _ = ours(case.model(), [x.astype(np.float32)], hybrid="float")
    want = (x.astype(np.float32).astype(np.float64) @ codes.T * np.float32(0.01)).astype(np.float32)
    assert_close(got, want, 0, 2e-6, "digits")
    coded = optimised_nodes(case.model(), hybrid="float")["MatMulInteger"]
    assert coded == (units * depth >= 2**19)


def blocks(rows: int, depth: int, units: int, *, relu: bool) -> tuple[bytes, Array, Array]:
    """4-bit weights with a scale for each 32 of them, behind a RELU if asked for: the model, its
    input, and the true result."""
    rng = np.random.default_rng(SEED)
    codes = rng.integers(-8, 8, (units, depth)).astype(np.int8)
    scales = rng.uniform(0.01, 0.05, (units, depth // 32)).astype(np.float16)
    x = rng.normal(0, 2, (rows, depth)).astype(np.float32)
    tensors = {
        "x": T(x.shape),
        "weights": T.constant(codes, TensorType.INT4),
        "scales": T.constant(scales.reshape(-1)),
        "active": T(x.shape),
        "y": T((rows, units)),
    }
    operands = ["active" if relu else "x", "weights"]
    nodes = [Node(Op.RELU, ["x"], ["active"])] if relu else []
    nodes += [Node(Op.FULLY_CONNECTED, operands, ["y"], FullyConnectedOptions(), 10)]
    if not relu:
        tensors.pop("active")
    weights = codes * np.repeat(scales.astype(np.float64), 32, axis=1)
    model = with_blocks(graph_model(tensors, nodes, ["y"]), 1, 2, 32)
    return model, x, (np.maximum(x, 0) if relu else x).astype(np.float64) @ weights.T


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 16, 17])
def test_few_rows_are_rounded_for_weights_in_blocks(
    rows: int, relu: bool, exact_runs: bool
) -> None:
    """Not behind a RELU: LiteRT rounds with a zero point, which halves the steps of such rows."""
    print(f"seed {SEED}")
    model, x, true = blocks(rows, 256, 256, relu=relu)
    (got,), _ = ours(model, [x])
    theirs = [litert(model, [x], kernels)[0] for kernels in ("default", "optimized")]
    error, *others = (float(np.sqrt(((each - true) ** 2).mean())) for each in (got, *theirs))
    assert error <= 1.02 * max(others)
    (graph,) = optimised_graphs(model)
    (node,) = (each for each in graph.graph.node if each.op_type == "MatMulNBits")
    level = next(each.i for each in node.attribute if each.name == "accuracy_level")
    assert level == (4 if rows <= 16 and exact_runs and not relu else 1)


class Saturating:
    """A session whose sums of pairs stay in 16 bits, as those of kernels that add pairs there."""

    def __init__(self, by: float) -> None:
        self._by = by

    def bind(self, inputs: list[Array], outputs: list[Array]) -> list[Array]:
        return [*inputs, *outputs]

    def run(self, bound: list[Array]) -> None:
        row, *results = bound
        for each in results:
            each[...] = np.rint(row).sum() * -128
            each[0, 1] += self._by


def test_a_kernel_that_loses_one_unit_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "graph_session", lambda *_, **__: Saturating(-1))
    trials.exact_runs.cache_clear()
    try:
        assert not trials.exact_runs()
    finally:
        trials.exact_runs.cache_clear()
