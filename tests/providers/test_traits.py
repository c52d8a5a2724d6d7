"""The table of providers: each row is read where it counts; a provider without a row is safe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.delegated import allocated
from tests.one_op import T, one_op_model
from tests.providers.samples import CUDA, OPENVINO
from tests.test_partition import chain
from tflite_ort import ExecutionProviderDelegate, Interpreter, MissingDelegate, load_delegate
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.partition import Partition
from tflite_ort.plan.session_step import _with_merged
from tflite_ort.providers import conditions, delegates, native_libraries, session, settings
from tflite_ort.providers.names import named_provider
from tflite_ort.providers.provider import Provider
from tflite_ort.providers.provider_traits import ProviderTraits, WrongResult
from tflite_ort.providers.traits import CPU, TRAITS, UNKNOWN, WRONG_BEFORE, traits_of
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    CastOptions,
    FullyConnectedOptions,
    Model,
    ModelBuilder,
    Op,
    OperatorView,
    QuantizeOptions,
    ReducerOptions,
    TensorType,
    TransposeConvOptions,
    read_model,
)
from tflite_ort.schema.values.resolve import operator_view, tensor_views

INT8, INT64 = TensorType.INT8, TensorType.INT64
QNN = "QNNExecutionProvider"

# What graphs are made of by provider: "exact" weights are those that this CPU multiplies exactly.
TARGETS: Mapping[str, tuple[str, Target]] = {
    CPU: ("exact", Target(cpu_kernels=True, carried_boundary=True, exact=True, fallback=True)),
    OPENVINO: ("exact", Target(real_transposes=True, symmetric_weights=True, fallback=True)),
    "TensorrtExecutionProvider": ("int8", Target("int8", fallback=True)),
    "NvTensorRTRTXExecutionProvider": ("int8", Target("int8", fallback=True)),
    "QNNExecutionProvider": ("int8", Target("int8", paired_codes=True, fallback=True)),
    "VitisAIExecutionProvider": ("int8", Target("int8", opset=17, fallback=True)),
    "WebGpuExecutionProvider": ("uint8", Target(fallback=True)),
    CUDA: ("uint8", Target(fallback=True)),
    "a provider of tomorrow": ("uint8", Target(fallback=True)),
}


def target(provider: str) -> Target:
    context = PlanContext((), BoundResolver(BuiltinOpResolver(), Model()), hybrid="dynamic")
    return context.target(ExecutionProviderDelegate(provider))


@pytest.mark.parametrize("provider", TARGETS)
def test_graphs_are_made_of_what_the_row_says(provider: str) -> None:
    weights, expected = TARGETS[provider]
    found = target(provider)
    assert found.weights == (exact_weight_type() if weights == "exact" else weights)
    assert found.hybrid == "dynamic"
    assert (found.cpu_kernels, found.carried_boundary) == (
        expected.cpu_kernels,
        expected.carried_boundary,
    )
    assert (found.real_transposes, found.symmetric_weights, found.fallback) == (
        expected.real_transposes,
        expected.symmetric_weights,
        True,
    )
    assert found.paired_codes == expected.paired_codes


def test_a_provider_without_a_row_takes_every_operator_and_option() -> None:
    traits = traits_of("a provider of tomorrow")
    assert traits is UNKNOWN
    assert (traits.wrong, traits.options, traits.threads_option) == ((), None, "")
    assert not (traits.takes_all_nodes or traits.host_memory or traits.whole_graphs_only)


def test_windows_spells_a_name_otherwise() -> None:
    assert traits_of("NvTensorRtRtxExecutionProvider") is TRAITS["NvTensorRTRTXExecutionProvider"]


def test_one_provider_alone_takes_the_nodes_of_the_others() -> None:
    assert [name for name, row in TRAITS.items() if row.takes_all_nodes] == [CPU]


def with_row(monkeypatch: pytest.MonkeyPatch, row: ProviderTraits) -> None:
    """Let the CPU's provider have another row."""
    monkeypatch.setitem(TRAITS, CPU, row)  # type: ignore[arg-type]


def test_a_new_row_keeps_operators_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with_row(monkeypatch, ProviderTraits(wrong=(WrongResult("of a test", frozenset({"MUL"})),)))
    rows = allocated(chain(), providers=[CPU]).delegation()
    assert [row.runs_on for row in rows] == ["ort", "numpy", "ort"]
    assert rows[1].reason == f"wrong in {CPU}: of a test"


def test_what_is_wrong_names_operators_that_there_are() -> None:
    rows = [*(row.wrong for row in TRAITS.values()), *WRONG_BEFORE.values()]
    names = {name for row in rows for wrong in row for name in wrong.ops}
    assert names and names <= set(Op.__members__)


def test_a_wrong_result_of_all_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = WrongResult("an input has 3 elements", where=lambda op: op.output.shape == (3,))
    assert wrong.ops == frozenset()
    with_row(monkeypatch, ProviderTraits(wrong=(wrong,)))
    (first, *_) = allocated(chain(), providers=[CPU]).delegation()
    assert first.runs_on == "ort"
    with_row(monkeypatch, ProviderTraits(wrong=(WrongResult("all is"),)))
    assert {row.runs_on for row in allocated(chain(), providers=[CPU]).delegation()} == {"numpy"}


