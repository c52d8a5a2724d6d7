"""What a user registers for an operator, and how errors of that code are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.schema import (
    BridgeError,
    KernelError,
    OperatorView,
    TranslatorError,
    Untranslatable,
)
from tflite_ort.versioning.registry import StateFactory

Function = Callable[..., Any]
ShapeFunction = Callable[[OperatorView[Any]], Sequence[Sequence[int]]]


@record
class Registration:
    """What runs an operator: a translator into ONNX, a kernel or a function in numpy, or both.

    With both, ONNX Runtime runs the operator and numpy takes it where no provider can.

    Args:
        translate: ``translate(op, graph)``, as for a builtin operator.
        kernel: an object (an instance, a class of static methods, a module) with the functions of
            TFLite's life cycle: ``invoke(context, node)`` and, where they are needed,
            ``init(custom_options) -> state``, ``prepare(context, node)`` and ``free(state)``. Or,
            as this library's own kernels are written, ``kernel(op, inputs, state) -> outputs``.
        inputs: their names, ``"bias?"`` when it may be left out, ``"filter!"`` when `translate`
            needs a constant, a last ``"values*"`` for all that remain.
        function: instead of `kernel`, ``function(*arrays, **options)``, which returns one array or
            a sequence of them.
        shapes: ``shapes(op)`` gives the shape of every output. Without it they are what `prepare`
            sets, what the file declares, or what `function` makes of zeros.
        check: run the kernel or function after the translated operator too, at every invoke, and
            raise KernelError where they differ.
        state: of ``kernel(op, inputs, state)``: makes its state, at every allocation.
    """

    translate: Function | None = None
    kernel: Any = None
    inputs: tuple[str, ...] = ("inputs*",)
    function: Function | None = None
    shapes: ShapeFunction | None = None
    check: bool = False
    state: StateFactory | None = None

    def __post_init__(self) -> None:
        if self.translate is None and self.kernel is None and self.function is None:
            raise ValueError("a registration needs a translator or a kernel")
        if self.kernel is not None and self.function is not None:
            raise ValueError("a registration has a kernel or a function, not both")
        if self.check and (self.translate is None or self.kernel is self.function):
            raise ValueError("only a translator with a kernel or function can be checked")
        if self.kernel is not None and not self.has_life_cycle and not callable(self.kernel):
            raise ValueError("a kernel has a function `invoke`, or is a function")

    @property
    def has_life_cycle(self) -> bool:
        """Whether `kernel` has TFLite's functions."""
        return callable(getattr(self.kernel, "invoke", None))

    @property
    def reported_translator(self) -> Function | None:
        """`translate`, with what it raises reported."""
        function = self.translate
        if function is None:
            return None

        def translate(op: OperatorView[Any], g: Any) -> None:
            with reported(TranslatorError, f"{op.label}: its translator failed", Untranslatable):
                function(op, g)

        return translate

    @property
    def reported_kernel(self) -> Function | None:
        """A `kernel` that is a function, with what it raises reported."""
        function = self.kernel
        if function is None or self.has_life_cycle:
            return None

        def kernel(op: OperatorView[Any], inputs: Sequence[Any], state: Any) -> Any:
            with reported(KernelError):
                return function(op, inputs, state)

        return kernel


@contextmanager
def reported(kind: type[BridgeError], what: str = "", *passed: type[BridgeError]) -> Iterator[None]:
    """Whatever the code of a user raises inside comes out as `kind`, chained, except `passed`."""
    try:
        yield
    except passed:
        raise
    except Exception as error:
        described = str(error) if isinstance(error, kind) else f"{type(error).__name__}: {error}"
        raise kind(f"{what}: {described}" if what else described) from error
