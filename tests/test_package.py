"""The installed package: public names, their docstrings, type marker, and what importing costs."""

import doctest
import importlib
import inspect
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import tflite_ort
from tests.policy import PACKAGES

ROOT = Path(__file__).parents[1]
# Those that cannot run here are skipped in the docstring itself.
EXAMPLES = sorted(
    ".".join((name, *path.relative_to(ROOT / folder).with_suffix("").parts))
    for folder, name in PACKAGES.items()
    for path in (ROOT / folder).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)

PUBLIC = [
    "AllocationError",
    "BatchWarning",
    "BridgeError",
    "BudgetExceeded",
    "Budgets",
    "CacheWarning",
    "BuiltinOpResolver",
    "Bundle",
    "Delegate",
    "DelegateError",
    "DelegateWarning",
    "EmbeddingModel",
    "ExecutionProviderDelegate",
    "ExportError",
    "ExportWarning",
    "Generated",
    "GenerationError",
    "InstalledOpResolver",
    "InsufficientMemory",
    "Installed",
    "Interpreter",
    "InterpreterWithCustomOps",
    "KernelError",
    "LanguageModel",
    "MalformedBundle",
    "MalformedModel",
    "Metadata",
    "MissingDelegate",
    "MissingEntry",
    "ModelError",
    "MutableOpResolver",
    "OpResolver",
    "OpResolverType",
    "Predictor",
    "Registration",
    "Report",
    "ResizeError",
    "SignatureRunner",
    "StateError",
    "TensorError",
    "TranslatorError",
    "Tuning",
    "Unbatchable",
    "UnknownOperator",
    "UnreadableModel",
    "UnresolvedOperator",
    "UnsupportedSchema",
    "UnsupportedVersion",
    "Untranslatable",
    "VersionError",
    "WellKnownOpResolver",
    "batch_shape",
    "batched_model",
    "export_onnx",
    "export_signatures",
    "extract",
    "first_state",
    "generate",
    "install_as",
    "load_delegate",
    "open_bundle",
    "share_threads",
    "trained_model",
    "verify",
]


def test_public_names_are_exactly_these() -> None:
    assert tflite_ort.__all__ == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_a_docstring(name: str) -> None:
    # A dataclass without one gets its signature.
    documentation = inspect.getdoc(getattr(tflite_ort, name)) or ""
    assert documentation
    assert not documentation.startswith(f"{name}(")


@pytest.mark.parametrize("name", [name for name in PUBLIC if name[0].isupper()])
def test_public_methods_have_docstrings(name: str) -> None:
    for method, function in inspect.getmembers(getattr(tflite_ort, name), inspect.isfunction):
        if not method.startswith("_"):
            assert inspect.getdoc(function), f"{name}.{method}"


@pytest.mark.parametrize("package", PACKAGES.values())
def test_packages_are_typed(package: str) -> None:
    folder = Path(str(sys.modules[package].__file__)).parent
    assert (folder / "py.typed").is_file()


def test_command_is_installed() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="tflite-ort")
    assert callable(command.load())


def test_import_loads_neither_litert_nor_the_command_line() -> None:
    program = "import sys, tflite_ort; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    unwanted = {"ai_edge_litert", "rich", "tensorflow", "typer"}
    assert unwanted.isdisjoint(loaded)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_docstrings_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert results.failed == 0


def test_a_wheel_has_every_folder_of_modules() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        ".".join((name, *place.relative_to(ROOT / folder).parts)): place
        for folder, name in PACKAGES.items()
        for place in ((ROOT / folder), *(ROOT / folder).rglob("*/"))
        if (place / "__init__.py").is_file()
    }
    assert set(setuptools["packages"]) == folders.keys()
    assert {name: ROOT / at for name, at in setuptools["package-dir"].items()} == folders
