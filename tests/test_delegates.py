"""Delegates: which there are, what each takes, and what happens when one fails."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.delegated import allocated, assert_as_litert
from tests.one_op import Node, T, graph_model
from tests.test_partition import SHAPE, branches, chain
from tflite_ort import (
    BuiltinOpResolver,
    Delegate,
    DelegateError,
    DelegateWarning,
    ExecutionProviderDelegate,
    Interpreter,
    MissingDelegate,
    Registration,
    load_delegate,
)
from tflite_ort.command.cli import app
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import Graph
from tflite_ort.plan.build import make_plan
from tflite_ort.plan.context import PlanContext
from tflite_ort.providers import plugins
from tflite_ort.providers.available import missing_providers, provider_reports
from tflite_ort.providers.provider import Provider
from tflite_ort.providers.session import ORT_VERSION
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import Op, OperatorView, read_model
from tflite_ort.specialize.specialization import specialize

# It is compiled into every wheel and takes none of our nodes.
AZURE = "AzureExecutionProvider"
RTX = "NvTensorRTRTXExecutionProvider"

WITHOUT_MUL = ExecutionProviderDelegate(CPU, max_versions={Op.MUL: 0})
FIRST_VERSIONS = ExecutionProviderDelegate(CPU, max_versions=dict.fromkeys(Op, 1))


class OverDevices(Delegate):
    """ONNX Runtime's CPU as a plug-in is used, on a kind of device."""

    @property
    def provider(self) -> Provider:
        return Provider(self.name, {}, plugin=True, device=self.options["device"])


def over(device: str) -> Delegate:
    return OverDevices(CPU, {"device": device})


# What delegation() says ---------------------------------------------------------------------------


def test_an_operator_in_the_middle_that_none_takes_gives_two_sessions_around_it() -> None:
    rows = allocated(chain(), providers=[WITHOUT_MUL]).delegation()
    assert [(row.runs_on, row.delegate, row.partition) for row in rows] == [
        ("ort", CPU, 0),
        ("numpy", "", 1),
        ("ort", CPU, 2),
    ]
    assert [row.provider for row in rows] == [CPU, "", CPU]
    assert rows[1].reason == f"{CPU} takes MUL up to version 0, this is 1"
    assert_as_litert(chain(), [WITHOUT_MUL])


def test_an_operator_in_one_branch_does_not_cut_the_other() -> None:
    rows = allocated(branches(), providers=[WITHOUT_MUL]).delegation()
    assert [row.partition for row in rows] == [0, 1, 0, 0, 2]
    assert_as_litert(branches(), [WITHOUT_MUL])


def test_version_1_of_everything_leaves_later_versions_to_the_next_delegate() -> None:
    rows = allocated(chain(version=2), providers=[FIRST_VERSIONS, over("CPU")]).delegation()
    assert [(row.version, row.partition) for row in rows] == [(1, 0), (2, 1), (1, 2)]
    assert [row.reason for row in rows] == ["", f"{CPU} takes MUL up to version 1, this is 2", ""]


def test_delegates_of_one_name_keep_their_own_options() -> None:
    takes_nothing = replace(FIRST_VERSIONS, max_versions=dict.fromkeys(Op, 0))
    with pytest.warns(DelegateWarning, match="has no device NPU"):
        rows = allocated(chain(), providers=[takes_nothing, over("NPU"), CPU]).delegation()
    assert {row.delegate for row in rows} == {CPU}
    assert all("cannot be used" in row.reason for row in rows)


# Partitions that are too small --------------------------------------------------------------------


def test_too_small_a_partition_goes_to_the_next_delegate() -> None:
    least = replace(WITHOUT_MUL, min_partition_size=3)
    rows = allocated(branches(), providers=[least, over("CPU")]).delegation()
    assert [(row.delegate, row.partition) for row in rows] == [
        (CPU, 0),
        (CPU, 1),
        (CPU, 0),
        (CPU, 0),
        (CPU, 1),
    ]
    assert rows[4].reason == f"in a partition of 1, {CPU} takes 3 or more"
    assert_as_litert(branches(), [least, over("CPU")])


def test_a_partition_that_is_large_enough_stays() -> None:
    least = replace(WITHOUT_MUL, min_partition_size=3)
    rows = allocated(branches(), providers=[least]).delegation()
    assert [row.runs_on for row in rows] == ["ort", "numpy", "ort", "ort", "numpy"]


