"""Maps: what makes and reads them is a model of several operators, see `test_maps.py`."""

from __future__ import annotations

from tests.flex.cases import Case

CASES: list[Case] = []
