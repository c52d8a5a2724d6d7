"""What a new process imports: no more than it uses."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tflite_ort
from tflite_ort.base.optional import late_names
from tflite_ort.command.cli import VERBS, command
from tflite_ort.command.demo import digits_model
from tflite_ort.fallback_kernels.registry import custom_kernel, kernel
from tflite_ort.opmap.registry import custom_translator, translator

HEAVY = ("onnx", "onnx_ir", "sympy", "google", "typer", "rich", "zipfile", "tempfile")
LATE = (
    *("verification", "command", "export", "model.batch", "batching", "bundles", "metadata"),
    *("fallback_kernels.convolution", "schema.builder", "schema.file.write", "versioning.rules"),
)


def imported(code: str) -> set[str]:
    """The modules that a new process has imported after `code`."""
    code = f"{code}\nimport sys; names = sorted(sys.modules)\nimport json; print(json.dumps(names))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def late_in(modules: set[str]) -> set[str]:
    ours = {f"tflite_ort.{name}" for name in LATE}
    return modules & {*HEAVY, *ours}


def test_the_package_alone_imports_next_to_nothing() -> None:
    modules = imported("import tflite_ort")
    assert not late_in(modules) | modules & {"numpy", "onnxruntime"}


def test_the_interpreter_comes_without_translators_and_kernels() -> None:
    modules = imported("from tflite_ort import Interpreter")
    assert late_in(modules) == set()
    assert not {m for m in modules if m.startswith("tflite_ort.opmap.idioms")}


def test_a_load_imports_the_families_of_its_operators() -> None:
    path = str(digits_model("float32"))
    modules = imported(
        f"from tflite_ort import Interpreter\ni = Interpreter({path!r})\n"
        "i.allocate_tensors(); i.invoke()"
    )
    assert late_in(modules) == set()
    families = {m.split(".")[2] for m in modules if m.startswith("tflite_ort.opmap.")}
    assert "convolution" in families
    assert not families & {"recurrent", "stablehlo", "tiling", "cells", "loops"}
    assert {m for m in modules if "flex" in m} == set()
    assert not {m for m in modules if m.startswith("tflite_ort.fallback_kernels.c")}


def test_a_hit_imports_nothing_that_makes_graphs(tmp_path: Path) -> None:
    path = str(digits_model("float32"))
    code = (
        f"from tflite_ort import Interpreter\ni = Interpreter({path!r}, cache={str(tmp_path)!r})\n"
        "i.allocate_tensors(); i.invoke()"
    )
    assert "tflite_ort.opmap.onnx_graph.ir" in imported(code)
    modules = imported(code)
    made = ("tflite_ort.opmap", "tflite_ort.fallback_kernels", "tflite_ort.specialize")
    assert not {m for m in modules if m.startswith(made)}
    late = (
        *("plan.partition", "plan.placements", "interpreter.signatures"),
        *("schema.file.read", "schema.file.enums", "schema.file.tables"),
    )
    assert not modules & {"dataclasses", "json", *(f"tflite_ort.{name}" for name in late)}


def at_home(home: Path, **environment: str) -> list[str]:
    """The files in the folder of a new user who has loaded and run a model."""
    code = (
        f"from tflite_ort import Interpreter\ni = Interpreter({str(digits_model('float32'))!r})\n"
        "i.allocate_tensors(); i.invoke()"
    )
    caches = home / "caches"
    caches.mkdir(parents=True)
    user = {"HOME": str(home), "XDG_CACHE_HOME": str(caches), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code], env={**user, **environment}, check=True)
    return [path.name for path in home.rglob("*") if path.is_file()]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it keeps them in other folders")
def test_onnx_runtime_notes_and_sends_nothing_unless_asked_to(tmp_path: Path) -> None:
    assert at_home(tmp_path / "none") == []
    assert at_home(tmp_path / "asked", ORT_DISABLE_TELEMETRY="0") != []


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_command_line_answers_at_once(argument: str) -> None:
    modules = imported(
        f"import sys\nfrom tflite_ort.command.cli import main\nsys.argv = ['x', {argument!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )
    assert not modules & {"numpy", "onnxruntime", "onnx", "tflite_ort.schema"}


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_says_what_their_own_help_says(verb: str) -> None:
    paragraphs = (command(verb).help or "").split("\n\n")
    assert " ".join(paragraphs[0].split()) == VERBS[verb].summary


def names_for_type_checkers(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_every_late_name() -> None:
    assert names_for_type_checkers(Path(tflite_ort.__file__)) == set(tflite_ort.__all__)
    for name in tflite_ort.__all__:
        assert getattr(tflite_ort, name) is not None
    assert set(tflite_ort.__all__) <= set(dir(tflite_ort))


@pytest.mark.parametrize("package", ["tflite_ort", "tflite_ort.schema", "tflite_ort.versioning"])
def test_no_late_name_is_that_of_a_submodule(package: str) -> None:
    """The import of the submodule would take its place."""
    folder = Path(sys.modules[package].__file__ or "").parent
    late = names_for_type_checkers(folder / "__init__.py")
    assert not late & {path.stem for path in folder.iterdir()}


def test_submodules_and_unknown_names() -> None:
    get = late_names("tflite_ort", {})
    assert get("state") is sys.modules["tflite_ort.state"]
    for name in ("nothing", "_private", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"'tflite_ort' has no attribute '{name}'"):
            get(name)


# Each operator's family is looked for in a process of its own, in which no other one is loaded.
ALONE = """
import json, os, sys
from tflite_ort.fallback_kernels.registry import custom_kernel, kernel
from tflite_ort.opmap.registry import custom_translator, translator
from tflite_ort.schema.values.operators import FAMILIES, family_of, flex_names

families = {op: family_of(op) for op in (*FAMILIES, *flex_names())}
for family in sorted(set(families.values()) - {None}):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    found = [
        [number, str(op)]
        for number, registry in enumerate((translator, custom_translator, kernel, custom_kernel))
        for op in families
        if families[op] == family and registry.versions(op)
    ]
    print(json.dumps(found), flush=True)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")
def test_an_operator_is_found_where_nothing_else_was_loaded() -> None:
    """A registry imports an operator's family when the operator is first looked up."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    found = {tuple(pair) for line in done.stdout.splitlines() for pair in json.loads(line)}
    assert found == {
        (number, str(entry.op))
        for number, registry in enumerate((translator, custom_translator, kernel, custom_kernel))
        for entry in registry
    }
