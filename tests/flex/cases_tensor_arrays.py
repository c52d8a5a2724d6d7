"""Arrays of tensors of TensorFlow 1: models of several operators, see `test_variants.py`."""

from __future__ import annotations

from tests.flex.cases import Case

CASES: list[Case] = []
