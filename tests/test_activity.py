"""What a command shows on the terminal while it works, and what it prints on plain ones."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time

import pytest
from rich.console import Console

from tflite_ort.command import activity as activity_module
from tflite_ort.command.activity import Activity
from tflite_ort.command.demo import ASCII_HALVES, HALVES, run_demo
from tflite_ort.command.terminal import new_console, say


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The command's stderr, with an activity that is shown at once."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(activity_module, "_WAIT", 0.0)
    monkeypatch.setattr(activity_module, "_EVERY", 0.01)
    return stream


def wait_for(stream: io.StringIO, pattern: str) -> None:
    """The seconds that it shows depend on how busy the machine is."""
    end = time.monotonic() + 60
    while not re.search(pattern, stream.getvalue()) and time.monotonic() < end:
        time.sleep(0.01)
    assert re.search(pattern, stream.getvalue())


def on_screen(written: str) -> str:
    """What is left on the line."""
    line = ""
    for part in written.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def test_what_takes_long_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    activity = Activity()
    with activity.during("export"):
        wait_for(terminal, r" export, \d+ s")
        activity.tell("bench a.tflite", 2, 7)
        wait_for(terminal, r" bench a\.tflite: 2 of 7, \d+ s")
    assert on_screen(terminal.getvalue()) == ""
    length = len(terminal.getvalue())
    time.sleep(0.05)
    assert len(terminal.getvalue()) == length


def test_it_does_not_stand_in_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(sys, "stdout", terminal)
    with activity_module.activity.during("tune"):
        wait_for(terminal, r" tune, \d+ s")
        monkeypatch.setattr(activity_module, "_WAIT", 60.0)
        say("a line")
        new_console().print("another")
    lines = terminal.getvalue().split("\n")
    assert [on_screen(line) for line in lines] == ["a line", "another", ""]


def test_a_file_gets_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(activity_module, "_WAIT", 0.0)
    with Activity().during("export"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


# Plain terminals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": "dumb"},
    ],
    ids=["encoding", "locale"],
)
def test_the_demo_in_ascii(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tflite_ort", "demo"],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    text = done.stdout.decode("ascii")
    assert not done.stderr
    assert set(ASCII_HALVES) <= set(text)
    assert "what they read:\n\n" in text


@pytest.mark.parametrize("width", [40, 80])
def test_the_demo_fits_the_terminal(width: int) -> None:
    page = io.StringIO()
    run_demo(Console(file=page, width=width))
    lines = page.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "\u2026" not in page.getvalue()  # nothing is cut off
    assert set(HALVES) <= set(page.getvalue())
    assert sum(line.startswith("lstm_float32 ") for line in lines) > 24 // 6


def test_what_the_terminal_has_no_characters_for_is_escaped() -> None:
    code = (
        "from tflite_ort.command.terminal import say\n"
        "from tflite_ort.command.cli import app, main\nimport sys\n"
        "sys.argv = ['x', 'inspect', 'caf\\u00e9.tflite']\nmain()"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode == 1
    assert b"error: caf\\xe9.tflite: No such file" in done.stderr


def test_a_reader_that_has_enough_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tflite_ort", "versions", "CONV_2D", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
