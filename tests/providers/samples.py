"""The providers that are tested where their wheel is installed, for CUDA with a GPU."""

from __future__ import annotations

import pytest

from tflite_ort import MissingDelegate, load_delegate

OPENVINO = "OpenVINOExecutionProvider"
WEBGPU = "WebGpuExecutionProvider"
CUDA = "CUDAExecutionProvider"

_MARKS = {OPENVINO: pytest.mark.openvino, WEBGPU: pytest.mark.webgpu, CUDA: pytest.mark.cuda}

# As parameters of tests. These two have memory of their own.
WITH_MEMORY = [pytest.param(name, marks=_MARKS[name]) for name in (WEBGPU, CUDA)]
SAMPLES = [pytest.param(OPENVINO, marks=_MARKS[OPENVINO]), *WITH_MEMORY]


def usable(name: str) -> str:
    """The name of a provider that works here. CUDA is skipped where there is no GPU."""
    try:
        return load_delegate(name).name
    except MissingDelegate as error:
        if name != CUDA:
            raise
        pytest.skip(f"no GPU: {error}")
