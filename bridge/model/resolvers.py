"""The resolver an interpreter uses unless it is given another, and one that knows more names."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from tflite_ort.base.optional import late, referenced
from tflite_ort.fallback_kernels import Kernel, custom_kernel, kernel
from tflite_ort.opmap import Translator, custom_translator, translator
from tflite_ort.schema.values.operators import ANY_FLEX
from tflite_ort.versioning.registry import Registry
from tflite_ort.versioning.resolver import MutableOpResolver, OpResolver

with late:
    from tflite_ort.base import entry_points

# The custom operators that TFLite runs unasked: its resolver has them, XNNPACK takes them, or
# TensorFlow's delegate does.
_UNASKED = frozenset(
    {
        *("AudioSpectrogram", "Mfcc", "NumericVerify", "TFLite_Detection_PostProcess"),
        *("Convolution2DTransposeBias", "MaxPoolingWithArgmax2D", "MaxUnpooling2D"),
        "aeq.hadamard_rotation",
        ANY_FLEX,
    }
)


@cache
def _builtin() -> tuple[Registry[Translator], Registry[Kernel]]:
    """What a `BuiltinOpResolver` begins with."""
    translators: Registry[Translator] = Registry("translator")
    kernels: Registry[Kernel] = Registry("kernel")
    translators.update(translator)
    translators.update(custom_translator, _UNASKED)
    kernels.update(kernel)
    kernels.update(custom_kernel, _UNASKED)
    return translators, kernels


class BuiltinOpResolver(MutableOpResolver):
    """The operators of TFLite, and the custom ones that it runs unasked; more can be added.

    Examples:
        >>> from tflite_ort.schema import Op
        >>> BuiltinOpResolver().versions(Op.AVERAGE_POOL_2D)
        [1, 2, 3]
    """

    def __init__(self) -> None:
        super().__init__()
        translators, kernels = _builtin()
        self.translators, self.kernels = translators.copy(), kernels.copy()


@cache
def default_resolver() -> BuiltinOpResolver:
    """The resolver of interpreters that are given none, to which nothing is added."""
    return BuiltinOpResolver()


class WellKnownOpResolver(BuiltinOpResolver):
    """A `BuiltinOpResolver` with every custom operator of docs/custom_operators.md.

    Examples:
        >>> WellKnownOpResolver().versions("Atan")
        [1]
    """

    def __init__(self) -> None:
        super().__init__()
        self.translators.update(custom_translator)
        self.kernels.update(custom_kernel)


class InstalledOpResolver(WellKnownOpResolver):
    """A `WellKnownOpResolver` with the operators that other installed packages have: each entry
    point of ``tflite_ort.operators`` is a function that takes a resolver and adds to it.

    Args:
        names: of the entry points; None for all.
    """

    def __init__(self, names: Collection[str] | None = None) -> None:
        super().__init__()
        for name in entry_points.installed(entry_points.OPERATORS) if names is None else names:
            add = entry_points.loaded(entry_points.OPERATORS, name)
            if add is not None:
                add(self)


def library_name(resolver: OpResolver) -> str | None:
    """The name of a resolver of this library that nothing was added to; None for any other."""
    kind = type(resolver)
    if kind not in (BuiltinOpResolver, WellKnownOpResolver) or resolver.registered:
        return None
    fresh = kind()
    own = (resolver.translators, resolver.kernels) == (fresh.translators, fresh.kernels)
    return kind.__name__ if own else None


def load_resolver(reference: str) -> OpResolver:
    """The resolver that ``module:name`` names, or that it returns when it is called.

    Raises:
        ValueError: it names nothing, or something else.
    """
    named = referenced(reference)
    resolver = named() if callable(named) else named
    if not isinstance(resolver, OpResolver):
        raise ValueError(f"{reference!r} is {type(resolver).__name__}, not an OpResolver")
    return resolver
