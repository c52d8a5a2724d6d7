"""Sessions on a provider with memory of its own: what is copied to it, and what stays there.

Their marks are those of test_second_provider.py.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.delegated import allocated
from tests.models import model_path
from tests.one_op import T, one_op_model
from tests.oracle import litert
from tests.providers.samples import WEBGPU, WITH_MEMORY, usable
from tests.test_device_memory import skip
from tests.test_models import drawn
from tests.test_partition import SHAPE, branches, chain
from tflite_ort import DelegateWarning, ExecutionProviderDelegate, Interpreter
from tflite_ort.providers.provider import Provider
from tflite_ort.providers.traits import CPU
from tflite_ort.providers.trials import device_memory
from tflite_ort.schema import AddOptions, Op, TensorType


@pytest.fixture(params=WITH_MEMORY)
def provider(request: pytest.FixtureRequest) -> str:
    return usable(request.param)


def assert_each_invoke_as_litert(
    interpreter: Interpreter, model: bytes, invokes: int = 3, rtol: float = 1e-3
) -> None:
    """Other inputs each time; `rtol` is of the largest magnitude."""
    seed = 0
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    details = interpreter.get_input_details()
    for _ in range(invokes):
        feeds = [drawn(each, rng) for each in details]
        for each, array in zip(details, feeds, strict=True):
            interpreter.set_tensor(each["index"], array)
        interpreter.invoke()
        for each, want in zip(interpreter.get_output_details(), litert(model, feeds), strict=True):
            got = interpreter.get_tensor(each["index"])
            np.testing.assert_allclose(got, want, rtol=0, atol=rtol * np.abs(want).max())


def test_it_has_memory_of_its_own(provider: str) -> None:
    memory = device_memory(Provider(provider))
    assert memory is not None
    assert memory.kind in ("webgpu", "cuda")


def test_each_invoke_reads_its_own_inputs(provider: str) -> None:
    interpreter = allocated(chain(), providers=[provider], strict=True)
    assert_each_invoke_as_litert(interpreter, chain())


@pytest.mark.parametrize("model", [branches(), skip()], ids=["branches", "skip"])
def test_what_stays_on_the_device_is_right(provider: str, model: bytes) -> None:
    without_mul = ExecutionProviderDelegate(provider, max_versions={Op.MUL: 0})
    for providers in ([without_mul], [without_mul, CPU]):
        interpreter = allocated(model, providers=providers, strict=True)
        assert_each_invoke_as_litert(interpreter, model)


@pytest.mark.webgpu
def test_what_does_not_compile_goes_to_the_next_delegate() -> None:
    """Shaders compile at the first run, which comes before the first invoke; not all drivers have
    float16 in them."""
    half = T(SHAPE, TensorType.FLOAT16)
    model = one_op_model(Op.ADD, [half, half], [half], AddOptions(), version=6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        interpreter = allocated(model, providers=[WEBGPU, CPU])
    used = {row.provider for row in interpreter.delegation()}
    failed = any(issubclass(each.category, DelegateWarning) for each in caught)
    assert used == {CPU if failed else WEBGPU}
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.full(SHAPE, 0.5, np.float16))
    interpreter.invoke()
    (result,) = interpreter.get_output_details()
    np.testing.assert_array_equal(interpreter.get_tensor(result["index"]), np.ones(SHAPE))


def test_memory_is_given_back_in_order(provider: str) -> None:
    """A process that ends with an interpreter alive, and one whose interpreter has gone before."""
    program = f"""
import numpy as np
from tests.delegated import allocated
from tests.test_partition import branches
from tflite_ort import ExecutionProviderDelegate
from tflite_ort.schema import AddOptions, Op, TensorType
for _ in range(3):
    delegate = ExecutionProviderDelegate({provider!r}, max_versions={{Op.MUL: 0}})
    interpreter = allocated(branches(), providers=[delegate], strict=True)
    interpreter.invoke()
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (2, 3))
    interpreter.invoke()
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_network_whose_skips_are_cut(provider: str) -> None:
    """Its poolings run in numpy; what went past them before is still on the device."""
    content = Path(model_path("pypi-mediapipe__face_detection_short_range.tflite")).read_bytes()
    without_pooling = ExecutionProviderDelegate(provider, max_versions={Op.MAX_POOL_2D: 0})
    interpreter = allocated(content, providers=[without_pooling])
    rows = interpreter.delegation()
    assert {row.operator for row in rows if row.runs_on == "numpy"} == {"MAX_POOL_2D"}
    assert {row.provider for row in rows if row.runs_on == "ort"} == {provider}
    assert_each_invoke_as_litert(interpreter, content, invokes=2)


def test_state_goes_on(provider: str) -> None:
    content = Path(model_path("pypi-pymicro-wakeword__hey_jarvis.tflite")).read_bytes()
    interpreter, reference = allocated(content, providers=[provider, CPU]), allocated(content)
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    rng = np.random.default_rng(0)
    for _ in range(3):
        feed = drawn(source, rng)
        for each in (interpreter, reference):
            each.set_tensor(source["index"], feed)
            each.invoke()
        got, want = (
            each.get_tensor(result["index"]).astype(int) for each in (interpreter, reference)
        )
        assert abs(got - want).max() <= 2
