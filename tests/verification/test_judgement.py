"""From differences to verdicts, and what lies between: kept arrays, groups, forms of values."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.models import model_path
from tests.one_op import T, one_op_model
from tflite_ort.comparison.differences import Difference, Tolerance, difference
from tflite_ort.schema import Op, TensorType, read_model
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.schema.values.view import Quantization
from tflite_ort.verification import OperatorResult, OutputResult, Verdict, litert_worker
from tflite_ort.verification.disk_arrays import ArrayFile
from tflite_ort.verification.judgement import first_off, is_within, judged, may_round
from tflite_ort.verification.onnx_forms import best_form
from tflite_ort.verification.runtimes import grouped, results

TOLERANCE = Tolerance()
FAR = Difference(100, 0, 1.0, 0.5, 0.5)
FLOATS = tensor_views(read_model(one_op_model(Op.RELU, [T((2, 3, 4, 5))], [T((2, 3, 4, 5))])), 0)[0]


def apart(relative: float) -> Difference:
    return Difference(100, 0, relative, relative, relative)


def quanta(count: float, share: float) -> Difference:
    return Difference(1000, int(1000 * (1 - share)), quanta=count, mean_quanta=share)


def operator(index: int, isolated: Difference | None, within: bool | None) -> OperatorResult:
    return OperatorResult(index, "CONV_2D", 1, {}, (), (index,), None, isolated, within=within)


# Verdicts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "relative", "near"),
    [("CONV_2D", 9e-6, True), ("CONV_2D", 2e-5, False), ("PRELU", 2e-6, False)],
)
def test_operators_that_take_one_step_are_nearer(name: str, relative: float, near: bool) -> None:
    assert is_within(apart(relative), TOLERANCE, FLOATS, [name]) is near
    assert is_within(apart(relative), TOLERANCE, FLOATS, [name, "CONV_2D"]) is (relative < 1e-5)


def test_a_sigmoid_near_zero_is_right() -> None:
    tiny = Difference(1, 0, 1e-8, 1e-8, 1.0)
    assert is_within(tiny, TOLERANCE, FLOATS, ["LOGISTIC"])
    assert not is_within(tiny, TOLERANCE, FLOATS, ["TANH"])
    assert tiny.within(TOLERANCE) and not replace(tiny, largest=1e-3).within(TOLERANCE)


@pytest.mark.parametrize(
    ("name", "measured", "near"),
    [("CONV_2D", True, False), ("CONV_2D", False, True), ("RESIZE_BILINEAR", True, True)],
)
def test_one_quantum_in_many_elements(name: str, measured: bool, near: bool) -> None:
    """More of them where LiteRT cannot be asked, and where results are halves."""
    codes = replace(FLOATS, type=TensorType.INT8, quantization=Quantization(*_scale(0.1), 0))
    assert is_within(quanta(1, 0.06), TOLERANCE, codes, [name], measured) is near
    assert not is_within(quanta(1, 0.2), TOLERANCE, codes, [name], measured)
    assert not is_within(quanta(2, 0.06), TOLERANCE, codes, [name], measured)


def _scale(scale: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([scale], np.float32), np.array([3])


def test_what_is_far_off_comes_before_what_rounds_otherwise() -> None:
    rounds, far = operator(1, quanta(1, 0.06), False), operator(5, quanta(40, 0.5), False)
    assert first_off([operator(0, None, None), rounds, far], TOLERANCE) is far
    assert first_off([rounds], TOLERANCE) is rounds
    assert first_off([operator(0, apart(0), True)], TOLERANCE) is None


@pytest.mark.parametrize(
    ("found", "spread", "within", "verdict"),
    [
        (FAR, None, True, Verdict.ADDED),
        (FAR, None, None, Verdict.INCONCLUSIVE),
        (FAR, apart(0.1), True, Verdict.OFF),
        (FAR, apart(0.1), None, Verdict.OFF),
        (FAR, None, False, Verdict.OFF),
        (replace(FAR, nan=1), None, True, Verdict.OFF),
    ],
)
def test_small_differences_that_add_up(
    found: Difference, spread: Difference | None, within: bool | None, verdict: Verdict
) -> None:
    """They are off only where LiteRT's spread is known, or an operator is off by itself."""
    output = OutputResult(0, "y", Verdict.OFF, found, spread)
    operators = [operator(0, apart(1e-6), True), operator(1, apart(0.0), within)]
    assert judged([output], (), operators, TOLERANCE)[0] is verdict


