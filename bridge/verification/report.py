"""The report of a verification: what was found, for people, programs and pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tflite_ort.verification.html import to_html
from tflite_ort.verification.results import Results

# The exit code of a command whose check found a difference.
OFF = 4


@dataclass(frozen=True, slots=True)
class Report(Results):
    """A model, and how far runtimes are from a reference; the fields are those of `Results`."""

    def __str__(self) -> str:
        """The verdict on each runtime in a line, and why."""
        lines = [f"{self.model}: {self.inputs}, compared with {self.reference}"]
        lines += (f"{name} left out: {reason}" for name, reason in self.skipped.items())
        lines += (f"{each.runtime}: {each.verdict}. {each.reason}" for each in self.runtimes)
        return "\n".join(lines)

    @property
    def exit_code(self) -> int:
        """0, or 4 where a runtime or one of its operators is off."""
        return OFF if self.verdict.is_alarm else 0

    def to_json(self) -> str:
        """Everything but arrays; numbers that JSON lacks are the texts nan, inf and -inf."""
        record = {"verdict": self.verdict.value, **plain(self)}
        return json.dumps(record, indent=2, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One HTML page that needs no network.

        Raises:
            BridgeError: Jinja2 is not installed: ``pip install 'tflite-ort[report]'``.
        """
        return to_html(self)


# Fields that hold arrays.
_ARRAYS = frozenset({"fed", "values", "part"})


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as what JSON has; arrays are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: plain(item) for name, item in pairs if name not in _ARRAYS}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
