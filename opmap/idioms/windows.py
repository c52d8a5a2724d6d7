"""The windows of a convolution along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.schema import OperatorView, Padding
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known


@record
class WindowAxis:
    """The windows of a convolution along one axis.

    Args:
        cells: of the input, without padding.
        before, after: cells of padding.
    """

    cells: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def count(self) -> int:
        """How many windows there are."""
        reach = (self.kernel - 1) * self.dilation + 1
        return (self.cells + self.before + self.after - reach) // self.stride + 1


def image_windows(
    op: OperatorView[Any], kernel: Sequence[int]
) -> tuple[WindowAxis, WindowAxis] | None:
    """The windows along rows and columns of an image [N, H, W, C]; None where a size is unknown."""
    sizes, options = op["input"].shape[1:3], op.options
    if not is_known(*sizes):
        return None
    rows = sizes[0], kernel[0], options.stride_h, options.dilation_h_factor, op.edges[0]
    columns = sizes[1], kernel[1], options.stride_w, options.dilation_w_factor, op.edges[1]
    return _windows(options.padding, *rows), _windows(options.padding, *columns)


def run_of(windows: tuple[WindowAxis, WindowAxis]) -> int:
    """How many cells side by side all windows read together: the columns of a window where windows
    neither overlap nor are padded along a row, as the patches of a transformer; otherwise 1."""
    _, columns = windows
    apart = columns.stride % columns.kernel == 0 and columns.dilation == 1
    aligned = not columns.before and not columns.after and columns.cells % columns.kernel == 0
    return columns.kernel if apart and aligned else 1


@lru_cache(maxsize=256)  # they are asked for several times, and many layers have the same
def _windows(
    padding: Padding, size: int, kernel: int, stride: int, dilation: int, edge: tuple[int, int]
) -> WindowAxis:
    before, after = explicit_padding(padding, size + sum(edge), kernel, stride, dilation)
    return WindowAxis(size, kernel, stride, dilation, before + edge[0], after + edge[1])
