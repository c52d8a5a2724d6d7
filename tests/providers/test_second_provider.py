"""The delegate tests on a provider that is not ONNX Runtime's CPU.

Those marked openvino run where the onnxruntime-openvino wheel is installed (`.ci/openvino`), those
marked webgpu with the onnxruntime-webgpu wheel and a Vulkan driver (`.ci/webgpu`), those marked
cuda with the onnxruntime-gpu wheel and a GPU.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.delegated import allocated, assert_as_litert
from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model, ours
from tests.oracle import litert
from tests.providers.samples import CUDA, OPENVINO, SAMPLES, WEBGPU, usable
from tests.test_models import drawn
from tests.test_partition import SHAPE, branches, chain
from tflite_ort import (
    DelegateError,
    DelegateWarning,
    ExecutionProviderDelegate,
    MissingDelegate,
    load_delegate,
)
from tflite_ort.base.records import replace
from tflite_ort.opmap import Target
from tflite_ort.providers.traits import CPU, TRAITS
from tflite_ort.schema import (
    AddOptions,
    MulOptions,
    Op,
    ReverseSequenceOptions,
    SubOptions,
)

# How far results may be from LiteRT's default kernels: quanta, or a share of the largest value.
# Accelerators compute quantised layers in floats, or round sums their own way.
NETWORKS = {
    "tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite": 1e-3,
    "mlperf-tiny__vww_96_float.tflite": 1e-3,
    "tflite-support__mobilenet_v2_1.0_224_quant.tflite": 8,
    "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite": 16,
    "mlperf-tiny__vww_96_int8.tflite": 2,
    "pypi-pymicro-wakeword__hey_jarvis.tflite": 2,
}
# WebGPU computes no codes: it leaves them to ONNX Runtime's CPU provider.
FLOAT_ALONE = (WEBGPU,)


@pytest.fixture(params=SAMPLES)
def provider(request: pytest.FixtureRequest) -> str:
    return usable(request.param)


@pytest.mark.parametrize("name", NETWORKS)
def test_network_gives_what_litert_gives(provider: str, name: str) -> None:
    content, limit = Path(model_path(name)).read_bytes(), NETWORKS[name]
    interpreter = allocated(content, providers=[provider, CPU])
    rows = [row for row in interpreter.delegation() if row.runs_on == "ort"]
    on_it = [row for row in rows if row.provider == provider]
    print(f"{name}: {len(on_it)} of {len(rows)} operators")
    if limit < 1 or provider not in FLOAT_ALONE:
        assert len(on_it) > 0.9 * len(rows)
    seed = 0
    print(f"seed {seed}")
    feeds = [drawn(each, np.random.default_rng(seed)) for each in interpreter.get_input_details()]
    got, _ = ours(content, feeds, providers=[provider, CPU])
    for result, want in zip(got, litert(content, feeds), strict=True):
        difference = np.abs(result.astype(np.float64) - want)
        share = np.abs(want).max() if want.dtype.kind == "f" else 1
        assert difference.max() <= limit * share


def test_a_cut_network_has_two_sessions_and_a_numpy_step(provider: str) -> None:
    delegate = ExecutionProviderDelegate(provider, max_versions={Op.MUL: 0})
    rows = allocated(chain(), providers=[delegate], strict=True).delegation()
    assert [row.provider for row in rows] == [provider, "", provider]
    assert [row.partition for row in rows] == [0, 1, 2]
    assert_as_litert(chain(), [delegate], rtol=1e-3)
    assert_as_litert(branches(), [delegate], rtol=1e-3)


def test_what_it_refuses_goes_to_the_cpu(provider: str) -> None:
    delegate = ExecutionProviderDelegate(provider, max_versions={Op.MUL: 0})
    rows = allocated(chain(), providers=[delegate, CPU]).delegation()
    assert [row.provider for row in rows] == [provider, CPU, provider]
    assert_as_litert(chain(), [delegate, CPU], rtol=1e-3)


def test_too_small_a_partition_goes_to_the_cpu(provider: str) -> None:
    delegate = ExecutionProviderDelegate(provider, max_versions={Op.MUL: 0}, min_partition_size=3)
    rows = allocated(branches(), providers=[delegate, CPU]).delegation()
    assert [row.provider for row in rows] == [provider, CPU, provider, provider, CPU]
    assert_as_litert(branches(), [delegate, CPU], rtol=1e-3)


def test_an_unknown_option_is_an_error_that_lists_those_there_are(provider: str) -> None:
    listed = {OPENVINO: "device_type", WEBGPU: "powerPreference", CUDA: "device_id"}[provider]
    with pytest.raises(MissingDelegate, match=f"no_such_option.*{listed}"):
        load_delegate(provider, {"no_such_option": "1"})


@pytest.mark.openvino
def test_a_value_that_an_option_does_not_take() -> None:
    wrong = (OPENVINO, {"num_streams": "many"})
    with pytest.raises(MissingDelegate, match=f"load {OPENVINO} with num_streams=many, its log"):
        load_delegate(*wrong)
    with pytest.warns(DelegateWarning, match="cannot be used"):
        rows = allocated(chain(), providers=[wrong, CPU]).delegation()
    assert {row.provider for row in rows} == {CPU}
    with pytest.raises(DelegateError, match=OPENVINO):
        allocated(chain(), providers=[wrong, CPU], strict=True)


@pytest.mark.openvino
def test_a_graph_that_it_cannot_compile_goes_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """It claims nodes of what an LSTM with a clip is on the CPU, and then does not know them."""
    row = TRAITS[OPENVINO]
    graphs = partial(Target, fallback=True)
    monkeypatch.setitem(TRAITS, OPENVINO, replace(row, graphs=graphs))  # type: ignore[arg-type]
    content = Path(model_path("tf__lstm_seq_f32.tflite")).read_bytes()
    with pytest.warns(DelegateWarning, match="could not load the graph"):
        rows = allocated(content, providers=[OPENVINO, CPU]).delegation()
    assert {row.provider for row in rows} == {CPU}
    with pytest.raises(DelegateError, match="could not load the graph"):
        allocated(content, providers=[OPENVINO, CPU], strict=True)


@pytest.mark.openvino
def test_what_it_leaves_to_the_cpu_does_not_cut_its_graphs() -> None:
    """FLOOR_DIV of floats divides doubles, which it has none of; with nodes of its own graph on the
    CPU it would compute all of that graph's 8-bit layers in floats."""
    numbers = T(SHAPE)
    tensors = dict.fromkeys(("x", "sum", "product", "quotient", "rest", "result"), numbers)
    tensors["two"] = T.constant(np.array([2], np.float32))
    nodes = [
        Node(Op.ADD, ["x", "x"], ["sum"], AddOptions()),
        Node(Op.MUL, ["sum", "x"], ["product"], MulOptions()),
        Node(Op.FLOOR_DIV, ["product", "two"], ["quotient"]),
        Node(Op.SUB, ["quotient", "x"], ["rest"], SubOptions()),
        Node(Op.MUL, ["rest", "x"], ["result"], MulOptions()),
    ]
    model = graph_model(tensors, nodes, ["result"])
    rows = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert [row.provider for row in rows] == [OPENVINO, OPENVINO, CPU, OPENVINO, OPENVINO]
    assert "leaves nodes of it" in rows[2].reason
    x = np.arange(-3, 3, dtype=np.float32).reshape(SHAPE)
    got, _ = ours(model, [x], providers=[OPENVINO, CPU])
    np.testing.assert_array_equal(got[0], (x * x - x) * x)


