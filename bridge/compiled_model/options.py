"""The options of `CompiledModel`, under the names of LiteRT 2: what runs it, and with how much."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tflite_ort.base.closing import Closing
from tflite_ort.compiled_model.vendor_options import (
    IntelOpenVinoOptions,
    QualcommOptions,
    VendorOptions,
)
from tflite_ort.providers.available import providers_on
from tflite_ort.providers.delegates import OpResolverType
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import MissingDelegate


class HardwareAccelerator(enum.IntFlag):
    """Kinds of hardware, which can be joined: ``GPU | CPU`` lets the CPU run what the GPU does not.

    CPU: ONNX Runtime's own kernels. GPU, NPU: the execution providers that have such a device here.
    """

    CPU = 1
    GPU = 2
    NPU = 4


class CpuKernelMode(enum.IntEnum):
    """Which kernels the CPU has: REFERENCE are those of numpy, all others ONNX Runtime's."""

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2


@dataclass
class CpuOptions:
    """Options of the CPU.

    Args:
        num_threads: within an operator; 0 is one.
        kernel_mode: see `CpuKernelMode`.
        enable_ynnpack, xnnpack_flags, xnnpack_weight_cache_path: for LiteRT's own libraries; they
            change nothing here.
    """

    num_threads: int = 0
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""


@dataclass
class GpuOptions:
    """Options of LiteRT's own GPU library; they change nothing here.

    Args:
        share_constant_tensors: what LiteRT 2.2 calls `constant_tensor_sharing`.
    """

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False
    share_constant_tensors: bool = False


@dataclass
class Options(VendorOptions):
    """How a model is compiled.

    Args:
        hardware_accelerators: the kinds of hardware.
        cpu_options, gpu_options: made with their defaults when they are first read.
        qualcomm_options, intel_openvino_options: the same, for LiteRT's libraries of vendors.
    """

    hardware_accelerators: HardwareAccelerator
    _cpu_options: CpuOptions | None
    _gpu_options: GpuOptions | None
    _qualcomm_options: QualcommOptions | None
    _intel_openvino_options: IntelOpenVinoOptions | None

    def __init__(
        self,
        hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU,
        cpu_options: CpuOptions | None = None,
        gpu_options: GpuOptions | None = None,
        qualcomm_options: QualcommOptions | None = None,
        intel_openvino_options: IntelOpenVinoOptions | None = None,
    ) -> None:
        self.hardware_accelerators = hardware_accelerators
        self._cpu_options, self._gpu_options = cpu_options, gpu_options
        self._qualcomm_options = qualcomm_options
        self._intel_openvino_options = intel_openvino_options

    @classmethod
    def create(cls) -> Self:
        """The defaults."""
        return cls()

    @property
    def cpu_options(self) -> CpuOptions:
        """The options of the CPU, which a caller may change."""
        if self._cpu_options is None:
            self._cpu_options = CpuOptions()
        return self._cpu_options

    @property
    def gpu_options(self) -> GpuOptions:
        """The options of the GPU, which a caller may change."""
        if self._gpu_options is None:
            self._gpu_options = GpuOptions()
        return self._gpu_options


@dataclass(frozen=True)
class EnvironmentOptions:
    """What several models may share.

    Args:
        compiler_cache_dir: the folder of `Interpreter`'s ``cache=``; without one nothing is cached.
        runtime_path, compiler_plugin_path, dispatch_library_path: where LiteRT's own libraries are;
            ONNX Runtime needs none of them.
    """

    runtime_path: str | None = None
    compiler_plugin_path: str = ""
    dispatch_library_path: str = ""
    compiler_cache_dir: str = ""


class Environment(Closing):
    """What several models may share. ONNX Runtime shares its own by itself."""

    options: EnvironmentOptions

    def __init__(self, options: EnvironmentOptions) -> None:
        self.options = options

    @classmethod
    def create(
        cls,
        options: EnvironmentOptions | str | None = None,
        *,
        runtime_path: str | None = None,
        compiler_plugin_path: str = "",
        dispatch_library_path: str = "",
        compiler_cache_dir: str = "",
    ) -> Self:
        """An environment, by options or by single paths.

        Raises:
            ValueError: both are given.
        """
        if isinstance(options, str):
            if runtime_path is not None:
                raise ValueError("runtime_path was provided twice.")
            options, runtime_path = None, options
        paths = runtime_path, compiler_plugin_path, dispatch_library_path, compiler_cache_dir
        if options is not None and any(paths):
            raise ValueError("Pass either options or environment path shortcuts.")
        return cls(options or EnvironmentOptions(*paths))

    def close(self) -> None:
        """Nothing is held."""


def arguments_of(
    options: Options, environment: EnvironmentOptions, preset: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of `Interpreter` for these options.

    Args:
        preset: what they are where the options choose nothing.

    Raises:
        MissingDelegate: no provider has the hardware.
    """
    given, cpu = dict(preset), options.cpu_options
    if CpuKernelMode(cpu.kernel_mode or CpuKernelMode.DELEGATE) is CpuKernelMode.REFERENCE:
        given["experimental_op_resolver_type"] = OpResolverType.BUILTIN_REF
        given["providers"] = []
    elif options.hardware_accelerators != HardwareAccelerator.CPU or "providers" not in given:
        given["providers"] = list(providers_of(options.hardware_accelerators))
    if cpu.num_threads:
        given["num_threads"] = cpu.num_threads
    if environment.compiler_cache_dir:
        given["cache"] = environment.compiler_cache_dir
    return given


def providers_of(wanted: HardwareAccelerator) -> Sequence[str]:
    """The execution providers that have such hardware here, the first choice first.

    Raises:
        MissingDelegate: there is none.
    """
    kinds = [each for each in (HardwareAccelerator.NPU, HardwareAccelerator.GPU) if each & wanted]
    found = [name for kind in kinds for name in providers_on(str(kind.name))]
    if wanted & HardwareAccelerator.CPU or not wanted:
        found.append(CPU)
    if not found:
        names = " or ".join(str(kind.name) for kind in kinds)
        raise MissingDelegate(
            f"no execution provider has a {names} here; add HardwareAccelerator.CPU, or install a "
            "provider"
        )
    return list(dict.fromkeys(found))
