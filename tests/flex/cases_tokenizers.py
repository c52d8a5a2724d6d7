"""tf.text's tokenizers: TensorFlow's wheel has none, see `test_texts.py`."""

from __future__ import annotations

from tests.flex.cases import Case

CASES: list[Case] = []
