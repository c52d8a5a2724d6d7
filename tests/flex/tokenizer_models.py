"""The models of tokenizers that the cases have; see `make_tokenizers.py`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

_MODELS = Path(__file__).parent / "tokenizers" / "models.npz"


@cache
def tokenizer(name: str) -> npt.NDArray[np.uint8]:
    """The bytes of a model."""
    with np.load(_MODELS) as stored:
        content: npt.NDArray[np.uint8] = stored[name]
    return content
