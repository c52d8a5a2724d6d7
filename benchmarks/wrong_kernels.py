"""The kernels of ONNX Runtime for the CPU that are wrong; no translator uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflite_ort.base.records import record


@record
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
