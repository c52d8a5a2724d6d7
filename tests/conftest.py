"""Options of the test run, and what is judged when it ends.

With several processes (`-n 2`) each worker hands what it saw to the first process, which judges it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any
from unittest.mock import patch

import hypothesis
import pytest

from tests import placements
from tests.graph_checks import check_graph
from tests.one_op import EXACT
from tflite_ort.interpreter import interpreter
from tflite_ort.opmap.graph import costs
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules import rule
from tflite_ort.plan.build import observing
from tflite_ort.providers.delegates import (
    Delegate,
    OpResolverType,
    ProviderChoices,
    chosen_delegates,
)
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import Op

# Of the quantised elements of all one-operator models; the rest are one quantum off.
_LEAST_EXACT = 0.99
_ENOUGH = 100_000

# Where the interpreters of the run put their operators.
SEEN: placements.Seen = {}

# How fast a machine draws and runs is no fault of a test.
_PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
# The same draws every time, so that a change alone decides; thorough runs draw anew.
hypothesis.settings.register_profile("suite", **_PATIENT, max_examples=20, derandomize=True)
hypothesis.settings.register_profile("thorough", **_PATIENT, max_examples=500, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="500 draws per property instead of 20")
    parser.addoption(
        "--lowering", type=int, help="operators get the lowering of this place; -1 is the last one"
    )
    parser.addoption("--provider", help="of all interpreters that choose none, before the CPU's")
    parser.addoption("--seed", type=int, default=0, help="random graphs are drawn from this one on")
    parser.addoption(
        "--sample", type=int, default=1, metavar="N", help="each N-th test, from --seed on"
    )
    parser.addoption(
        "--write-placements", action="store_true", help=f"write {placements.FILE.name} anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    thorough = config.getoption("--thorough") or os.environ.get("TFLITE_ORT_THOROUGH")
    hypothesis.settings.load_profile("thorough" if thorough else "suite")
    # The width of who started the run is none of the commands'. The module readline, which pytest
    # imports, sets it for child processes alone.
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")
    place = config.getoption("--lowering")
    if place is not None:
        force = patch.object(costs, "cheapest", partial(_lowering_at, place))
        force.start()
        config.add_cleanup(force.stop)
    provider = config.getoption("--provider")
    if provider is not None:
        first = patch.object(interpreter, "chosen_delegates", partial(_first_choice, provider))
        first.start()
        config.add_cleanup(first.stop)
    watching = observing(partial(placements.note, SEEN))
    watching.__enter__()
    config.add_cleanup(partial(watching.__exit__, None, None, None))
    checking = rule.watching(check_graph)
    checking.__enter__()
    config.add_cleanup(partial(checking.__exit__, None, None, None))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    step = config.getoption("--sample")
    sample = items[config.getoption("--seed") % step :: step]
    kept = set(sample)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = sample


def _lowering_at(place: int, lowerings: Sequence[Lowering], _: object) -> Lowering:
    return lowerings[min(place, len(lowerings) - 1)]


def _first_choice(
    provider: str,
    kind: OpResolverType,
    first: Sequence[Delegate],
    providers: ProviderChoices | None,
    *precision: str,
) -> list[Delegate]:
    if providers is None and kind is not OpResolverType.BUILTIN_REF:
        providers = [provider, CPU]
    return chosen_delegates(kind, first, providers, *precision)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run of many cases fails when too few of their elements are exact; any run, when operators
    are not where the record of them says."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["seen"] = SEEN
        output["exact"] = {op.name: (count.same, count.all) for op, count in EXACT.items()}
        return
    if session.config.getoption("--write-placements"):
        placements.write(SEEN)
    elif session.config.getoption("--provider") is None and placements.contradictions(SEEN):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if sum(count.all for count in EXACT.values()) >= _ENOUGH and _exact_share() < _LEAST_EXACT:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def unmeasured() -> Iterator[None]:
    """Where operators of damaged files run says nothing about operators."""
    before = deepcopy(SEEN)
    yield
    SEEN.clear()
    SEEN.update(before)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker saw."""
    output = getattr(node, "workeroutput", {})
    placements.merge(SEEN, output.get("seen", {}))
    for name, (same, all) in output.get("exact", {}).items():
        EXACT[Op[name]].same += same
        EXACT[Op[name]].all += all


def _exact_share() -> float:
    return sum(count.same for count in EXACT.values()) / sum(count.all for count in EXACT.values())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    wrong = placements.contradictions(SEEN)
    if wrong:
        terminalreporter.section(f"bridge/command/placements.json is stale: {placements.WRITE}")
        terminalreporter.write_line("\n".join(wrong))
    if not EXACT:
        return
    terminalreporter.section("quantised elements through ONNX Runtime that equal LiteRT's")
    for op, count in sorted(EXACT.items(), key=lambda item: item[1].same / item[1].all):
        terminalreporter.write_line(f"{count.same / count.all:9.3%} of {count.all:8d}  {op.name}")
    terminalreporter.write_line(f"{_exact_share():9.3%} of all, at least {_LEAST_EXACT:.0%} wanted")
