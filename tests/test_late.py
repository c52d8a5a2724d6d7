"""Modules that are imported when something of them is first used."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import sys
import threading
from pathlib import Path

import pytest

from tests.test_policy import ROOT, SOURCES
from tflite_ort.base.optional import LateModule, late

FIRST, SECOND = "def value() -> int:\n    return 1\n", "def value() -> int:\n    return 2\n"
BLOCK = """
from tflite_ort.base.optional import late

with late:
    import late_alone

    from late_package import first
    from late_package import second as other
"""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The names of a module with a block of modules, of which none was there before."""
    package = tmp_path / "late_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text(FIRST)
    (package / "second.py").write_text(SECOND)
    (tmp_path / "late_alone.py").write_text(FIRST)
    (tmp_path / "late_reader.py").write_text(BLOCK)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("late_")]:
        monkeypatch.delitem(sys.modules, name)
    return vars(importlib.import_module("late_reader"))


def test_a_module_is_imported_when_it_is_used(names: dict[str, object]) -> None:
    loaded = {name for name in sys.modules if name.startswith("late_")}
    assert loaded == {"late_reader"}
    assert names["other"].value() == 2  # type: ignore[attr-defined]
    assert "late_package.second" in sys.modules
    assert not {"late_alone", "late_package.first"} & sys.modules.keys()
    assert names["late_alone"].value() == names["first"].value() == 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'late_alone' has no attribute 'nothing'"):
        names["late_alone"].nothing  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_set_in_it_is_set_in_the_module(
    names: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = names["first"]
    assert first.value() == 1  # type: ignore[attr-defined]
    monkeypatch.setattr(first, "value", lambda: 7)
    assert sys.modules["late_package.first"].value() == 7


def test_imports_are_as_usual_behind_a_block_and_beside_it() -> None:
    usual, found = builtins.__import__, []

    def elsewhere() -> None:
        scope: dict[str, object] = {}
        exec("import colorsys; from os import path", scope)
        found.extend([scope["colorsys"], scope["path"]])

    with pytest.raises(ZeroDivisionError), late:
        import quopri

        assert isinstance(quopri, LateModule)
        with late:
            import quopri as again
        assert isinstance(again, LateModule)
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        1 / 0  # noqa: B018
    assert builtins.__import__ is usual
    assert found == [sys.modules["colorsys"], sys.modules["posixpath"]]


def test_a_block_leaves_what_others_have_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    with late:
        inner = builtins.__import__

        def theirs(name: str, *args: object, **named: object) -> object:
            asked.append(name)
            return inner(name, *args, **named)

        monkeypatch.setattr(builtins, "__import__", theirs)
    assert builtins.__import__ is theirs
    with late:
        import quopri
    assert builtins.__import__ is theirs
    assert isinstance(quopri, LateModule)
    exec("import colorsys", {})
    assert asked == ["colorsys"]


def test_blocks_name_modules_alone() -> None:
    """A class or function would be looked for as a module."""
    named = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.With) and ast.unparse(node.items[0].context_expr) == "late":
                where = path.relative_to(ROOT).as_posix()
                for line in () if where.startswith("tests/") else node.body:
                    assert isinstance(line, ast.Import | ast.ImportFrom), where
                    package = f"{line.module}." if isinstance(line, ast.ImportFrom) else ""
                    assert package or not any("." in alias.name for alias in line.names), where
                    named.update((where, f"{package}{alias.name}") for alias in line.names)
    assert len(named) > 100
    for where, name in sorted(named):
        assert importlib.util.find_spec(name) is not None, f"{where}: {name}"
