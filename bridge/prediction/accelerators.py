"""What Triton Inference Server can hand the graphs of its ONNX Runtime to."""

from __future__ import annotations

from collections.abc import Mapping

from tflite_ort.base.records import field, record


@record
class Accelerator:
    """What a server's ONNX Runtime can hand a graph to.

    Args:
        group: the field of the server's configuration that names it.
        weights: the type of quantized weights that it takes, as of `export_onnx`.
        parameters: its options there.
    """

    group: str
    weights: str
    parameters: Mapping[str, str] = field(default_factory=dict)


ACCELERATORS: Mapping[str, Accelerator] = {
    "tensorrt": Accelerator(
        "gpu_execution_accelerator",
        "int8",
        {"precision_mode": "FP32", "trt_engine_cache_enable": "true"},
    ),
    "openvino": Accelerator("cpu_execution_accelerator", "uint8"),
}