def test_earlier_releases_compute_wrongly_on_every_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WRONG_BEFORE, (1, 99), (WrongResult("later", frozenset({"MUL"})),))  # type: ignore[arg-type]
    rows = allocated(chain(), providers=[CPU]).delegation()
    assert rows[1].reason == f"wrong in ONNX Runtime {session.ORT_VERSION}: later"
    monkeypatch.setattr(delegates, "ORT_RELEASE", (1, 99))
    assert {row.runs_on for row in allocated(chain(), providers=[CPU]).delegation()} == {"ort"}


@pytest.mark.parametrize(("source", "place"), [("x", "ort"), ("found", "numpy")])
def test_rows_that_may_be_none_are_not_sorted_by_early_releases(
    monkeypatch: pytest.MonkeyPatch, source: str, place: str
) -> None:
    """The rows of `x` are there; `found` has one for each element of `x` that is not 0."""
    monkeypatch.setattr(delegates, "ORT_RELEASE", (1, 30))
    builder, any_rows = ModelBuilder(), {"shape_signature": (-1, 2)}
    main = builder.subgraph("main").tensor("x", (3, 2), INT64).constant("k", np.int32(1))
    main.tensor("found", (1, 2), INT64, **any_rows).operator(Op.WHERE, ["x"], ["found"])
    main.tensor("best", (3, 1), INT64).tensor("places", (3, 1), TensorType.INT32)
    main.operator(Op.TOPK_V2, [source, "k"], ["best", "places"])
    main.inputs("x").outputs("found", "best", "places")
    row = allocated(builder.write(), providers=[CPU]).delegation()[-1]
    assert (row.operator, row.runs_on) == ("TOPK_V2", place), row.reason


@pytest.mark.parametrize(("source", "place"), [("x", "ort"), ("found", "numpy")])
def test_rows_that_may_be_none_are_not_reduced_by_early_releases(
    monkeypatch: pytest.MonkeyPatch, source: str, place: str
) -> None:
    monkeypatch.setattr(delegates, "ORT_RELEASE", (1, 30))
    builder, number = ModelBuilder(), TensorType.INT32
    main = builder.subgraph("main").tensor("x", (3, 2), number).constant("axes", np.int32([0]))
    main.tensor("places", (1, 2), INT64, shape_signature=(-1, 2))
    main.operator(Op.WHERE, ["x"], ["places"])
    main.tensor("found", (1, 2), number, shape_signature=(-1, 2))
    main.operator(Op.CAST, ["places"], ["found"], CastOptions())
    main.tensor("most", (2,), number)
    main.operator(Op.REDUCE_MAX, [source, "axes"], ["most"], ReducerOptions())
    main.inputs("x").outputs("most", "found")
    row = allocated(builder.write(), providers=[CPU]).delegation()[-1]
    assert (row.operator, row.runs_on) == ("REDUCE_MAX", place), row.reason


def floats_are_rounded() -> WrongResult:
    return WrongResult("it rounds floats", where=conditions.computes_floats, full=True)


@pytest.mark.parametrize(("precision", "place"), [("full", "numpy"), ("fp16", "ort")])
def test_rounded_floats_are_wrong_in_full_precision_alone(
    monkeypatch: pytest.MonkeyPatch, precision: str, place: str
) -> None:
    how = {"full": {"session.set_denormal_as_zero": "0"}, "fp16": {}}
    with_row(monkeypatch, ProviderTraits(wrong=(floats_are_rounded(),), precisions=how))
    delegate = ExecutionProviderDelegate(CPU, precision=precision)
    view = first_operator(chain())
    assert (delegate.refusal(view) is None) == (place == "ort")
    assert "it rounds floats" in (ExecutionProviderDelegate(CPU).refusal(view) or "")


def test_making_codes_of_floats_computes_none() -> None:
    codes = T((3,), INT8, scale=0.5)
    model = one_op_model(Op.QUANTIZE, [T((3,))], [codes], QuantizeOptions())
    assert not floats_are_rounded().concerns(first_operator(model))
    assert floats_are_rounded().concerns(first_operator(chain()))


def first_operator(content: bytes) -> OperatorView[Any]:
    model = read_model(content)
    return operator_view(model, 0, 0, tensor_views(model, 0))


def fully_connected(
    type: TensorType, weights: Any, zero_point: int = 0, scale: float = 0.25
) -> OperatorView[Any]:
    """Codes times weights, whose scales are 0.5, 0.25 and `scale`."""
    inputs = [
        T((1, weights.shape[1]), type, scale=0.5),
        T.constant(weights, scale=0.25, zero_point=zero_point),
    ]
    made = T((1, len(weights)), type, scale=scale)
    return first_operator(one_op_model(Op.FULLY_CONNECTED, inputs, [made], FullyConnectedOptions()))


def test_a_provider_without_rows_rounds_halves_its_own_way() -> None:
    op = fully_connected(INT8, np.ones((2, 3), np.int8))
    assert UNKNOWN.rounding(op).most(op) == 1


