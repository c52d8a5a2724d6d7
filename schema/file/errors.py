"""Every error of the library.

::

    BridgeError
      ModelError(ValueError)
        MalformedModel          the bytes are not a valid TFLite file
        MalformedBundle         the bytes are not a valid bundle of models
        MissingEntry(LookupError)  a bundle has no such entry, or several
        UnsupportedSchema       the file's schema version is not 3
        UnreadableModel(OSError)  the file cannot be opened
        BudgetExceeded(RuntimeError)  the model asks for more than a limit of `Budgets`
        AllocationError(RuntimeError)  an operator cannot take the shapes that reach it
          InsufficientMemory(MemoryError)  there is not as much memory as the model asks for
      VersionError(ValueError)
        UnknownOperator         an operator code or custom name that nothing is registered for
        UnsupportedVersion      an operator version outside the known range
        UnresolvedOperator(RuntimeError)  a custom operator, or one of TFLite's in a version it
                                has, that nothing here runs
      TensorError(ValueError)     a tensor index, dtype or shape that does not fit
        ResizeError(RuntimeError)  a tensor cannot be given a shape
      Untranslatable(ValueError)  one operator that a translator cannot say in ONNX
      ExportError(ValueError)     all operators that keep a model from being exported
        Unbatchable               an operator that cannot run over a batch of samples
      DelegateError(RuntimeError) an execution provider failed
        MissingDelegate(ValueError, OSError)  there is no such execution provider, or it cannot
                                be loaded with these options
      KernelError(RuntimeError)   a numpy kernel refused its inputs, or one of a user failed
      TranslatorError(RuntimeError)  a translator of a user failed
      StateError(RuntimeError)    a method was called in the wrong order

Warnings: DelegateWarning(UserWarning), an execution provider failed and the next takes over;
BatchWarning(UserWarning), the samples of a batch do not run together, or run into each other;
ExportWarning(UserWarning), sizes that a model leaves open are fixed in its export.

Each leaf is also the builtin exception that ``tf.lite.Interpreter`` raises in that place.
"""

from __future__ import annotations

from tflite_ort.schema.file.exports import export_classes

# What code written for well-formed operators raises when it meets a malformed one.
MALFORMED_OPERATOR = (ValueError, TypeError, LookupError, ArithmeticError)


# What each of them says of the file, in the first row that fits. Their own text speaks of Python.
_SAYS = (
    (OverflowError, "a number is beyond the range of its type"),
    (ArithmeticError, "a size, a scale or an option is 0"),
    (LookupError, "it has fewer inputs, dimensions or elements than it needs"),
    (TypeError, "an input is not there, or is of a type that it does not take"),
    (ValueError, "its shapes and values do not fit together"),
)


class BridgeError(Exception):
    """Root of all errors raised on purpose by tflite_ort."""


def said_of_file(error: Exception) -> str:
    """What `error` says of an operator: its text if it is ours, or if memory ran out."""
    if not isinstance(error, BridgeError):
        for kind, text in _SAYS:
            if isinstance(error, kind):
                return text
    return str(error)


class ModelError(BridgeError, ValueError):
    """The model file cannot be used."""


class MalformedModel(ModelError):
    """The bytes are not a valid TFLite file.

    Args:
        reason: what is wrong.
        path: where in the model, such as ``subgraphs[0].operators[3].inputs``.
        offset: byte offset in the file, or None.
    """

    def __init__(self, reason: str, path: str = "", offset: int | None = None) -> None:
        self.reason, self.path, self.offset = reason, path, offset
        where = f" at {path}" if path else ""
        at = f" (byte {offset})" if offset is not None else ""
        super().__init__(f"The model is not a valid Flatbuffer buffer: {reason}{where}{at}")


class MalformedBundle(ModelError):
    """The bytes are no bundle of models, or a damaged or dishonest one.

    Args:
        reason: what is wrong.
        offset: byte offset in the bundle, or None.
    """

    def __init__(self, reason: str, offset: int | None = None) -> None:
        self.reason, self.offset = reason, offset
        at = f" (byte {offset})" if offset is not None else ""
        super().__init__(f"The bundle is not valid: {reason}{at}")

    def __reduce__(self) -> tuple[type[MalformedBundle], tuple[str, int | None]]:
        return type(self), (self.reason, self.offset)


