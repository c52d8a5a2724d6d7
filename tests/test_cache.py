"""The cache of compiled models: the same numbers, entries that are checked, nothing but a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import model_paths
from tests.one_op import T, one_op_model
from tflite_ort import BridgeError, Interpreter
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.schema import AddOptions, Op

Array = npt.NDArray[Any]

KEYWORDS = "mlperf-tiny__kws_ref_model.tflite"
ADD = one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions())
LARGEST = 3 << 20  # of the networks that are run here


def made(interpreter: Interpreter) -> list[Any]:
    """What two invokes over random inputs make, and what the interpreter says of itself."""
    interpreter.allocate_tensors()
    for index, array in random_inputs(interpreter.get_input_details(), 7).items():
        interpreter.set_tensor(index, array)
    results = []
    for _ in range(2):
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            results.append(interpreter.get_tensor(detail["index"]))
    return [results, interpreter.get_input_details(), interpreter.get_output_details()]


def is_hit(interpreter: Interpreter) -> bool:
    """Whether the plan is made of nothing but what was stored."""
    interpreter.allocate_tensors()
    return isinstance(interpreter._subgraph(0).executor.plan, StoredPlan)


def assert_same(got: Any, want: Any) -> None:
    """Bit for bit."""
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key, value in want.items():
            assert_same(got[key], value)
    elif isinstance(want, list | tuple):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert_same(one, other)
    else:
        one, other = np.asarray(got), np.asarray(want)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        same = one == other if one.dtype.kind in "OSU" else one.tobytes() == other.tobytes()
        assert np.all(same)


def attempt(path: Path, cache: Path | bool) -> Any:
    """What `made` gives, or the error."""
    try:
        return made(Interpreter(path, cache=cache))
    except BridgeError as error:
        return [type(error).__name__, str(error)]


@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.stem)
def test_a_network_of_the_cache_gives_the_same(path: Path, tmp_path: Path) -> None:
    if path.stat().st_size > LARGEST:
        pytest.skip("the others are enough for the suite; benchmarks/caching.py runs all")
    want = attempt(path, False)
    assert_same(attempt(path, tmp_path), want)
    assert_same(attempt(path, tmp_path), want)
