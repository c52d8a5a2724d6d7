"""What execution providers compute otherwise than TFLite, which is left to the next delegate, and
the kernels of ONNX Runtime's CPU provider that are wrong, which no translator uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tflite_ort.providers.session import ORT_RELEASE, ORT_VERSION
from tflite_ort.schema import MirrorPadMode, Op, OperatorView, TensorType

_View = OperatorView[Any]
_Where = Callable[[_View], bool]

# Wheels of some providers are of releases before the one this package asks for.
_BEFORE = (1, 31)
_WRONG_BEFORE = {Op.REVERSE_SEQUENCE: "rows of length 0 are not written"}

_OPENVINO = "OpenVINOExecutionProvider"
_WIDE = frozenset({TensorType.INT64, TensorType.UINT32, TensorType.UINT64})


def _always(op: _View) -> bool:
    return True


def _on(*types: TensorType) -> _Where:
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
    return (
        channels > 3
        and channels % 3 == 0
        and channels % 4 != 0
        and outputs % 4 == 0
        and tuple(window) != (1, 1)
    )


def _without(position: int) -> _Where:
    """Whether an input is absent."""
    return lambda op: len(op.inputs) <= position or op.inputs[position] is None


def _backwards(op: _View) -> bool:
    strides = op.inputs[3]
    return strides is None or strides.data is None or bool((strides.data < 0).any())


def _symmetric(op: _View) -> bool:
    return bool(op.options.mode is MirrorPadMode.SYMMETRIC)


# By provider and operator, where it is wrong, and why.
_WRONG: Mapping[str, Mapping[Op, tuple[_Where, str]]] = {
    _OPENVINO: {
        Op.BITCAST: (_always, "it moves bits in integers of 32 bits"),
        Op.MEAN: (_on(TensorType.INT32), "it sums integers as floats"),
        Op.NEG: (_on(TensorType.INT8), "its negative of -128 is 127"),
        Op.REDUCE_MAX: (_on(TensorType.INT32), "it compares integers as floats"),
        Op.REDUCE_MIN: (_on(TensorType.INT32), "it compares integers as floats"),
        Op.TOPK_V2: (_always, "equal values are not in the order of their positions"),
    },
    "WebGpuExecutionProvider": {
        Op.CONV_2D: (_odd_channels, "it reads other channels of a multiple of 3"),
        Op.CONV_3D: (_without(2), "without a bias it ends the process"),
        Op.CONV_3D_TRANSPOSE: (_without(3), "without a bias it ends the process"),
        Op.COS: (_always, "it is off by 2e-4"),
        Op.MIRROR_PAD: (_symmetric, "its slices that go backwards start at the end"),
        Op.SIN: (_always, "it is off by 2e-4"),
        Op.STRIDED_SLICE: (_backwards, "its slices that go backwards start at the end"),
        Op.TRANSPOSE_CONV: (_without(3), "without a bias it ends the process"),
    },
}


def wrong_result(provider: str, op: _View) -> str | None:
    """Why `provider` must not run `op`; None where it may."""
    if ORT_RELEASE < _BEFORE and op.op in _WRONG_BEFORE:
        return f"wrong in ONNX Runtime {ORT_VERSION}: {_WRONG_BEFORE[op.op]}"
    if provider == _OPENVINO and _on(*_WIDE)(op):
        return f"wrong in {provider}: it keeps 31 bits of an integer and a sign"
    where, reason = _WRONG.get(provider, {}).get(op.op, (None, ""))
    return f"wrong in {provider}: {reason}" if where is not None and where(op) else None


@dataclass(frozen=True, slots=True)
class WrongKernel:
    """What a kernel of the CPU provider computes otherwise than numpy.

    Args:
        types: of its elements, where it does.
        despite: why translators may use it with these all the same; empty: none does.
    """

    types: frozenset[str]
    what: str
    despite: str = ""


# On AVX-512; 1.20.1 is right.
_BEYOND = "of numbers that need more than 32 bits the wrong one"
_WIDE_ONLY = frozenset({"int64"})
_REALS = frozenset({"float16", "float32", "float64"})
_SUMMED = frozenset({"int32", "int64"})
_HIDDEN = "which numbers one that is no number hides depends on their places"
_SAME = "TFLite's kernels differ from each other there"

# By ONNX operator, or operator and reduction, what `python -m benchmarks.kernel_edges` finds.
WRONG_KERNELS: Mapping[str, Sequence[WrongKernel]] = {
    "Max": [WrongKernel(_WIDE_ONLY, _BEYOND)],
    "Min": [WrongKernel(_WIDE_ONLY, _BEYOND)],
    "Pow": [WrongKernel(_SUMMED, "in double; what overflows is the lowest", "as TFLite has it")],
    "ReduceMax": [WrongKernel(_WIDE_ONLY, _BEYOND), WrongKernel(_REALS, _HIDDEN, _SAME)],
    "ReduceMin": [WrongKernel(_WIDE_ONLY, _BEYOND), WrongKernel(_REALS, _HIDDEN, _SAME)],
    "ReduceProd": [
        WrongKernel(_SUMMED, "in double, held at the ends", "products of sizes, which double holds")
    ],
    "ReduceSum": [
        WrongKernel(_SUMMED, "in double, held at the ends", "sums of counts, which double holds")
    ],
    "ScatterElements/max": [WrongKernel(_REALS, "passes over what is no number", "so does TFLite")],
    "ScatterElements/min": [WrongKernel(_REALS, "passes over what is no number", "so does TFLite")],
    "Sigmoid": [WrongKernel(_REALS, "0 below 1e-8", "between gates of recurrent cells")],
    "Sign": [
        WrongKernel(_WIDE_ONLY, "of 2**31 that of -1"),
        WrongKernel(frozenset({"float16"}), "of what is no number 0", "of numbers alone"),
    ],
    "Where": [WrongKernel(_REALS, "of -0.0 gives 0.0", "the two are equal")],
}
# The releases that were tried, all but the first with the same findings in 64-bit integers.
ORT_TRIED = ("1.20.1", "1.22.1", "1.23.2", "1.26.0", "1.30.0", "1.31.1")


def wrong_kernel(operator: str, type: str) -> WrongKernel | None:
    """What is wrong with the kernel of an ONNX operator for a type of numpy's; None: nothing."""
    rows = WRONG_KERNELS.get(operator, ())
    return next((row for row in rows if type in row.types), None)
