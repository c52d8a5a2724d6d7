"""Every model that LiteRT runs: its numbers, or a refusal that names what is not there yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import MODELS_DIR
from tests.one_op import ours
from tests.oracle import litert
from tflite_ort import Interpreter

Array = npt.NDArray[Any]

# LiteRT runs a custom operator of these in XNNPACK only.
BY_XNNPACK = {"pypi-mediapipe__selfie_segmentation.tflite"}
# Where LiteRT rounds the activations of a hybrid layer to 8 bits, all its kernels alike.
ROUNDED = {
    "tf__lstm_seq_dr.tflite": 2e-3,
    # Their reference kernel gives zeros for blockwise weights.
    "litert__qwen_fc_blockwise_quantized.tflite": 0.012,
}
GIVEN = {
    # A shape, which has to be one.
    "tflm__transpose_conv1.tflite": {0: np.array([1, 3, 22, 32], np.int32)},
    # The number of iterations: after two, LiteRT cannot give out the text that it hands on.
    "litert__while_op_with_forwarding_input.tflite": {0: np.array([1], np.int32)},
}


def models() -> list[str]:
    index = MODELS_DIR / "index.json"
    if not index.exists():
        return []
    return [row["file"] for row in json.loads(index.read_text()) if row["litert"] == "ok"]


def drawn(detail: dict[str, Any], rng: np.random.Generator) -> Array:
    """Floats in [-1, 1), bytes over their whole range, other integers from 0 to 2, words."""
    shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
    if dtype.kind == "S":
        # Of a scalar object LiteRT stores the pointer, not the text.
        return np.full(shape, b"word", np.object_ if shape else None)
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 3, shape).astype(dtype)


def apart(got: Array, want: Array) -> float:
    return float(np.max(np.abs(got.astype(np.float64) - want.astype(np.float64)), initial=0.0))


def assert_as_close_as_litert(
    got: Array, default: Array, others: Iterable[Array], share: float
) -> None:
    """Floats within a share of the largest magnitude and integers within one, or as far as LiteRT's
    own kernels are from each other, times 1.5.

    Args:
        others: what its other kernels make of it; an iterator is asked where that is needed.
    """
    assert (got.dtype, got.shape) == (default.dtype, default.shape)
    if got.dtype.kind not in "fiu":
        np.testing.assert_array_equal(got, default)
        return
    floats = got.dtype.kind == "f"
    limit = share * float(np.abs(default).max(initial=0)) if floats else 1.0
    distance = apart(got, default)
    if not distance <= limit:
        assert distance <= max([limit, *(1.5 * apart(other, default) for other in others)])


@pytest.mark.parametrize("name", models())
def test_model_gives_what_litert_gives(name: str) -> None:
    content = Path(MODELS_DIR / name).read_bytes()
    rng = np.random.default_rng(0)
    details = Interpreter(model_content=content).get_input_details()
    feeds = [drawn(detail, rng) for detail in details]
    for position, array in GIVEN.get(name, {}).items():
        feeds[position] = array
    got, _ = ours(content, feeds)

    @cache
    def outputs(kernels: str) -> list[Array]:
        return litert(content, feeds, kernels)

    others = () if name in BY_XNNPACK else ("optimized", "reference")
    for i, (result, default) in enumerate(zip(got, outputs("default"), strict=True)):
        more = (outputs(kernels)[i] for kernels in others)
        assert_as_close_as_litert(result, default, more, ROUNDED.get(name, 1e-4))
