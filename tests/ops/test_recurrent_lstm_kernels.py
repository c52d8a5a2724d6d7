"""The numpy kernels of the LSTM operators against LiteRT, state carried over three invokes.

Forms that are drawn go through ONNX Runtime too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lstm_models import BasicLstm, Lstm, invokes
from tests.one_op import T, assert_close
from tests.ops.versions import check_versions
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter
from tflite_ort.schema import ActivationFunctionType, BridgeError, Op, TensorType
from tflite_ort.schema.values.lstm import GATES

Array = npt.NDArray[Any]
LSTM, UNIDIRECTIONAL = Op.LSTM, Op.UNIDIRECTIONAL_SEQUENCE_LSTM
BIDIRECTIONAL = Op.BIDIRECTIONAL_SEQUENCE_LSTM
EVERYWHERE = pytest.mark.parametrize("providers", [(), None], ids=["numpy", "ort"])
SIZES = [(1, 1), (2, 3), (17, 3)]  # (time, batch)

PLAIN = [
    Lstm(),
    Lstm(coupled=True),
    Lstm(peephole=True),
    Lstm(coupled=True, peephole=True),
    Lstm(projection=True),
    Lstm(projection=True, projection_bias=True),
    Lstm(peephole=True, projection=True, outputs=4),
    Lstm(cell_clip=0.3),
    Lstm(projection=True, cell_clip=0.4, proj_clip=0.2),
]
NORMALIZED = [
    Lstm(layer_norm=True),
    Lstm(layer_norm=True, coupled=True, peephole=True),
    Lstm(layer_norm=True, projection=True, projection_bias=True),
]
ACTIVE = [Lstm(activation=activation) for activation in ActivationFunctionType]
DIAGONAL = [Lstm(diagonal=gates) for gates in (GATES, ("forget",), ("input", "output"))]
AUXILIARY = [
    Lstm(BIDIRECTIONAL, auxiliary="weights"),
    Lstm(BIDIRECTIONAL, auxiliary="weights", coupled=True, peephole=True, merge_outputs=True),
    Lstm(BIDIRECTIONAL, auxiliary="linked", projection=True),
    Lstm(BIDIRECTIONAL, auxiliary="linked", merge_outputs=True, projection=True),
]
BOTH_WAYS = [replace(form, op=BIDIRECTIONAL) for form in PLAIN] + AUXILIARY
SEQUENCES = PLAIN + NORMALIZED
FLOAT = [*SEQUENCES, *ACTIVE, *DIAGONAL, *BOTH_WAYS]
WIDE = [replace(form, arithmetic="8x8_16") for form in SEQUENCES]
CELL_SCALES = [Lstm(arithmetic="8x8_16", cell_bits=bits) for bits in range(9, 16)]
NARROW = Lstm(
    LSTM, "8x8_8", coupled=True, layer_norm=True, projection=True, projection_bias=True, cells=40
)


def sized(forms: Sequence[Lstm]) -> list[Lstm]:
    """Every form at every size, batch-major and time-major in turn.

    LiteRT runs out of its state where a batch-major operator merges the outputs of several rows.
    """
    return [
        replace(form, time=time, batch=batch, time_major=form.merge_outputs or (i + j) % 2 == 0)
        for i, form in enumerate(forms)
        for j, (time, batch) in enumerate(SIZES)
    ]


def of_one_step(forms: Sequence[Lstm]) -> list[Lstm]:
    return [replace(form, op=LSTM, batch=1 + 2 * (i % 2)) for i, form in enumerate(forms)]


def check(form: Lstm | BasicLstm, *, invokes: int = 3, **more: Any) -> None:
    """`compare` on the form's own inputs."""
    compare(str(form), form.model(), form.feeds(invokes), **more)


def compare(
    what: str,
    model: bytes,
    feeds: Sequence[Sequence[Array]],
    *,
    kernels: str = "reference",
    rtol: float = 1e-5,
    providers: Sequence[str] | None = (),
) -> None:
    """Integers exactly, floats within `rtol` of the largest magnitude."""
    print(what)
    expected = invokes(litert_interpreter(model, kernels), feeds)
    results = invokes(Interpreter(model_content=model, providers=providers), feeds)
    for got, want in zip(outputs(results), outputs(expected), strict=True):
        assert_close(got, want, 0, rtol, what)


