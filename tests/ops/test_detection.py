"""NON_MAX_SUPPRESSION_V4 and V5 against LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from tests.one_op import Array, Case, T, assert_close, check, ours
from tests.oracle import litert
from tflite_ort import ExportError, KernelError, ModelError, export_onnx
from tflite_ort.fallback_kernels import kernel
from tflite_ort.schema import Op, TensorType

V4, V5 = Op.NON_MAX_SUPPRESSION_V4, Op.NON_MAX_SUPPRESSION_V5


def suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    most: int = 10,
    overlap: float = 0.5,
    lowest: float = 0.0,
    sigma: float | None = None,
) -> Case:
    """V5 if there is a `sigma`."""
    limits = [overlap, lowest] if sigma is None else [overlap, lowest, sigma]
    constants = [T.constant(np.float32(limit)) for limit in limits]
    lists = [T((most,), TensorType.INT32), T((most,))][: 1 if sigma is None else 2]
    return Case(
        f"{len(boxes)} boxes, {most}, {limits}",
        V4 if sigma is None else V5,
        [T(boxes.shape), T(scores.shape), T.constant(np.int32(most)), *constants],
        [*lists, T((), TensorType.INT32)],
        runs_on="numpy",
        feeds=[boxes.astype(np.float32), scores.astype(np.float32)],
    )


BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 0.9, 0, -0.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5])
SIGMAS = [None, 0.0, 0.5]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("most", [1, 2, 30])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0, 1.5])
def test_suppression(overlap: float, most: int, sigma: float | None) -> None:
    check(suppression(BOXES, SCORES, most, overlap, sigma=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_an_overlap_at_the_threshold_suppresses(sigma: float | None) -> None:
    boxes = np.array([[0, 0, 2, 2], [0, 1, 2, 2]])
    check(suppression(boxes, np.array([0.5, 0.4]), overlap=0.5, sigma=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_score_at_the_threshold_is_left_out(sigma: float | None) -> None:
    check(suppression(BOXES, SCORES, lowest=0.75, sigma=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_box_without_area_is_selected_again_and_again(sigma: float | None) -> None:
    boxes = np.concatenate([BOXES, [[2, 2, 2, 5]]])
    check(suppression(boxes, np.append(SCORES, 0.8), sigma=sigma))


@pytest.mark.parametrize("corner", range(4))
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_box_with_a_corner_that_is_no_number(
    sigma: float | None, wrong: float, corner: int
) -> None:
    boxes = np.array(BOXES, np.float32)
    boxes[0, corner] = wrong
    check(suppression(boxes, SCORES, sigma=sigma))
    boxes[1] = wrong
    check(suppression(boxes, SCORES, sigma=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_equal_scores_come_in_the_order_of_litert(sigma: float | None) -> None:
    rng = np.random.default_rng(2)
    boxes, scores = rng.uniform(0, 1, (60, 4)), rng.integers(0, 4, 60) / 4
    check(suppression(boxes, scores, 60, 0.3, -1.0, sigma=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_no_score_above_the_threshold(sigma: float | None) -> None:
    check(suppression(BOXES, SCORES, lowest=2.0, sigma=sigma))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_limits_computed_at_run_time(sigma: float | None) -> None:
    case = suppression(BOXES, SCORES, 3, sigma=sigma)
    inputs = [t if t is None else replace(t, data=None) for t in case.inputs]
    values = [t.data for t in case.inputs if t is not None and t.data is not None]
    check(replace(case, inputs=inputs, feeds=[*(case.feeds or ()), *values]))


@pytest.mark.parametrize("sigma", [None, 0.0])
@pytest.mark.parametrize("overlap", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("most", [1, 4, 80])
def test_exported_models_select_the_same(most: int, overlap: float, sigma: float | None) -> None:
    """Of boxes with an area, and of scores that differ."""
    rng = np.random.default_rng(0)
    boxes, scores = rng.uniform(0, 3, (60, 4)), rng.permutation(60) / 60
    case = suppression(boxes, scores, most, overlap, 0.2, sigma)
    assert_exported(case, case.model(), case.feeds or ())


@pytest.mark.parametrize(
    ("seed", "sigma"), [(0, None), (1, None), (2, None), (3, 0.0), (4, 0.0), (5, 0.05), (6, 0.5)]
)
def test_exported_models_order_equal_scores_as_litert(seed: int, sigma: float | None) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    for count, most, levels in ((1, 3, 1), (2, 2, 1), (40, 10, 16), (63, 80, 4), (64, 20, 2)):
        middle, size = rng.uniform(0, 1, (count, 2)), rng.uniform(0.1, 0.6, (count, 2))
        boxes = np.concatenate([middle - size / 2, middle + size / 2], axis=1)
        scores = rng.integers(0, levels + 1, count) / levels
        lowest, overlap = float(rng.choice([-1, 0, 0.3])), 1.5 if count == 40 else 0.5
        case = suppression(boxes, scores, most, overlap, lowest, sigma)
        assert_exported(case, case.model(), case.feeds or (), _EXPONENTIAL if sigma else 0)


@pytest.mark.parametrize("sigma", [0.0, 0.5])
@pytest.mark.parametrize("wrong", [0.0, np.nan])
def test_exported_models_take_boxes_without_area_as_litert(wrong: float, sigma: float) -> None:
    boxes = np.array(BOXES)
    boxes[3] = wrong
    for most in (1, 4, 9):
        case = suppression(boxes, SCORES, most, sigma=sigma)
        assert_exported(case, case.model(), case.feeds or (), _EXPONENTIAL if sigma else 0)


def test_exported_models_take_computed_limits() -> None:
    boxes = np.array([[0, 0, 2, 2], [0, 1, 2, 2], [4, 4, 5, 5]])
    case = suppression(boxes, np.array([0.5, 0.4, 0.1]), 3, 0.5)
    inputs = [t if t is None else replace(t, data=None) for t in case.inputs]
    values = [t.data for t in case.inputs if t is not None and t.data is not None]
    case = replace(case, inputs=inputs)
    assert_exported(case, case.model(), [*(case.feeds or ()), *values])


def assert_exported(
    case: Case, model: bytes, feeds: Sequence[Array], rtol: float = 0, **options: Any
) -> None:
    proto = export_onnx(model, **options)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [value.name for value in session.get_inputs()]
    got = session.run(None, dict(zip(names, feeds, strict=True)))
    for want, result in zip(litert(model, feeds, "reference"), got, strict=True):
        assert_close(np.asarray(result), want, 0, rtol, case.name)


_EXPONENTIAL = 1e-6  # ONNX Runtime's is not C's
# Thresholds that all overlaps reach, or none does, and scores that overlaps lower.
LOOPS = [(0.0, None), (1.5, None), (0.0, 0.0), (0.5, 0.5), (1.0, 0.1), (1.5, 0.5), (0.0, 0.5)]


@pytest.mark.parametrize(("overlap", "sigma"), LOOPS)
@pytest.mark.parametrize("lowest", [-1.0, 0.0, 0.5, 2.0])
@pytest.mark.parametrize("most", [1, 4, 80])
def test_exported_models_select_the_same_in_a_loop(
    most: int, lowest: float, overlap: float, sigma: float | None
) -> None:
    rng = np.random.default_rng(0)
    boxes, scores = rng.uniform(0, 3, (60, 4)), rng.permutation(60) / 60
    case = suppression(boxes, scores, most, overlap, lowest, sigma)
    assert_exported(case, case.model(), case.feeds or (), _EXPONENTIAL)
    assert_exported(case, case.model(), case.feeds or (), _EXPONENTIAL, opset=17)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_an_exported_loop_of_odd_boxes(wrong: float) -> None:
    """A box without an area is picked again and again, as in LiteRT."""
    boxes = np.concatenate([BOXES, [[2, 2, 2, 5]]])
    boxes[0, 1] = wrong
    case = suppression(boxes, np.append(SCORES, 0.8), sigma=0.5)
    assert_exported(case, case.model(), case.feeds or (), _EXPONENTIAL)


def test_an_exported_loop_of_sixteen_bit_floats() -> None:
    """Areas of 90,000 pixels exceed the largest one."""
    case = suppression(BOXES * 300, SCORES, 3, sigma=0.5)
    proto = export_onnx(case.model(), float16=True).SerializeToString()
    session = onnxruntime.InferenceSession(proto)
    got = session.run(None, dict(zip(("in0", "in1"), case.feeds or (), strict=True)))
    want = litert(case.model(), case.feeds or (), "reference")
    for index in (0, 2):
        np.testing.assert_array_equal(got[index], want[index])
    np.testing.assert_allclose(got[1], want[1], rtol=2e-3)


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_an_exported_sigma_that_is_computed(sigma: float) -> None:
    case = suppression(BOXES, SCORES, 4, sigma=sigma)
    inputs = [*case.inputs[:5], T(())]
    case = replace(case, inputs=inputs)
    assert_exported(
        case, case.model(), [*(case.feeds or ()), np.array(sigma, np.float32)], _EXPONENTIAL
    )
    proto = export_onnx(case.model()).SerializeToString()
    feeds = dict(
        zip(("in0", "in1", "in5"), [*(case.feeds or ()), np.array(-1, np.float32)], strict=True)
    )
    with pytest.raises(InvalidArgument, match="indices element out of data bounds"):
        onnxruntime.InferenceSession(proto).run(None, feeds)


def test_a_negative_sigma_is_not_exported() -> None:
    with pytest.raises(ExportError, match=r"sigma is -1\.0, below 0"):
        export_onnx(suppression(BOXES, SCORES, 3, sigma=-1.0).model())


def test_negative_limits_are_refused() -> None:
    case = suppression(BOXES, SCORES, 3, sigma=-1.0)
    with pytest.raises(KernelError, match=r"sigma is -1\.0, expected at least 0"):
        ours(case.model(), case.feeds or ())
    case = replace(suppression(BOXES, SCORES, 3))
    inputs = [*case.inputs[:2], T.constant(np.int32(-4)), *case.inputs[3:]]
    with pytest.raises(ModelError, match="max_output_size is -4"):
        ours(replace(case, inputs=inputs).model(), case.feeds or ())


@pytest.mark.parametrize("op", [V4, V5])
def test_version(op: Op) -> None:
    assert kernel.versions(op) == [1]


@given(st.data())
def test_drawn(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    count = data.draw(st.integers(1, 40))
    even = data.draw(st.booleans())
    boxes = rng.integers(0, 6, (count, 4)) if even else rng.uniform(0, 1, (count, 4))
    scores = rng.integers(0, 5, count) / 5 if data.draw(st.booleans()) else rng.uniform(0, 1, count)
    case = suppression(
        boxes,
        scores,
        data.draw(st.integers(1, 45)),
        data.draw(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0])),
        data.draw(st.sampled_from([-1.0, 0.0, 0.2, 0.5])),
        data.draw(st.sampled_from([None, 0.0, 0.1, 0.5])),
    )
    check(case)
