"""The resolver an interpreter uses unless it is given another."""

from __future__ import annotations

from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import translator
from tflite_ort.versioning.resolver import MutableOpResolver


class BuiltinOpResolver(MutableOpResolver):
    """Everything this library has a translator or a kernel for; more can be added.

    Example:
        >>> from tflite_ort.schema import Op
        >>> BuiltinOpResolver().versions(Op.AVERAGE_POOL_2D)
        [1, 2, 3]
    """

    def __init__(self) -> None:
        super().__init__()
        self.translators.update(translator)
        self.kernels.update(kernel)
