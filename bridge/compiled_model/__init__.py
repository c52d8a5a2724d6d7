"""LiteRT 2's `CompiledModel` and its options on ONNX Runtime."""

from __future__ import annotations

from tflite_ort.compiled_model.compiled_model import (
    CompiledModel as CompiledModel,
)
from tflite_ort.compiled_model.compiled_model import (
    CompiledModelError as CompiledModelError,
)
from tflite_ort.compiled_model.compiled_model import (
    CpuKernelMode as CpuKernelMode,
)
from tflite_ort.compiled_model.compiled_model import (
    CpuOptions as CpuOptions,
)
from tflite_ort.compiled_model.compiled_model import (
    Environment as Environment,
)
from tflite_ort.compiled_model.compiled_model import (
    EnvironmentOptions as EnvironmentOptions,
)
from tflite_ort.compiled_model.compiled_model import (
    GpuOptions as GpuOptions,
)
from tflite_ort.compiled_model.compiled_model import (
    HardwareAccelerator as HardwareAccelerator,
)
from tflite_ort.compiled_model.compiled_model import (
    Options as Options,
)
from tflite_ort.compiled_model.compiled_model import (
    TensorBuffer as TensorBuffer,
)
