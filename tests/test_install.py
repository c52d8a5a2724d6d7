"""install_as: other code finds our interpreter under the names that it imports."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ai_edge_litert
import ai_edge_litert.interpreter as litert
import numpy as np
import pytest

import tflite_ort
from tests.litert_models import permute_float
from tflite_ort import install_as
from tflite_ort.verification.litert_worker import Worker

CLIENT = """
from {package} import Interpreter, load_delegate, OpResolverType

def answer(path, x):
    interpreter = Interpreter(model_path=path, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""


@pytest.mark.parametrize("name", ["tflite_runtime", "ai_edge_litert"])
def test_a_client_is_given_ours(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "client_of_tflite.py").write_text(CLIENT.format(package=f"{name}.interpreter"))
    (tmp_path / "m.tflite").write_bytes(permute_float())
    monkeypatch.syspath_prepend(tmp_path)
    with install_as(name):
        client = importlib.import_module("client_of_tflite")
        x = np.float32([[1, 2, 3, 4]])
        np.testing.assert_array_equal(client.answer(str(tmp_path / "m.tflite"), x), x[:, ::-1])
    assert client.Interpreter is tflite_ort.Interpreter
    del sys.modules["client_of_tflite"]


def test_all_that_the_modules_hold() -> None:
    with install_as("tflite_runtime"):
        module = importlib.import_module("tflite_runtime.interpreter")
        for name in ("Interpreter", "Delegate", "OpResolverType", "load_delegate"):
            assert getattr(module, name) is getattr(tflite_ort, name)
            assert hasattr(litert, name)
        assert sys.modules["tflite_runtime"].interpreter is module
        assert importlib.util.find_spec("tflite_runtime.interpreter") is not None


def test_tensorflow_lite_without_tensorflow() -> None:
    with install_as("tensorflow.lite"):
        tensorflow = importlib.import_module("tensorflow")
        assert tensorflow.lite.Interpreter is tflite_ort.Interpreter
        assert tensorflow.lite.experimental.load_delegate is tflite_ort.load_delegate
        assert tensorflow.lite.experimental.OpResolverType is tflite_ort.OpResolverType
        with pytest.raises(ImportError):
            importlib.import_module("tensorflow.keras")
    with pytest.raises(ImportError):
        importlib.import_module("tensorflow")


def test_tensorflow_that_is_there_keeps_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    tensorflow, lite = ModuleType("tensorflow"), ModuleType("tensorflow.lite")
    vars(tensorflow).update(lite=lite, keras="kept")
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setitem(sys.modules, "tensorflow.lite", lite)
    with install_as("tensorflow.lite"):
        assert sys.modules["tensorflow"] is tensorflow
        assert tensorflow.keras == "kept"
        assert tensorflow.lite.Interpreter is tflite_ort.Interpreter
    assert tensorflow.lite is lite
    assert sys.modules["tensorflow.lite"] is lite


def made_tensorflow(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Modules in the order of TensorFlow's: one defines the interpreter, the others take it."""
    names = [
        *("tensorflow", "tensorflow.lite", "tensorflow.lite.python"),
        *("tensorflow.lite.python.interpreter", "tensorflow.lite.python.lite"),
        *("tensorflow._api", "tensorflow._api.v2", "tensorflow._api.v2.lite"),
        *("tensorflow._api.v2.lite.experimental", "tensorflow._api.v2.compat"),
        *("tensorflow._api.v2.compat.v1", "tensorflow._api.v2.compat.v1.lite"),
        *("tensorflow._api.v2.compat.v2", "tensorflow._api.v2.compat.v2.lite"),
    ]
    made = {name: ModuleType(name) for name in names}
    for name, module in made.items():
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, attribute = name.rpartition(".")
        if parent:
            setattr(made[parent], attribute, module)
    classes = {name: type(name, (), {}) for name in ("Interpreter", "OpResolverType", "Delegate")}
    classes["load_delegate"] = type("load_delegate", (), {})
    vars(made["tensorflow.lite.python.interpreter"]).update(classes)
    vars(made["tensorflow._api.v2.lite.experimental"]).update(
        load_delegate=classes["load_delegate"], OpResolverType=classes["OpResolverType"]
    )
    for name in names:
        if name.endswith(".lite") and name != "tensorflow.lite":
            vars(made[name]).update(Interpreter=classes["Interpreter"], TFLiteConverter="kept")
    vars(made["tensorflow"]).update(
        lite=made["tensorflow._api.v2.lite"], compat=made["tensorflow._api.v2.compat"]
    )
    return made


def test_every_path_of_tensorflow_leads_here(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_tensorflow(monkeypatch)
    before = {name: dict(vars(module)) for name, module in made.items()}
    with install_as("tensorflow.lite"):
        tf: Any = importlib.import_module("tensorflow")
        found = [
            *(tf.lite, tf.compat.v1.lite, tf.compat.v2.lite),
            *(
                importlib.import_module(f"tensorflow.{name}")
                for name in ("lite.python.interpreter", "lite.python.lite", "_api.v2.lite")
            ),
        ]
        for module in found:
            assert module.Interpreter is tflite_ort.Interpreter, module
        assert tf.lite.experimental.load_delegate is tflite_ort.load_delegate
        assert tf.lite.experimental.OpResolverType is tflite_ort.OpResolverType
        assert tf.lite.TFLiteConverter == tf.compat.v1.lite.TFLiteConverter == "kept"
    assert {name: dict(vars(module)) for name, module in made.items()} == before
    assert all(sys.modules[name] is module for name, module in made.items())


def test_every_path_without_tensorflow() -> None:
    with install_as("tensorflow.lite"):
        for name in (
            *("compat.v1.lite", "compat.v2.lite", "lite.python.lite", "_api.v2.lite"),
            *("_api.v2.compat.v1.lite", "lite.python.interpreter"),
        ):
            module = importlib.import_module(f"tensorflow.{name}")
            assert module.Interpreter is tflite_ort.Interpreter, name
        version_1: Any = importlib.import_module("tensorflow.compat.v1")
        assert version_1.lite.experimental.load_delegate is tflite_ort.load_delegate
    assert not [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]


def test_who_imported_before_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_tensorflow(monkeypatch)
    early, whole = ModuleType("early"), ModuleType("whole")
    vars(early)["Detector"] = vars(made["tensorflow.lite.python.lite"])["Interpreter"]
    vars(whole)["tf"] = made["tensorflow"]  # which gives ours from now on
    monkeypatch.setitem(sys.modules, "early", early)
    monkeypatch.setitem(sys.modules, "whole", whole)
    with (
        pytest.warns(RuntimeWarning, match=r"^early imported tensorflow\.lite before") as told,
        install_as("tensorflow.lite"),
    ):
        assert len(told) == 1 and told[0].filename == __file__
    monkeypatch.delitem(sys.modules, "early")
    with install_as("tensorflow.lite"):  # no warning
        pass


ARGUMENTS = {"providers": [], "hybrid": "float", "num_threads": 2}


def test_arguments_where_the_client_gives_none(tmp_path: Path) -> None:
    content, folder = permute_float(), tmp_path / "cache"
    with install_as("tflite_runtime", **ARGUMENTS, cache=folder):
        module = importlib.import_module("tflite_runtime.interpreter")
        kind: Any = module.Interpreter
        assert issubclass(kind, tflite_ort.Interpreter) and kind.__name__ == "Interpreter"
        made = [
            kind(model_content=content),
            kind(None, content, None, None),  # as LiteRT's arguments stand
            kind(model_content=content).copy(),
            pickle.loads(pickle.dumps(kind(model_content=content))),
            module.InterpreterWithCustomOps(model_content=content),
        ]
        for each in made:
            given = each._arguments
            assert {name: given[name] for name in ARGUMENTS} == ARGUMENTS
            each.allocate_tensors()
            assert {row.runs_on for row in each.delegation()} == {"numpy"}
        assert any(folder.rglob("*"))
        assert kind(model_content=content, num_threads=1)._arguments["num_threads"] == 1
        with pytest.raises(TypeError, match="no_such"):
            kind(model_content=content, no_such=1)
        asked = kind(
            model_content=content,
            experimental_op_resolver_type=tflite_ort.OpResolverType.BUILTIN_REF,
        )
        assert asked._arguments["providers"] is None


def test_arguments_of_compiled_models(tmp_path: Path) -> None:
    with install_as("ai_edge_litert", **ARGUMENTS):
        module = importlib.import_module("ai_edge_litert.compiled_model")
        model = module.CompiledModel.from_buffer(permute_float())
        given = model._interpreter._arguments
        assert {name: given[name] for name in ARGUMENTS} == ARGUMENTS
        both = module.HardwareAccelerator.GPU | module.HardwareAccelerator.CPU
        model = module.CompiledModel.from_buffer(permute_float(), both)
        assert model._interpreter._arguments["providers"] == ["CPUExecutionProvider"]


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ({"hybrid": "no"}, ValueError),
        ({"precision": "no"}, ValueError),
        ({"num_threads": -7}, ValueError),
        ({"providers": ["no"]}, tflite_ort.MissingDelegate),
    ],
)
def test_wrong_arguments_are_told_at_once(argument: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        install_as("tflite_runtime", **argument)
    assert "tflite_runtime" not in sys.modules


def test_this_library_is_not_compared_with_itself() -> None:
    """A `sitecustomize` that stands in for LiteRT runs in the process that is asked for it too."""
    with install_as("ai_edge_litert"), pytest.raises(RuntimeError, match="in its place"):
        Worker().answer({"do": "load", "path": "", "kernels": "default", "threads": 1}, {})


def test_undo_puts_back_what_was_there() -> None:
    installed = install_as("ai_edge_litert")
    assert sys.modules["ai_edge_litert.interpreter"] is not litert
    installed.undo()
    installed.undo()
    assert sys.modules["ai_edge_litert"] is ai_edge_litert
    assert importlib.import_module("ai_edge_litert.interpreter") is litert
    assert litert.Interpreter is not tflite_ort.Interpreter


def test_the_rest_of_a_package_passes_through() -> None:
    with install_as("ai_edge_litert"):
        package = importlib.import_module("ai_edge_litert")
        assert package is not ai_edge_litert and package.__version__ == ai_edge_litert.__version__
        tools = importlib.import_module("ai_edge_litert.tools.flatbuffer_utils")
        assert package.tools.flatbuffer_utils is tools
        interpreter = importlib.import_module("ai_edge_litert.interpreter")
        assert interpreter.Interpreter is tflite_ort.Interpreter
        assert interpreter.OpResolverType is tflite_ort.OpResolverType
        assert {*dir(litert)} <= {*dir(interpreter)}
        with pytest.raises(AttributeError):
            _ = interpreter.no_such_name
    assert ai_edge_litert.tools.flatbuffer_utils is tools


def test_a_package_that_is_not_there_has_a_version() -> None:
    with install_as("tflite_runtime"):
        version = importlib.import_module("tflite_runtime").__version__
        assert tuple(map(int, version.split("."))) > (2, 14)


def test_our_own_version() -> None:
    assert tflite_ort.__version__ == importlib.metadata.version("tflite-ort")


def test_one_inside_another() -> None:
    with install_as("tflite_runtime") as outer:
        first = sys.modules["tflite_runtime.interpreter"]
        with install_as("tflite_runtime"):
            assert sys.modules["tflite_runtime.interpreter"] is not first
        assert sys.modules["tflite_runtime.interpreter"] is first
    outer.undo()
    assert "tflite_runtime" not in sys.modules


def test_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'numpy'.*tflite_runtime"):
        install_as("numpy")


def test_it_holds_for_a_whole_program() -> None:
    program = (
        "import tflite_ort; tflite_ort.install_as('tflite_runtime')\n"
        "import tflite_runtime.interpreter as tflite\n"
        "print(tflite.Interpreter.__module__)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "tflite_ort.interpreter.interpreter"


def test_a_near_miss_of_a_package_is_named() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'tensorflow\.lite'"):
        install_as("tensorflow_lite")
