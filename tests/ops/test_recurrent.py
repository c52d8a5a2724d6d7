"""Recurrent operators through ONNX Runtime over several invokes: every form against LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.lstm_models import BasicLstm, Lstm, invokes
from tests.one_op import assert_close
from tests.oracle import litert_interpreter
from tests.rnn_models import Rnn, Svdf, Weights
from tflite_ort import Interpreter, export_onnx
from tflite_ort.opmap.idioms import hybrid_products
from tflite_ort.schema import ActivationFunctionType as Act
from tflite_ort.schema import BridgeError, Op

Array = npt.NDArray[Any]
Results = Sequence[Sequence[Array]]

LSTM, SEQUENCE = Op.LSTM, Op.UNIDIRECTIONAL_SEQUENCE_LSTM
BOTH_WAYS, RNN_BOTH_WAYS = Op.BIDIRECTIONAL_SEQUENCE_LSTM, Op.BIDIRECTIONAL_SEQUENCE_RNN
# Hybrid weights are dequantised; LiteRT rounds the activations that they meet to 8 bits.
HYBRID = 0.06

SIZES = [(1, 1), (2, 3), (17, 1), (17, 3)]
CELLS: list[dict[str, Any]] = [
    {},
    {"coupled": True},
    {"peephole": True},
    {"peephole": True, "coupled": True},
    {"projection": True},
    {"projection": True, "projection_bias": True, "proj_clip": 0.3},
    {"cell_clip": 10.0},
    {"cell_clip": 0.4},
    {"cell_clip": 1.2},
    {"cell_clip": 0.4, "coupled": True},
    {"cell_clip": 10.0, "peephole": True},
    *({"activation": f} for f in (Act.RELU6, Act.RELU_N1_TO_1, Act.SIGN_BIT, Act.NONE)),
]
NORMS: list[dict[str, Any]] = [
    {"layer_norm": True},
    {"layer_norm": True, "coupled": True, "peephole": True, "projection": True},
]
SEQUENCES = [*CELLS, *NORMS, {"time_major": True}, {"diagonal": ("input", "forget")}]
DIRECTIONS = [
    *CELLS,
    {"time_major": True},
    {"auxiliary": "weights"},
    {"auxiliary": "linked"},
    {"merge_outputs": True, "time_major": True},
    {"merge_outputs": True, "time_major": True, "cell_clip": 10.0},
]
INTEGERS: list[dict[str, Any]] = [
    {},
    {"coupled": True},
    {"projection": True},
    {"projection": True, "projection_bias": True, "proj_clip": 0.3},
    {"projection": True, "proj_clip": 3.0},
    {"cell_clip": 0.7},
    {"cell_clip": 10.0, "cell_bits": 13},
    {"cell_bits": 15},
    {"cell_bits": 9, "coupled": True},
    {"peephole": True},
    {"layer_norm": True},
    {"layer_norm": True, "coupled": True, "peephole": True},
    {"layer_norm": True, "projection": True, "projection_bias": True},
]
LSTMS = [
    *(Lstm(SEQUENCE, time=t, batch=b, **more) for t, b in SIZES for more in SEQUENCES),
    *(Lstm(BOTH_WAYS, time=t, batch=b, **more) for t, b in SIZES for more in DIRECTIONS),
    *(Lstm(LSTM, batch=b, **more) for b in (1, 3) for more in [*CELLS, *NORMS]),
    Lstm(BOTH_WAYS, batch=1, merge_outputs=True),
]
INTEGER_LSTMS = [
    *(Lstm(SEQUENCE, "8x8_16", b, t, **more) for t, b in SIZES for more in INTEGERS),
    *(Lstm(LSTM, "8x8_16", b, **more) for b in (1, 3) for more in INTEGERS),
    Lstm(SEQUENCE, "8x8_16", 2, 100, features=40, cells=50),
    Lstm(SEQUENCE, "8x8_16", 3, 4, time_major=True),
]
CLIPS: list[dict[str, Any]] = [{}, {"cell_clip": 0.4}, {"cell_clip": 5.0, "proj_clip": 0.3}]
NARROW: dict[str, Any] = {
    "coupled": True,
    "layer_norm": True,
    "projection": True,
    "projection_bias": True,
}
NARROW_LSTMS = [
    Lstm(LSTM, "8x8_8", batch, cells=cells, **NARROW, **more)
    for batch, cells in ((1, 6), (3, 128))
    for more in CLIPS
]
HYBRID_LSTMS = [
    *(
        Lstm(SEQUENCE, arithmetic, time=5, cell_clip=10.0)
        for arithmetic in ("hybrid", "hybrid-uint8")
    ),
    Lstm(SEQUENCE, "hybrid", layer_norm=True, peephole=True, projection=True),
    Lstm(BOTH_WAYS, "hybrid", auxiliary="weights"),
    Lstm(LSTM, "hybrid", asymmetric=True, version=4),
]
RNNS = [
    *(
        Rnn(op, b, t, activation=function)
        for op in (Op.RNN, Op.UNIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH_WAYS)
        for t, b in SIZES
        for function in (Act.TANH, Act.RELU, Act.RELU6, Act.NONE, Act.SIGN_BIT)
    ),
    Rnn(time_major=True),
    *(Rnn(RNN_BOTH_WAYS, time_major=True, auxiliary=kind) for kind in ("weights", "linked")),
    *(Rnn(RNN_BOTH_WAYS, auxiliary=kind) for kind in ("weights", "linked")),
    Rnn(RNN_BOTH_WAYS, auxiliary="weights", auxiliary_features=3),
    Rnn(RNN_BOTH_WAYS, backward_cells=3, merge_outputs=True),
]
HYBRIDS: list[tuple[Weights, bool]] = [("int8", False), ("int8", True), ("uint8", False)]
HYBRID_RNNS = [
    Rnn(op, weights=kind, asymmetric=asymmetric)
    for op in (Op.RNN, Op.UNIDIRECTIONAL_SEQUENCE_RNN, RNN_BOTH_WAYS)
    for kind, asymmetric in HYBRIDS
]
SVDFS = [
    Svdf(),
    Svdf(batch=1, rank=2),
    Svdf(rank=3, bias=False),
    Svdf(memory=1),
    *(Svdf(activation=function) for function in (Act.RELU, Act.TANH)),
]
INTEGER_SVDFS = [
    Svdf(weights="integer", activation=Act.RELU, rank=rank, bias=bias, batch=batch)
    for rank, bias, batch in ((1, True, 2), (2, True, 1), (1, False, 3))
]
HYBRID_SVDFS = [
    Svdf(weights="int8", rank=2),
    Svdf(weights="int8", asymmetric=True),
    Svdf(weights="uint8"),
]
HYBRID_CELLS = [*HYBRID_LSTMS, *HYBRID_RNNS, *HYBRID_SVDFS]
SINGLE_ROWS = [replace(case, batch=1) for case in HYBRID_CELLS]
SINGLE_STEPS = [replace(case, time=1) for case in SINGLE_ROWS if not isinstance(case, Svdf)]
Model = Lstm | Rnn | Svdf


def outcome(model: bytes, feeds: Results, *, on: str = "ort", hybrid: str = "float") -> Results:
    """Ours, on ONNX Runtime or in numpy; all of it has to run there."""
    providers: list[str] | None = None if on == "ort" else []
    interpreter = Interpreter(
        model_content=model, num_threads=1, providers=providers, hybrid=hybrid
    )
    results = invokes(interpreter, feeds)
    assert {row.runs_on for row in interpreter.delegation()} == {on}, interpreter.delegation()
    return results


def assert_same(got: Results, want: Results, rtol: float = 1e-5) -> None:
    for step, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other, 0, rtol, f"invoke {step}")


def named(models: Sequence[Model]) -> Any:
    return pytest.mark.parametrize("case", models, ids=lambda case: case.name)


@named([*LSTMS, *INTEGER_LSTMS, *NARROW_LSTMS, *RNNS, *SVDFS, *INTEGER_SVDFS])
def test_onnx_runtime_gives_what_litert_gives(case: Model) -> None:
    model, feeds = case.model(), case.feeds()
    assert_same(outcome(model, feeds), invokes(litert_interpreter(model), feeds))


@named(HYBRID_CELLS)
def test_hybrid_weights_are_dequantised(case: Model) -> None:
    model, feeds = case.model(), case.feeds()
    assert_same(outcome(model, feeds), invokes(litert_interpreter(model), feeds), HYBRID)


@named([*HYBRID_CELLS, *SINGLE_STEPS])
@pytest.mark.parametrize("hybrid", ["dynamic", "xnnpack"])
def test_activations_are_rounded_as_litert_rounds_them(case: Model, hybrid: str) -> None:
    """XNNPACK, LiteRT's default, takes no recurrent layers: both ways to round are the same."""
    model, feeds = case.model(), case.feeds()
    got = outcome(model, feeds, hybrid=hybrid)
    assert_same(got, invokes(litert_interpreter(model), feeds))