@pytest.mark.openvino
def test_what_its_older_onnxruntime_computes_wrongly_runs_in_numpy() -> None:
    values = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    model = one_op_model(
        Op.REVERSE_SEQUENCE,
        [T((3, 4, 2)), T.constant(np.array([4, 0, 2], np.int32))],
        [T((3, 4, 2))],
        ReverseSequenceOptions(seq_dim=1, batch_dim=0),
    )
    (row,) = allocated(model, providers=[OPENVINO, CPU]).delegation()
    assert (row.runs_on, "rows of length 0" in row.reason) == ("numpy", True)
    got, _ = ours(model, [values], providers=[OPENVINO, CPU])
    np.testing.assert_array_equal(got[0], litert(model, [values])[0])


@pytest.mark.openvino
def test_a_device_that_is_not_there() -> None:
    absent = (OPENVINO, {"device_type": "NPU"})
    with pytest.warns(DelegateWarning, match=OPENVINO):
        rows = allocated(chain(), providers=[absent, CPU]).delegation()
    assert {row.provider for row in rows} == {CPU}
    with pytest.raises(DelegateError, match=OPENVINO):
        allocated(chain(), providers=[absent, CPU], strict=True)


@pytest.mark.openvino
def test_auto_tries_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    content = Path(model_path("mlperf-tiny__vww_96_float.tflite")).read_bytes()
    row = allocated(content, providers="auto").delegation()[0]
    assert f"tried {OPENVINO}: " in row.choice
    assert "ms an invoke" in row.choice
    assert row.provider in (OPENVINO, CPU)