@pytest.mark.parametrize("scale", [0.25, 4.0])
def test_an_npu_counts_products_of_16_bits_in_steps(scale: float) -> None:
    op = fully_connected(TensorType.INT16, np.ones((2, 3), np.int8), scale=scale)
    assert TRAITS[QNN].rounding(op).most(op) == 1 + 2 * 256 * 0.5 * 0.25 / scale


def test_an_npu_counts_products_of_transposed_convolutions() -> None:
    """Their first input is a size."""
    codes = T((1, 2, 2, 3), TensorType.INT16, scale=0.5)
    weights = T.constant(np.ones((1, 2, 2, 3), np.int8), scale=0.25)
    made = T((1, 4, 4, 1), TensorType.INT16, scale=4.0)
    size = T.constant(np.array(made.shape, np.int32))
    options = TransposeConvOptions(stride_h=2, stride_w=2)
    op = first_operator(one_op_model(Op.TRANSPOSE_CONV, [size, weights, codes], [made], options))
    assert TRAITS[QNN].rounding(op).most(op) == 1 + 2 * 256 * 0.5 * 0.25 / 4


def test_an_npu_scales_weights_that_need_more_than_8_bits() -> None:
    weights = np.full((2, 3), 100, np.uint8)
    row = TRAITS[QNN]
    for code, zero_point, changed in ((100, 90, False), (255, 90, True), (0, 128, True)):
        weights[1, 1] = code
        op = fully_connected(TensorType.UINT8, weights, zero_point)
        assert (row.rounding(op).most(op) > 1) == changed


def test_merged_operators_are_where_those_beside_them_are() -> None:
    model = read_model(chain())
    tensors = tensor_views(model, 0)
    count = len(model.subgraphs[0].operators)
    operators = [operator_view(model, 0, index, tensors) for index in range(count)]
    part = Partition(CPU, operators, (), ())
    for known in range(count):
        used = {index: {"NPU": None} if index == known else {} for index in range(count)}
        assert set(_with_merged(part, used, ["NPU", CPU]).values()) == {"NPU"}
    nothing = {index: {} for index in range(count)}
    assert set(_with_merged(part, nothing, ["NPU", CPU]).values()) == {f"NPU, {CPU}"}


def test_options_are_those_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with_row(monkeypatch, ProviderTraits(options=("speed",)))
    with pytest.raises(MissingDelegate, match=f"{CPU} has no option sped; it has speed"):
        load_delegate(CPU, {"sped": 1})


def test_threads_become_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ProviderTraits(
        threads=lambda count: {"plan": {"CPU": {"WORKERS": count}}}, threads_option="workers"
    )
    with_row(monkeypatch, row)

    def chosen(count: int = 3, **given: Any) -> dict[str, str]:
        ((_, options),) = settings.chosen(Provider(CPU, given), None, count) or ()
        return options

    assert chosen() == {"plan": '{"CPU": {"WORKERS": 3}}'}
    assert chosen(count=0) == {}
    assert chosen(workers=1) == {"workers": "1"}
    assert chosen(plan='{"CPU": {"WORKERS": 1}}') == {"plan": '{"CPU": {"WORKERS": 1}}'}
    assert chosen(plan='{"NPU": {}}') == {"plan": '{"NPU": {}, "CPU": {"WORKERS": 3}}'}


def test_options_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    with_row(monkeypatch, ProviderTraits(precisions={"full": {"exact": "1"}}))
    assert settings.chosen(Provider(CPU), None, 0) == [(CPU, {"exact": "1"})]
    assert settings.chosen(Provider(CPU, {"exact": 0}), None, 0) == [(CPU, {"exact": "0"})]


def test_cuda_multiplies_floats_exactly_unless_asked_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the libraries of the packages nvidia-* are loaded before it is."""
    loaded = list[str]()
    monkeypatch.setattr(native_libraries, "load_nvidia_libraries", lambda: loaded.append("once"))
    assert settings.chosen(Provider(CUDA), None, 0) == [(CUDA, {"use_tf32": "0"})]
    given = settings.chosen(Provider(CUDA, {"use_tf32": 1}), None, 0)
    assert given == [(CUDA, {"use_tf32": "1"})]
    assert loaded == ["once", "once"]
    settings.chosen(Provider(OPENVINO), None, 0)
    assert loaded == ["once", "once"]


def test_an_unknown_row_runs_the_cpu_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else asks for the name: without its row the CPU's provider is one as any other."""
    with_row(monkeypatch, UNKNOWN)
    interpreter = Interpreter(model_content=chain(), providers=[CPU])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert {row.provider for row in interpreter.delegation()} == {CPU}


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("cpu", CPU),
        ("CPU", CPU),
        (CPU, CPU),
        ("tensorrt-rtx", "NvTensorRTRTXExecutionProvider"),
        ("directml", "DmlExecutionProvider"),
        ("openvino", "OpenVINOExecutionProvider"),
        ("cp", None),
        ("", None),
    ],
)
def test_short_names(name: str, full: str | None) -> None:
    known = [*TRAITS, "DmlExecutionProvider"]
    assert named_provider(name, known) == full
