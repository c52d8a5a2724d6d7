"""What all tasks share: making one, its running mode, and closing it."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import Any, ClassVar, Self

from tflite_ort.base.closing import Closing
from tflite_ort.tasks.options import BaseOptions


class Task(Closing):
    """A task. Make one by `create_from_options` or `create_from_model_path`.

    Raises:
        BridgeError: the model cannot be read or run, or is of another kind.
        ValueError: the options contradict each other.
    """

    _options_class: ClassVar[Callable[..., Any]]

    def __init__(self, options: Any) -> None:
        self._options, self._closed = options, False

    @classmethod
    def create_from_model_path(cls, model_path: str | os.PathLike[str]) -> Self:
        """A task with default options: for single pictures, clips or texts."""
        return cls(cls._options_class(base_options=BaseOptions(model_asset_path=model_path)))

    @classmethod
    def create_from_options(cls, options: Any) -> Self:
        """A task with these options.

        Raises:
            BridgeError: the model cannot be read or run, or is of another kind.
            ValueError: the options contradict each other.
        """
        return cls(options)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("Task runner is currently not running.")

    def _check_mode(self, wanted: enum.Enum) -> None:
        self._check_open()
        mode, name = self._options.running_mode, wanted.name.lower().replace("_", " ")
        if mode is not wanted:
            raise ValueError(
                f"Task is not initialized with the {name} mode. Current running mode:{mode.name}"
            )

    def close(self) -> None:
        """End it."""
        self._closed = True