def outputs(results: Sequence[Sequence[Array]]) -> list[Array]:
    """Each output over all invokes."""
    return [np.stack(arrays) for arrays in zip(*results, strict=True)]


@pytest.mark.parametrize("form", sized(FLOAT) + of_one_step(SEQUENCES), ids=lambda form: form.name)
def test_float(form: Lstm) -> None:
    check(form)


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize(
    "form",
    sized(SEQUENCES + DIAGONAL + AUXILIARY) + of_one_step(SEQUENCES),
    ids=lambda form: form.name,
)
def test_hybrid(form: Lstm, asymmetric: bool) -> None:
    check(replace(form, arithmetic="hybrid", asymmetric=asymmetric))


@pytest.mark.parametrize("form", [Lstm(peephole=True), *AUXILIARY], ids=lambda form: form.name)
def test_hybrid_with_codes_called_unsigned(form: Lstm) -> None:
    check(replace(form, arithmetic="hybrid-uint8", time_major=True))


@pytest.mark.parametrize("batch_major", AUXILIARY, ids=lambda form: form.name)
def test_merged_rows_are_those_of_a_time_major_operator(batch_major: Lstm) -> None:
    batch_major = replace(batch_major, merge_outputs=True, batch=3)
    arrays = batch_major.feeds()
    swapped = [[np.swapaxes(x, 0, 1) for x in xs] for xs in arrays]
    time_major = replace(batch_major, time_major=True).model()
    expected = invokes(litert_interpreter(time_major, "reference"), swapped)
    results = invokes(Interpreter(model_content=batch_major.model(), providers=[]), arrays)
    (got,), (want,) = outputs(results), outputs(expected)
    assert_close(got, np.swapaxes(want, 1, 2), 0, 1e-5, batch_major.name)


@pytest.mark.parametrize("zeros", ["none", "all", "every other step", "every other row"])
@pytest.mark.parametrize(
    "form",
    [
        Lstm(),
        Lstm(layer_norm=True, time_major=True),
        *DIAGONAL,
        Lstm(layer_norm=True, diagonal=GATES),
        *AUXILIARY[::2],
        Lstm(arithmetic="hybrid"),
    ],
    ids=lambda form: form.name,
)
def test_without_activation(form: Lstm, zeros: str) -> None:
    """LiteRT leaves in its buffers what it has not written over."""
    form = replace(form, activation=ActivationFunctionType.NONE, batch=3)
    model, arrays = form.model(), form.feeds()
    axis = {"every other step": 1 - form.time_major, "every other row": int(form.time_major)}
    for x in (x for xs in arrays for x in xs):
        if zeros == "all":
            x[:] = 0
        elif zeros in axis:
            np.moveaxis(x, axis[zeros], 0)[::2] = 0
    compare(form.name, model, arrays)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_asymmetric_rows_of_one_sign(sign: float) -> None:
    """The range of a row takes in zero."""
    form = Lstm(arithmetic="hybrid", asymmetric=True, features=20)
    model, arrays = form.model(), [[sign * (1 + np.abs(x)) for x in xs] for xs in form.feeds()]
    compare(form.name, model, arrays)


@pytest.mark.parametrize(
    "form", sized(WIDE + CELL_SCALES) + of_one_step(WIDE), ids=lambda form: form.name
)
def test_integer_with_wide_gates(form: Lstm) -> None:
    check(form)


@pytest.mark.parametrize(
    "form",
    [
        NARROW,
        replace(NARROW, batch=3, cells=7),
        replace(NARROW, cell_clip=0.3, proj_clip=0.2),
        replace(NARROW, cell_clip=1.5),
        replace(NARROW, coupled=False, peephole=True),
    ],
    ids=lambda form: form.name,
)
def test_integer_with_narrow_gates(form: Lstm) -> None:
    check(form, invokes=5)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("quantized", [False, True])
def test_basic(quantized: bool, batch: int) -> None:
    for seed in range(4):
        check(BasicLstm(quantized, batch, cells=9, seed=seed), invokes=5)