def test_operators_that_were_not_checked() -> None:
    output, ops = OutputResult(0, "y", Verdict.OFF, FAR), [operator(0, apart(0.0), True)]
    assert judged([output], (), [*ops, operator(1, None, None)], TOLERANCE)[0] is Verdict.OFF
    rounds = operator(0, quanta(1, 0.5), None)
    found = judged([output], (), [rounds, operator(1, None, None)], TOLERANCE)[0]
    assert found is Verdict.INCONCLUSIVE
    both = replace(ops[0], together=(0, 1))
    assert judged([output], (), [both, operator(1, None, None)], TOLERANCE)[0] is Verdict.ADDED


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        (Verdict.EXACT, Verdict.OPERATOR),
        (Verdict.SPREAD, Verdict.OPERATOR),
        (Verdict.OFF, Verdict.OFF),
    ],
)
def test_an_operator_that_is_off_is_a_verdict_of_its_own(output: Verdict, verdict: Verdict) -> None:
    """Random inputs need not bring the fault to the outputs."""
    made = OutputResult(0, "y", output, apart(0.0), apart(0.0))
    operators = [operator(0, apart(0.0), True), operator(1, quanta(255, 0.23), False)]
    found, reason = judged([made], (), operators, TOLERANCE)
    assert found is verdict and found.is_alarm
    assert "CONV_2D_1 is the first operator that is off by itself" in reason


@pytest.mark.parametrize(
    ("found", "type", "may"),
    [
        (quanta(1, 0.5), TensorType.INT8, True),
        (quanta(1, 1.0), TensorType.INT8, False),
        (quanta(2, 0.01), TensorType.INT8, False),
        (apart(5e-5), TensorType.FLOAT32, True),
        (apart(5e-3), TensorType.FLOAT32, False),
        (quanta(1, 0.01), TensorType.INT32, False),
        (replace(apart(0.0), nan=1), TensorType.FLOAT32, False),
    ],
)
def test_what_another_rounding_explains(found: Difference, type: TensorType, may: bool) -> None:
    scaled = Quantization(*_scale(0.1), 0) if type is TensorType.INT8 else None
    assert may_round(found, replace(FLOATS, type=type, quantization=scaled), TOLERANCE) is may


# Values of other tools ---------------------------------------------------------------------------


def test_codes_that_were_real_numbers_are_whole_steps() -> None:
    """In float32 one step of 0.1 is not one step of 0.1."""
    quantization = Quantization(*_scale(0.1), 0)
    codes = np.arange(-128, 128).astype(np.int8)
    reals = ((codes.astype(np.float32) - 3) + 1) * np.float32(0.1)
    found = difference(reals, codes, quantization)
    assert found.quanta == 1 and found.equal == 0
    assert difference(reals - np.float32(0.1), codes, quantization).exact
    more = difference(reals + np.float32(0.01), codes, quantization)
    assert more.quanta == pytest.approx(1.1, rel=1e-4)


def test_a_value_whose_axes_are_in_another_order() -> None:
    right = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    for order in ((0, 1, 2, 3), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0)):
        value = np.transpose(right, order)
        form = best_form(value, "x", FLOATS, right)
        assert form is not None
        np.testing.assert_array_equal(form.to_tensor(value, right.shape), right)
        np.testing.assert_array_equal(form.to_value(right), value)


def test_integers_of_another_size() -> None:
    right = np.arange(6, dtype=np.int32).reshape(2, 3)
    form = best_form(right.astype(np.int64), "x", FLOATS, right)
    assert form is not None
    assert form.to_tensor(right.astype(np.int64), right.shape).dtype == np.int32
    assert form.to_tensor(right.astype(np.int64) + 2**40, right.shape).dtype == np.int64


# Memory ------------------------------------------------------------------------------------------


def test_arrays_are_kept_in_a_file() -> None:
    arrays = {
        0: np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1),
        1: np.array([b"one", b"two"], object),
        2: np.zeros((0, 3), np.int8),
        3: np.array(7, np.int64),
        4: np.ones(3, ml_dtypes.bfloat16),
    }
    file = ArrayFile()
    try:
        kept = file.keep([(0, np.zeros(9)), *arrays.items()])
        assert list(kept) == list(arrays) and 5 not in kept
        for index, array in arrays.items():
            np.testing.assert_array_equal(kept[index], array)
            assert kept[index].dtype == array.dtype
        both = file.keep([(3, np.array(8))]).over(kept)
        assert both[3] == 8 and len(both) == len(kept)
    finally:
        file.close()


def test_tensors_are_read_in_groups() -> None:
    model = read_model(model_path("mlperf-tiny__vww_96_float.tflite"))
    tensors = results(model)
    groups = list(grouped(model, tensors, 1 << 17))
    assert [index for group in groups for index in group] == tensors and len(groups) > 3
    shapes = [[model.subgraphs[0].tensors[index].shape for index in each] for each in groups]
    sizes = [[4 * math.prod(max(1, size) for size in shape) for shape in each] for each in shapes]
    assert all(sum(each) <= 1 << 17 for each in sizes if len(each) > 1)


def test_litert_s_process_imports_nothing_of_this_library() -> None:
    tree = ast.parse(Path(litert_worker.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None), *(each.name for each in node.names))
    }
    assert not any(str(name).startswith("tflite_ort") for name in imported)
