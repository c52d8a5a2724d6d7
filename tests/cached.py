"""Interpreters with a cache, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter
from tflite_ort.cache.folder import CacheFolder
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.schema import AddOptions, Op

KEYWORDS = "mlperf-tiny__kws_ref_model.tflite"
ADD = one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions())


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


def entries(folder: Path) -> list[str]:
    return sorted(each.key for each in CacheFolder(folder, lambda: 1 << 40).entries())
