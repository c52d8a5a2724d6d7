"""Damaged files: whatever is read still runs, or is refused with an error of ours."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.models import model_path
from tests.ops.test_control_flow import MODELS as CONTROL_FLOW
from tests.ops.test_state import MODELS as STATE
from tflite_ort import BridgeError, Interpreter, export_onnx

pytestmark = pytest.mark.usefixtures("unmeasured")

MUTATIONS = 150
ELEMENTS = 1_000_000
WORDS = (0, 1, 2, 3, 5, 100, 0x7FFFFFFF, 0xFFFFFFFF)


def mutated(content: bytes, draw: random.Random) -> bytes:
    """A byte, a bit or a 4-byte word changed, up to three times."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 3))):
        at, kind = draw.randrange(len(data) - 4), draw.randrange(3)
        if kind == 0:
            data[at] = draw.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << draw.randrange(8)
        else:
            data[at : at + 4] = draw.choice(WORDS).to_bytes(4, "little")
    return bytes(data)


# What ONNX Runtime refuses goes on to the numpy kernels.
@pytest.mark.filterwarnings("ignore::tflite_ort.DelegateWarning")
@pytest.mark.parametrize(
    "name",
    [
        "tflite2onnx__conv-reshape.float32.tflite",
        "tflite2onnx__stridedslice-stride.float32.tflite",
        "tflite2onnx__transposeconv-samepad.float32.tflite",
        "tflite2onnx__mean.float32.tflite",
        "tflite2onnx__prelu.float32.tflite",
        "litert__mobilenet_like_model.tflite",
        "litert__single_add_default_a8w8_recipe_quantized.tflite",
        "litert__gather_nd.tflite",
        "litert__matmul_quant.tflite",
    ],
)
def test_a_damaged_file_runs_or_is_refused(name: str, request: pytest.FixtureRequest) -> None:
    # Drawn anew in thorough runs alone: a file may ask for seconds of honest work.
    seed = random.randrange(2**32) if request.config.getoption("--thorough") else 0
    print(f"seed {seed}")
    draw, content = random.Random(seed), model_path(name).read_bytes()
    for _ in range(MUTATIONS):
        try:
            interpreter = Interpreter(model_content=mutated(content, draw), num_threads=1)
            sizes = [d["shape"].astype(float).prod() for d in interpreter.get_tensor_details()]
            if max(sizes, default=0) > ELEMENTS:
                continue
            interpreter.allocate_tensors()
            interpreter.invoke()
        except BridgeError:
            continue
        for detail in interpreter.get_output_details():
            assert isinstance(interpreter.get_tensor(detail["index"]), np.ndarray)


PROGRAMS = {name: model for models in (CONTROL_FLOW, STATE) for name, (model, _) in models.items()}


@pytest.mark.filterwarnings("ignore::tflite_ort.DelegateWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_damaged_program_gets_ready_or_is_refused(
    name: str, request: pytest.FixtureRequest
) -> None:
    """It is not run: a damaged loop may never end."""
    seed = random.randrange(2**32) if request.config.getoption("--thorough") else 0
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(MUTATIONS // 3):
        content = mutated(PROGRAMS[name], draw)
        try:
            Interpreter(model_content=content, num_threads=1).allocate_tensors()
            export_onnx(content)
        except BridgeError:
            continue
