"""What errors and warnings advise in Python, as options of the command line."""

from __future__ import annotations

import re

# What a message of the library says, and what the command line says in its place.
_SAYS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (
            r"Register it: resolver = .*?Interpreter\(\.\.\., resolver=resolver\)",
            "Register it: --resolver MODULE:NAME names an OpResolver that has it",
        ),
        (
            r"Change one line: Interpreter\(.*? and the same in export_onnx",
            "Add --resolver tflite_ort:WellKnownOpResolver",
        ),
        (r'export_onnx\(\.\.\., custom_ops="domain"\)', "export --custom-ops domain"),
        (r"custom_ops='domain'", "--custom-ops domain"),
        (r"WellKnownOpResolver has it", "--resolver tflite_ort:WellKnownOpResolver has it"),
        (r"give the interpreter a resolver that has", "name a resolver (--resolver) that has"),
        (r"raise it with budgets=Budgets\((\w+)=(\d+)\)", r"raise it with --budget \1=\2"),
        (r"external_roots=\[\.\.\.\] names", "--external-root DIR names"),
        (r"name one with model=", "name one with --model"),
        (r"a model alone is run on numbers", "tflite-ort run runs a model on numbers"),
        (r"Interpreter\(batch=\.\.\.\) runs", "export --batch makes a file that runs"),
    )
)


def on_the_command_line(message: str) -> str:
    """`message` with options in the place of Python's arguments."""
    for pattern, text in _SAYS:
        message = pattern.sub(text, message)
    return message