@pytest.mark.parametrize(
    "form",
    [Lstm(), Lstm(arithmetic="hybrid"), Lstm(arithmetic="8x8_16", time=17), NARROW],
    ids=lambda form: form.name,
)
def test_default_kernels_are_the_reference_ones(form: Lstm) -> None:
    check(form, kernels="default")


def test_twenty_inputs() -> None:
    """The oldest files have no places for layer normalisation."""
    check(Lstm(short=True))
    check(Lstm(LSTM, "8x8_16", short=True))


@EVERYWHERE
@pytest.mark.parametrize("arithmetic", ["float", "hybrid"])
def test_weights_that_change_from_invoke_to_invoke(
    arithmetic: Any, providers: Sequence[str] | None
) -> None:
    """LiteRT's integer kernel reads them before there are any, and crashes."""
    form = Lstm(arithmetic=arithmetic)
    weights = form.tensors()["recurrent_to_cell_weights"]
    model = form.model({"recurrent_to_cell_weights": replace(weights, data=None)})
    feeds = [[*xs, np.roll(weights.data, i)] for i, xs in enumerate(form.feeds())]
    compare(form.name, model, feeds, providers=providers)


@pytest.mark.parametrize("form", [Lstm(), Lstm(LSTM, "8x8_16"), AUXILIARY[0]])
def test_states_of_one_dimension(form: Lstm) -> None:
    """LiteRT counts their elements only."""
    states = {k: t for k, t in form.tensors().items() if t.is_variable}
    model = form.model({k: replace(t, shape=(math.prod(t.shape),)) for k, t in states.items()})
    compare(form.name, model, form.feeds())


@pytest.mark.parametrize("arithmetic", ["float", "hybrid", "8x8_16"])
@pytest.mark.parametrize("size", [{"time": 0}, {"batch": 0}])
def test_nothing_to_do(arithmetic: Any, size: dict[str, int]) -> None:
    check(Lstm(arithmetic=arithmetic, **size))


@EVERYWHERE
@pytest.mark.parametrize("form", [Lstm(), Lstm(LSTM, layer_norm=True), AUXILIARY[0]])
def test_weights_of_half_precision(form: Lstm, providers: Sequence[str] | None) -> None:
    check(replace(form, halves=True), providers=providers)


FLAGS = dict.fromkeys(("coupled", "peephole", "projection", "time_major"), st.booleans())
DRAWN = st.builds(
    Lstm,
    op=st.sampled_from([LSTM, UNIDIRECTIONAL, BIDIRECTIONAL]),
    batch=st.integers(1, 3),
    time=st.integers(1, 5),
    features=st.integers(1, 9),
    cells=st.integers(1, 12),
    outputs=st.integers(1, 12),
    cell_clip=st.sampled_from([0.0, 0.1, 0.9, 7.0]),
    proj_clip=st.sampled_from([0.0, 0.2, 3.0]),
    activation=st.sampled_from(list(ActivationFunctionType)[1:]),
    layer_norm=st.booleans(),
    projection_bias=st.booleans(),
    auxiliary=st.sampled_from(["", "weights", "linked"]),
    merge_outputs=st.booleans(),
    seed=st.integers(0, 1000),
    **FLAGS,
)


def allowed(form: Lstm) -> Lstm:
    """`form` without what its operator does not have.

    LiteRT writes beyond its scratch memory where a projection has more outputs than cells. Few
    cells may be so alike that normalising them shows how they were rounded.
    """
    cells = max(form.cells, 6) if form.layer_norm else form.cells
    outputs, bias = min(form.outputs, cells), form.projection and form.projection_bias
    form = replace(form, cells=cells, outputs=outputs, projection_bias=bias)
    if form.op is BIDIRECTIONAL:
        merged = form.merge_outputs and (form.time_major or form.batch == 1)
        return replace(form, layer_norm=False, merge_outputs=merged)
    return replace(form, auxiliary="", merge_outputs=False)


@EVERYWHERE
@given(DRAWN)
def test_float_of_any_form(providers: Sequence[str] | None, form: Lstm) -> None:
    check(allowed(form), providers=providers)