def test_what_nothing_else_runs_stays_in_a_small_partition() -> None:
    def twice(op: OperatorView[Any], g: Graph) -> None:
        x = g.read(op.present_inputs()[0])
        g.write(op.output, g.op("Add", x, x))

    resolver = BuiltinOpResolver()
    resolver.add_custom("Twice", Registration(twice))
    node = Node("Twice", ["x"], ["y"])
    model = graph_model({"x": T(SHAPE), "y": T(SHAPE)}, [node], ["y"])
    takes_none = ExecutionProviderDelegate(CPU, max_versions={Op.CUSTOM: 0})
    delegates = [takes_none, ExecutionProviderDelegate(CPU, min_partition_size=2)]
    (row,) = allocated(model, resolver=resolver, providers=delegates).delegation()
    assert (row.delegate, row.partition) == (CPU, 0)
    assert row.reason == f"{CPU} takes Twice up to version 0, this is 1"


# A delegate that fails ----------------------------------------------------------------------------


def test_a_delegate_that_cannot_be_loaded_warns_and_the_next_takes_over() -> None:
    with pytest.warns(DelegateWarning, match="cannot be used: .* no device NPU; the next") as seen:
        interpreter = Interpreter(model_content=chain(), providers=[over("NPU"), CPU])
        interpreter.allocate_tensors()
    assert len(seen) == 1
    assert seen[0].filename == __file__
    for row in interpreter.delegation():
        assert (row.runs_on, row.provider) == ("ort", CPU)
        assert "no device NPU" in row.reason


def test_a_plan_says_which_delegates_are_unusable_and_changes_nothing_it_is_given() -> None:
    source = read_model(chain())
    context = PlanContext([over("NPU")], BoundResolver(BuiltinOpResolver(), source))
    graph = specialize(source, 0, {}, kernel)
    with pytest.warns(DelegateWarning, match="cannot be used"):
        plan = make_plan(graph, context)
    assert context.unusable == {}
    assert list(plan.unusable) == [CPU]
    assert make_plan(graph, replace(context, unusable=plan.unusable)).placements == plan.placements


def test_a_delegate_that_was_unusable_is_not_tried_at_the_next_allocation() -> None:
    interpreter = Interpreter(model_content=chain(), providers=[over("NPU"), CPU])
    with pytest.warns(DelegateWarning, match="cannot be used"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (5, 3))
    interpreter.resize_tensor_input(interpreter.get_input_details()[1]["index"], (5, 3))
    interpreter.allocate_tensors()
    assert all("no device NPU" in row.reason for row in interpreter.delegation())


def test_a_partition_that_a_delegate_cannot_compile_goes_to_the_next() -> None:
    with pytest.warns(DelegateWarning, match="failed: .* none of the nodes; .* ADD_0, MUL_1, SUB"):
        rows = allocated(chain(), providers=[AZURE, CPU]).delegation()
    assert {(row.delegate, row.provider) for row in rows} == {(CPU, CPU)}
    with pytest.warns(DelegateWarning):
        rows = allocated(chain(), providers=[AZURE]).delegation()
    assert {row.runs_on for row in rows} == {"numpy"}


@pytest.mark.parametrize(
    ("delegate", "message"),
    [(over("NPU"), "no device NPU"), (AZURE, f"{AZURE} was not given ADD_0/Add, MUL_1/Mul")],
)
def test_a_strict_interpreter_refuses_instead(delegate: Any, message: str) -> None:
    with pytest.raises(DelegateError, match=message):
        allocated(chain(), providers=[delegate, CPU], strict=True)


def test_a_strict_interpreter_runs_where_all_is_well() -> None:
    interpreter = allocated(chain(), strict=True)
    assert {row.provider for row in interpreter.delegation()} == {CPU}
    again = pickle.loads(pickle.dumps(interpreter))
    again.allocate_tensors()
    assert again.delegation() == interpreter.delegation()


# Loading ------------------------------------------------------------------------------------------


def test_a_delegate_is_loaded_by_name() -> None:
    delegate = load_delegate(CPU)
    assert delegate == ExecutionProviderDelegate(CPU)
    rows = allocated(chain(), experimental_delegates=[delegate], providers=[]).delegation()
    assert {row.delegate for row in rows} == {CPU}


