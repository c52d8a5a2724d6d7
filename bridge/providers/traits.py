"""What is known of each execution provider: one row each, and no other file names a provider.

A new fact is a change of one row here, and a case in ``tests/providers/test_traits.py``. A provider
without a row has the defaults of `ProviderTraits`, which are safe for every provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tflite_ort.optional import late
from tflite_ort.records import field, record
from tflite_ort.schema import OperatorView, TensorType

if TYPE_CHECKING:
    from tflite_ort import opmap
    from tflite_ort.opmap import Target
else:
    opmap = late("tflite_ort.opmap")  # a session of a stored graph needs nothing of it

_View = OperatorView[Any]

# ONNX Runtime's own kernels for the CPU.
CPU = "CPUExecutionProvider"


def _plain() -> Target:
    """Unsigned weights, and nothing that is fast on one provider alone."""
    return opmap.Target(fallback=True)


def _signed() -> Target:
    """Signed weights."""
    return opmap.Target("int8", fallback=True)


@cache
def _made(graphs: Callable[[], Target]) -> Target:
    return graphs()


@record
class WrongResult:
    """Operators that a provider computes differently from TFLite, or that end the process.

    Args:
        why: what the provider does, as the end of a sentence.
        ops: the names of the operators; none stands for all.
        where: whether it is so for an operator at hand; None: always.
    """

    why: str
    ops: frozenset[str] = frozenset()
    where: Callable[[_View], bool] | None = None

    def concerns(self, op: _View) -> bool:
        """Whether the provider must not run `op`."""
        return (not self.ops or op.op.name in self.ops) and (self.where is None or self.where(op))


@record
class ProviderTraits:
    """What one execution provider needs and does. The defaults hold for an unknown provider.

    Args:
        graphs: makes `target`.
        exact_weights: quantised weights have the type that this CPU multiplies fastest and exactly,
            found by trying, in place of the type that `target` says.
        takes_all_nodes: ONNX Runtime gives it every node that other providers leave.
        elsewhere: it computes on another machine.
        host_memory: its tensors are in the host's memory. For other providers this is found by
            trying.
        weights_in_place: it reads an input of a graph where it is, so that large weights can be
            inputs, which spares the copies that ONNX Runtime makes of an initializer.
        whole_graphs_only: it is fast only where it takes all nodes of a graph; an operator of which
            it leaves a node goes to the next delegate.
        gather: the ONNX node that reads single elements of a vector fastest.
        threads_option: its option for the number of threads; empty where it has none.
        nvidia_libraries: it needs those of CUDA and cuDNN.
        defaults: the options that it gets where nothing else is asked for.
        options: all its options; None where they are not known, or a session tells them.
        wrong: the operators that are kept from it.
    """

    graphs: Callable[[], Target] = _plain
    exact_weights: bool = False
    takes_all_nodes: bool = False
    elsewhere: bool = False
    host_memory: bool = False
    weights_in_place: bool = False
    whole_graphs_only: bool = False
    gather: str = "GatherElements"
    threads_option: str = ""
    nvidia_libraries: bool = False
    defaults: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] | None = None
    wrong: Sequence[WrongResult] = ()

    @property
    def target(self) -> Target:
        """What graphs for it are made of."""
        return _made(self.graphs)


def traits_of(provider: str) -> ProviderTraits:
    """The row of a provider by its name, such as ``"CPUExecutionProvider"``; else the defaults."""
    return TRAITS.get(provider, UNKNOWN)


# Conditions of wrong results ---------------------------------------------------------------------


def _wrong(why: str, *ops: str, where: Callable[[_View], bool] | None = None) -> WrongResult:
    return WrongResult(why, frozenset(ops), where)


def _on(*types: TensorType) -> Callable[[_View], bool]:
    """Whether a tensor that is not constant has one of the types."""

    def found(op: _View) -> bool:
        tensors = (*op.present_inputs(), *op.outputs)
        return any(tensor.type in types and not tensor.is_constant for tensor in tensors)

    return found


def _odd_channels(op: _View) -> bool:
    """Multiples of 3 but not of 4 into multiples of 4, with windows of more than one cell."""
    filters = op.inputs[1]
    if filters is None or filters.dynamic:
        return True
    outputs, *window, channels = filters.shape
    odd = channels > 3 and channels % 3 == 0 and channels % 4 != 0
    return odd and outputs % 4 == 0 and tuple(window) != (1, 1)


def _without(position: int) -> Callable[[_View], bool]:
    """Whether an input is absent."""
    return lambda op: len(op.inputs) <= position or op.inputs[position] is None


def _backwards(op: _View) -> bool:
    """Whether a slice has a negative stride, or may have one."""
    strides = op.inputs[3]
    return strides is None or strides.data is None or bool((strides.data < 0).any())


def _computed(position: int) -> Callable[[_View], bool]:
    """Whether an input is made by the model, or given to it."""

    def found(op: _View) -> bool:
        tensor = op.inputs[position]
        return tensor is not None and not tensor.is_constant

    return found


def _sums_rows(op: _View) -> bool:
    """Whether the last of three axes is reduced and left out."""
    data, axes = op.inputs[0], op.inputs[1]
    if data is None or axes is None or op.options.keep_dims or len(data.shape) != 3:
        return False
    return axes.data is None or set(axes.data.ravel() % 3) == {2}


def _peepholes(op: _View) -> bool:
    """Whether gates of an LSTM see the state of its cells."""
    names = (name for name in op.names if "cell_to_" in name)
    return any(op.get(name) is not None for name in names)


def _unsized(op: _View) -> bool:
    """Whether a tensor has no elements, or may turn out to have none."""
    tensors = (*op.present_inputs(), *op.outputs)
    return any(tensor.dynamic or 0 in tensor.shape for tensor in tensors)


def _symmetric(op: _View) -> bool:
    """Whether a MIRROR_PAD repeats the edge."""
    return bool(op.options.mode.name == "SYMMETRIC")


def _sorts_no_rows(op: _View) -> bool:
    """Whether TopK may sort rows of which there are none: those of TOPK_V2, of extremes of 64-bit
    integers, and of the scores of a detector."""
    reduces = op.op.name in ("REDUCE_MAX", "REDUCE_MIN")
    if reduces and op.output.type is not TensorType.INT64:
        return False
    return any(tensor.dynamic or 0 in tensor.shape for tensor in op.present_inputs())


# The table ---------------------------------------------------------------------------------------

UNKNOWN = ProviderTraits()

_NO_BIAS = "without a bias it ends the process"
# Of a reduction and an element-wise operator with a constant it makes one operator.
_NEIGHBOUR = "it adds constants to a reduction along another axis"
_REDUCTIONS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")
_LSTMS = ("BIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
_REVERSED = "its slices that go backwards start at the end"

TRAITS: Mapping[str, ProviderTraits] = {
    # - Without VNNI its x86 kernels add pairs of uint8 x int8 products in 16 bits, which saturates;
    #   with VNNI, uint8 x uint8 takes twice the time. So the type of weights is found by trying.
    # - Quantised activations are uint8 in its graphs. An int8 input or output of a session is moved
    #   by 128 outside, which spares the graph a node.
    # - It is the last one: ONNX Runtime gives it what the other providers of a session leave.
    CPU: ProviderTraits(
        lambda: opmap.Target(cpu_kernels=True, carried_boundary=True, exact=True, fallback=True),
        exact_weights=True,
        takes_all_nodes=True,
        host_memory=True,
        weights_in_place=True,
        options=(),
    ),
    # It sends whole models to a server and has no options.
    "AzureExecutionProvider": ProviderTraits(elsewhere=True, options=()),
    # - It computes in 8 bits with signed weights alone, and adds pairs of products in 16 bits where
    #   the CPU has nothing better; with unsigned weights it computes in floats. So weights are
    #   signed where this CPU multiplies them exactly.
    # - Weights with a zero point are multiplied as floats.
    # - It changes the layout of a convolution only where a Transpose is of real numbers: of codes,
    #   the Transpose stays.
    # - Where it leaves nodes to ONNX Runtime's CPU provider, it gets the rest in parts. The weights
    #   are inputs of these parts, and it computes them in floats.
    # - Its Gather takes less than half the time of its GatherElements. ONNX Runtime's own Gather
    #   takes three times as long.
    # - It has threads of its own; a session's number of threads is not theirs.
    # - A session does not tell its options.
    "OpenVINOExecutionProvider": ProviderTraits(
        lambda: opmap.Target(real_transposes=True, symmetric_weights=True, fallback=True),
        exact_weights=True,
        whole_graphs_only=True,
        gather="Gather",
        threads_option="num_of_threads",
        options=(
            *("cache_dir", "context", "device_id", "device_luid", "device_type"),
            *("disable_dynamic_shapes", "enable_causallm", "enable_opencl_throttling"),
            *("enable_qdq_optimizer", "layout", "load_config", "model_priority"),
            *("num_of_threads", "num_streams", "precision", "reshape_input"),
        ),
        wrong=(
            _wrong(
                "it keeps 31 bits of an integer and a sign",
                where=_on(TensorType.INT64, TensorType.UINT32, TensorType.UINT64),
            ),
            _wrong("it moves bits in integers of 32 bits", "BITCAST"),
            _wrong("it sums integers as floats", "MEAN", where=_on(TensorType.INT32)),
            _wrong("its negative of -128 is 127", "NEG", where=_on(TensorType.INT8)),
            _wrong(
                "it compares integers as floats",
                *("REDUCE_MAX", "REDUCE_MIN"),
                where=_on(TensorType.INT32),
            ),
            _wrong("equal values are not in the order of their positions", "TOPK_V2"),
            _wrong(
                "it divides integers and takes their powers as floats",
                *("DIV", "POW"),
                where=_on(TensorType.INT32),
            ),
            _wrong("its LSTM has no peepholes", *_LSTMS, where=_peepholes),
            _wrong(_NEIGHBOUR, *_REDUCTIONS, where=_sums_rows),
            _wrong(_NEIGHBOUR, "SVDF"),
            _wrong("a loop without iterations returns what it returned before", "WHILE"),
            _wrong("it counts a computed start from 0", "STRIDED_SLICE", where=_computed(1)),
            _wrong(
                "it takes the whole part of a bias",
                "LOCAL_RESPONSE_NORMALIZATION",
                where=lambda op: op.options.bias % 1 != 0,
            ),
            _wrong("computed axes end the process", "REVERSE_V2", where=_computed(1)),
            _wrong("sizes that do not fit may end the process", "SPLIT_V", where=_computed(1)),
            _wrong("an axis that does not fit may end the process", "SPLIT", where=_computed(0)),
            _wrong("tensors without elements may end the process", where=_unsized),
        ),
    ),
    # By default it multiplies floats as TF32, whose mantissa has 10 bits, where the hardware can.
    "CUDAExecutionProvider": ProviderTraits(nvidia_libraries=True, defaults={"use_tf32": "0"}),
    # These take no quantised weights but signed ones.
    "NvTensorRTRTXExecutionProvider": ProviderTraits(_signed),
    "QNNExecutionProvider": ProviderTraits(_signed),
    "TensorrtExecutionProvider": ProviderTraits(_signed, nvidia_libraries=True),
    # It computes in floats and leaves quantised layers to the CPU. A session does not tell its
    # options. Some of its shaders are wrong, and some operators end the process.
    "WebGpuExecutionProvider": ProviderTraits(
        options=(
            *("dawnBackendType", "dawnProcTable", "defaultBufferCacheMode", "deviceId"),
            *("enableGraphCapture", "enableInt64", "enablePIXCapture", "enableRobustness"),
            *("forceCpuNodeNames", "kvCacheQuantizationBits", "maxNumPendingDispatches"),
            *("maxStorageBufferBindingSize", "multiRotaryCacheConcatOffset", "powerPreference"),
            *("preferredLayout", "preserveDevice", "queryResolveBufferCacheMode"),
            *("sessionBufferPoolGenerations", "storageBufferCacheMode"),
            *("uniformBufferCacheMode", "validationMode", "webgpuDevice", "webgpuInstance"),
        ),
        wrong=(
            _wrong("it reads other channels of a multiple of 3", "CONV_2D", where=_odd_channels),
            _wrong(_NO_BIAS, "CONV_3D", where=_without(2)),
            _wrong(_NO_BIAS, "CONV_3D_TRANSPOSE", "TRANSPOSE_CONV", where=_without(3)),
            _wrong("it is off by 2e-4", "COS", "SIN"),
            _wrong(_REVERSED, "MIRROR_PAD", where=_symmetric),
            _wrong(_REVERSED, "STRIDED_SLICE", where=_backwards),
        ),
    ),
}

# Those that are for a GPU, whether they tell their devices or not.
ON_GPUS = frozenset(
    f"{name}ExecutionProvider"
    for name in ("CUDA", "Dml", "MIGraphX", "NvTensorRTRTX", "ROCM", "Tensorrt", "WebGpu")
)

# What a provider is called besides, where that is not its name without ``ExecutionProvider``.
_ALSO = {"directml": "DmlExecutionProvider", "tensorrtrtx": "NvTensorRTRTXExecutionProvider"}
_SUFFIX = "executionprovider"


# What to install for a provider that is not there. A wheel takes the place of onnxruntime.
_BESIDE, _INSTEAD = (
    "pip install 'tflite-ort[{}]'",
    "pip uninstall onnxruntime && pip install onnxruntime-{}",
)
_GPU = "pip uninstall onnxruntime && pip install 'onnxruntime-gpu[cuda,cudnn]'"
BROUGHT_BY: Mapping[str, str] = {
    "CUDAExecutionProvider": _GPU,
    "DmlExecutionProvider": _INSTEAD.format("directml"),
    "MIGraphXExecutionProvider": _INSTEAD.format("migraphx"),
    "NvTensorRTRTXExecutionProvider": _BESIDE.format("tensorrt-rtx"),
    "OpenVINOExecutionProvider": _BESIDE.format("openvino"),
    "QNNExecutionProvider": _INSTEAD.format("qnn"),
    "TensorrtExecutionProvider": _GPU,
    "WebGpuExecutionProvider": _BESIDE.format("webgpu"),
}


def brought_by(name: str) -> str:
    """``; ...``: what has the provider that a name means; empty where that is not known."""
    found = named_provider(name, BROUGHT_BY)
    return "" if found is None else f"; to install it: {BROUGHT_BY[found]}"


def of_a_kind(name: str) -> str:
    """``; ...``: the providers for a GPU, if that is all that a name says; else empty."""
    if name.lower() != "gpu":
        return ""
    names = ", ".join(sorted(map(short_name, ON_GPUS)))
    return f"; providers for a GPU are {names}, and auto takes the fastest one that is installed"


def known_short_names() -> list[str]:
    """Of the providers that can be had, also of those that are not installed."""
    return [short_name(each) for each in BROUGHT_BY] + list(_ALSO)


def short_name(provider: str) -> str:
    """A provider's name as people type it: ``CUDAExecutionProvider`` is ``cuda``."""
    return "".join(filter(str.isalnum, provider.lower())).removesuffix(_SUFFIX)


