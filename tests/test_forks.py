"""Children of a fork: what the parent's interpreters do in them, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models import model_path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

NETWORK = "tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite"
SECONDS = 20

# A parent forks a child for each case. It ends by itself within SECONDS, with the exit code 0.
PROGRAM = """
import os, sys, time
import numpy as np
import tflite_ort
from tflite_ort import Interpreter, Predictor
from tflite_ort.command.demo import digits_model
from tflite_ort.compiled_model import CompiledModel

path, seconds, shared, *names = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
if shared:
    tflite_ort.share_threads(2)
x = np.random.default_rng(0).uniform(0, 1, (1, 224, 224, 3)).astype(np.float32)

def opened(threads=2):
    made = Interpreter(path, num_threads=threads)
    made.allocate_tensors()
    return made

def answer(interpreter):
    interpreter.set_tensor(source, x)
    interpreter.invoke()
    return interpreter.get_tensor(target)

interpreter = opened()
source = interpreter.get_input_details()[0]["index"]
target = interpreter.get_output_details()[0]["index"]
right = answer(interpreter)
model = CompiledModel(opened())
buffers = model.create_input_buffers(0), model.create_output_buffers(0)
model.run_async(0, *buffers).result(seconds)
rows = np.zeros((64, 8, 8, 1), np.float32)
predictor = Predictor(digits_model("float32"), threads=2)
predicted = predictor(rows)

def drop():
    global interpreter
    interpreter = None

def close():
    interpreter.close()

def resize():
    interpreter.resize_tensor_input(source, [2, 224, 224, 3])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(target).shape[0] == 2

def resize_and_back():
    resize()
    interpreter.resize_tensor_input(source, [1, 224, 224, 3])
    interpreter.allocate_tensors()
    np.testing.assert_allclose(answer(interpreter), right, rtol=1e-5)

def invoke():
    np.testing.assert_allclose(answer(interpreter), right, rtol=1e-5)

def anew():
    np.testing.assert_allclose(answer(opened()), right, rtol=1e-5)

def run_async():
    buffers[0][0].write(x)
    model.run_async(0, *buffers).result(seconds)
    got = buffers[1][0].read(right.size, np.float32)
    np.testing.assert_allclose(got.reshape(right.shape), right, rtol=1e-5)
    model.close()

def predict():
    np.testing.assert_array_equal(predictor(rows), predicted)

def exit_alone():
    pass

def child_of_child():
    pid = os.fork()
    drop()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
    else:
        leave(0)

def leave(code):
    sys.stdout.flush()
    sys.stderr.flush()
    if name != "exit_alone":
        os._exit(code)
    sys.exit(code)  # as a program that ends

def status_of(pid):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"

for name in names:
    interpreter.invoke()  # so that its threads have just worked
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            globals()[name]()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        leave(code)
    print(name, status_of(pid))
np.testing.assert_array_equal(answer(interpreter), right)  # the parent goes on
interpreter.close()
"""
CASES = [
    *("drop", "close", "resize_and_back", "invoke", "run_async", "predict"),
    *("exit_alone", "child_of_child"),
]


@pytest.mark.parametrize("shared", [False, True])
def test_children_end_and_are_right(shared: bool) -> None:
    """With threads of each session, and with one pool of the process."""
    program = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", PROGRAM]
    arguments = [model_path(NETWORK), SECONDS, int(shared), *CASES]
    done = subprocess.run(
        [*program, *map(str, arguments)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=10 * SECONDS,
        check=False,
    )
    assert done.stdout.splitlines() == [f"{case} 0" for case in CASES], done.stderr
    assert done.returncode == 0, done.stderr
