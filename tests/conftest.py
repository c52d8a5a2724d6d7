"""Options of the test run: the hypothesis profile, the thorough sweeps."""

from __future__ import annotations

import os

import hypothesis
import pytest

# The same draws every time, so that a change alone decides; thorough runs draw anew.
hypothesis.settings.register_profile("suite", deadline=None, max_examples=20, derandomize=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="500 draws per property instead of 20")


def pytest_configure(config: pytest.Config) -> None:
    thorough = config.getoption("--thorough") or os.environ.get("TFLITE_ORT_THOROUGH")
    hypothesis.settings.load_profile("thorough" if thorough else "suite")
