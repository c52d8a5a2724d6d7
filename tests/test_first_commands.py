"""Thirty first commands and snippets work at once, or say the line that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.first_commands import COMMANDS, Command, made, shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("first")
    made(path)
    return path


def test_there_are_thirty() -> None:
    assert len(COMMANDS) == 30


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.typed.splitlines()[-1][:40])
def test_a_first_command(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert command.shows in shown(command)
