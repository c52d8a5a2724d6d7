"""The options of LiteRT 2 for libraries of vendors, under its names: kept, and not read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar


class QualcommLogLevel(IntEnum):
    """What Qualcomm's library logs."""

    OFF = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    VERBOSE = 4
    DEBUG = 5


class QualcommDspPerformanceMode(IntEnum):
    """How fast Qualcomm's DSP runs, and how much power it may take."""

    DEFAULT = 0
    SUSTAINED_HIGH_PERFORMANCE = 1
    BURST = 2
    HIGH_PERFORMANCE = 3
    POWER_SAVER = 4
    LOW_POWER_SAVER = 5
    HIGH_POWER_SAVER = 6
    LOW_BALANCED = 7
    BALANCED = 8


class QualcommHtpPerformanceMode(IntEnum):
    """How fast Qualcomm's HTP runs, and how much power it may take."""

    DEFAULT = 0
    SUSTAINED_HIGH_PERFORMANCE = 1
    BURST = 2
    HIGH_PERFORMANCE = 3
    POWER_SAVER = 4
    LOW_POWER_SAVER = 5
    HIGH_POWER_SAVER = 6
    LOW_BALANCED = 7
    BALANCED = 8
    EXTREME_POWER_SAVER = 9


class QualcommProfiling(IntEnum):
    """What Qualcomm's library measures."""

    OFF = 0
    BASIC = 1
    DETAILED = 2
    LINTING = 3
    OPTRACE = 4


class QualcommOptimizationLevel(IntEnum):
    """Of a graph."""

    OPTIMIZE_FOR_INFERENCE = 0
    OPTIMIZE_FOR_PREPARE = 1
    OPTIMIZE_FOR_INFERENCE_O3 = 2


class QualcommGraphPriority(IntEnum):
    """Of a graph."""

    DEFAULT = 0
    LOW = 1
    NORMAL = 2
    NORMAL_HIGH = 3
    HIGH = 4


class QualcommBackend(IntEnum):
    """What runs a graph."""

    UNDEFINED = 0
    GPU = 1
    HTP = 2
    DSP = 3
    IR = 4


class QualcommGraphIOTensorMemType(IntEnum):
    """Memory of the inputs and outputs of a graph."""

    RAW = 0
    MEM_HANDLE = 1


@dataclass
class QualcommOptions:
    """Options of Qualcomm's library."""

    LOG_LEVEL: ClassVar = QualcommLogLevel
    HTP_PERFORMANCE_MODE: ClassVar = QualcommHtpPerformanceMode
    DSP_PERFORMANCE_MODE: ClassVar = QualcommDspPerformanceMode
    PROFILING: ClassVar = QualcommProfiling
    OPTIMIZATION_LEVEL: ClassVar = QualcommOptimizationLevel
    GRAPH_PRIORITY: ClassVar = QualcommGraphPriority
    BACKEND: ClassVar = QualcommBackend
    GRAPH_IO_TENSOR_MEM_TYPE: ClassVar = QualcommGraphIOTensorMemType

    log_level: QualcommLogLevel | None = None
    htp_performance_mode: QualcommHtpPerformanceMode | None = None
    dsp_performance_mode: QualcommDspPerformanceMode | None = None
    use_int64_bias_as_int32: bool | None = None
    enable_weight_sharing: bool | None = None
    use_conv_hmx: bool | None = None
    use_fold_relu: bool | None = None
    profiling: QualcommProfiling | None = None
    dump_tensor_ids: Sequence[int] | None = None
    ir_json_dir: str = ""
    dlc_dir: str = ""
    vtcm_size: int | None = None
    num_hvx_threads: int | None = None
    optimization_level: QualcommOptimizationLevel | None = None
    graph_priority: QualcommGraphPriority | None = None
    backend: QualcommBackend | None = None
    saver_output_dir: str = ""
    graph_io_tensor_mem_type: QualcommGraphIOTensorMemType | None = None


class IntelOpenVinoGraphBackend(IntEnum):
    """What runs a graph."""

    CPU = 0
    GPU = 1
    NPU = 2


class IntelOpenVinoPerformanceMode(IntEnum):
    """What is short: one run, or many."""

    LATENCY = 0
    THROUGHPUT = 1
    CUMULATIVE_THROUGHPUT = 2


@dataclass
class IntelOpenVinoOptions:
    """Options of LiteRT's plug-in for OpenVINO; here OpenVINO is an execution provider."""

    GRAPH_BACKEND: ClassVar = IntelOpenVinoGraphBackend
    PERFORMANCE_MODE: ClassVar = IntelOpenVinoPerformanceMode

    graph_backend: IntelOpenVinoGraphBackend | None = None
    performance_mode: IntelOpenVinoPerformanceMode | None = None
    configs_map: dict[str, str] = field(default_factory=dict)
    enable_weight_sharing: bool | None = None


class VendorOptions:
    """The vendors' part of `Options`; each object is created at its first access."""

    _qualcomm_options: QualcommOptions | None
    _intel_openvino_options: IntelOpenVinoOptions | None

    @property
    def qualcomm_options(self) -> QualcommOptions:
        """The options of Qualcomm's library, which a caller may change."""
        if self._qualcomm_options is None:
            self._qualcomm_options = QualcommOptions()
        return self._qualcomm_options

    @property
    def intel_openvino_options(self) -> IntelOpenVinoOptions:
        """The options of LiteRT's plug-in for OpenVINO, which a caller may change."""
        if self._intel_openvino_options is None:
            self._intel_openvino_options = IntelOpenVinoOptions()
        return self._intel_openvino_options


# The modules of LiteRT that these come from.
VENDOR_CLASSES = {
    "qualcomm_options": (
        *(QualcommBackend, QualcommDspPerformanceMode, QualcommGraphIOTensorMemType),
        *(QualcommGraphPriority, QualcommHtpPerformanceMode, QualcommLogLevel),
        *(QualcommOptimizationLevel, QualcommOptions, QualcommProfiling),
    ),
    "intel_openvino_options": (
        *(IntelOpenVinoGraphBackend, IntelOpenVinoOptions, IntelOpenVinoPerformanceMode),
    ),
}
