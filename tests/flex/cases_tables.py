"""Tables: what fills and what asks them is a model of several operators, see `test_tables.py`."""

from __future__ import annotations

from tests.flex.cases import Case

CASES: list[Case] = []