def named_provider(name: str, providers: Iterable[str]) -> str | None:
    """Which of `providers` a name means, in full or in short, in any case; None if none."""
    short = short_name(name)
    meant = short_name(_ALSO.get(short, short))
    return next((each for each in providers if short_name(each) == meant), None)


# By release of ONNX Runtime, what all providers of earlier ones compute wrongly: the wheels of some
# providers are of releases before the one that this package asks for.
WRONG_BEFORE: Mapping[tuple[int, int], Sequence[WrongResult]] = {
    (1, 31): (
        _wrong("rows of length 0 are not written", "REVERSE_SEQUENCE"),
        _wrong(
            "where there are no rows their reduction is 0",
            *(*_REDUCTIONS, "REDUCE_ALL", "REDUCE_ANY"),
            where=lambda op: _unsized(op) and op.output.type is not TensorType.FLOAT32,
        ),
        _wrong(
            "TopK of no rows ends the process",
            *("TOPK_V2", "REDUCE_MAX", "REDUCE_MIN", "CUSTOM"),
            where=_sorts_no_rows,
        ),
        _wrong(
            "it has no Where of uint32",
            *("CAST", "SELECT", "SELECT_V2"),
            where=lambda op: op.output.type is TensorType.UINT32,
        ),
    ),
    (1, 29): (_wrong("it has no Cos of doubles", "ATAN2", where=_on(TensorType.FLOAT64)),),
}

# How ONNX Runtime names the memory of a device, by the number of its maker.
MEMORY_OF_VENDOR = {0x0000: "webgpu", 0x10DE: "cuda", 0x1414: "dml", 0x19E5: "cann"}

# Triton Inference Server, which runs exported files by ONNX Runtime -------------------------------


@record
class Accelerator:
    """What a server's ONNX Runtime can hand a graph to.

    Args:
        group: the field of the server's configuration that names it.
        weights: the type of quantised weights that it takes, as of `export_onnx`.
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
