"""LiteRT 2's `CompiledModel` on ONNX Runtime: buffers in, buffers out, by signature."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from tflite_ort.base.closing import Closing
from tflite_ort.base.forks import renew_in_children
from tflite_ort.compiled_model.options import (
    CpuKernelMode,
    CpuOptions,
    Environment,
    EnvironmentOptions,
    GpuOptions,
    HardwareAccelerator,
    Options,
    arguments_of,
)
from tflite_ort.compiled_model.signatures import (
    RUNTIME_ERRORS,
    CompiledModelError,
    CompiledSignature,
    check_fits,
    check_runs,
    named,
    numbered,
    same_memory,
    signatures_of,
)
from tflite_ort.compiled_model.tensor_buffer import TensorBuffer, plain_bytes
from tflite_ort.interpreter.checked_subgraph import CheckedSubgraph
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.schema import VersionError

# The number of host memory among LiteRT's kinds.
_HOST_MEMORY = 1

__all__ = [
    "CompiledModel",
    "CompiledModelError",
    "CpuKernelMode",
    "CpuOptions",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "Options",
    "TensorBuffer",
]


class CompiledModel(Closing):
    """A model ready to run on buffers, with the methods of LiteRT's class.

    `create_input_buffers` and its like return buffers over the model's own memory, so that a run
    copies nothing. Other buffers are copied in or out once.

    Args:
        interpreter: what runs it.
        environment: kept as `environment`.
        accelerated: the execution providers that were asked for.

    Example:
        >>> import numpy as np
        >>> from tflite_ort.command.demo import digits_model
        >>> model = CompiledModel.from_file(str(digits_model("float32")))
        >>> inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        >>> inputs[0].write(np.zeros((1, 8, 8, 1), np.float32))
        >>> model.run_by_index(0, inputs, outputs)
        >>> outputs[0].read(10, np.float32).shape
        (10,)
    """

    environment: Environment
    # Arguments of `Interpreter` where the caller chooses nothing, see `install_as`.
    _preset: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        interpreter: Interpreter,
        environment: Environment | None = None,
        accelerated: Sequence[str] = (),
    ) -> None:
        self._interpreter = interpreter
        self.environment = environment or Environment.create()
        self._accelerated = accelerated
        self._signatures = signatures_of(interpreter)
        self._keys = list(self._signatures)
        self._lent: dict[tuple[int, int], weakref.ref[TensorBuffer]] = {}
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """At first, and in the child of a fork, nothing runs."""
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None

    @classmethod
    def from_file(
        cls,
        model_path: str | os.PathLike[str],
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> Self:
        """The model in a file.

        Args:
            hardware_accel: an alternative to `options`; default the CPU.

        Raises:
            ValueError: both `hardware_accel` and `options` are given, or the kernel mode is wrong.
            RuntimeError: it cannot be read, or nothing here runs it.
        """
        return cls._made({"model_path": model_path}, hardware_accel, environment, options)

    @classmethod
    def from_buffer(
        cls,
        model_data: bytes,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> Self:
        """As `from_file`, of the bytes of one."""
        return cls._made({"model_content": model_data}, hardware_accel, environment, options)

    @classmethod
    def _made(
        cls,
        source: dict[str, Any],
        accelerator: HardwareAccelerator | None,
        environment: Environment | None,
        options: Options | None,
    ) -> Self:
        if options is not None and accelerator is not None:
            raise ValueError("Pass either options or hardware_accel, not both.")
        chosen = options or Options(accelerator or HardwareAccelerator.CPU)
        environment = environment or Environment.create()
        with RUNTIME_ERRORS:
            interpreter = Interpreter(
                **source, **arguments_of(chosen, environment.options, cls._preset)
            )
            providers = [each.provider.name for each in interpreter._delegates]
            made = cls(interpreter, environment, providers)
            check_runs(made._signatures.values(), made._ready)
        return made

    def close(self) -> None:
        """Release sessions and memory."""
        if self._thread is not None:
            self._thread.shutdown()
        self._interpreter.close()

    # Signatures ------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of the ``inputs`` and ``outputs`` of each signature, by its key."""
        return {
            key: {"inputs": list(each.inputs.names), "outputs": list(each.outputs.names)}
            for key, each in self._signatures.items()
        }

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """``key``, ``inputs`` and ``outputs`` of a signature.

        Raises:
            RuntimeError: there are fewer signatures.
        """
        key = self._key(index)
        return {"key": key, **self.get_signature_list()[key]}

    def get_num_signatures(self) -> int:
        """How many signatures there are; a model without any has one for its primary subgraph."""
        return len(self._keys)

    def get_signature_index(self, key: str) -> int:
        """The number of a signature; -1 if there is none."""
        return self._keys.index(key) if key in self._keys else -1

    def get_input_tensor_details(self, signature_key: str) -> dict[str, dict[str, Any]]:
        """``name``, ``index``, ``dtype`` and ``shape`` of the tensor of each input, by its name.

        Raises:
            RuntimeError: there is no such signature.
        """
        return self._details(self._signature(signature_key), outputs=False)

    def get_output_tensor_details(self, signature_key: str) -> dict[str, dict[str, Any]]:
        """As `get_input_tensor_details`, for the outputs."""
        return self._details(self._signature(signature_key), outputs=True)

    def is_fully_accelerated(self) -> bool:
        """Whether all operators run on the execution providers that were asked for."""
        with RUNTIME_ERRORS:
            try:
                ready = [self._ready(each) for each in self._signatures.values()]
            except VersionError:  # of a signature that does not run
                return False
            rows = [row for each in ready for row in each.placements()]
        return all(
            row.runs_on == "constant"
            or (row.runs_on == "ort" and set(row.provider.split(", ")) <= set(self._accelerated))
            for row in rows
        )

    # Buffers ---------------------------------------------------------------------------------

    def get_input_buffer_requirements(
        self, input_index: int, signature_index: int = 0
    ) -> dict[str, Any]:
        """``buffer_size`` in bytes, and ``supported_types``: 1 stands for the host's memory.

        Raises:
            RuntimeError: there is no such input.
        """
        return self._requirements(signature_index, input_index, outputs=False)

    def get_output_buffer_requirements(
        self, output_index: int, signature_index: int = 0
    ) -> dict[str, Any]:
        """As `get_input_buffer_requirements`, for an output."""
        return self._requirements(signature_index, output_index, outputs=True)

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """A buffer for one input.

        Raises:
            RuntimeError: there is no such signature or input.
        """
        signature = self._signature(signature_key)
        return self._buffer(signature, named(signature.inputs, input_name, "Input"))

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """A buffer for one output, as `create_input_buffer_by_name`."""
        signature = self._signature(signature_key)
        return self._buffer(signature, named(signature.outputs, output_name, "Output"))

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Buffers for all inputs, in their order."""
        signature = self._signatures[self._key(signature_index)]
        return [self._buffer(signature, index) for index in signature.inputs.indices]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Buffers for all outputs, in their order."""
        signature = self._signatures[self._key(signature_index)]
        return [self._buffer(signature, index) for index in signature.outputs.indices]

    def resize_input_tensor(
        self, input_index: int, dims: Sequence[int], signature_index: int = 0, strict: bool = True
    ) -> None:
        """Give an input another shape; make new buffers afterwards.

        Args:
            strict: only dimensions that the model leaves open may change.

        Raises:
            RuntimeError: there is no such input, or it cannot have that shape.
        """
        signature = self._signatures[self._key(signature_index)]
        with self._lock, RUNTIME_ERRORS:
            index = numbered(signature.inputs, input_index)
            self._interpreter._subgraph(signature.subgraph).resize(index, list(dims), strict)
            for place in [each for each in self._lent if each[0] == signature.subgraph]:
                self._take_back(place)

    def resize_input_tensor_by_name(
        self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True
    ) -> None:
        """As `resize_input_tensor`.

        Raises:
            ValueError: there is no such signature or input.
        """
        if signature_key not in self._signatures:
            raise ValueError(f"Unknown signature: {signature_key}")
        names = self._signatures[signature_key].inputs.names
        if input_name not in names:
            raise ValueError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        number = self.get_signature_index(signature_key)
        self.resize_input_tensor(names.index(input_name), dims, number, strict)

    # Run -------------------------------------------------------------------------------------

    def run_by_index(
        self,
        signature_index: int,
        input_buffers: Sequence[TensorBuffer],
        output_buffers: Sequence[TensorBuffer],
    ) -> None:
        """Run a signature once.

        Raises:
            RuntimeError: there are too few or too many buffers, one has another size than its
                tensor, or an operator failed.
        """
        signature = self._signatures[self._key(signature_index)]
        for side, given, wanted in (
            ("Input", input_buffers, signature.inputs),
            ("Output", output_buffers, signature.outputs),
        ):
            count = len(wanted.indices)
            if len(given) != count:
                raise CompiledModelError(
                    f"{side} buffer size mismatch: number of {side.lower()}s:{count} vs "
                    f"buffers:{len(given)}"
                )
        self._run(
            signature,
            list(zip(signature.inputs.indices, input_buffers, strict=True)),
            list(zip(signature.outputs.indices, output_buffers, strict=True)),
        )

    def run_by_name(
        self,
        signature_key: str,
        input_map: Mapping[str, TensorBuffer],
        output_map: Mapping[str, TensorBuffer],
    ) -> None:
        """As `run_by_index`, with buffers by name."""
        signature = self._signature(signature_key)
        for name in signature.inputs.names:
            if name not in input_map:
                raise CompiledModelError(f"Input tensor not found: {name}")
        self._run(
            signature,
            [(named(signature.inputs, name, "Input"), each) for name, each in input_map.items()],
            [(named(signature.outputs, name, "Output"), each) for name, each in output_map.items()],
        )

    def run_async(
        self,
        signature: int | str,
        inputs: Sequence[TensorBuffer] | Mapping[str, TensorBuffer],
        outputs: Sequence[TensorBuffer] | Mapping[str, TensorBuffer],
    ) -> Future[None]:
        """Run a signature on another thread, one run after the other.

        Do not write to the buffers until the run has ended.

        Args:
            signature: its number, with buffers in order, or its key, with buffers by name.

        Returns:
            Done when the run is; it has the errors of `run_by_index` and `run_by_name`.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "tflite-ort")
        run: Any = self.run_by_name if isinstance(signature, str) else self.run_by_index
        return self._thread.submit(run, signature, inputs, outputs)

    # Inside ----------------------------------------------------------------------------------

    def _run(
        self,
        signature: CompiledSignature,
        inputs: Sequence[tuple[int, TensorBuffer]],
        outputs: Sequence[tuple[int, TensorBuffer]],
    ) -> None:
        with self._lock, RUNTIME_ERRORS:
            subgraph = self._ready(signature)
            number, own_array = signature.subgraph, subgraph.executor.array
            for index, each in chain(inputs, outputs):
                lent = self._lent.get((number, index))
                if lent is not None and lent() is not each:  # which is lent and not used
                    self._take_back((number, index))
            for index, each in inputs:
                own, given = own_array(index), each.array
                if own is not None and not same_memory(own, given):
                    check_fits(own, given)
                    own[...] = plain_bytes(given).view(own.dtype).reshape(own.shape)
            subgraph.calls.alone(subgraph.invoke)
            for index, each in outputs:
                made = subgraph.buffer(index)
                if not same_memory(made, each.array):
                    check_fits(made, each.array)
                    plain_bytes(each.array)[...] = plain_bytes(np.ascontiguousarray(made))

    def _take_back(self, place: tuple[int, int]) -> None:
        """Give the buffer of a tensor that is lent memory of its own."""
        buffer = self._lent.pop(place)()
        if buffer is not None and buffer._array is not None:
            buffer._array = buffer._array.copy()

    def _buffer(self, signature: CompiledSignature, index: int) -> TensorBuffer:
        """The model's own memory, or other memory where that is lent already or not known yet."""
        place = signature.subgraph, index
        with self._lock, RUNTIME_ERRORS:
            subgraph = self._ready(signature)
            own, lent = subgraph.executor.array(index), self._lent.get(place)
            if own is not None and own.flags.c_contiguous and (lent is None or lent() is None):
                buffer = TensorBuffer(own)
                self._lent[place] = weakref.ref(buffer)
                return buffer
            details = subgraph.details(index)
            return TensorBuffer(np.zeros(details["shape"], details["dtype"]))

    def _ready(self, signature: CompiledSignature) -> CheckedSubgraph:
        return self._interpreter._subgraph(signature.subgraph).ready()

    def _details(self, signature: CompiledSignature, *, outputs: bool) -> dict[str, dict[str, Any]]:
        with RUNTIME_ERRORS:
            subgraph = self._interpreter._subgraph(signature.subgraph)
            if outputs:
                subgraph.allocate()
            found = {}
            side = signature.outputs if outputs else signature.inputs
            for name, index in zip(side.names, side.indices, strict=True):
                each = subgraph.details(index)
                found[name] = {
                    "name": each["name"],
                    "index": index,
                    "dtype": np.dtype(each["dtype"]).name,
                    "shape": [int(size) for size in each["shape"]],
                }
            return found

    def _requirements(self, signature: int, number: int, *, outputs: bool) -> dict[str, Any]:
        chosen = self._signatures[self._key(signature)]
        index = numbered(chosen.outputs if outputs else chosen.inputs, number)
        with RUNTIME_ERRORS:
            details = self._ready(chosen).details(index)
        size = int(np.prod(details["shape"], dtype=np.int64)) * np.dtype(details["dtype"]).itemsize
        return {"buffer_size": size, "supported_types": [_HOST_MEMORY]}

    def _key(self, index: int) -> str:
        if not 0 <= index < len(self._keys):
            raise CompiledModelError(f"Signature index {index} of {len(self._keys)}")
        return self._keys[index]

    def _signature(self, key: str) -> CompiledSignature:
        if key not in self._signatures:
            raise CompiledModelError(f"Signature not found: {key}")
        return self._signatures[key]
