"""Lists: what takes and gives them is a model of several operators, see `make_models.py`."""

from __future__ import annotations

from tests.flex.cases import Case

CASES: list[Case] = []
