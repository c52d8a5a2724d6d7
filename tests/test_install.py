"""install_as: other code finds our interpreter under the names that it imports."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import ai_edge_litert
import ai_edge_litert.interpreter as litert
import numpy as np
import pytest

import tflite_ort
from tests.litert_models import permute_float
from tflite_ort import install_as

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
    assert output.strip() == "tflite_ort.interpreter"


def test_a_near_miss_of_a_package_is_named() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'tensorflow\.lite'"):
        install_as("tensorflow_lite")