class MissingEntry(ModelError, LookupError):
    """A bundle has no such entry, or several of them; the message lists what it has."""


class UnsupportedSchema(ModelError):
    """The file's schema version is not the one TFLite files have (3)."""


class UnreadableModel(ModelError, OSError):
    """The model file cannot be opened."""


class AllocationError(ModelError, RuntimeError):
    """The tensors cannot be allocated; the message names the operator and the shapes."""


class InsufficientMemory(AllocationError, MemoryError):
    """There is not as much memory as the model asks for."""


class BudgetExceeded(ModelError, RuntimeError):
    """The model asks for more than its `Budgets` allow.

    Args:
        name: of the budget.
        needed: at least this much is asked for.
        what: what asks for it.
    """

    def __init__(self, name: str, needed: int, limit: int, what: object = "the model") -> None:
        self.name, self.needed, self.limit = name, needed, limit
        super().__init__(
            f"{what} asks for {needed} {name.replace('_', ' ')}, more than the limit of {limit}; "
            f"raise it with budgets=Budgets({name}={needed}) if you trust the model"
        )

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, int, int]]:
        return type(self), (self.name, self.needed, self.limit)


class VersionError(BridgeError, ValueError):
    """An operator or one of its versions is not known."""


class UnknownOperator(VersionError):
    """Nothing is registered for an operator code or custom operator name."""


class UnsupportedVersion(VersionError):
    """An operator's version is outside the range the library knows."""


class UnresolvedOperator(UnknownOperator, RuntimeError):
    """A custom operator, or one that TFLite has, for which there is no translator or kernel."""


class TensorError(BridgeError, ValueError):
    """A tensor that does not exist, or a value whose dtype or shape is not the tensor's."""


class ResizeError(TensorError, RuntimeError):
    """A tensor cannot be given this shape."""


class OversizedError(ResizeError, OverflowError):
    """A size beyond 32 bits; LiteRT raises OverflowError there."""


class AbsentSizeError(ResizeError, TypeError):
    """A shape that is None, or has None as a size; LiteRT raises TypeError there."""


class Untranslatable(BridgeError, ValueError):
    """An operator that cannot be said in ONNX; the message is the reason."""


class ExportError(BridgeError, ValueError):
    """A model cannot be exported; the message lists every operator in the way."""


class Unbatchable(ExportError):
    """An operator cannot run over a batch of samples so that each has the result that it has alone.

    Args:
        reason: one sentence.
        operator: its name; empty if it is no single one.
        index: of the operator in its subgraph; -1 if it is no single one.
        subgraph: of the operator.
    """

    def __init__(self, reason: str, operator: str = "", index: int = -1, subgraph: int = 0) -> None:
        self.reason, self.operator, self.index, self.subgraph = reason, operator, index, subgraph
        where = f" of subgraph {subgraph}" if subgraph else ""
        what = f"{operator}_{index}{where}" if operator else "the model"
        super().__init__(f"{what} cannot run over a batch: {reason}")

    def __reduce__(self) -> tuple[type[Unbatchable], tuple[str, str, int, int]]:
        return type(self), (self.reason, self.operator, self.index, self.subgraph)


class DelegateError(BridgeError, RuntimeError):
    """An execution provider could not be used or failed."""


class MissingDelegate(DelegateError, ValueError, OSError):
    """There is no such execution provider, or it cannot be loaded with these options."""


class DelegateWarning(UserWarning):
    """An execution provider failed, and the next one takes over."""


class BatchWarning(UserWarning):
    """The samples of a batch run one at a time, or a resize may have mixed them."""


class ExportWarning(UserWarning):
    """An exported file has the sizes of the model where the model leaves them open."""


class CacheWarning(UserWarning):
    """The folder of the cache, or its limit, is not used as it is."""


class KernelError(BridgeError, RuntimeError):
    """A numpy kernel refused its inputs, or one that was registered failed."""


class TranslatorError(BridgeError, RuntimeError):
    """A translator that was registered failed: it raised anything but Untranslatable."""


class StateError(BridgeError, RuntimeError):
    """A method was called before what it depends on."""


export_classes(globals())
