"""Any ONNX model in ONNX Runtime as it is, arrays by name in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from tflite_ort.base.forks import renew_in_children
from tflite_ort.providers.exported_state import first_state
from tflite_ort.providers.left_sessions import abandon
from tflite_ort.providers.messages import failure
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.session import ORT_ERRORS
from tflite_ort.providers.settings import CONFIG, chosen
from tflite_ort.providers.threads import session_options

Array = npt.NDArray[Any]

# Where the weights lie that a model in memory refers to.
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
# Without it sums of uint8 x int8 products saturate on x86 without VNNI: see `exact_weight_type`.
_PRECISE = "session.x64quantprecision"

# ValueError: of arrays that do not fit.
_FAILURES: tuple[type[Exception], ...] = (*ORT_ERRORS, ValueError)


class OnnxSession:
    """An ONNX model as it is; a state of our exports that is not fed starts from its first value.

    Args:
        model: what to run.
        folder: where its external weights lie.
        num_threads: within an operator.
        provider: what it does not take is left to the CPU's.
        reused: it runs often, so that memory is kept from run to run.
        precise: products of signed 8-bit weights do not saturate on any CPU.

    Raises:
        DelegateError: ONNX Runtime cannot load it.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        folder: Path | None = None,
        num_threads: int = 1,
        provider: Provider = ON_CPU,
        *,
        reused: bool = False,
        precise: bool = False,
    ) -> None:
        options = session_options(num_threads)
        options.enable_cpu_mem_arena = reused
        for key, value in CONFIG.items():
            options.add_session_config_entry(key, value)
        if precise:
            options.add_session_config_entry(_PRECISE, "1")
        if folder is not None:
            options.add_session_config_entry(_WEIGHTS_FOLDER, str(folder))
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(),
                options,
                providers=chosen(provider, options, num_threads),
                enable_fallback=0,  # it would print a message and try the CPU again
            )
        except ORT_ERRORS as error:
            raise failure("could not load it", error) from error
        renew_in_children(self)
        self._first = first_state(model)
        self.inputs = [each.name for each in self._session.get_inputs()]
        # Inputs with a value of their own.
        self.choices = [each.name for each in self._session.get_overridable_initializers()]
        self.outputs = [each.name for each in self._session.get_outputs()]

    def renew(self) -> None:
        """As of `Session`."""
        abandon(self._session)

    def run(self, feeds: Mapping[str, Array], wanted: Sequence[str] | None = None) -> list[Any]:
        """One inference: the outputs `wanted`, or all; None for one that has no value.

        Raises:
            DelegateError: it fails.
        """
        names = None if wanted is None else list(wanted)
        try:
            found = self._session.run(names, {**self._first, **feeds})
        except _FAILURES as error:
            raise failure("failed", error) from error
        return [np.asarray(each) if isinstance(each, np.ndarray) else each for each in found]