@given(DRAWN, st.booleans())
def test_hybrid_of_any_form(form: Lstm, asymmetric: bool) -> None:
    """A value next to a half may be rounded to either side, and later steps see it."""
    check(replace(allowed(form), arithmetic="hybrid", asymmetric=asymmetric), rtol=0.02)


@EVERYWHERE
@given(DRAWN, st.integers(9, 15))
def test_integer_of_any_form(providers: Sequence[str] | None, form: Lstm, bits: int) -> None:
    op = LSTM if form.op is LSTM else UNIDIRECTIONAL
    form = replace(form, op=op, arithmetic="8x8_16", cell_bits=bits)
    check(allowed(form), providers=providers)


def zeros(*shape: int, dtype: Any = np.float32) -> T:
    return T.constant(np.zeros(shape, dtype))


def variable(*shape: int) -> T:
    return T(shape, is_variable=True)


BIDI = Lstm(BIDIRECTIONAL)
CROSS = Lstm(BIDIRECTIONAL, auxiliary="weights")
WIDE_CELL, HYBRID = Lstm(LSTM, "8x8_16"), Lstm(arithmetic="hybrid")
# Form, what is changed, the message.
REFUSED: list[tuple[Lstm, dict[str, T | None], str]] = [
    (Lstm(), {"input_to_output_weights": zeros(6, 5)}, r"take 5 features, the input has 4"),
    (Lstm(), {"input_to_cell_weights": zeros(6, 5)}, r"\(6, 5\), expected \(6, 4\)"),
    (Lstm(), {"recurrent_to_forget_weights": zeros(6, 5)}, r"\(6, 5\), expected \(6, 6\)"),
    (Lstm(), {"input_to_output_weights": zeros(6)}, "has rank 1, expected 2"),
    (Lstm(LSTM), {"recurrent_to_cell_weights": zeros(6)}, r"\(6,\), expected \(6, 6\)"),
    (Lstm(), {"forget_gate_bias": zeros(5)}, r"\(5,\), expected \(6,\)"),
    (Lstm(), {"forget_gate_bias": None}, "lacks forget_gate_bias"),
    (Lstm(), {"recurrent_to_cell_weights": None}, "lacks recurrent_to_cell_weights"),
    (Lstm(), {"input_to_input_weights": None}, "expected 0 of recurrent_to_input_weights, got 1"),
    (Lstm(), {"recurrent_to_input_weights": None}, "expected 1 of recurrent_to_input_weights"),
    (Lstm(coupled=True), {"input_gate_bias": zeros(6)}, "expected 0 of input_gate_bias, got 1"),
    (Lstm(), {"cell_to_output_weights": zeros(6)}, "expected 0 of cell_to_output_weights, got 1"),
    (Lstm(peephole=True), {"cell_to_input_weights": None}, "expected 1 of cell_to_input_weights"),
    (Lstm(), {"projection_bias": zeros(6)}, "lacks projection_weights"),
    (Lstm(projection=True), {"projection_weights": zeros(6, 5)}, r"expected \(5, 6\)"),
    (
        Lstm(layer_norm=True),
        {"cell_layer_norm_coefficients": None},
        "expected 1 of cell_layer_norm_coefficients, got 0",
    ),
    (Lstm(), {"output_state": T((2, 6))}, "output_state is not a variable tensor"),
    (Lstm(), {"cell_state": T((2, 6))}, "cell_state is not a variable tensor"),
    (Lstm(), {"output_state": variable(2, 5)}, "has 10 elements, expected 12"),
    (Lstm(cell_clip=-1.0), {}, "cell_clip is -1.0, expected at least 0"),
    (HYBRID, {"recurrent_to_cell_weights": zeros(6, 6)}, "is FLOAT32, expected INT8"),
    (WIDE_CELL, {"cell_gate_bias": zeros(6)}, "is FLOAT32, expected INT32"),
    (BIDI, {"bw_input_gate_bias": zeros(7)}, r"bw_input_gate_bias has shape \(7,\)"),
    (BIDI, {"bw_cell_state": T((2, 6))}, "bw_cell_state is not a variable tensor"),
    (BIDI, {"aux_input": T((2, 3, 5))}, r"\(2, 3, 5\), expected \(2, 3, 4\)"),
    (CROSS, {"fw_aux_input_to_cell_weights": None}, "5 auxiliary weights, expected 0 or 6"),
    (CROSS, {"aux_input": None}, "lacks aux_input"),
    (CROSS, {"bw_aux_input_to_cell_weights": zeros(5, 3)}, r"\(5, 3\), expected \(6, 3\)"),
]


