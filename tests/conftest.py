"""Options of the test run: the hypothesis profile, the thorough sweeps."""

from __future__ import annotations

import os

import hypothesis
import pytest

from tests import placements
from tests.one_op import EXACT

# Of the quantised elements of all one-operator models; the rest are one quantum off.
_LEAST_EXACT = 0.99
_ENOUGH = 100_000

# The same draws every time, so that a change alone decides; thorough runs draw anew.
hypothesis.settings.register_profile("suite", deadline=None, max_examples=20, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="500 draws per property instead of 20")
    parser.addoption(
        "--write-placements", action="store_true", help=f"write {placements.FILE.name} anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    thorough = config.getoption("--thorough") or os.environ.get("TFLITE_ORT_THOROUGH")
    hypothesis.settings.load_profile("thorough" if thorough else "suite")
    placements.watch()


def _exact_share() -> float:
    return sum(each.same for each in EXACT.values()) / sum(each.all for each in EXACT.values())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of many cases fails when too few of their elements are exact; any run, when operators
    are not where the record of them says."""
    if session.config.getoption("--write-placements"):
        placements.write()
    elif placements.contradictions():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if sum(each.all for each in EXACT.values()) >= _ENOUGH and _exact_share() < _LEAST_EXACT:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    wrong = placements.contradictions()
    if wrong:
        terminalreporter.section(f"bridge/command/placements.json is stale: {placements.WRITE}")
        terminalreporter.write_line("\n".join(wrong))
    if not EXACT:
        return
    terminalreporter.section("quantised elements through ONNX Runtime that equal LiteRT's")
    for op, each in sorted(EXACT.items(), key=lambda item: item[1].same / item[1].all):
        terminalreporter.write_line(f"{each.same / each.all:9.3%} of {each.all:8d}  {op.name}")
    terminalreporter.write_line(f"{_exact_share():9.3%} of all, at least {_LEAST_EXACT:.0%} wanted")
