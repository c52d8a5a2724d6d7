"""Faults in the middle of a network that its outputs need not show, and what is no fault.

A sample of `python -m benchmarks.middle_faults`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models import model_path
from tests.one_op import Node, T, one_op_model
from tests.subgraph_models import Sub, model_of
from tests.verification.fault_kinds import (
    KINDS,
    TRANSLATOR_KINDS,
    Place,
    faulty_resolver,
    halves,
)
from tests.verification.faults import operators
from tflite_ort import export_onnx
from tflite_ort.schema import BatchMatMulOptions, Op, TensorType, read_model
from tflite_ort.verification import Random, Report, Settings, Verdict, verify

NETWORK = "mlperf-tiny__kws_ref_model.tflite"
PLACE = "DEPTHWISE_CONV_2D_5"
ONE = Random(samples=1)


def reported(kind: str, **options: str) -> Report:
    path = model_path(NETWORK)
    model = export_onnx(path)
    place = Place(model, PLACE, operators(model)[PLACE], np.random.default_rng(0))
    assert KINDS[kind](place)
    return verify(path, onnx_file=place.model, inputs=ONE, **options)


# No two axes of this network have the same size.
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"swapped"}))
def test_a_fault_in_the_middle_is_named(kind: str) -> None:
    report = reported(kind)
    assert report.exit_code == 4
    assert report.runtimes[0].named is not None and report.runtimes[0].named.label == PLACE


@pytest.mark.parametrize("kind", TRANSLATOR_KINDS)
def test_a_translator_that_is_wrong_is_named(kind: str) -> None:
    model = read_model(model_path(NETWORK))
    graph = model.subgraphs[0]
    made = graph.tensors[graph.operators[5].outputs[0]].name
    code = model.operator_codes[graph.operators[5].opcode_index]
    wrong = faulty_resolver(Op(code.builtin_code), code.version, made, kind)
    settings = Settings(resolver=wrong)
    report = verify(model, runtimes=["interpreter"], inputs=ONE, settings=settings)
    assert report.exit_code == 4
    assert report.runtimes[0].named is not None and report.runtimes[0].named.label == PLACE


@pytest.mark.parametrize("kind", ["channel_weights", "saturated", "one_quantum", "constant"])
def test_a_fault_is_named_without_litert(kind: str) -> None:
    report = reported(kind, reference="kernels")
    assert report.exit_code == 4
    assert report.runtimes[0].named is not None and report.runtimes[0].named.label == PLACE


def test_halves_that_litert_alone_can_judge_are_inconclusive() -> None:
    model = halves()
    report = verify(model, runtimes=["interpreter"], reference="kernels", inputs=ONE)
    assert report.verdict is Verdict.INCONCLUSIVE and report.exit_code == 0
    assert "SUB_0 rounds otherwise" in report.runtimes[0].reason
    assert verify(model, inputs=ONE).verdict is Verdict.EXACT


def test_what_another_of_litert_s_kernels_gives_is_right() -> None:
    """1 / sqrt(0) is NaN in XNNPACK's vectors, and infinity in LiteRT's other kernels."""
    model = one_op_model(Op.RSQRT, [T((1, 64))], [T((1, 64))])
    report = verify(model, inputs=[{0: np.zeros((1, 64), np.float32)}])
    assert all(op.within for result in report.runtimes for op in result.operators)


@pytest.mark.parametrize(("kind", "within"), [("", None), ("weights", False)])
def test_only_products_of_floats_are_another_way_to_round(kind: str, within: bool | None) -> None:
    """LiteRT's kernels all round the activations of this hybrid layer."""
    model = read_model(model_path("tf__lstm_seq_dr.tflite"))
    graph = model.subgraphs[0]
    made = graph.tensors[graph.operators[2].outputs[0]].name
    version = model.operator_codes[graph.operators[2].opcode_index].version
    wrong = faulty_resolver(Op.FULLY_CONNECTED, version, made, kind) if kind else None
    settings = Settings(resolver=wrong)
    (result,) = verify(model, runtimes=["interpreter"], inputs=ONE, settings=settings).runtimes
    assert result.operators[2].within is within
    assert result.named is result.operators[2]


@pytest.mark.parametrize("reference", ["litert", "kernels"])
@pytest.mark.parametrize(("kind", "verdict"), [("", Verdict.KNOWN), ("result", Verdict.OFF)])
def test_codes_of_what_is_no_number(reference: str, kind: str, verdict: Verdict) -> None:
    """QUANTIZE of NaN: LiteRT gives the highest code, ONNX Runtime the lowest one."""
    codes, last = T((1, 64), TensorType.INT8, 0.1, -3), T((1, 8), TensorType.INT8, 0.1, -3)
    starts, sizes = (
        T((2,), TensorType.INT32, data=[0, 56]),
        T((2,), TensorType.INT32, data=[1, 8]),
    )
    tensors = {"x": T((1, 64)), "q": codes, "starts": starts, "sizes": sizes, "y": last}
    nodes = [
        Node(Op.QUANTIZE, ["x"], ["q"]),
        Node(Op.SLICE, ["q", "starts", "sizes"], ["y"]),
    ]
    model = model_of(Sub(tensors, nodes, ["x"], ["y"]))
    settings = Settings(resolver=faulty_resolver(Op.QUANTIZE, 1, "q", kind) if kind else None)
    given = np.linspace(-12, 12, 64, dtype=np.float32).reshape(1, 64)
    given[0, 5] = np.nan
    report = verify(
        model, runtimes=["interpreter"], reference=reference, inputs=[{0: given}], settings=settings
    )
    assert report.verdict is verdict, report
    named = report.runtimes[0].named
    assert named is not None and named.label == "QUANTIZE_0" and named.beyond is not bool(kind)


@pytest.mark.parametrize(("scale", "beyond"), [(1e-9, True), (1e-6, False)])
def test_codes_of_what_exceeds_32_bits(scale: float, beyond: bool) -> None:
    """Sums of products of 16-bit codes wrap in LiteRT; an export gives the last code."""
    codes = T((1, 64, 64), TensorType.INT16, 1e-4)
    tensors = {
        "x": codes,
        "y": codes,
        "xy": replace(codes, scale=scale),
        "z": replace(codes, scale=1e-1),
    }
    nodes = [
        Node(Op.BATCH_MATMUL, ["x", "y"], ["xy"], BatchMatMulOptions()),
        Node(Op.QUANTIZE, ["xy"], ["z"]),
    ]
    report = verify(
        model_of(Sub(tensors, nodes, ["x", "y"], ["z"])), runtimes=["export"], inputs=ONE
    )
    (result,) = report.runtimes
    assert result.operators[0].beyond is beyond and report.exit_code == 0, result.reason
    assert (report.verdict is Verdict.KNOWN) is beyond
