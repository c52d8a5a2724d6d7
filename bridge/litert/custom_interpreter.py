"""An interpreter whose custom operators are registered by functions, as LiteRT has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.versioning.resolver import MutableOpResolver


class InterpreterWithCustomOps(Interpreter):
    """An `Interpreter` with custom operators that functions add to its resolver.

    Args:
        custom_op_registerers: each is called with the `MutableOpResolver` to add to.
        arguments: those of `Interpreter`, by name.

    Examples:
        >>> from tflite_ort.command.demo import digits_model
        >>> from tflite_ort.versioning import Registration
        >>> double = Registration(kernel=lambda op, inputs, state: (inputs[0] * 2,))
        >>> interpreter = InterpreterWithCustomOps(
        ...     [lambda resolver: resolver.add_custom("Double", double)],
        ...     model_path=digits_model("float32"),
        ... )
    """

    def __init__(
        self,
        custom_op_registerers: Sequence[Callable[[MutableOpResolver], object]] | None = None,
        **arguments: Any,
    ) -> None:
        resolver = BuiltinOpResolver()
        for register in custom_op_registerers or ():
            if not callable(register):
                raise ValueError(
                    f"Looking up symbol '{register}' failed: operators are registered by functions"
                )
            register(resolver)
        super().__init__(**arguments, resolver=resolver)
        self._arguments = {"custom_op_registerers": custom_op_registerers, **arguments}