def refuse(form: Lstm, model: bytes, message: str) -> None:
    """Both interpreters refuse; ours names the operator."""
    with pytest.raises((RuntimeError, ValueError)):
        litert_interpreter(model).allocate_tensors()
    with pytest.raises(BridgeError, match=rf"{form.op.name}_0.*{message}"):
        Interpreter(model_content=model, providers=[]).allocate_tensors()


@pytest.mark.parametrize(("form", "changed", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused(form: Lstm, changed: dict[str, T | None], message: str) -> None:
    refuse(form, form.model(changed), message)


@pytest.mark.parametrize(
    ("form", "count", "expected"),
    [
        (WIDE_CELL, 0, "5 or 12"),
        (WIDE_CELL, 4, "5 or 12"),
        (replace(WIDE_CELL, op=UNIDIRECTIONAL), 4, "5"),
    ],
)
def test_intermediates_missing(form: Lstm, count: int, expected: str) -> None:
    model = form.model(intermediates=count)
    refuse(form, model, f"{count} intermediates, expected {expected}")


def refuse_ours(form: Lstm, changed: dict[str, T | None], message: str) -> None:
    ours = Interpreter(model_content=form.model(changed))
    with pytest.raises(BridgeError, match=f"LSTM_0:? {message}"):
        ours.allocate_tensors()


@pytest.mark.parametrize(
    ("form", "name", "scale", "message"),
    [
        (WIDE_CELL, "input_to_cell_weights", None, "input_to_cell_weights has no scale"),
        (WIDE_CELL, "cell_state", None, "cell_state has no scale"),
        (WIDE_CELL, "cell_state", 0.001, r"cell_state .* 0\.001.*, expected 2\*\*-30 to 1"),
        (WIDE_CELL, "cell_state", 2.0, r"cell_state has scale 2\.0, expected 2\*\*-30 to 1"),
        (NARROW, "cell_state", 2.0**-11, r"cell_state has scale .*, expected 2\*\*-15"),
    ],
)
def test_scales_that_litert_does_not_check(
    form: Lstm, name: str, scale: float | None, message: str
) -> None:
    """It goes on with parameters that it never set, or that are 0."""
    refuse_ours(form, {name: replace(form.tensors()[name], scale=scale)}, message)


@pytest.mark.parametrize(
    ("form", "changed", "message"),
    [
        (HYBRID, {"recurrent_to_cell_weights": {"scale": None}}, "recurrent_.* has no scale"),
        (WIDE_CELL, {"output_state": {"scale": 0.0}}, "output_state has no scale"),
        (Lstm(projection=True), {"projection_weights": None}, "5 outputs of 6 cells"),
        (CROSS, {"aux_input": {"type": TensorType.INT8}}, "aux_input is INT8, expected FLOAT32"),
        (Lstm(diagonal=("cell",), projection=True), {}, r".* \(6,\), expected \(5,\)"),
    ],
)
def test_refused_where_litert_reads_what_is_not_there(
    form: Lstm, changed: dict[str, dict[str, Any] | None], message: str
) -> None:
    tensors = form.tensors()
    refuse_ours(form, {k: v and replace(tensors[k], **v) for k, v in changed.items()}, message)


@pytest.mark.parametrize("name", ["projection_weights", "projection_bias"])
def test_tensors_without_which_litert_crashes(name: str) -> None:
    changed: dict[str, T | None] = {"projection_bias": None, name: None}
    refuse_ours(replace(NARROW, outputs=NARROW.cells), changed, f"lacks {name}")


@pytest.mark.parametrize("form", [Lstm(), Lstm(LSTM), BIDI], ids=lambda form: form.name)
def test_versions(form: Lstm) -> None:
    check_versions(form)
