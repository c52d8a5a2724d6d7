"""What is known of each execution provider: one row each, and no other file names one.

A new fact is a change of one row here, and a case in ``tests/providers/test_traits.py``. A provider
without a row has the defaults of `ProviderTraits`, which are safe for every provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.providers import conditions
from tflite_ort.providers.provider_traits import HTP, UNROUNDED, ProviderTraits, WrongResult, wrong
from tflite_ort.schema import TensorType

with late:
    from tflite_ort import opmap  # a session of a stored graph needs nothing of it
    from tflite_ort.base import entry_points

if TYPE_CHECKING:
    from tflite_ort.opmap import Target

# ONNX Runtime's own kernels for the CPU.
CPU = "CPUExecutionProvider"
# How the names of providers end, in lower case.
SUFFIX = "executionprovider"
# The precision of floats where none is chosen: float32 throughout.
FULL_PRECISION = "full"


def _signed() -> Target:
    """Signed weights."""
    return opmap.Target("int8", fallback=True)


def traits_of(provider: str) -> ProviderTraits:
    """The row of a provider by its name, such as ``"CPUExecutionProvider"``; else the defaults. A
    plug-in may have several of a name, such as ``"OpenVINOExecutionProvider.AUTO"``."""
    found = TRAITS.get(provider) or _FOLDED.get(provider.partition(".")[0].lower())
    return found or entry_points.loaded(entry_points.PROVIDERS, provider) or UNKNOWN


# The table ---------------------------------------------------------------------------------------

UNKNOWN = ProviderTraits()

_NO_BIAS = "without a bias it ends the process"
_TRANSFORMED = "it takes the second axis for that of a Fourier transform"
_REDUCTIONS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")
_LSTMS = ("BIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
_REVERSED = "its slices that go backwards start at the end"

# How a provider is installed: beside onnxruntime, or as a wheel that takes the place of it.
_BESIDE, _INSTEAD = (
    "pip install 'tflite-ort[{}]'",
    "pip uninstall onnxruntime && pip install onnxruntime-{}",
)
_ON_NVIDIA = "pip uninstall onnxruntime && pip install 'onnxruntime-gpu[cuda,cudnn]'"

_FIXED_SIZES = (
    "Give the inputs fixed sizes: batch=1 for an open batch, or resize_tensor_input() before "
    "allocate_tensors()."
)

_FULL_ALONE: Mapping[str, Mapping[str, Any]] = {FULL_PRECISION: {}}
# NVIDIA's libraries multiply floats as TF32, whose mantissa has 10 bits, where the hardware can.
# TensorRT builds engines so and has no option in ONNX Runtime that says otherwise.
_WITHOUT_TF32 = {"NVIDIA_TF32_OVERRIDE": "0"}


def _openvino_in(kind: str, *devices: str) -> Mapping[str, Any]:
    """The options by which OpenVINO computes floats in a type."""
    return {"load_config": {device: {"INFERENCE_PRECISION_HINT": kind} for device in devices}}


TRAITS: Mapping[str, ProviderTraits] = {
    # - Without VNNI its x86 kernels add pairs of uint8 x int8 products in 16 bits, which saturates;
    #   with VNNI, uint8 x uint8 takes twice the time. So the type of weights is found by trying.
    # - Quantized activations are uint8 in its graphs. An int8 input or output of a session is moved
    #   by 128 outside, which spares the graph a node.
    # - It is the last one: ONNX Runtime gives it what the other providers of a session leave.
    CPU: ProviderTraits(
        lambda: opmap.Target(cpu_kernels=True, carried_boundary=True, exact=True, fallback=True),
        exact_weights=True,
        takes_all_nodes=True,
        host_memory=True,
        weights_in_place=True,
        precisions=_FULL_ALONE,
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
    # - Of a reduction that leaves out axes and an element-wise operator behind it it makes one
    #   operator, which adds constants along another axis.
    # - Of a convolution of codes and an Add behind it it makes one operator, which does not round
    #   what is between them, unless another function comes before the rounding.
    # - Its recurrent layers have no activation Affine.
    # - Its Gather takes less than half the time of its GatherElements. ONNX Runtime's own Gather
    #   takes three times as long.
    # - It has threads of its own; a session's number of threads is not theirs. Its plug-in takes no
    #   notice of the option `num_of_threads`.
    # - A session does not tell its options.
    # - Where nothing is said it computes floats in bfloat16 on a CPU that has AMX or AVX512_BF16,
    #   and in float16 on a GPU. Its own option `precision` does not change that on a CPU. An NPU
    #   has float16 alone. AUTO is a device too, which hands on what is said of it.
    "OpenVINOExecutionProvider": ProviderTraits(
        lambda: opmap.Target(
            real_transposes=True,
            symmetric_weights=True,
            kept_axes=True,
            transforms_rows=True,
            real_means=True,
            parted_layers=True,
            usual_activations=True,
            no_loops="its loops may run once more or less",
            fallback=True,
        ),
        exact_weights=True,
        whole_graphs_only=True,
        gather="Gather",
        threads=lambda count: {"load_config": {"CPU": {"INFERENCE_NUM_THREADS": count}}},
        threads_option="num_of_threads",
        device_option="device_type",
        install=_BESIDE.format("openvino"),
        precisions={
            FULL_PRECISION: _openvino_in("f32", "CPU", "GPU", "AUTO"),
            "bf16": _openvino_in("bf16", "CPU", "AUTO"),
            "fp16": _openvino_in("f16", "CPU", "GPU", "NPU", "AUTO"),
        },
        precisions_on={"GPU": (FULL_PRECISION, "fp16"), "NPU": ("fp16",)},
        options=(
            *("cache_dir", "context", "device_id", "device_luid", "device_type"),
            *("disable_dynamic_shapes", "enable_causallm", "enable_opencl_throttling"),
            *("enable_qdq_optimizer", "layout", "load_config", "model_priority"),
            *("num_of_threads", "num_streams", "precision", "reshape_input"),
        ),
        wrong=(
            wrong(
                "it keeps 31 bits of an integer and a sign",
                where=conditions.on(TensorType.INT64, TensorType.UINT32, TensorType.UINT64),
            ),
            wrong("it moves bits in integers of 32 bits", "BITCAST"),
            wrong("it sums integers as floats", "MEAN", where=conditions.on(TensorType.INT32)),
            wrong("its negative of -128 is 127", "NEG", where=conditions.on(TensorType.INT8)),
            wrong(
                "it compares integers as floats",
                *("REDUCE_MAX", "REDUCE_MIN"),
                where=conditions.on(TensorType.INT32),
            ),
            wrong("equal values are not in the order of their positions", "TOPK_V2"),
            wrong(
                "it divides integers and takes their powers as floats",
                *("DIV", "FLOOR_DIV", "POW"),
                where=conditions.on(TensorType.INT32),
            ),
            wrong("its LSTM has no peepholes", *_LSTMS, where=conditions.peepholes),
            wrong("inside a network it is far off in 16-bit codes", where=conditions.wide_codes),
            wrong(_TRANSFORMED, "RFFT2D", where=conditions.transforms_columns),
            wrong(_TRANSFORMED, "CUSTOM", where=lambda op: "FFT" in op.name),
            wrong("its sums of codes have 24 bits", "SVDF", where=conditions.far_sums),
            wrong(
                "it counts a computed start from 0", "STRIDED_SLICE", where=conditions.computed(1)
            ),
            wrong(
                "it takes the whole part of a bias",
                "LOCAL_RESPONSE_NORMALIZATION",
                where=lambda op: op.options.bias % 1 != 0,
            ),
            wrong("computed axes end the process", "REVERSE_V2", where=conditions.computed(1)),
            wrong(
                "sizes that do not fit may end the process", "SPLIT_V", where=conditions.computed(1)
            ),
            wrong(
                "an axis that does not fit may end the process",
                "SPLIT",
                where=conditions.computed(0),
            ),
            wrong(
                "tensors without elements may end the process",
                where=conditions.unsized,
                instead=_FIXED_SIZES,
            ),
        ),
        rounds=UNROUNDED,
    ),
    # By default it multiplies floats as TF32.
    "CUDAExecutionProvider": ProviderTraits(
        nvidia_libraries=True,
        precisions={FULL_PRECISION: {"use_tf32": "0"}},
        install=_ON_NVIDIA,
        kinds=("GPU",),
    ),
    # These take no quantized weights but signed ones.
    # - TensorRT for RTX computes each tensor in its own type, so there is no option but TF32.
    "NvTensorRTRTXExecutionProvider": ProviderTraits(
        _signed,
        precisions=_FULL_ALONE,
        environment=_WITHOUT_TF32,
        install=_BESIDE.format("tensorrt-rtx"),
        also="tensorrt-rtx",
        kinds=("GPU",),
    ),
    # - The HTP computes floats in float16, whatever is said.
    # - It asks for the path of its back end, which is in its package.
    # - It keeps one scale for each tensor, and takes nodes of codes between a pair alone.
    # - By default it leaves codes of floats at the edge of a graph to the CPU. It makes them in
    #   full precision itself.
    # - Asked whether what it has compiled fits, it ends the back end of the sessions that run, and
    #   the process with them. The key of the cache has the file of its library.
    # - On a computer without an NPU it has an emulator of it. Where nothing is said that is a small
    #   one, which has no memory for networks of a hundred layers. 60 is the Snapdragon X Elite.
    "QNNExecutionProvider": ProviderTraits(
        lambda: opmap.Target("int8", paired_codes=True, fallback=True),
        precisions={
            FULL_PRECISION: {"enable_htp_fp16_precision": "0"},
            "fp16": {"enable_htp_fp16_precision": "1"},
        },
        install=_BESIDE.format("qnn"),
        host_memory=True,
        tells_fit=False,
        package="onnxruntime_qnn",
        told={"backend_path": "get_qnn_htp_path"},
        told_unless=("backend_path", "backend_type"),
        kinds=("NPU",),
        emulates={"CPU": {"soc_model": "60"}},
        defaults={"offload_graph_io_quantization": "0"},
        wrong=(
            wrong("it takes fixed sizes alone", where=conditions.unsized, instead=_FIXED_SIZES),
            wrong(
                "it rounds floats to float16",
                where=conditions.computes_floats,
                instead="Ask for precision='fp16', if that is precise enough.",
                full=True,
            ),
            wrong(
                "its sums do not wrap around at 32 bits, as TFLite's do",
                "SVDF",
                where=conditions.on(TensorType.INT8, TensorType.INT16),
            ),
            wrong("it moves bits in integers of 32 bits", "BITCAST"),
            wrong(
                "it keeps 32 bits of an integer",
                where=conditions.on(TensorType.INT64, TensorType.UINT32, TensorType.UINT64),
            ),
            wrong(
                "it divides integers as floats, and holds sums and products at their ends",
                *("ADD", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MUL", "SQUARED_DIFFERENCE", "SUB"),
                where=conditions.plain_integers,
            ),
            wrong(
                "it compares numbers, where TFLite compares codes",
                *("MAXIMUM", "MINIMUM"),
                where=conditions.mixed_scales,
            ),
            wrong("it has no limits so small", "RELU", "RELU6", where=conditions.small_scales),
            wrong(
                "it fails to compose 64-bit floats",
                "QUANTIZE",
                where=conditions.on(TensorType.INT32),
            ),
            wrong(
                "it fails to compose 64-bit floats",
                "RESIZE_BILINEAR",
                where=conditions.on(TensorType.INT16),
            ),
            wrong(
                "it moves 16-bit codes of five axes to other places",
                *("MEAN", "SUM"),
                where=conditions.wide_of_many_axes,
            ),
            wrong(
                "inside a network it saturates products of 16-bit codes",
                "REDUCE_PROD",
                where=conditions.on(TensorType.INT16),
            ),
        ),
        rounds=HTP,
    ),
    "TensorrtExecutionProvider": ProviderTraits(
        _signed,
        nvidia_libraries=True,
        precisions={
            FULL_PRECISION: {"trt_bf16_enable": "0", "trt_fp16_enable": "0"},
            "bf16": {"trt_bf16_enable": "1", "trt_fp16_enable": "0"},
            "fp16": {"trt_bf16_enable": "0", "trt_fp16_enable": "1"},
        },
        environment=_WITHOUT_TF32,
        install=_ON_NVIDIA,
        kinds=("GPU",),
    ),
    # A neural network of CoreML has no types, and runs in float16 wherever the device likes that
    # better. That is ONNX Runtime's default. An ML program computes each tensor in its own type.
    "CoreMLExecutionProvider": ProviderTraits(
        precisions={
            FULL_PRECISION: {"ModelFormat": "MLProgram", "AllowLowPrecisionAccumulationOnGPU": "0"},
            "fp16": {"ModelFormat": "NeuralNetwork", "AllowLowPrecisionAccumulationOnGPU": "1"},
        },
    ),
    # By its documentation it makes bfloat16 of floats, and takes files of opset 17.
    "VitisAIExecutionProvider": ProviderTraits(
        lambda: opmap.Target("int8", opset=17, fallback=True),
        precisions={FULL_PRECISION: {}, "bf16": {}},
        kinds=("NPU",),
        wrong=(
            wrong(
                "it rounds floats to bfloat16",
                where=conditions.computes_floats,
                instead="Ask for precision='bf16', if that is precise enough.",
                full=True,
            ),
        ),
    ),
    # By default an operator that has a kernel for float16 uses it.
    "CANNExecutionProvider": ProviderTraits(
        precisions={
            FULL_PRECISION: {"precision_mode": "must_keep_origin_dtype"},
            "fp16": {"precision_mode": "force_fp16"},
        },
    ),
    # Variables of its own, such as ORT_MIGRAPHX_FP16_ENABLE, come before these options.
    "MIGraphXExecutionProvider": ProviderTraits(
        precisions={
            FULL_PRECISION: {"migraphx_bf16_enable": "0", "migraphx_fp16_enable": "0"},
            "bf16": {"migraphx_bf16_enable": "1", "migraphx_fp16_enable": "0"},
            "fp16": {"migraphx_bf16_enable": "0", "migraphx_fp16_enable": "1"},
        },
        install=_INSTEAD.format("migraphx"),
        kinds=("GPU",),
    ),
    # - It allows half precision where all tensors of an operator are of float16.
    # - By its documentation it has operators up to those of opset 20.
    "DmlExecutionProvider": ProviderTraits(
        lambda: opmap.Target(opset=20, fallback=True),
        precisions=_FULL_ALONE,
        install=_INSTEAD.format("directml"),
        also="directml",
        kinds=("GPU",),
    ),
    # It multiplies floats as TF32 where the hardware can, unless its variable says otherwise.
    "MLXExecutionProvider": ProviderTraits(
        precisions=_FULL_ALONE,
        environment={"MLX_ENABLE_TF32": "0"},
        install="pip install onnxruntime-ep-mlx",
        kinds=("GPU",),
    ),
    # It keeps weights in float16 where nothing is said.
    "ggml": ProviderTraits(
        precisions={FULL_PRECISION: {"weights": "f32"}, "fp16": {"weights": "f16"}},
    ),
    # It computes in floats and leaves quantized layers to the CPU. A session does not tell its
    # options. Some of its shaders are wrong, and some operators end the process.
    "WebGpuExecutionProvider": ProviderTraits(
        precisions=_FULL_ALONE,
        install=_BESIDE.format("webgpu"),
        kinds=("GPU",),
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
            wrong(
                "it reads other channels of a multiple of 3",
                "CONV_2D",
                where=conditions.odd_channels,
            ),
            wrong(_NO_BIAS, "CONV_3D", where=conditions.lacks(2)),
            wrong(_NO_BIAS, "CONV_3D_TRANSPOSE", "TRANSPOSE_CONV", where=conditions.lacks(3)),
            wrong("it is off by 2e-4", "COS", "SIN"),
            wrong(_REVERSED, "MIRROR_PAD", where=conditions.symmetric),
            wrong(_REVERSED, "STRIDED_SLICE", where=conditions.backwards),
        ),
        rounds=UNROUNDED,
    ),
}

# Windows ML spells some names otherwise.
_FOLDED = {name.lower(): row for name, row in TRAITS.items()}

# By release of ONNX Runtime, what all providers of earlier ones compute wrongly: the wheels of some
# providers are of releases before the one that this package asks for.
WRONG_BEFORE: Mapping[tuple[int, int], Sequence[WrongResult]] = {
    (1, 31): (
        wrong("rows of length 0 are not written", "REVERSE_SEQUENCE"),
        wrong(
            "where there are no rows their reduction is 0",
            *(*_REDUCTIONS, "REDUCE_ALL", "REDUCE_ANY"),
            where=lambda op: conditions.unsized(op) and op.output.type is not TensorType.FLOAT32,
        ),
        wrong(
            "TopK of no rows ends the process",
            *("TOPK_V2", "REDUCE_MAX", "REDUCE_MIN", "CUSTOM"),
            where=conditions.sorts_no_rows,
        ),
        wrong(
            "it has no Where of uint32",
            *("CAST", "SELECT", "SELECT_V2"),
            where=lambda op: op.output.type is TensorType.UINT32,
        ),
    ),
    (1, 29): (wrong("it has no Cos of doubles", "ATAN2", where=conditions.on(TensorType.FLOAT64)),),
}

# How ONNX Runtime names the memory of a device, by the number of its maker.
MEMORY_OF_VENDOR = {0x0000: "webgpu", 0x10DE: "cuda", 0x1414: "dml", 0x19E5: "cann"}