@pytest.mark.parametrize("name", ["NoSuchExecutionProvider", "no-such-package", ""])
def test_an_unknown_provider_is_an_error_that_lists_those_there_are(name: str) -> None:
    message = f"Failed to load delegate from {name}: .*{AZURE}.*{CPU}.*packages of plug-in"
    with pytest.raises(MissingDelegate, match=message):
        load_delegate(name)
    with pytest.raises(ValueError, match=message):
        Interpreter(model_content=chain(), providers=[name])


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(MissingDelegate, match=f"{CPU} has no option turbo; it has none"):
        load_delegate(CPU, {"turbo": 1})
    with pytest.raises(MissingDelegate, match="has no option turbo"):
        Interpreter(model_content=chain(), providers=[(CPU, {"turbo": 1})])


def test_a_library_that_is_no_plugin_is_an_error(tmp_path: Path) -> None:
    library = tmp_path / "libprovider.so"
    library.write_bytes(b"not a library")
    with pytest.raises(MissingDelegate, match=r"could not load .*libprovider\.so"):
        load_delegate(str(library))
    with pytest.raises(MissingDelegate, match=r"could not load .*nowhere\.so"):
        load_delegate(str(tmp_path / "nowhere.so"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An installed package of a plug-in whose library cannot be loaded."""
    folder = tmp_path / "onnxruntime_ep_broken"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        f"def get_library_path(): return {str(tmp_path / 'libbroken.so')!r}\n"
        "def get_ep_names(): return ['BrokenExecutionProvider']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield folder.name
    sys.modules.pop(folder.name, None)


@pytest.mark.parametrize("name", ["onnxruntime-ep-broken", "BrokenExecutionProvider"])
def test_a_plugin_is_found_by_package_and_by_provider(package: str, name: str) -> None:
    with pytest.raises(MissingDelegate, match=rf"from {name}: .*could not load .*libbroken\.so"):
        load_delegate(name)


def test_reports_tell_of_providers_devices_and_problems(package: str) -> None:
    reports = provider_reports()
    (cpu,) = (row for row in reports if row.name == CPU)
    assert (cpu.source, cpu.version, cpu.problem) == ("onnxruntime", ORT_VERSION, "")
    assert cpu.devices[0].startswith("CPU")
    (broken,) = (row for row in reports if row.source == package)
    assert broken.name == "BrokenExecutionProvider"
    assert "libbroken.so" in broken.problem


def test_a_provider_whose_package_is_there_is_not_called_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although it has no device here, or cannot be loaded."""
    assert "tensorrt-rtx" in dict(missing_providers(provider_reports()))
    monkeypatch.setattr(import_module(package), "get_ep_names", lambda: [RTX])
    assert "tensorrt-rtx" not in dict(missing_providers(provider_reports()))


def test_inspect_says_why_the_next_delegate_took_over(tmp_path: Path) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(chain())
    arguments = ["inspect", str(path), "--provider", AZURE, "--provider", CPU]
    with warnings.catch_warnings():
        warnings.simplefilter("always", DelegateWarning)
        result = CliRunner().invoke(app, arguments)
    failure = f"{AZURE} failed: ONNX Runtime gave it none of the nodes"
    assert result.stdout.count(failure) == 4  # of each operator, and once at the end
    assert result.stderr.startswith(f"warning: {failure}")


def test_the_command_lists_providers(package: str) -> None:
    result = CliRunner().invoke(app, ["providers"])
    assert result.exit_code == 0
    for text in (CPU, AZURE, ORT_VERSION, package, "libbroken.so"):
        assert text in result.output


def test_providers_have_short_names_and_near_misses() -> None:
    assert load_delegate("cpu").name == CPU
    (placement, *_) = allocated(chain(), providers=["Cpu"]).delegation()
    assert placement.runs_on == "ort"
    with pytest.raises(MissingDelegate, match=r"no provider 'cpuu'.*did you mean 'cpu'\?"):
        load_delegate("cpuu")
    with pytest.raises(MissingDelegate, match=r"no provider 'cudda'.*did you mean 'cuda'\?"):
        load_delegate("cudda")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("cuda", r"pip uninstall onnxruntime && pip install 'onnxruntime-gpu\[cuda,cudnn\]'"),
        ("QNNExecutionProvider", r"pip install 'tflite-ort\[qnn\]'"),
        ("directml", "pip uninstall onnxruntime && pip install onnxruntime-directml"),
        ("tensorrt-rtx", r"pip install 'tflite-ort\[tensorrt-rtx\]'"),
    ],
)
def test_a_provider_that_is_not_installed_says_what_has_it(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr(plugins, "plugin_packages", list)
    monkeypatch.setattr(plugins, "devices", list)
    with pytest.raises(MissingDelegate, match=f"; to install it: {package}$"):
        load_delegate(name)