@named([*SINGLE_ROWS, *SINGLE_STEPS])
def test_digits_give_what_floats_give(case: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form that large weights have where the CPU multiplies 8-bit codes exactly."""
    model, feeds = case.model(), case.feeds()
    in_floats = outcome(model, feeds)
    monkeypatch.setattr(hybrid_products, "digits_save_time", lambda *_, **__: True)
    assert_same(outcome(model, feeds), in_floats)


@named([*RNNS, *HYBRID_RNNS, *SVDFS, *HYBRID_SVDFS, *INTEGER_SVDFS])
@pytest.mark.parametrize("kernels", ["reference", "default"])
def test_numpy_gives_what_litert_gives(case: Model, kernels: str) -> None:
    model, feeds = case.model(), case.feeds()
    got = outcome(model, feeds, on="numpy")
    assert_same(got, invokes(litert_interpreter(model, kernels), feeds))


def test_sums_that_svdf_shifts_beyond_32_bits() -> None:
    """An output in finer units than the sums: where TFLite shifts them to the left out of 32 bits,
    which C++ leaves undefined, the highest code."""
    case = Svdf(weights="integer", activation=Act.RELU, scale=1e-9)
    coarse = replace(case, scale=1e-6)
    steps = invokes(litert_interpreter(coarse.model()), case.feeds())
    want = [[np.where(made > -128, np.int8(127), made) for made in outputs] for outputs in steps]
    for providers in (None, []):
        interpreter = Interpreter(model_content=case.model(), num_threads=1, providers=providers)
        assert_same(invokes(interpreter, case.feeds()), want)
        assert {row.runs_on for row in interpreter.delegation()} == {"numpy"}


@pytest.mark.parametrize("providers", [None, []])
def test_a_state_of_16_bits_has_no_zero_point(providers: list[str] | None) -> None:
    """LiteRT leaves it out where it writes the state, and where it reads it."""
    case = Svdf(weights="integer", activation=Act.RELU, zero_point=3000)
    with pytest.raises(BridgeError, match="zero point of int16"):
        invokes(Interpreter(model_content=case.model(), providers=providers), case.feeds())


@pytest.mark.parametrize(
    "case", [Svdf(units=0), Svdf(weights="integer", activation=Act.RELU, units=0), Svdf(batch=0)]
)
def test_svdf_of_nothing(case: Svdf) -> None:
    """LiteRT divides by the number of rows or of units, and dies."""
    for providers in (None, []):
        results = invokes(
            Interpreter(model_content=case.model(), providers=providers), case.feeds(1)
        )
        assert results[0][0].shape == (case.batch, case.units)


def test_state_of_8_bits() -> None:
    """LiteRT takes one for 16 bits and reads beyond it; here both say what the operator does."""
    case = Svdf(weights="integer", activation=Act.RELU, rank=2, narrow=True)
    model, feeds = case.model(), case.feeds()
    by_numpy = outcome(model, feeds, on="numpy")
    assert len({int(code) for results in by_numpy for code in results[0].ravel()}) > 20
    assert_same(outcome(model, feeds), by_numpy)


@pytest.mark.parametrize("quantized", [False, True])
def test_basic_kernel(quantized: bool) -> None:
    case = BasicLstm(quantized, features=9, cells=16)
    model, feeds = case.model(), case.feeds()
    assert_same(outcome(model, feeds), invokes(litert_interpreter(model), feeds))


REFUSED = [
    (
        Lstm(SEQUENCE, "8x8_16", peephole=True, projection=True),
        "peephole for as long as its outputs",
    ),
    (Rnn(RNN_BOTH_WAYS, weights="int8", time_major=True), "over and over"),
    (
        Rnn(RNN_BOTH_WAYS, time_major=True, auxiliary="weights", auxiliary_features=6),
        "misreads an auxiliary input of width 6",
    ),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED, ids=lambda value: getattr(value, "name", ""))
def test_what_is_refused_runs_in_numpy(case: Model, reason: str) -> None:
    model, feeds = case.model(), case.feeds()
    interpreter = Interpreter(model_content=model, num_threads=1)
    assert_same(invokes(interpreter, feeds), invokes(litert_interpreter(model), feeds))
    assert reason in str(interpreter.delegation())


def test_clip_that_acts_late_is_seen() -> None:
    """Cells that grow step by step until the clip holds them, and no earlier."""
    case = Lstm(SEQUENCE, batch=1, time=40, cell_clip=6.0)
    model = case.model()
    rising = [[np.full((1, 40, 4), value, np.float32)] for value in (4.0, -4.0, 4.0)]
    assert_same(outcome(model, rising), invokes(litert_interpreter(model), rising))


@pytest.mark.parametrize(
    ("case", "nodes"),
    [
        (Lstm(SEQUENCE, peephole=True, coupled=True), ["LSTM"]),
        (Lstm(BOTH_WAYS), ["LSTM"]),
        (Lstm(BOTH_WAYS, auxiliary="linked"), ["LSTM", "LSTM"]),
        (Lstm(SEQUENCE, cell_clip=10.0), ["LSTM", "If"]),
        (Lstm(SEQUENCE, time=1, cell_clip=10.0), []),
        (Lstm(SEQUENCE, projection=True), ["Scan"]),
        (Lstm(SEQUENCE, time=1, projection=True), []),
        (Lstm(SEQUENCE, "8x8_16"), ["Scan"]),
        (Rnn(), ["RNN"]),
        (Rnn(RNN_BOTH_WAYS), ["RNN"]),
        (Rnn(RNN_BOTH_WAYS, backward_cells=3), ["RNN", "RNN"]),
        (Rnn(activation=Act.RELU6), ["Scan"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value.name,
)
def test_nodes_of_a_form(case: Model, nodes: list[str]) -> None:
    graph = export_onnx(case.model(), stateful=True).graph
    loops = {"LSTM", "RNN", "Scan", "If"}
    assert [node.op_type for node in graph.node if node.op_type in loops] == nodes
