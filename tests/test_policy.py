"""The architecture: who imports whom, which families exist, and what no file may do."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.policy import PACKAGES, PROVIDER, circles, violations
from tflite_ort.fallback_kernels.registry import custom_kernel, kernel
from tflite_ort.opmap.registry import custom_translator, translator
from tflite_ort.schema import Op
from tflite_ort.schema.file import flex_table
from tflite_ort.schema.shapes.registry import all_rules
from tflite_ort.schema.values.operators import FAMILIES, FLEX, Key, family_of, flex_names
from tflite_ort.versioning.registry import Registry

ROOT = Path(__file__).parent.parent
FOLDERS = (*PACKAGES, "tests", "benchmarks", "examples")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "__init__.py" or folder != "tests"
)

# Files at the root of opmap/ and fallback_kernels/ that are no families of operators.
NO_FAMILIES = {"__init__", "registry"}
# The same of their folders flex/.
NO_FLEX_FAMILIES = {"__init__", "rest", "rewriting", "blocks"}


REGISTRIES = (translator, custom_translator, kernel, custom_kernel)


def families(folder: str) -> set[str]:
    return {path.stem for path in (ROOT / folder).glob("*.py")} - NO_FAMILIES


def flex_families(folder: str) -> set[str]:
    return {path.stem for path in (ROOT / folder / "flex").glob("*.py")} - NO_FLEX_FAMILIES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_keeps_every_rule(path: Path) -> None:
    assert violations(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) == []


def test_translators_kernels_and_shape_rules_have_the_same_family_files() -> None:
    assert families("opmap") == families("fallback_kernels")
    assert families("schema/shapes") <= families("opmap")
    assert {name for name in FAMILIES.values() if "." not in name} == families("opmap")


@pytest.mark.parametrize(("folder", "most"), [("bridge", 16), ("opmap", 34)])
def test_a_root_is_read_in_a_minute(folder: str, most: int) -> None:
    assert len(list((ROOT / folder).glob("*.py"))) <= most


def test_families_of_tensorflow_have_the_same_files() -> None:
    known = {flex_table.family_of(name) for name in flex_table.names()}
    assert flex_families("opmap") == flex_families("fallback_kernels") <= known
    assert flex_families("schema/shapes") <= flex_families("opmap")
    assert flex_families("schema") <= flex_families("opmap")


@pytest.mark.parametrize("registry", REGISTRIES)
def test_an_operator_is_in_its_family(registry: Registry[Any]) -> None:
    entries = list(registry)
    # Some of TensorFlow's operators are custom operators of TFLite too, with the same function.
    shared = {entry.function for entry in entries if not str(entry.op).startswith(FLEX)}
    found = {
        entry.op: family(entry.function)
        for entry in entries
        if not (str(entry.op).startswith(FLEX) and entry.function in shared)
    }
    found = {op: name for op, name in found.items() if name != "flex.rest"}
    assert found == {op: family_of(op) for op in found}


def test_a_shape_rule_is_in_the_family_of_its_operator() -> None:
    found = shape_families()
    known: tuple[Key, ...] = (*FAMILIES, *flex_names())
    declared = {op if isinstance(op, str) else op.name: family_of(op) for op in known}
    assert found == {name: declared[name] for name in found}
    without = {op for op in all_rules() if (op if isinstance(op, str) else op.name) not in found}
    # Which register names of a table.
    tables = {"flex.elementwise", "flex.optimizers", "flex.sparse"}
    assert {family_of(op) for op in without} <= tables


def family(function: Any) -> str:
    """The file of a registered function, which may be a row of a table."""
    module: str = getattr(function, "func", function).__module__
    return ".".join(module.split(".")[2:])


def shape_families() -> dict[str, str]:
    """By operator: the file of schema/shapes/ that names it as it registers a rule."""
    found: dict[str, str] = {}
    for path in (ROOT / "schema/shapes").rglob("*.py"):
        stem = ".".join(path.relative_to(ROOT / "schema/shapes").with_suffix("").parts)
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
            if isinstance(call, ast.Call) and function in ("rule", "flex_rule"):
                named = (node for node in call.args if not isinstance(node, ast.Starred))
                names = (ast.unparse(node).removeprefix("Op.").strip("'") for node in named)
                start = "Flex" if function == "flex_rule" else ""
                found |= {start + name: stem for name in names}
    return found


def subject(test: Path, names: set[str]) -> str:
    """The longest of `names` with which the name of a test file begins; empty if there is none."""
    name = test.stem.removeprefix("test_")
    return max((each for each in names if f"{name}_".startswith(f"{each}_")), key=len, default="")


@pytest.mark.parametrize(
    ("folder", "named_by"), [("tests/ops", "opmap"), ("tests/idioms", "opmap/idioms")]
)
def test_test_files_are_named_by_what_they_test(folder: str, named_by: str) -> None:
    names = families(named_by)
    tests = sorted((ROOT / folder).glob("test_*.py"))
    assert [test.name for test in tests if not subject(test, names)] == []


def test_every_family_of_tensorflow_has_cases() -> None:
    cases = {path.stem.removeprefix("cases_") for path in (ROOT / "tests/flex").glob("cases_*.py")}
    assert flex_families("opmap") <= cases


def test_every_family_has_tests() -> None:
    names = families("opmap")
    assert {subject(test, names) for test in (ROOT / "tests" / "ops").glob("test_*.py")} == names


@cache
def words(folder: str) -> dict[str, set[str]]:
    """By file at the root of `folder`: its words; `while_`, a function, counts as `while`."""
    return {
        path.stem: {word.strip("_") for word in re.findall(r"\w+", path.read_text())}
        for path in (ROOT / folder).glob("*.py")
    }


@pytest.mark.parametrize(
    "op", sorted({entry.op.name for entry in translator if isinstance(entry.op, Op)})
)
def test_one_search_finds_the_whole_story_of_an_operator(op: str) -> None:
    """In its family of translators and that of kernels in lower case, also a row of a table."""
    family = FAMILIES[Op[op]]
    assert op.lower() in words("opmap")[family] & words("fallback_kernels")[family]
    assert any(op in {word.upper() for word in found} for found in words("tests/ops").values())


LONG_FUNCTION = "def f():\n" + 60 * "    x()\n"


def module_name(path: Path) -> str:
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGES[folder], *(part for part in parts if part != "__init__")])


def test_no_modules_import_each_other_in_a_circle() -> None:
    ours = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in PACKAGES]
    assert circles({module_name(p): p.read_text(encoding="utf-8") for p in ours}) == []


def test_circles_are_seen() -> None:
    sources = {
        "p": "from p.a import A",
        "p.a": "from p.b import B\nimport os",
        "p.b": "import p.c",
        "p.c": "from p import a",
        "p.d": "from p.a import A",
    }
    assert circles(sources) == [{"p.a", "p.b", "p.c"}]
    assert circles({**sources, "p.c": "from p import A"}) == [{"p", "p.a", "p.b", "p.c"}]
    assert circles({**sources, "p.c": ""}) == []


BELOW_THE_BRIDGE = [
    path for path in SOURCES if path.relative_to(ROOT).parts[0] in PACKAGES.keys() - {"bridge"}
]


@pytest.mark.parametrize("path", BELOW_THE_BRIDGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_comment_below_the_bridge_names_a_provider(path: Path) -> None:
    assert PROVIDER.findall(path.read_text(encoding="utf-8")) == []


VIOLATIONS = [
    ("tests/x.py", 450 * "x = 1\n", "451 lines, at most 450"),
    ("benchmarks/x.py", LONG_FUNCTION, "f has 61 lines, at most 60"),
    ("examples/x.py", "from .y import z", "relative import"),
    ("schema/x.py", "import onnx", "schema may not import onnx"),
    ("schema/x.py", "from tflite_ort.opmap import graph", "schema may not import tflite_ort.opmap"),
    ("versioning/x.py", "import numpy", "versioning may not import numpy"),
    ("opmap/x.py", "import tflite_ort", "opmap may not import tflite_ort"),
    (
        "opmap/x.py",
        "from tflite_ort import fallback_kernels",
        "opmap may not import tflite_ort.fallback_kernels",
    ),
    (
        "fallback_kernels/x.py",
        "from tflite_ort.opmap.graph import Graph",
        "fallback_kernels may not import tflite_ort.opmap.graph",
    ),
    ("schema/file/x.py", "from tflite_ort.schema.values.view import A", "file is below"),
    ("schema/values/x.py", "from tflite_ort.schema.shapes import A", "values is below"),
    ("opmap/graph/x.py", "from tflite_ort.opmap.idioms.bits import A", "graph is below"),
    ("opmap/cells/x.py", "from tflite_ort.opmap.linear import A", "cells is below"),
    ("bridge/plan/x.py", "from tflite_ort.interpreter.interpreter import A", "plan is below"),
    ("bridge/x.py", "from tflite_ort.command.cli import main", "x.py is below"),
    ("bridge/x.py", "import tensorflow", "bridge may not import tensorflow"),
    (
        "bridge/x.py",
        "import onnxruntime",
        "onnxruntime is only for bridge/providers/candidates.py",
    ),
    ("bridge/x.py", "from typer import Typer", "typer is only for bridge/command/"),
    ("bridge/x.py", "def f():\n    import json", "import inside f"),
    (
        "bridge/x.py",
        "import importlib\nimportlib.import_module('x')",
        "importlib.import_module is only for bridge/base/optional.py",
    ),
    ("bridge/x.py", "from .session import Session", "relative import"),
    ("bridge/x.py", "try:\n    pass\nexcept:\n    pass", "catches everything"),
    ("bridge/x.py", "try:\n    pass\nexcept Exception:\n    pass", "catches Exception"),
    (
        "bridge/x.py",
        "try:\n    pass\nexcept (KeyError, BaseException):\n    pass",
        "catches BaseException",
    ),
    ("schema/x.py", "eval(text)", "eval runs data as code"),
    ("opmap/x.py", "run = exec", "exec runs data as code"),
    ("bridge/base/records.py", "run = eval", "eval runs data as code"),
    ("bridge/x.py", "import pickle", "pickle runs data as code"),
    ("bridge/x.py", "from marshal import loads", "marshal runs data as code"),
    ("bridge/x.py", "np.load(path, allow_pickle=True)", "allow_pickle runs data as code"),
    ("bridge/x.py", "openvino = True", "openvino is only for bridge/providers/traits.py"),
    ("opmap/x.py", "g.target.webgpu", "webgpu is only for"),
    ("opmap/x.py", 'def f():\n    """Of TensorRT."""', "TensorRT is only for"),
    ("bridge/x.py", 'f("QNNExecutionProvider")', "QNNExecutionProvider is only for"),
    ("bridge/x.py", "slow = provider.name != CPU", "compares with a provider"),
    ("opmap/x.py", "g.op('Cast', x, to=t)", "Cast spelt out: g.cast"),
    ("opmap/cells/x.py", "g.constant([0], np.int64)", "int64 constant spelt out: g.ints"),
    ("opmap/x.py", "if g.target.cpu_kernels:\n    pass", "cpu_kernels is only for rules"),
    ("opmap/cells/x.py", "build_chosen(op, lowerings)", "build_chosen is only for rules"),
    ("opmap/x.py", "@cache\ndef f() -> Array: ...", "f keeps an array: kept_table"),
    ("opmap/shape_utils.py", "", "'utils' in a file name says nothing"),
    ("opmap/x.py", "x = 1", "module without a docstring"),
]

CLEAN = [
    ("schema/x.py", "import json\nimport numpy as np\nfrom tflite_ort.schema.file.enums import Op"),
    ("opmap/loops/x.py", "from tflite_ort.opmap.cells.directions import A"),
    (
        "bridge/command/x.py",
        "from tflite_ort.interpreter.interpreter import A\nfrom tflite_ort.plan.build import B",
    ),
    ("opmap/x.py", "import ml_dtypes\nfrom tflite_ort.versioning.registry import Registry"),
    ("bridge/providers/session.py", "import onnxruntime\nfrom tflite_ort.opmap import graph"),
    ("bridge/x.py", "try:\n    pass\nexcept (KeyError, ValueError) as error:\n    raise"),
    ("versioning/registration.py", "try:\n    pass\nexcept Exception:\n    raise"),
    ("bridge/x.py", "import re\nre.compile('x')"),
    ("opmap/rules/lowerings/x.py", "build_chosen(op, lowerings, cpu_kernels)"),
    ("bridge/x.py", 'def f(provider=CPU):\n    """As TensorRT wants it."""'),
]


@pytest.mark.parametrize(("path", "source", "expected"), VIOLATIONS)
def test_checker_sees(path: str, source: str, expected: str) -> None:
    found = violations(path, source if "docstring" in expected else f'"""Doc."""\n{source}')
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(("path", "source"), CLEAN)
def test_checker_accepts(path: str, source: str) -> None:
    assert violations(path, f'"""Doc."""\n{source}') == []


NEEDS_MODELS = {"model_path", "model_paths", "newer_model_path"}


def named_on_import(path: Path) -> set[str]:
    """The functions that importing a file calls by name: outside of functions, or to decorate."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        runs_later = isinstance(node, (ast.FunctionDef, ast.Lambda))
        waiting += getattr(node, "decorator_list", []) if runs_later else ast.iter_child_nodes(node)
    return found


def test_no_test_file_needs_the_shared_models_to_be_imported() -> None:
    """In a clone without them tests are skipped, and a file that skips on import fails."""
    asking = {
        path.name for path in ROOT.glob("tests/**/*.py") if named_on_import(path) & NEEDS_MODELS
    }
    assert not asking
